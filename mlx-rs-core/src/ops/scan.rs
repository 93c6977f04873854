//! Running sums, products and extremes along an axis; `None` runs over the flattened array.
//!
//! `reverse` runs from the end; without `inclusive`, a position holds the result of the ones before it.
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let a = Array::from_slice(&[1i32, 2, 3], &[3])?;
//! assert_eq!(ops::cumsum(&a, Some(0), false, true, None)?.to_vec::<i32>()?, [1, 3, 6]);
//! assert_eq!(ops::cumsum(&a, Some(0), true, false, None)?.to_vec::<i32>()?, [5, 3, 0]);
//! assert_eq!(ops::diff(&a, 1, -1)?.to_vec::<i32>()?, [1, 1]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use super::call::{at_least, op};
use crate::array::Array;
use crate::element::Dtype;
use crate::error::Result;

macro_rules! scan {
    ($($(#[$doc:meta])+ $name:ident => $all:ident, $axis:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// # Errors
        /// An axis out of range.
        pub fn $name(a: &Array, axis: Option<i32>, reverse: bool, inclusive: bool) -> Result<Array> {
            match axis {
                None => op!(stringify!($name), $all(a, reverse, inclusive)),
                Some(axis) => op!(stringify!($name), $axis(a, axis, reverse, inclusive)),
            }
        }
    )*};
}

macro_rules! typed_scan {
    ($($(#[$doc:meta])+ $name:ident => $all:ident, $axis:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// `dtype` is the result's; `None` leaves it to MLX, which counts bools and small integers in int32.
        ///
        /// # Errors
        /// An axis out of range.
        pub fn $name(
            a: &Array,
            axis: Option<i32>,
            reverse: bool,
            inclusive: bool,
            dtype: Option<Dtype>,
        ) -> Result<Array> {
            match axis {
                None => op!(stringify!($name), $all(a, reverse, inclusive, dtype)),
                Some(axis) => op!(stringify!($name), $axis(a, axis, reverse, inclusive, dtype)),
            }
        }
    )*};
}

typed_scan! {
    /// Running sum.
    cumsum => mlx_cumsum, mlx_cumsum_axis;
    /// Running product.
    cumprod => mlx_cumprod, mlx_cumprod_axis;
}

scan! {
    /// Running maximum.
    cummax => mlx_cummax, mlx_cummax_axis;
    /// Running minimum.
    cummin => mlx_cummin, mlx_cummin_axis;
    /// Running [`logsumexp`](super::logsumexp).
    logcumsumexp => mlx_logcumsumexp, mlx_logcumsumexp_axis;
}

/// Differences of neighbours along `axis`, taken `n` times; the axis shrinks by `n`.
///
/// # Errors
/// A negative `n`, or an axis out of range.
pub fn diff(a: &Array, n: i32, axis: i32) -> Result<Array> {
    at_least("diff", "n", &[n], 0)?;
    op!("diff", mlx_diff(a, n, axis))
}
