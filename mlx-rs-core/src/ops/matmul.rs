//! Products of matrices and vectors.
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
//! let v = Array::from_slice(&[1.0f32, -1.0], &[2])?;
//! assert_eq!(ops::matmul(&a, &v)?.to_vec::<f32>()?, [-1.0, -1.0]);
//! assert_eq!(ops::einsum("ij,j->i", &[&a, &v])?.to_vec::<f32>()?, [-1.0, -1.0]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use std::borrow::Borrow;

use super::call::{op, same_length, vector};
use crate::array::Array;
use crate::error::Result;
use crate::ffi::c_string;

/// `a` `[…, N, K]` times `b` `[…, K, M]`; leading axes broadcast; a vector stands for a row or a column.
///
/// # Errors
/// Inner sizes that differ, a scalar, or leading axes that do not broadcast.
pub fn matmul(a: &Array, b: &Array) -> Result<Array> {
    op!("matmul", mlx_matmul(a, b))
}

/// `alpha * (a @ b) + beta * c`.
///
/// # Errors
/// As [`matmul`], or a `c` that does not broadcast to the product.
pub fn addmm(c: &Array, a: &Array, b: &Array, alpha: f32, beta: f32) -> Result<Array> {
    op!("addmm", mlx_addmm(c, a, b, alpha, beta))
}

/// Products over the last axes: `a` `[…, K]` and `b` `[…, K]`.
///
/// # Errors
/// Last axes that differ.
pub fn inner(a: &Array, b: &Array) -> Result<Array> {
    op!("inner", mlx_inner(a, b))
}

/// All products of the flattened `a` and `b`: `[a.size, b.size]`.
///
/// # Errors
/// What MLX reports.
pub fn outer(a: &Array, b: &Array) -> Result<Array> {
    op!("outer", mlx_outer(a, b))
}

/// The Kronecker product.
///
/// # Errors
/// What MLX reports.
pub fn kron(a: &Array, b: &Array) -> Result<Array> {
    op!("kron", mlx_kron(a, b))
}

/// The dot products along `axis`; the other axes broadcast. The first argument is conjugated.
///
/// # Errors
/// An axis out of range, or sizes that differ.
pub fn vecdot(a: &Array, b: &Array, axis: i32) -> Result<Array> {
    op!("vecdot", mlx_vecdot(a, b, axis))
}

/// Sums the products over the last `axes` axes of `a` and the first ones of `b`.
///
/// # Errors
/// A count out of range, or sizes that differ.
pub fn tensordot(a: &Array, b: &Array, axes: i32) -> Result<Array> {
    op!("tensordot", mlx_tensordot_axis(a, b, axes))
}

/// Sums the products over pairs of axes.
///
/// # Errors
/// Lists of different lengths, an axis out of range, or sizes that differ.
pub fn tensordot_axes(a: &Array, b: &Array, axes_a: &[i32], axes_b: &[i32]) -> Result<Array> {
    same_length("tensordot", "axes", axes_a.len(), axes_b.len())?;
    op!("tensordot", mlx_tensordot(a, b, [axes_a], [axes_b]))
}

/// Einstein summation: `"ij,jk->ik"`.
///
/// # Errors
/// A bad subscript, or operands that do not fit it.
pub fn einsum<A: Borrow<Array>>(subscripts: &str, operands: &[A]) -> Result<Array> {
    let (subscripts, operands) = (c_string("einsum", subscripts)?, vector(operands)?);
    op!("einsum", mlx_einsum(subscripts.as_c_str(), &operands))
}

/// [`matmul`] by blocks of `block_size` (32 or 64), where a mask per block drops it (bool) or scales it.
///
/// # Errors
/// Another block size, or masks that do not fit.
pub fn block_masked_mm(
    a: &Array,
    b: &Array,
    block_size: i32,
    mask_out: Option<&Array>,
    mask_lhs: Option<&Array>,
    mask_rhs: Option<&Array>,
) -> Result<Array> {
    op!("block_masked_mm", mlx_block_masked_mm(a, b, block_size, mask_out, mask_lhs, mask_rhs))
}

/// [`matmul`] of the matrices that the indices choose from the leading axes of `a` and `b`; `sorted_indices` promises
/// that they ascend.
///
/// # Errors
/// Indices that are not integers or do not broadcast, or inner sizes that differ.
pub fn gather_mm(
    a: &Array,
    b: &Array,
    lhs_indices: Option<&Array>,
    rhs_indices: Option<&Array>,
    sorted_indices: bool,
) -> Result<Array> {
    op!("gather_mm", mlx_gather_mm(a, b, lhs_indices, rhs_indices, sorted_indices))
}

/// One product `[N, M]` per segment of the inner axis: `segments` `[…, 2]` holds the ends of each, uint32.
///
/// # Errors
/// Sizes that do not fit.
pub fn segmented_mm(a: &Array, b: &Array, segments: &Array) -> Result<Array> {
    op!("segmented_mm", mlx_segmented_mm(a, b, segments))
}

/// The Hadamard transform along the last axis, times `scale` (by default one over the root of its size).
///
/// # Errors
/// A size other than `m * 2^k` with `m` in 1, 12, 20, 28.
pub fn hadamard_transform(a: &Array, scale: Option<f32>) -> Result<Array> {
    op!("hadamard_transform", mlx_hadamard_transform(a, scale))
}
