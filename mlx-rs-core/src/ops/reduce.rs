//! Reductions over axes: `None` reduces all of them, `keepdims` leaves them with size 1.
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
//! assert_eq!(ops::sum(&a, None, false)?.item::<f32>()?, 10.0);
//! assert_eq!(ops::max(&a, Some(&[0]), true)?.to_vec::<f32>()?, [3.0, 4.0]);
//! assert_eq!(ops::var(&a, Some(&[1]), false, 1)?.to_vec::<f32>()?, [0.5, 0.5]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use super::call::op;
use crate::array::Array;
use crate::cpu_engine;
use crate::element::Dtype;
use crate::error::{Error, Result};

macro_rules! reduction {
    ($($(#[$doc:meta])+ $name:ident => $all:ident, $axis:ident, $axes:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// The reduced axes go, or stay with size 1 under `keepdims`.
        ///
        /// # Errors
        /// An axis out of range or given twice, or (for `max`, `min`, `median`) nothing to reduce.
        pub fn $name(a: &Array, axes: Option<&[i32]>, keepdims: bool) -> Result<Array> {
            match axes {
                None => op!(stringify!($name), $all(a, keepdims)),
                Some(&[axis]) => op!(stringify!($name), $axis(a, axis, keepdims)),
                Some(axes) => op!(stringify!($name), $axes(a, [axes], keepdims)),
            }
        }
    )*};
}

macro_rules! spread {
    ($($(#[$doc:meta])+ $name:ident => $all:ident, $axis:ident, $axes:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// The divisor is the count less `ddof`.
        ///
        /// # Errors
        /// An axis out of range or given twice.
        pub fn $name(a: &Array, axes: Option<&[i32]>, keepdims: bool, ddof: i32) -> Result<Array> {
            match axes {
                None => op!(stringify!($name), $all(a, keepdims, ddof)),
                Some(&[axis]) => op!(stringify!($name), $axis(a, axis, keepdims, ddof)),
                Some(axes) => op!(stringify!($name), $axes(a, [axes], keepdims, ddof)),
            }
        }
    )*};
}

macro_rules! arg_reduction {
    ($($(#[$doc:meta])+ $name:ident => $all:ident, $axis:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// `None` looks through the flattened array. The result is uint32.
        ///
        /// # Errors
        /// An axis out of range, or nothing to look through.
        pub fn $name(a: &Array, axis: Option<i32>, keepdims: bool) -> Result<Array> {
            match axis {
                None => op!(stringify!($name), $all(a, keepdims)),
                Some(axis) => op!(stringify!($name), $axis(a, axis, keepdims)),
            }
        }
    )*};
}

reduction! {
    /// The sum; bools and small integers sum as int32.
    sum => mlx_sum, mlx_sum_axis, mlx_sum_axes;
    /// The product.
    prod => mlx_prod, mlx_prod_axis, mlx_prod_axes;
    /// The mean, in a floating dtype.
    mean => mlx_mean, mlx_mean_axis, mlx_mean_axes;
    /// The greatest value; NaN if there is one.
    max => mlx_max, mlx_max_axis, mlx_max_axes;
    /// The smallest value; NaN if there is one.
    min => mlx_min, mlx_min_axis, mlx_min_axes;
    /// The middle value, or the mean of the two middle ones.
    median => mlx_median, mlx_median_axis, mlx_median_axes;
    /// Whether all are non-zero.
    all => mlx_all, mlx_all_axis, mlx_all_axes;
    /// Whether any is non-zero.
    any => mlx_any, mlx_any_axis, mlx_any_axes;
    /// How many are non-zero.
    count_nonzero => mlx_count_nonzero, mlx_count_nonzero_axis, mlx_count_nonzero_axes;
}

spread! {
    /// The variance.
    var => mlx_var, mlx_var_axis, mlx_var_axes;
    /// The standard deviation.
    std => mlx_std, mlx_std_axis, mlx_std_axes;
}

arg_reduction! {
    /// The index of the greatest value, the first of equals.
    argmax => mlx_argmax, mlx_argmax_axis;
    /// The index of the smallest value, the first of equals.
    argmin => mlx_argmin, mlx_argmin_axis;
}

/// Whether `axes` is the last axis alone and the [CPU engine](crate::cpu_engine) takes reductions over it.
fn engine_reduces(a: &Array, axes: Option<&[i32]>) -> Result<bool> {
    let Some(&[axis]) = axes else { return Ok(false) };
    let last = a.ndim() > 0 && (axis == -1 || usize::try_from(axis).is_ok_and(|axis| axis + 1 == a.ndim()));
    Ok(last && cpu_engine::applies(&[a])?)
}

/// `log(sum(exp(a)))` without overflow.
///
/// The reduced axes go, or stay with size 1 under `keepdims`. Over the last axis alone the
/// [CPU engine](crate::cpu_engine) may compute it.
///
/// # Errors
/// An axis out of range or given twice, or nothing to reduce.
pub fn logsumexp(a: &Array, axes: Option<&[i32]>, keepdims: bool) -> Result<Array> {
    match axes {
        _ if engine_reduces(a, axes)? => cpu_engine::logsumexp_last(a, keepdims),
        None => op!("logsumexp", mlx_logsumexp(a, keepdims)),
        Some(&[axis]) => op!("logsumexp", mlx_logsumexp_axis(a, axis, keepdims)),
        Some(axes) => op!("logsumexp", mlx_logsumexp_axes(a, [axes], keepdims)),
    }
}

/// `exp(a)` over its sum along `axes`; `precise` sums half-precision inputs in float32.
///
/// Over the last axis alone the [CPU engine](crate::cpu_engine) may compute it.
///
/// # Errors
/// An axis out of range or given twice.
pub fn softmax(a: &Array, axes: Option<&[i32]>, precise: bool) -> Result<Array> {
    match axes {
        _ if engine_reduces(a, axes)? => cpu_engine::softmax_last(a),
        None => op!("softmax", mlx_softmax(a, precise)),
        Some(&[axis]) => op!("softmax", mlx_softmax_axis(a, axis, precise)),
        Some(axes) => op!("softmax", mlx_softmax_axes(a, [axes], precise)),
    }
}

/// How many elements `axes` span, or one over it with `inverted`: a scalar that stays right when a compiled graph is
/// run on other shapes.
///
/// # Errors
/// An axis out of range.
pub fn number_of_elements(a: &Array, axes: &[i32], inverted: bool, dtype: Dtype) -> Result<Array> {
    // C takes an axis modulo the rank, which may be 0.
    for &axis in axes {
        a.dim(axis).map_err(|error| Error { op: "number_of_elements", ..error })?;
    }
    op!("number_of_elements", mlx_number_of_elements(a, [axes], inverted, dtype))
}
