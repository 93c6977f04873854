//! Convolutions. Inputs are channels-last `[N, …, C_in]`, weights `[C_out, …, C_in / groups]`.
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[1, 4, 1])?;
//! let w = Array::from_slice(&[1.0f32, 10.0], &[1, 2, 1])?;
//! assert_eq!(ops::conv1d(&x, &w, 1, 0, 1, 1)?.to_vec::<f32>()?, [21.0, 32.0, 43.0]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use super::call::{at_least, op};
use crate::array::Array;
use crate::error::Result;

/// The numbers of [`conv_general`]; an empty list means "the neutral value on every axis".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvGeneral<'a> {
    /// Step of the kernel.
    pub stride: &'a [i32],
    /// Zeros before each axis.
    pub padding_lo: &'a [i32],
    /// Zeros behind each axis.
    pub padding_hi: &'a [i32],
    /// Step between the kernel's elements.
    pub kernel_dilation: &'a [i32],
    /// Step between the input's elements (more than 1 in a transposed convolution).
    pub input_dilation: &'a [i32],
    /// Groups of channels.
    pub groups: i32,
    /// Whether the kernel is turned round (a true convolution instead of a correlation).
    pub flip: bool,
}

impl Default for ConvGeneral<'_> {
    fn default() -> Self {
        Self {
            stride: &[],
            padding_lo: &[],
            padding_hi: &[],
            kernel_dilation: &[],
            input_dilation: &[],
            groups: 1,
            flip: false,
        }
    }
}

/// Steps, groups and channels below 1, which C would divide by.
fn check(op: &'static str, input: &Array, weight: &Array, stride: &[i32], dilation: &[i32], groups: i32) -> Result<()> {
    at_least(op, "stride", stride, 1)?;
    at_least(op, "dilation", dilation, 1)?;
    at_least(op, "groups", &[groups], 1)?;
    let channels = [input, weight].map(|array| array.shape().last().copied().unwrap_or(1));
    at_least(op, "number of channels", &channels, 1)
}

/// Convolves `[N, L, C_in]` with `[C_out, K, C_in / groups]`.
///
/// # Errors
/// Shapes that do not fit, or a stride, dilation, group count or channel count below 1.
pub fn conv1d(input: &Array, weight: &Array, stride: i32, padding: i32, dilation: i32, groups: i32) -> Result<Array> {
    check("conv1d", input, weight, &[stride], &[dilation], groups)?;
    op!("conv1d", mlx_conv1d(input, weight, stride, padding, dilation, groups))
}

/// Convolves `[N, H, W, C_in]` with `[C_out, KH, KW, C_in / groups]`.
///
/// # Errors
/// Shapes that do not fit, or a stride, dilation, group count or channel count below 1.
pub fn conv2d(
    input: &Array,
    weight: &Array,
    stride: [i32; 2],
    padding: [i32; 2],
    dilation: [i32; 2],
    groups: i32,
) -> Result<Array> {
    check("conv2d", input, weight, &stride, &dilation, groups)?;
    let ([s0, s1], [p0, p1], [d0, d1]) = (stride, padding, dilation);
    op!("conv2d", mlx_conv2d(input, weight, s0, s1, p0, p1, d0, d1, groups))
}

/// Convolves `[N, D, H, W, C_in]` with `[C_out, KD, KH, KW, C_in / groups]`.
///
/// # Errors
/// Shapes that do not fit, or a stride, dilation, group count or channel count below 1.
pub fn conv3d(
    input: &Array,
    weight: &Array,
    stride: [i32; 3],
    padding: [i32; 3],
    dilation: [i32; 3],
    groups: i32,
) -> Result<Array> {
    check("conv3d", input, weight, &stride, &dilation, groups)?;
    let ([s0, s1, s2], [p0, p1, p2], [d0, d1, d2]) = (stride, padding, dilation);
    op!("conv3d", mlx_conv3d(input, weight, s0, s1, s2, p0, p1, p2, d0, d1, d2, groups))
}

/// Convolves any number of spatial axes, with every number per axis.
///
/// # Errors
/// Shapes or lists that do not fit, or a stride, dilation, group count or channel count below 1.
pub fn conv_general(input: &Array, weight: &Array, settings: &ConvGeneral) -> Result<Array> {
    let ConvGeneral { stride, padding_lo, padding_hi, kernel_dilation, input_dilation, groups, flip } = *settings;
    check("conv_general", input, weight, stride, kernel_dilation, groups)?;
    at_least("conv_general", "input dilation", input_dilation, 1)?;
    op!(
        "conv_general",
        mlx_conv_general(
            input,
            weight,
            [stride],
            [padding_lo],
            [padding_hi],
            [kernel_dilation],
            [input_dilation],
            groups,
            flip
        )
    )
}

/// The transpose of [`conv1d`].
///
/// # Errors
/// Shapes that do not fit, or a stride, dilation, group count or channel count below 1.
pub fn conv_transpose1d(
    input: &Array,
    weight: &Array,
    stride: i32,
    padding: i32,
    dilation: i32,
    output_padding: i32,
    groups: i32,
) -> Result<Array> {
    check("conv_transpose1d", input, weight, &[stride], &[dilation], groups)?;
    op!("conv_transpose1d", mlx_conv_transpose1d(input, weight, stride, padding, dilation, output_padding, groups))
}

/// The transpose of [`conv2d`].
///
/// # Errors
/// Shapes that do not fit, or a stride, dilation, group count or channel count below 1.
pub fn conv_transpose2d(
    input: &Array,
    weight: &Array,
    stride: [i32; 2],
    padding: [i32; 2],
    dilation: [i32; 2],
    output_padding: [i32; 2],
    groups: i32,
) -> Result<Array> {
    check("conv_transpose2d", input, weight, &stride, &dilation, groups)?;
    let ([s0, s1], [p0, p1], [d0, d1], [o0, o1]) = (stride, padding, dilation, output_padding);
    op!("conv_transpose2d", mlx_conv_transpose2d(input, weight, s0, s1, p0, p1, d0, d1, o0, o1, groups))
}

/// The transpose of [`conv3d`].
///
/// # Errors
/// Shapes that do not fit, or a stride, dilation, group count or channel count below 1.
pub fn conv_transpose3d(
    input: &Array,
    weight: &Array,
    stride: [i32; 3],
    padding: [i32; 3],
    dilation: [i32; 3],
    output_padding: [i32; 3],
    groups: i32,
) -> Result<Array> {
    check("conv_transpose3d", input, weight, &stride, &dilation, groups)?;
    let ([s0, s1, s2], [p0, p1, p2], [d0, d1, d2], [o0, o1, o2]) = (stride, padding, dilation, output_padding);
    op!("conv_transpose3d", mlx_conv_transpose3d(input, weight, s0, s1, s2, p0, p1, p2, d0, d1, d2, o0, o1, o2, groups))
}
