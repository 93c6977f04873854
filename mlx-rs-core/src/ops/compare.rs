//! Comparisons, logic, and tests of values; [`where_`] chooses by them.
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let a = Array::from_slice(&[-1.0f32, 0.0, 2.0], &[3])?;
//! let zero = Array::scalar(0.0f32)?;
//! let positive = ops::greater(&a, &zero)?;
//! assert_eq!(positive.to_vec::<bool>()?, [false, false, true]);
//! assert_eq!(ops::where_(&positive, &a, &zero)?.to_vec::<f32>()?, [0.0, 0.0, 2.0]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use super::call::op;
use crate::array::Array;
use crate::error::Result;

macro_rules! compare {
    ($($(#[$doc:meta])+ $name:ident => $function:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// The result is bool, in the broadcast shape of both.
        ///
        /// # Errors
        /// Shapes that do not broadcast.
        pub fn $name(a: &Array, b: &Array) -> Result<Array> {
            op!(stringify!($name), $function(a, b))
        }
    )*};
}

macro_rules! test {
    ($($(#[$doc:meta])+ $name:ident => $function:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// The result is bool, in the shape of `a`.
        ///
        /// # Errors
        /// What MLX reports.
        pub fn $name(a: &Array) -> Result<Array> {
            op!(stringify!($name), $function(a))
        }
    )*};
}

compare! {
    /// Whether `a == b`.
    equal => mlx_equal;
    /// Whether `a != b`.
    not_equal => mlx_not_equal;
    /// Whether `a < b`.
    less => mlx_less;
    /// Whether `a <= b`.
    less_equal => mlx_less_equal;
    /// Whether `a > b`.
    greater => mlx_greater;
    /// Whether `a >= b`.
    greater_equal => mlx_greater_equal;
    /// Whether both are non-zero.
    logical_and => mlx_logical_and;
    /// Whether either is non-zero.
    logical_or => mlx_logical_or;
    /// Whether exactly one is non-zero.
    logical_xor => mlx_logical_xor;
}

test! {
    /// Whether the value is zero.
    logical_not => mlx_logical_not;
    /// Whether the value is neither infinite nor NaN.
    isfinite => mlx_isfinite;
    /// Whether the value is infinite.
    isinf => mlx_isinf;
    /// Whether the value is not a number.
    isnan => mlx_isnan;
    /// Whether the value is negative infinity.
    isneginf => mlx_isneginf;
    /// Whether the value is positive infinity.
    isposinf => mlx_isposinf;
}

/// `x` where `condition` holds, `y` elsewhere; all three broadcast.
///
/// # Errors
/// Shapes that do not broadcast.
pub fn where_(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    op!("where", mlx_where(condition, x, y))
}

/// Whether two arrays have the same shape and values: a bool scalar. `equal_nan` makes NaN equal to NaN.
///
/// # Errors
/// What MLX reports.
pub fn array_equal(a: &Array, b: &Array, equal_nan: bool) -> Result<Array> {
    op!("array_equal", mlx_array_equal(a, b, equal_nan))
}

/// Whether `|a - b| <= atol + rtol * |b|`, element by element.
///
/// # Errors
/// Shapes that do not broadcast.
pub fn isclose(a: &Array, b: &Array, rtol: f64, atol: f64, equal_nan: bool) -> Result<Array> {
    op!("isclose", mlx_isclose(a, b, rtol, atol, equal_nan))
}

/// Whether [`isclose`] holds everywhere: a bool scalar.
///
/// # Errors
/// Shapes that do not broadcast.
pub fn allclose(a: &Array, b: &Array, rtol: f64, atol: f64, equal_nan: bool) -> Result<Array> {
    op!("allclose", mlx_allclose(a, b, rtol, atol, equal_nan))
}
