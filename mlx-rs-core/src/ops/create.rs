//! New arrays from numbers and shapes.
//!
//! ```
//! use mlx_rs_core::{Array, Dtype, ops};
//! assert_eq!(ops::arange(0.0, 3.0, 1.0, Dtype::Int32)?.to_vec::<i32>()?, [0, 1, 2]);
//! assert_eq!(ops::full(&[2], &Array::scalar(0.5f32)?, Dtype::Float32)?.to_vec::<f32>()?, [0.5, 0.5]);
//! assert_eq!(ops::eye(2, 2, 0, Dtype::Int32)?.to_vec::<i32>()?, [1, 0, 0, 1]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use super::call::{at_least, check_shape, list, op, vector};
use crate::array::Array;
use crate::element::Dtype;
use crate::error::{Error, Result};
use crate::ffi::c_string;

/// Zeros of `shape`.
///
/// # Errors
/// A negative dimension.
pub fn zeros(shape: &[i32], dtype: Dtype) -> Result<Array> {
    check_shape("zeros", shape)?;
    op!("zeros", mlx_zeros([shape], dtype))
}

/// Ones of `shape`.
///
/// # Errors
/// A negative dimension.
pub fn ones(shape: &[i32], dtype: Dtype) -> Result<Array> {
    check_shape("ones", shape)?;
    op!("ones", mlx_ones([shape], dtype))
}

/// An array of `shape` filled with `vals`, which broadcasts to it.
///
/// # Errors
/// A negative dimension, or values that do not broadcast.
pub fn full(shape: &[i32], vals: &Array, dtype: Dtype) -> Result<Array> {
    check_shape("full", shape)?;
    op!("full", mlx_full([shape], vals, dtype))
}

/// Zeros with the shape and dtype of `a`.
///
/// # Errors
/// What MLX reports.
pub fn zeros_like(a: &Array) -> Result<Array> {
    op!("zeros_like", mlx_zeros_like(a))
}

/// Zeros with the shape of `a`, as `dtype`.
///
/// # Errors
/// What MLX reports.
pub fn zeros_like_dtype(a: &Array, dtype: Dtype) -> Result<Array> {
    op!("zeros_like", mlx_zeros_like_dtype(a, dtype))
}

/// Ones with the shape and dtype of `a`.
///
/// # Errors
/// What MLX reports.
pub fn ones_like(a: &Array) -> Result<Array> {
    op!("ones_like", mlx_ones_like(a))
}

/// Ones with the shape of `a`, as `dtype`.
///
/// # Errors
/// What MLX reports.
pub fn ones_like_dtype(a: &Array, dtype: Dtype) -> Result<Array> {
    op!("ones_like", mlx_ones_like_dtype(a, dtype))
}

/// An array with the shape of `a`, filled with `vals` as `dtype`.
///
/// # Errors
/// Values that do not broadcast to the shape of `a`.
pub fn full_like(a: &Array, vals: &Array, dtype: Dtype) -> Result<Array> {
    op!("full_like", mlx_full_like(a, vals, dtype))
}

/// `start`, `start + step`, … below `stop`: a 1-d array.
///
/// # Errors
/// A step of zero, a bound that is not finite, or too many values.
pub fn arange(start: f64, stop: f64, step: f64, dtype: Dtype) -> Result<Array> {
    if step == 0.0 || !(start.is_finite() && stop.is_finite()) || step.is_nan() {
        return Err(Error::argument(
            "arange",
            format!("start {start}, stop {stop}, step {step}: wanted finite bounds and a step other than 0"),
        ));
    }
    op!("arange", mlx_arange(start, stop, step, dtype))
}

/// `num` evenly spaced values from `start` to `stop`, which is the last one if `endpoint`.
///
/// # Errors
/// A negative `num`.
pub fn linspace(start: f64, stop: f64, num: i32, endpoint: bool, dtype: Dtype) -> Result<Array> {
    at_least("linspace", "num", &[num], 0)?;
    op!("linspace", mlx_linspace_endpoint(start, stop, num, endpoint, dtype))
}

/// `[n, m]` with ones on the `k`-th diagonal (positive is above the main one).
///
/// # Errors
/// A negative size.
pub fn eye(n: i32, m: i32, k: i32, dtype: Dtype) -> Result<Array> {
    check_shape("eye", &[n, m])?;
    op!("eye", mlx_eye(n, m, k, dtype))
}

/// The identity matrix `[n, n]`.
///
/// # Errors
/// A negative size.
pub fn identity(n: i32, dtype: Dtype) -> Result<Array> {
    check_shape("identity", &[n, n])?;
    op!("identity", mlx_identity(n, dtype))
}

/// `[n, m]` with ones on and below the `k`-th diagonal.
///
/// # Errors
/// A negative size.
pub fn tri(n: i32, m: i32, k: i32, dtype: Dtype) -> Result<Array> {
    check_shape("tri", &[n, m])?;
    op!("tri", mlx_tri(n, m, k, dtype))
}

/// The matrices of `x` `[…, N, M]` with zeros above the `k`-th diagonal.
///
/// # Errors
/// Fewer than 2 dimensions.
pub fn tril(x: &Array, k: i32) -> Result<Array> {
    op!("tril", mlx_tril(x, k))
}

/// The matrices of `x` `[…, N, M]` with zeros below the `k`-th diagonal.
///
/// # Errors
/// Fewer than 2 dimensions.
pub fn triu(x: &Array, k: i32) -> Result<Array> {
    op!("triu", mlx_triu(x, k))
}

/// The `k`-th diagonal of a matrix, or a square matrix with the 1-d `a` on its `k`-th diagonal.
///
/// # Errors
/// An array that is neither 1-d nor 2-d.
pub fn diag(a: &Array, k: i32) -> Result<Array> {
    op!("diag", mlx_diag(a, k))
}

/// Coordinate grids, one array per 1-d input; `indexing` is `"xy"` or `"ij"`, `sparse` leaves them unbroadcast.
///
/// # Errors
/// Another indexing, or an input of more than one dimension.
pub fn meshgrid(arrays: &[Array], sparse: bool, indexing: &str) -> Result<Vec<Array>> {
    let (arrays, indexing) = (vector(arrays)?, c_string("meshgrid", indexing)?);
    list!("meshgrid", mlx_meshgrid(&arrays, sparse, indexing.as_c_str()))
}

macro_rules! window {
    ($($(#[$doc:meta])+ $name:ident => $function:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// The result is float32 `[m]`.
        ///
        /// # Errors
        /// A negative length.
        pub fn $name(m: i32) -> Result<Array> {
            at_least(stringify!($name), "m", &[m], 0)?;
            op!(stringify!($name), $function(m))
        }
    )*};
}

window! {
    /// The Bartlett (triangle) window.
    bartlett => mlx_bartlett;
    /// The Blackman window.
    blackman => mlx_blackman;
    /// The Hamming window.
    hamming => mlx_hamming;
    /// The Hann window.
    hanning => mlx_hanning;
}
