//! Random numbers. An explicit key makes a call repeatable; without one, the calling thread's own sequence is used,
//! which [`seed`] restarts.
//!
//! ```
//! use mlx_rs_core::{Dtype, random};
//! let key = random::key(7)?;
//! let a = random::uniform(0.0, 1.0, &[3], Dtype::Float32, Some(&key))?;
//! let b = random::uniform(0.0, 1.0, &[3], Dtype::Float32, Some(&key))?;
//! assert_eq!(a.to_vec::<f32>()?, b.to_vec::<f32>()?);
//! assert_eq!(random::split(&key, 4)?.shape(), [4, 2]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use crate::array::Array;
use crate::element::Dtype;
use crate::error::Result;
use crate::ffi;
use crate::ops::broadcast_shapes;
use crate::ops::call::{at_least, check_shape, op, pair};

/// Restarts the calling thread's sequence.
///
/// # Errors
/// What MLX reports.
pub fn seed(seed: u64) -> Result<()> {
    // SAFETY: takes a number only.
    ffi::check("seed", || unsafe { mlx_sys::mlx_random_seed(seed) })
}

/// A key `[2]` (uint32) out of a number.
///
/// # Errors
/// What MLX reports.
pub fn key(seed: u64) -> Result<Array> {
    // SAFETY: the slot lives through the call.
    ffi::array_out("key", |out| unsafe { mlx_sys::mlx_random_key(out, seed) })
}

/// `num` keys `[num, 2]` out of one, each independent of the others.
///
/// # Errors
/// A negative count, or an array that is no key.
pub fn split(key: &Array, num: i32) -> Result<Array> {
    at_least("split", "number of keys", &[num], 0)?;
    op!("split", mlx_random_split_num(key, num))
}

/// Two keys `[2]` out of one.
///
/// # Errors
/// An array that is no key.
pub fn split_pair(key: &Array) -> Result<(Array, Array)> {
    pair!("split", mlx_random_split(key))
}

// --- Continuous -----------------------------------------------------------------------------------------------------

/// Uniform numbers in `low..high`.
///
/// # Errors
/// A negative dimension, a dtype that is not floating, or an array that is no key.
pub fn uniform(low: f32, high: f32, shape: &[i32], dtype: Dtype, key: Option<&Array>) -> Result<Array> {
    uniform_array(&Array::scalar(low)?, &Array::scalar(high)?, shape, dtype, key)
}

/// [`uniform`] with bounds that broadcast to `shape`.
///
/// # Errors
/// As [`uniform`], or bounds that do not broadcast.
pub fn uniform_array(low: &Array, high: &Array, shape: &[i32], dtype: Dtype, key: Option<&Array>) -> Result<Array> {
    check_shape("uniform", shape)?;
    op!("uniform", mlx_random_uniform(low, high, [shape], dtype, key))
}

/// Normal numbers with mean `loc` and standard deviation `scale`.
///
/// # Errors
/// A negative dimension, a dtype that is neither floating nor complex, or an array that is no key.
pub fn normal(shape: &[i32], dtype: Dtype, loc: f32, scale: f32, key: Option<&Array>) -> Result<Array> {
    check_shape("normal", shape)?;
    op!("normal", mlx_random_normal([shape], dtype, loc, scale, key))
}

/// [`normal`] with a mean (default 0) and a standard deviation (default 1) that broadcast to `shape`.
///
/// # Errors
/// As [`normal`], or parameters that do not broadcast.
pub fn normal_array(
    shape: &[i32],
    dtype: Dtype,
    loc: Option<&Array>,
    scale: Option<&Array>,
    key: Option<&Array>,
) -> Result<Array> {
    check_shape("normal", shape)?;
    op!("normal", mlx_random_normal_broadcast([shape], dtype, loc, scale, key))
}

/// Normal vectors with `mean` `[…, N]` and covariance `cov` `[…, N, N]`; `shape` is that of the leading axes.
///
/// # Errors
/// Shapes that do not fit, a dtype other than float32, or a device without it (the decomposition runs on the CPU).
pub fn multivariate_normal(
    mean: &Array,
    cov: &Array,
    shape: &[i32],
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    check_shape("multivariate_normal", shape)?;
    op!("multivariate_normal", mlx_random_multivariate_normal(mean, cov, [shape], dtype, key))
}

/// Standard normal numbers cut to `lower..upper`; `None` takes the broadcast shape of the bounds.
///
/// # Errors
/// A negative dimension, bounds that do not broadcast, a dtype that is not floating, or an array that is no key.
pub fn truncated_normal(
    lower: &Array,
    upper: &Array,
    shape: Option<&[i32]>,
    dtype: Dtype,
    key: Option<&Array>,
) -> Result<Array> {
    let shape = match shape {
        Some(shape) => shape.to_vec(),
        None => broadcast_shapes(&[lower.shape(), upper.shape()])?,
    };
    check_shape("truncated_normal", &shape)?;
    op!("truncated_normal", mlx_random_truncated_normal(lower, upper, [shape], dtype, key))
}

/// Numbers of the standard Gumbel distribution.
///
/// # Errors
/// A negative dimension, a dtype that is not floating, or an array that is no key.
pub fn gumbel(shape: &[i32], dtype: Dtype, key: Option<&Array>) -> Result<Array> {
    check_shape("gumbel", shape)?;
    op!("gumbel", mlx_random_gumbel([shape], dtype, key))
}

/// Numbers of the Laplace distribution around `loc` with the width `scale`.
///
/// # Errors
/// A negative dimension, a dtype that is not floating, or an array that is no key.
pub fn laplace(shape: &[i32], dtype: Dtype, loc: f32, scale: f32, key: Option<&Array>) -> Result<Array> {
    check_shape("laplace", shape)?;
    op!("laplace", mlx_random_laplace([shape], dtype, loc, scale, key))
}

// --- Discrete -------------------------------------------------------------------------------------------------------

/// Random bits in unsigned integers of `width` bytes (1, 2 or 4).
///
/// # Errors
/// A negative dimension, another width, or an array that is no key.
pub fn bits(shape: &[i32], width: i32, key: Option<&Array>) -> Result<Array> {
    check_shape("bits", shape)?;
    op!("bits", mlx_random_bits([shape], width, key))
}

/// Whole numbers in `low..high`.
///
/// # Errors
/// A negative dimension, a floating dtype, or an array that is no key.
pub fn randint(low: i32, high: i32, shape: &[i32], dtype: Dtype, key: Option<&Array>) -> Result<Array> {
    randint_array(&Array::scalar(low)?, &Array::scalar(high)?, shape, dtype, key)
}

/// [`randint`] with bounds that broadcast to `shape`.
///
/// # Errors
/// As [`randint`], or bounds that do not broadcast.
pub fn randint_array(low: &Array, high: &Array, shape: &[i32], dtype: Dtype, key: Option<&Array>) -> Result<Array> {
    check_shape("randint", shape)?;
    op!("randint", mlx_random_randint(low, high, [shape], dtype, key))
}

/// Bools that are true with probability `p`; `None` takes the shape of `p`.
///
/// # Errors
/// A negative dimension, a `p` that does not broadcast or is not floating, or an array that is no key.
pub fn bernoulli(p: &Array, shape: Option<&[i32]>, key: Option<&Array>) -> Result<Array> {
    let shape = shape.unwrap_or(p.shape());
    check_shape("bernoulli", shape)?;
    op!("bernoulli", mlx_random_bernoulli(p, [shape], key))
}

/// One index (uint32) per distribution, whose unnormalised log-probabilities lie along `axis`, which goes.
///
/// # Errors
/// An axis out of range, or an array that is no key.
pub fn categorical(logits: &Array, axis: i32, key: Option<&Array>) -> Result<Array> {
    op!("categorical", mlx_random_categorical(logits, axis, key))
}

/// [`categorical`] in a `shape` that the distributions' own shape broadcasts to.
///
/// # Errors
/// As [`categorical`], or a shape that does not fit.
pub fn categorical_shape(logits: &Array, axis: i32, shape: &[i32], key: Option<&Array>) -> Result<Array> {
    check_shape("categorical", shape)?;
    op!("categorical", mlx_random_categorical_shape(logits, axis, [shape], key))
}

/// [`categorical`] with `num_samples` indices per distribution, along a new last axis.
///
/// # Errors
/// As [`categorical`], or a negative count.
pub fn categorical_num_samples(logits: &Array, axis: i32, num_samples: i32, key: Option<&Array>) -> Result<Array> {
    at_least("categorical", "number of samples", &[num_samples], 0)?;
    op!("categorical", mlx_random_categorical_num_samples(logits, axis, num_samples, key))
}

/// `x` in random order along `axis`.
///
/// # Errors
/// An axis out of range, or an array that is no key.
pub fn permutation(x: &Array, axis: i32, key: Option<&Array>) -> Result<Array> {
    op!("permutation", mlx_random_permutation(x, axis, key))
}

/// The numbers `0..n` in random order (Python's `permutation(n)`).
///
/// # Errors
/// A negative count, or an array that is no key.
pub fn permutation_arange(n: i32, key: Option<&Array>) -> Result<Array> {
    at_least("permutation", "count", &[n], 0)?;
    op!("permutation", mlx_random_permutation_arange(n, key))
}
