//! Matrix–vector products, y = α·M·x + β·y, for products whose result has one row or one column. They are bound by
//! memory, which the blocking of a matrix–matrix product only slows down.

use crate::isa::{self, Kernel};
use crate::threads::{Shared, for_each_span};

/// A real element type of the products.
pub(crate) trait Real:
    Copy + PartialEq + Send + Sync + 'static + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;

    /// self · b + c, fused when `FMA`.
    fn multiply_add<const FMA: bool>(self, b: Self, c: Self) -> Self;
}

macro_rules! real {
    ($type:ty) => {
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            #[inline(always)]
            fn multiply_add<const FMA: bool>(self, b: Self, c: Self) -> Self {
                if FMA { self.mul_add(b, c) } else { self * b + c }
            }
        }
    };
}

real!(f32);
real!(f64);

/// Partial sums of one dot product.
const LANES: usize = 16;
/// Rows whose dot products run together, sharing the loads of x.
const ROWS: usize = 4;
/// Outputs that one task of the column form accumulates; they stay in the first-level cache.
const STRIP: usize = 512;
/// Elements of M that are worth a task of their own.
const GRAIN: usize = 1 << 16;

/// y\[i · y_stride\] = alpha · Σ_p m\[i · row_stride + p · column_stride\] · x\[p · x_stride\] + beta · y\[i · y_stride\].
pub(crate) struct MatrixVector<T> {
    pub rows: usize,
    pub depth: usize,
    pub matrix: *const T,
    pub row_stride: isize,
    pub column_stride: isize,
    pub x: *const T,
    pub x_stride: isize,
    pub y: *mut T,
    pub y_stride: isize,
    pub alpha: T,
    pub beta: T,
}

/// # Safety
/// Every element that the formula of [`MatrixVector`] names is valid (y for writing, M and x for reading), y overlaps
/// neither, and one of the matrix's strides is 1.
pub(crate) unsafe fn gemv<T: Real>(product: MatrixVector<T>) {
    let packed: Vec<T>;
    let x = if product.x_stride == 1 {
        product.x
    } else {
        packed = (0..product.depth as isize)
            // SAFETY: p < depth, which the caller vouches for.
            .map(|p| unsafe { *product.x.offset(p * product.x_stride) })
            .collect();
        packed.as_ptr()
    };
    let matrix = Shared::input(product.matrix);
    let x = Shared::input(x);
    let y = Shared::output(product.y);
    let MatrixVector { rows, depth, row_stride, column_stride, y_stride, alpha, beta, .. } = product;
    if column_stride == 1 {
        for_each_span(rows, (GRAIN / depth.max(1)).max(ROWS), |span| {
            isa::run(Dots {
                count: span.len(),
                depth,
                // SAFETY: span.start < rows.
                matrix: unsafe { matrix.get().offset(span.start as isize * row_stride) },
                row_stride,
                x: x.get(),
                // SAFETY: as above; spans are disjoint, so no two tasks write one element.
                y: unsafe { y.get().offset(span.start as isize * y_stride) },
                y_stride,
                alpha,
                beta,
            });
        });
    } else {
        let strips = rows.div_ceil(STRIP);
        for_each_span(strips, (GRAIN / (STRIP * depth).max(1)).max(1), |span| {
            for strip in span {
                let first = strip * STRIP;
                isa::run(Combination {
                    count: STRIP.min(rows - first),
                    depth,
                    // SAFETY: first < rows, and the row stride is 1 when the column stride is not.
                    matrix: unsafe { matrix.get().add(first) },
                    column_stride,
                    x: x.get(),
                    // SAFETY: as above; strips are disjoint.
                    y: unsafe { y.get().offset(first as isize * y_stride) },
                    y_stride,
                    alpha,
                    beta,
                });
            }
        });
    }
}

/// # Safety
/// `y` is valid for writing, and for reading when `beta` is not zero.
#[inline(always)]
unsafe fn store<T: Real>(y: *mut T, sum: T, alpha: T, beta: T) {
    // SAFETY: the caller's promise. A zero beta must not read y, which may hold NaN or nothing yet.
    unsafe { *y = if beta == T::ZERO { alpha * sum } else { alpha * sum + beta * *y } }
}

/// LANES elements from `start` on; zeros when fewer are left.
#[inline(always)]
fn group<T: Real>(slice: &[T], start: usize) -> [T; LANES] {
    match slice[start..].first_chunk::<LANES>() {
        Some(group) => *group,
        None => [T::ZERO; LANES],
    }
}

/// Rows of M are contiguous: a dot product each.
struct Dots<T> {
    count: usize,
    depth: usize,
    matrix: *const T,
    row_stride: isize,
    x: *const T,
    y: *mut T,
    y_stride: isize,
    alpha: T,
    beta: T,
}

impl<T: Real> Dots<T> {
    /// # Safety
    /// `row + R <= count`.
    #[inline(always)]
    unsafe fn block<const R: usize, const FMA: bool>(&self, row: usize) {
        // SAFETY: x holds `depth` elements, as does each of the R rows from `row` on.
        let (x, rows) = unsafe {
            let x = std::slice::from_raw_parts(self.x, self.depth);
            let mut rows = [x; R];
            for (r, slot) in rows.iter_mut().enumerate() {
                let start = self.matrix.offset((row + r) as isize * self.row_stride);
                *slot = std::slice::from_raw_parts(start, self.depth);
            }
            (x, rows)
        };
        let mut sums = [[T::ZERO; LANES]; R];
        let whole = self.depth / LANES * LANES;
        let mut p = 0;
        while p < whole {
            // Groups by value: arrays of a fixed length carry no bounds checks into the lanes.
            let x = group(x, p);
            for (sums, row) in sums.iter_mut().zip(&rows) {
                let m = group(row, p);
                for lane in 0..LANES {
                    sums[lane] = x[lane].multiply_add::<FMA>(m[lane], sums[lane]);
                }
            }
            p += LANES;
        }
        for r in 0..R {
            let mut width = LANES;
            while width > 1 {
                width /= 2;
                for lane in 0..width {
                    sums[r][lane] = sums[r][lane] + sums[r][lane + width];
                }
            }
            let mut sum = sums[r][0];
            for p in whole..self.depth {
                sum = x[p].multiply_add::<FMA>(rows[r][p], sum);
            }
            // SAFETY: row + r < count, so y has this element.
            unsafe { store(self.y.offset((row + r) as isize * self.y_stride), sum, self.alpha, self.beta) };
        }
    }
}

impl<T: Real> Kernel for Dots<T> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut row = 0;
        while row + ROWS <= self.count {
            // SAFETY: the loop's condition.
            unsafe { self.block::<ROWS, FMA>(row) };
            row += ROWS;
        }
        while row < self.count {
            // SAFETY: the loop's condition.
            unsafe { self.block::<1, FMA>(row) };
            row += 1;
        }
    }
}

/// Columns of M are contiguous: y is their combination with the weights x. `count` is at most [`STRIP`].
struct Combination<T> {
    count: usize,
    depth: usize,
    matrix: *const T,
    column_stride: isize,
    x: *const T,
    y: *mut T,
    y_stride: isize,
    alpha: T,
    beta: T,
}

impl<T: Real> Combination<T> {
    /// Adds columns `p..p + C` to the sums.
    ///
    /// # Safety
    /// `p + C <= depth` and `count <= STRIP`.
    #[inline(always)]
    unsafe fn add<const C: usize, const FMA: bool>(&self, sums: &mut [T; STRIP], p: usize) {
        let mut weights = [T::ZERO; C];
        let mut columns = [self.matrix; C];
        for c in 0..C {
            // SAFETY: p + c < depth.
            unsafe {
                weights[c] = *self.x.add(p + c);
                columns[c] = self.matrix.offset((p + c) as isize * self.column_stride);
            }
        }
        for (i, slot) in sums[..self.count].iter_mut().enumerate() {
            let mut sum = *slot;
            for c in 0..C {
                // SAFETY: i < count, the length of each column.
                sum = weights[c].multiply_add::<FMA>(unsafe { *columns[c].add(i) }, sum);
            }
            *slot = sum;
        }
    }
}

impl<T: Real> Kernel for Combination<T> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut sums = [T::ZERO; STRIP];
        let mut p = 0;
        while p + 4 <= self.depth {
            // SAFETY: the loop's condition; `gemv` cuts strips of at most STRIP.
            unsafe { self.add::<4, FMA>(&mut sums, p) };
            p += 4;
        }
        while p < self.depth {
            // SAFETY: as above.
            unsafe { self.add::<1, FMA>(&mut sums, p) };
            p += 1;
        }
        for (i, sum) in sums[..self.count].iter().enumerate() {
            // SAFETY: i < count, so y has this element.
            unsafe { store(self.y.offset(i as isize * self.y_stride), *sum, self.alpha, self.beta) };
        }
    }
}
