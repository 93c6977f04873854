//! Matrix–matrix products: the choice between the calling thread, the pool and the matrix–vector kernels.
//!
//! The `gemm` crate was chosen by measurement. On 2 cores with AVX2, f32, GFLOP/s over the shapes of `benches/gemm.rs`:
//!
//! | | `gemm` | `faer` (private-gemm-x86) | `matrixmultiply` |
//! |---|---|---|---|
//! | all of m, n, k above 500 | 127–183 | 105–178, the low end with A transposed | 119–162 |
//! | one of them 8 (LoRA) | 52–127 | 50–115 | 23–72 |
//! | m = 1 | 10–25 | 16–50 | 1–6 |
//!
//! Products with one row or column are bound by memory and have kernels of their own (`gemv.rs`).
//!
//! It splits only the rows and columns of C over threads and cuts the depth by K alone, so each element of C is summed
//! in the same order whatever the number of threads; a test holds it to that.

use ::gemm::Parallelism;

use crate::gemv::{MatrixVector, Real, gemv};
use crate::threads::pool;

/// Multiplications below which waking the pool costs more than it gains: about 15 µs of work for one core.
const SERIAL_WORK: usize = 1 << 19;

/// A read-only matrix by its strides in elements.
#[derive(Clone, Copy)]
pub(crate) struct Strided<T> {
    pub data: *const T,
    pub row_stride: isize,
    pub column_stride: isize,
}

impl<T> Strided<T> {
    pub(crate) fn transposed(self) -> Self {
        Self { data: self.data, row_stride: self.column_stride, column_stride: self.row_stride }
    }
}

/// C = alpha · A · B + beta · C with A \[m, k\], B \[k, n\] and a row-major C \[m, n\] whose rows are `ldc` apart.
pub(crate) struct Product<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub alpha: T,
    pub a: Strided<T>,
    pub b: Strided<T>,
    pub beta: T,
    pub c: *mut T,
    pub ldc: usize,
}

// SAFETY: the pointers travel to the pool while the caller of `gemm` waits, and nobody else touches C meanwhile.
unsafe impl<T: Send> Send for Product<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Sync> Sync for Product<T> {}

/// # Safety
/// A and B are valid for reading and C for writing at every index that the sizes allow, C overlaps neither, `ldc >= n`,
/// and A and B each have a stride of 1. When `alpha` or `k` is zero A and B are not read; when `beta` is zero C is not.
pub(crate) unsafe fn gemm<T: Real>(product: &Product<T>) {
    let Product { m, n, k, .. } = *product;
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 || product.alpha == T::ZERO {
        // SAFETY: C as the caller promises.
        unsafe { product.scale() };
        return;
    }
    if m == 1 || n == 1 {
        // SAFETY: the vector form names the same elements as the product.
        unsafe { gemv(product.as_vector()) };
        return;
    }
    let pool = pool();
    if pool.threads() == 1 || m.saturating_mul(n).saturating_mul(k) < SERIAL_WORK {
        // SAFETY: the caller's promise.
        unsafe { product.multiply(Parallelism::None) };
    } else {
        // SAFETY: as above; the crate gives each thread its own part of C.
        pool.install(|| unsafe { product.multiply(Parallelism::Rayon(pool.threads())) });
    }
}

impl<T: Real> Product<T> {
    /// The product as a matrix–vector product: Bᵀ·aᵀ for one row, A·b for one column.
    fn as_vector(&self) -> MatrixVector<T> {
        let (rows, matrix, x, x_stride, y_stride) = if self.m == 1 {
            (self.n, self.b.transposed(), self.a.data, self.a.column_stride, 1)
        } else {
            (self.m, self.a, self.b.data, self.b.row_stride, self.ldc as isize)
        };
        MatrixVector {
            rows,
            depth: self.k,
            matrix: matrix.data,
            row_stride: matrix.row_stride,
            column_stride: matrix.column_stride,
            x,
            x_stride,
            y: self.c,
            y_stride,
            alpha: self.alpha,
            beta: self.beta,
        }
    }

    /// # Safety
    /// As for [`gemm`], with m, n and k above zero.
    unsafe fn multiply(&self, parallelism: Parallelism) {
        // SAFETY: the caller's promise. The crate calls alpha what BLAS calls beta and the other way round, and takes
        // column strides before row strides.
        unsafe {
            ::gemm::gemm(
                self.m,
                self.n,
                self.k,
                self.c,
                1,
                self.ldc as isize,
                self.beta != T::ZERO,
                self.a.data,
                self.a.column_stride,
                self.a.row_stride,
                self.b.data,
                self.b.column_stride,
                self.b.row_stride,
                self.beta,
                self.alpha,
                false,
                false,
                false,
                parallelism,
            );
        }
    }

    /// C = beta · C, writing zeros without reading when beta is zero.
    ///
    /// # Safety
    /// C is valid for writing, and for reading when `beta` is not zero.
    unsafe fn scale(&self) {
        if self.beta == T::ONE {
            return;
        }
        for i in 0..self.m {
            for j in 0..self.n {
                // SAFETY: i < m and j < n.
                unsafe {
                    let element = self.c.add(i * self.ldc + j);
                    *element = if self.beta == T::ZERO { T::ZERO } else { self.beta * *element };
                }
            }
        }
    }
}
