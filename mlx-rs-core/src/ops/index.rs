//! Reading parts of an array: slices, rows by index, diagonals, strided views.
//!
//! Index arrays are not checked; see the [module above](super).
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let a = Array::from_slice(&[1i32, 2, 3, 4, 5, 6], &[3, 2])?;
//! let rows = Array::from_slice(&[2i32, 0], &[2])?;
//! assert_eq!(ops::take(&a, &rows, Some(0))?.to_vec::<i32>()?, [5, 6, 1, 2]);
//! assert_eq!(ops::slice(&a, &[0, 1], &[3, 2], &[2, 1])?.to_vec::<i32>()?, [2, 6]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use super::call::{check_shape, op, same_length, vector};
use crate::array::Array;
use crate::element::Dtype;
use crate::error::{Error, Result};

/// `a[start:stop:strides]` on every axis; bounds are cut to the shape, negative ones count from the end.
///
/// # Errors
/// Lists that are not one entry per axis, or a stride of 0.
pub fn slice(a: &Array, start: &[i32], stop: &[i32], strides: &[i32]) -> Result<Array> {
    check_bounds("slice", a, start, stop, strides)?;
    op!("slice", mlx_slice(a, [start], [stop], [strides]))
}

/// Lists that fit `a`, and no stride by which C would divide by zero.
pub(super) fn check_bounds(op: &'static str, a: &Array, start: &[i32], stop: &[i32], strides: &[i32]) -> Result<()> {
    same_length(op, "start and axes", start.len(), a.ndim())?;
    same_length(op, "stop and axes", stop.len(), a.ndim())?;
    same_length(op, "strides and axes", strides.len(), a.ndim())?;
    if strides.contains(&0) {
        return Err(Error::argument(op, format!("strides {strides:?} contain a 0")));
    }
    Ok(())
}

/// A block of `slice_size` (one entry per axis of `a`) whose `start` (an integer array, one entry per listed axis) is
/// only known when the graph runs. Python names this `slice`.
///
/// # Errors
/// An axis out of range or given twice, or sizes that do not fit.
pub fn slice_dynamic(a: &Array, start: &Array, axes: &[i32], slice_size: &[i32]) -> Result<Array> {
    check_shape("slice", slice_size)?;
    op!("slice", mlx_slice_dynamic(a, start, [axes], [slice_size]))
}

/// The entries of `axis` at `indices`, whose shape takes the place of the axis; `None` indexes the flattened array.
///
/// # Errors
/// An axis out of range, or indices that are not integers.
pub fn take(a: &Array, indices: &Array, axis: Option<i32>) -> Result<Array> {
    match axis {
        None => op!("take", mlx_take(a, indices)),
        Some(axis) => op!("take", mlx_take_axis(a, indices, axis)),
    }
}

/// The entry of `axis` at each index; `indices` has the dimensions of `a` and broadcasts off the axis.
///
/// # Errors
/// An axis out of range, or other shapes.
pub fn take_along_axis(a: &Array, indices: &Array, axis: i32) -> Result<Array> {
    op!("take_along_axis", mlx_take_along_axis(a, indices, axis))
}

/// Blocks of `slice_sizes` (one entry per axis of `a`) whose corners on `axes` are `indices`, one array per axis.
///
/// The result is the broadcast shape of the indices followed by `slice_sizes`.
///
/// # Errors
/// Sizes or axes that do not fit, or indices that do not broadcast.
pub fn gather(a: &Array, indices: &[Array], axes: &[i32], slice_sizes: &[i32]) -> Result<Array> {
    check_shape("gather", slice_sizes)?;
    same_length("gather", "indices and axes", indices.len(), axes.len())?;
    let indices = vector(indices)?;
    op!("gather", mlx_gather(a, &indices, [axes], [slice_sizes]))
}

/// The diagonals of the planes of `axis1` and `axis2`, as the last axis; `offset` counts upwards from the main one.
///
/// # Errors
/// Fewer than 2 dimensions, an axis out of range, or one axis twice.
pub fn diagonal(a: &Array, offset: i32, axis1: i32, axis2: i32) -> Result<Array> {
    op!("diagonal", mlx_diagonal(a, offset, axis1, axis2))
}

/// The sums of the [`diagonal`]s; `dtype` is the result's, by default that of `a`.
///
/// # Errors
/// Fewer than 2 dimensions, an axis out of range, or one axis twice.
pub fn trace(a: &Array, offset: i32, axis1: i32, axis2: i32, dtype: Option<Dtype>) -> Result<Array> {
    op!("trace", mlx_trace_axes(a, offset, axis1, axis2, dtype.unwrap_or(a.dtype())))
}

/// The flattened `a` seen through a shape, strides and an offset (in elements); by default its own shape, row-major.
///
/// # Errors
/// Lists of different lengths, or a view that reaches outside the elements of `a`.
pub fn as_strided(a: &Array, shape: Option<&[i32]>, strides: Option<&[i64]>, offset: usize) -> Result<Array> {
    let shape = shape.unwrap_or(a.shape());
    check_shape("as_strided", shape)?;
    let row_major = row_major_strides(shape);
    let strides = strides.unwrap_or(&row_major);
    same_length("as_strided", "shape and strides", shape.len(), strides.len())?;
    check_reach(a, shape, strides, offset)?;
    op!("as_strided", mlx_as_strided(a, [shape], [strides], offset))
}

fn row_major_strides(shape: &[i32]) -> Vec<i64> {
    let mut strides: Vec<i64> = shape
        .iter()
        .rev()
        .scan(1i64, |step, &dim| {
            let stride = *step;
            *step = step.saturating_mul(i64::from(dim));
            Some(stride)
        })
        .collect();
    strides.reverse();
    strides
}

/// MLX does not check that a strided view stays inside its buffer.
fn check_reach(a: &Array, shape: &[i32], strides: &[i64], offset: usize) -> Result<()> {
    if shape.contains(&0) {
        return Ok(());
    }
    let (mut first, mut last) = (offset as i128, offset as i128);
    for (&dim, &stride) in shape.iter().zip(strides) {
        let reach = i128::from(dim - 1) * i128::from(stride);
        if reach < 0 { first += reach } else { last += reach }
    }
    if first < 0 || last >= a.size() as i128 {
        return Err(Error::shape(
            "as_strided",
            format!(
                "shape {shape:?} with strides {strides:?} and offset {offset} reaches elements {first} to {last} of {}",
                a.size()
            ),
        ));
    }
    Ok(())
}
