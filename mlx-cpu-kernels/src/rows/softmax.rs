//! softmax and logsumexp over the last axis of a \[rows, cols\] matrix, with their backward passes.
//!
//! With m = max x: w_i = e^(x_i − m), softmax_i = w_i / Σ w, logsumexp = m + ln Σ w. Softmax weights under e⁻⁸⁰ are 0.
//! A row that holds NaN or +∞, or nothing but −∞, has NaN for softmax; its logsumexp is NaN, +∞ and −∞.

use std::ops::Range;

use crate::isa::{self, Kernel};
use crate::rows::exponential::SMALLEST_WEIGHT;
use crate::rows::{exp_weight, flush};
use crate::threads::{Shared, for_each_span};

/// Elements of a row handled at a time, on the stack.
const BLOCK: usize = 512;
/// Partial sums and maxima of a row.
const LANES: usize = 32;
/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 14;

/// y = softmax(x) over the last axis.
///
/// # Safety
/// `x` and `y` are valid for `rows * cols` elements; they may be the same buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_softmax_f32(rows: usize, cols: usize, x: *const f32, y: *mut f32) {
    let (x, y) = (Shared::input(x), Shared::output(y));
    let queries = usize::MAX;
    for_each_rows(rows, cols, |rows| isa::run(Softmax { rows, cols, queries, x: x.get(), y: y.get() }));
}

/// y = softmax(x) over the last axis under a causal mask. Row r belongs to query q = r mod `queries`, which sees the
/// first q + 1 + cols − queries columns; the others get 0. A row that sees none has 1 / cols everywhere. With `queries`
/// 0 nothing is written.
///
/// # Safety
/// `x` and `y` are valid for `rows * cols` elements; they may be the same buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_causal_softmax_f32(rows: usize, cols: usize, queries: usize, x: *const f32, y: *mut f32) {
    if queries == 0 {
        return;
    }
    let (x, y) = (Shared::input(x), Shared::output(y));
    for_each_rows(rows, cols, |rows| isa::run(Softmax { rows, cols, queries, x: x.get(), y: y.get() }));
}

/// dx = y · (dy − Σ dy · y), with y the result of softmax.
///
/// # Safety
/// All are valid for `rows * cols` elements; `dx` may be the same buffer as `y` or `dy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_softmax_backward_f32(
    rows: usize,
    cols: usize,
    y: *const f32,
    dy: *const f32,
    dx: *mut f32,
) {
    let (y, dy, dx) = (Shared::input(y), Shared::input(dy), Shared::output(dx));
    for_each_rows(rows, cols, |rows| {
        isa::run(SoftmaxBackward { rows, cols, y: y.get(), dy: dy.get(), dx: dx.get() });
    });
}

/// y\[r\] = logsumexp of row r of x.
///
/// # Safety
/// `x` is valid for `rows * cols` elements and `y` for `rows`; they do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_logsumexp_f32(rows: usize, cols: usize, x: *const f32, y: *mut f32) {
    if cols == 0 {
        for r in 0..rows {
            // SAFETY: r < rows. The sum over nothing is 0, its logarithm −∞.
            unsafe { *y.add(r) = f32::NEG_INFINITY };
        }
        return;
    }
    let (x, y) = (Shared::input(x), Shared::output(y));
    for_each_rows(rows, cols, |rows| isa::run(LogSumExp { rows, cols, x: x.get(), y: y.get() }));
}

/// dx = dy\[r\] · e^(x − y\[r\]), with y the result of logsumexp.
///
/// # Safety
/// `x` and `dx` are valid for `rows * cols` elements and may be the same buffer; `y` and `dy` for `rows`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_logsumexp_backward_f32(
    rows: usize,
    cols: usize,
    x: *const f32,
    y: *const f32,
    dy: *const f32,
    dx: *mut f32,
) {
    let (x, y) = (Shared::input(x), Shared::input(y));
    let (dy, dx) = (Shared::input(dy), Shared::output(dx));
    for_each_rows(rows, cols, |rows| {
        isa::run(LogSumExpBackward { rows, cols, x: x.get(), y: y.get(), dy: dy.get(), dx: dx.get() });
    });
}

fn for_each_rows(rows: usize, cols: usize, task: impl Fn(Range<usize>) + Send + Sync) {
    if cols > 0 {
        for_each_span(rows, GRAIN.div_ceil(cols), task);
    }
}

/// # Safety
/// `start` is valid for reading `len` elements that nobody writes while the slice lives.
#[inline(always)]
unsafe fn input<'a>(start: *const f32, len: usize) -> &'a [f32] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// The largest element, NaN left aside; −∞ when there is none.
#[inline(always)]
fn largest(x: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            *lane = if *v > *lane { *v } else { *lane };
        }
    }
    let mut all = f32::NEG_INFINITY;
    for v in lanes.iter().chain(rest) {
        all = if *v > all { *v } else { all };
    }
    all
}

/// The sum of the lanes, in a fixed order.
#[inline(always)]
fn total(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
    }
    lanes[0]
}

/// Writes e^(x − shift) to the front of `weights`, zeros to the end of its last group of lanes, and adds all to `sums`.
/// `x` is at most a block.
#[inline(always)]
fn weigh<const FMA: bool>(x: &[f32], shift: f32, weights: &mut [f32; BLOCK], sums: &mut [f32; LANES]) {
    let count = x.len().min(BLOCK);
    for i in 0..count {
        weights[i] = exp_weight::<FMA>(x[i] - shift);
    }
    let padded = count.next_multiple_of(LANES).min(BLOCK);
    weights[count..padded].fill(0.0);
    for chunk in weights[..padded].chunks_exact(LANES) {
        for (sum, weight) in sums.iter_mut().zip(chunk) {
            *sum += *weight;
        }
    }
}

struct Softmax {
    rows: Range<usize>,
    cols: usize,
    /// Rows of one causal mask; `usize::MAX` without a mask.
    queries: usize,
    x: *const f32,
    y: *mut f32,
}

impl Softmax {
    /// The number of columns that row `r` sees.
    #[inline(always)]
    fn visible(&self, r: usize) -> usize {
        if self.queries == usize::MAX {
            return self.cols;
        }
        (r % self.queries + 1 + self.cols).saturating_sub(self.queries)
    }
}

impl Kernel for Softmax {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut weights = [0.0; BLOCK];
        for r in self.rows.clone() {
            let visible = self.visible(r);
            // SAFETY: row r lies inside both buffers, and only this task writes it; `visible` is at most its length. Each
            // slice of x ends before y, which may be the same buffer, is written.
            unsafe {
                let x = self.x.add(r * self.cols);
                let y = self.y.add(r * self.cols);
                if visible == 0 {
                    std::slice::from_raw_parts_mut(y, self.cols).fill(1.0 / self.cols as f32);
                    continue;
                }
                let shift = largest(input(x, visible));
                let mut sums = [0.0; LANES];
                let mut start = 0;
                while start < visible {
                    let count = BLOCK.min(visible - start);
                    weigh::<FMA>(input(x.add(start), count), shift, &mut weights, &mut sums);
                    std::ptr::copy_nonoverlapping(weights.as_ptr(), y.add(start), count);
                    start += count;
                }
                let scale = 1.0 / total(sums);
                let (seen, hidden) = std::slice::from_raw_parts_mut(y, self.cols).split_at_mut(visible);
                for weight in seen {
                    let scaled = *weight * scale;
                    *weight = if scaled < SMALLEST_WEIGHT { 0.0 } else { scaled };
                }
                hidden.fill(0.0);
            }
        }
    }
}

struct SoftmaxBackward {
    rows: Range<usize>,
    cols: usize,
    y: *const f32,
    dy: *const f32,
    dx: *mut f32,
}

impl Kernel for SoftmaxBackward {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut block = [0.0; BLOCK];
        for r in self.rows {
            // SAFETY: row r lies inside the buffers, and only this task writes it. A block of y and dy is read before the
            // same block of dx, which may be one of them, is written.
            unsafe {
                let (y, dy) = (self.y.add(r * self.cols), self.dy.add(r * self.cols));
                let dx = self.dx.add(r * self.cols);
                let product = dot::<FMA>(input(y, self.cols), input(dy, self.cols));
                let mut start = 0;
                while start < self.cols {
                    let count = BLOCK.min(self.cols - start);
                    let (y, dy) = (input(y.add(start), count), input(dy.add(start), count));
                    for i in 0..count {
                        block[i] = flush(y[i] * (dy[i] - product));
                    }
                    std::ptr::copy_nonoverlapping(block.as_ptr(), dx.add(start), count);
                    start += count;
                }
            }
        }
    }
}

/// Σ a · b over slices of one length.
#[inline(always)]
fn dot<const FMA: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    for (a, b) in a_chunks.zip(b_chunks) {
        for i in 0..LANES {
            lanes[i] = if FMA { a[i].mul_add(b[i], lanes[i]) } else { a[i] * b[i] + lanes[i] };
        }
    }
    let mut sum = total(lanes);
    for (a, b) in rest {
        sum += a * b;
    }
    sum
}

struct LogSumExp {
    rows: Range<usize>,
    cols: usize,
    x: *const f32,
    y: *mut f32,
}

impl Kernel for LogSumExp {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut weights = [0.0; BLOCK];
        for r in self.rows {
            // SAFETY: row r lies inside x, element r inside y; only this task writes it.
            let (x, y) = unsafe { (input(self.x.add(r * self.cols), self.cols), &mut *self.y.add(r)) };
            let shift = largest(x);
            if shift.is_infinite() {
                // x − shift would be NaN where x is the same infinity.
                *y = if x.iter().any(|v| v.is_nan()) { f32::NAN } else { shift };
                continue;
            }
            let mut sums = [0.0; LANES];
            for block in x.chunks(BLOCK) {
                weigh::<FMA>(block, shift, &mut weights, &mut sums);
            }
            *y = shift + total(sums).ln();
        }
    }
}

struct LogSumExpBackward {
    rows: Range<usize>,
    cols: usize,
    x: *const f32,
    y: *const f32,
    dy: *const f32,
    dx: *mut f32,
}

impl Kernel for LogSumExpBackward {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut block = [0.0; BLOCK];
        for r in self.rows {
            // SAFETY: row r lies inside x and dx, element r inside y and dy; only this task writes row r. A block of x is
            // read before the same block of dx, which may be the same buffer, is written.
            unsafe {
                let (x, dx) = (self.x.add(r * self.cols), self.dx.add(r * self.cols));
                let (shift, scale) = (*self.y.add(r), *self.dy.add(r));
                let mut start = 0;
                while start < self.cols {
                    let count = BLOCK.min(self.cols - start);
                    let x = input(x.add(start), count);
                    for i in 0..count {
                        block[i] = flush(scale * exp_weight::<FMA>(x[i] - shift));
                    }
                    std::ptr::copy_nonoverlapping(block.as_ptr(), dx.add(start), count);
                    start += count;
                }
            }
        }
    }
}
