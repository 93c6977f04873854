//! Quantised matrices: packed weights with a scale (and, in mode `"affine"`, a bias) per group of a row.
//!
//! Modes are `"affine"`, `"mxfp4"`, `"mxfp8"` and `"nvfp4"`; `None` for group size and bits takes the mode's default.
//!
//! ```
//! use mlx_rs_core::{Array, Dtype, ops};
//! let w = ops::reshape(&ops::arange(0.0, 128.0, 1.0, Dtype::Float32)?, &[2, 64])?;
//! let parts = ops::quantize(&w, Some(64), Some(8), "affine")?;
//! assert_eq!((parts[0].shape(), parts[1].shape()), (&[2, 16][..], &[2, 1][..]));
//! let again = ops::dequantize(&parts[0], &parts[1], Some(&parts[2]), Some(64), Some(8), "affine", None)?;
//! let worst = ops::max(&ops::abs(&ops::subtract(&w, &again)?)?, None, false)?;
//! assert!(worst.item::<f32>()? < 0.2);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```
#![allow(clippy::too_many_arguments, reason = "the argument lists are those of MLX's Python API")]

use std::ffi::CString;

use super::call::{list, op, positive};
use crate::array::Array;
use crate::element::Dtype;
use crate::error::Result;
use crate::ffi::c_string;

/// The mode as C takes it, after a look at the numbers that C divides by before it looks at them.
fn checked_mode(op: &'static str, group_size: Option<i32>, bits: Option<i32>, mode: &str) -> Result<CString> {
    positive(op, "group size", group_size)?;
    positive(op, "bits", bits)?;
    c_string(op, mode)
}

/// Quantises `w` `[…, N, K]` in groups along its last axis: packed weight, scales, and biases if the mode has them.
///
/// # Errors
/// Fewer than 2 dimensions, a last axis that the group size does not divide, or a mode, group size or bits that MLX
/// does not have.
pub fn quantize(w: &Array, group_size: Option<i32>, bits: Option<i32>, mode: &str) -> Result<Vec<Array>> {
    let mode = checked_mode("quantize", group_size, bits, mode)?;
    list!("quantize", mlx_quantize(w, group_size, bits, mode.as_c_str(), None::<&Array>))
}

/// [`quantize`] with a float32 scale of the whole matrix, which mode `"nvfp4"` takes.
///
/// # Errors
/// As [`quantize`], or a scale in another mode.
pub fn quantize_scaled(
    w: &Array,
    group_size: Option<i32>,
    bits: Option<i32>,
    mode: &str,
    global_scale: &Array,
) -> Result<Vec<Array>> {
    let mode = checked_mode("quantize", group_size, bits, mode)?;
    list!("quantize", mlx_quantize(w, group_size, bits, mode.as_c_str(), global_scale))
}

/// The dense matrix behind a quantised one; `dtype` is by default that of the scales (bfloat16 for the mx modes).
///
/// # Errors
/// Parts that do not fit one another or the mode.
pub fn dequantize(
    w: &Array,
    scales: &Array,
    biases: Option<&Array>,
    group_size: Option<i32>,
    bits: Option<i32>,
    mode: &str,
    dtype: Option<Dtype>,
) -> Result<Array> {
    dequantize_scaled(w, scales, biases, group_size, bits, mode, None, dtype)
}

/// [`dequantize`] with the float32 scale of the whole matrix that [`quantize_scaled`] was given.
///
/// # Errors
/// As [`dequantize`], or a scale in a mode other than `"nvfp4"`.
pub fn dequantize_scaled(
    w: &Array,
    scales: &Array,
    biases: Option<&Array>,
    group_size: Option<i32>,
    bits: Option<i32>,
    mode: &str,
    global_scale: Option<&Array>,
    dtype: Option<Dtype>,
) -> Result<Array> {
    let mode = checked_mode("dequantize", group_size, bits, mode)?;
    op!("dequantize", mlx_dequantize(w, scales, biases, group_size, bits, mode.as_c_str(), global_scale, dtype))
}

/// `x @ w` (`x @ w.T` with `transpose`) with a quantised `w`.
///
/// # Errors
/// Parts that do not fit one another, the mode, or `x`.
pub fn quantized_matmul(
    x: &Array,
    w: &Array,
    scales: &Array,
    biases: Option<&Array>,
    transpose: bool,
    group_size: Option<i32>,
    bits: Option<i32>,
    mode: &str,
) -> Result<Array> {
    let mode = checked_mode("quantized_matmul", group_size, bits, mode)?;
    op!("quantized_matmul", mlx_quantized_matmul(x, w, scales, biases, transpose, group_size, bits, mode.as_c_str()))
}

/// [`quantized_matmul`] of the matrices that the indices choose from the leading axes; `sorted_indices` promises that
/// they ascend.
///
/// # Errors
/// Parts that do not fit one another, the mode, or `x`; indices that are not integers or do not broadcast.
pub fn gather_qmm(
    x: &Array,
    w: &Array,
    scales: &Array,
    biases: Option<&Array>,
    lhs_indices: Option<&Array>,
    rhs_indices: Option<&Array>,
    transpose: bool,
    group_size: Option<i32>,
    bits: Option<i32>,
    mode: &str,
    sorted_indices: bool,
) -> Result<Array> {
    let mode = checked_mode("gather_qmm", group_size, bits, mode)?;
    op!(
        "gather_qmm",
        mlx_gather_qmm(
            x,
            w,
            scales,
            biases,
            lhs_indices,
            rhs_indices,
            transpose,
            group_size,
            bits,
            mode.as_c_str(),
            sorted_indices
        )
    )
}

/// `x @ w.T` with both quantised (`x` on the way), in mode `"nvfp4"` or `"mxfp8"`; a dense `w` has no `scales`.
///
/// # Errors
/// Parts that do not fit, another mode, or a device without it.
pub fn qqmm(
    x: &Array,
    w: &Array,
    scales: Option<&Array>,
    group_size: Option<i32>,
    bits: Option<i32>,
    mode: &str,
    global_scale_x: Option<&Array>,
    global_scale_w: Option<&Array>,
) -> Result<Array> {
    let mode = checked_mode("qqmm", group_size, bits, mode)?;
    op!("qqmm", mlx_qqmm(x, w, scales, group_size, bits, mode.as_c_str(), global_scale_x, global_scale_w))
}

/// [`qqmm`] of the matrices that the indices choose from the leading axes.
///
/// # Errors
/// As [`qqmm`]; indices that are not integers or do not broadcast.
pub fn gather_qqmm(
    x: &Array,
    w: &Array,
    scales: Option<&Array>,
    lhs_indices: Option<&Array>,
    rhs_indices: Option<&Array>,
    group_size: Option<i32>,
    bits: Option<i32>,
    mode: &str,
    global_scale_x: Option<&Array>,
    global_scale_w: Option<&Array>,
    sorted_indices: bool,
) -> Result<Array> {
    let mode = checked_mode("gather_qqmm", group_size, bits, mode)?;
    op!(
        "gather_qqmm",
        mlx_gather_qqmm(
            x,
            w,
            scales,
            lhs_indices,
            rhs_indices,
            group_size,
            bits,
            mode.as_c_str(),
            global_scale_x,
            global_scale_w,
            sorted_indices
        )
    )
}
