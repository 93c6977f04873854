//! The arguments of a CBLAS product, checked in the order and by the rules of CBLAS.

use std::ffi::c_int;

use crate::gemm::{Product, Strided, gemm};
use crate::gemv::Real;

pub(crate) const ROW_MAJOR: c_int = 101;
pub(crate) const COLUMN_MAJOR: c_int = 102;
pub(crate) const NO_TRANSPOSE: c_int = 111;
pub(crate) const TRANSPOSE: c_int = 112;
pub(crate) const CONJUGATE_TRANSPOSE: c_int = 113;

/// The arguments of `cblas_?gemm` in their order, which numbers them from 1.
pub(crate) struct Arguments<T> {
    pub layout: c_int,
    pub transpose_a: c_int,
    pub transpose_b: c_int,
    pub m: c_int,
    pub n: c_int,
    pub k: c_int,
    pub alpha: T,
    pub a: *const T,
    pub lda: c_int,
    pub b: *const T,
    pub ldb: c_int,
    pub beta: T,
    pub c: *mut T,
    pub ldc: c_int,
}

/// Computes the product that the arguments ask for.
///
/// # Safety
/// As for `cblas_sgemm`; wrong numbers and null pointers are safe.
///
/// # Errors
/// The position of the first wrong argument.
pub(crate) unsafe fn multiply<T: Real>(arguments: &Arguments<T>) -> Result<(), c_int> {
    if let Some(product) = arguments.product()? {
        // SAFETY: `product` has checked the leading dimensions against the sizes; the rest is the caller's promise.
        unsafe { gemm(&product) };
    }
    Ok(())
}

impl<T: Real> Arguments<T> {
    /// The product in row-major form; `None` when there is nothing to compute.
    fn product(&self) -> Result<Option<Product<T>>, c_int> {
        let row_major = match self.layout {
            ROW_MAJOR => true,
            COLUMN_MAJOR => false,
            _ => return Err(1),
        };
        let transposed_a = is_transposed(self.transpose_a).ok_or(2)?;
        let transposed_b = is_transposed(self.transpose_b).ok_or(3)?;
        let m = usize::try_from(self.m).map_err(|_| 4)?;
        let n = usize::try_from(self.n).map_err(|_| 5)?;
        let k = usize::try_from(self.k).map_err(|_| 6)?;
        let lda = leading_dimension(self.lda, if row_major != transposed_a { k } else { m }).ok_or(9)?;
        let ldb = leading_dimension(self.ldb, if row_major != transposed_b { n } else { k }).ok_or(11)?;
        let ldc = leading_dimension(self.ldc, if row_major { n } else { m }).ok_or(14)?;
        if m == 0 || n == 0 {
            return Ok(None);
        }
        let reads_operands = k > 0 && self.alpha != T::ZERO;
        if reads_operands && self.a.is_null() {
            return Err(8);
        }
        if reads_operands && self.b.is_null() {
            return Err(10);
        }
        if self.c.is_null() {
            return Err(13);
        }
        let a = strided(self.a, lda, row_major != transposed_a);
        let b = strided(self.b, ldb, row_major != transposed_b);
        let Self { alpha, beta, c, .. } = *self;
        // A column-major C is Cᵀ = op(B)ᵀ · op(A)ᵀ in row-major form.
        Ok(Some(if row_major {
            Product { m, n, k, alpha, a, b, beta, c, ldc }
        } else {
            Product { m: n, n: m, k, alpha, a: b.transposed(), b: a.transposed(), beta, c, ldc }
        }))
    }
}

fn is_transposed(flag: c_int) -> Option<bool> {
    match flag {
        NO_TRANSPOSE => Some(false),
        TRANSPOSE | CONJUGATE_TRANSPOSE => Some(true),
        _ => None,
    }
}

/// The leading dimension when it is at least the length of a stored row or column, and at least 1.
fn leading_dimension(given: c_int, length: usize) -> Option<usize> {
    usize::try_from(given).ok().filter(|given| *given >= length.max(1))
}

fn strided<T>(data: *const T, leading: usize, rows_contiguous: bool) -> Strided<T> {
    let leading = leading as isize;
    if rows_contiguous {
        Strided { data, row_stride: leading, column_stride: 1 }
    } else {
        Strided { data, row_stride: 1, column_stride: leading }
    }
}
