//! Other shapes of the same elements: reshape, reorder, join, cut, repeat, pad.
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let a = Array::from_slice(&[1i32, 2, 3, 4, 5, 6], &[2, 3])?;
//! assert_eq!(ops::transpose(&a, None)?.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
//! let parts = ops::split_at(&a, &[1], 1)?;
//! assert_eq!((parts[0].shape(), parts[1].shape()), (&[2, 1][..], &[2, 2][..]));
//! assert_eq!(ops::concatenate(&[&parts[1], &parts[0]], 1)?.to_vec::<i32>()?, [2, 3, 1, 5, 6, 4]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use std::borrow::Borrow;

use super::call::{at_least, check_shape, list, op, same_length, vector};
use crate::array::{Array, element_count};
use crate::error::{Error, Result};
use crate::ffi::c_string;

// --- Reshape --------------------------------------------------------------------------------------------------------

/// The same elements in `shape`; one dimension may be -1.
///
/// # Errors
/// A shape with another number of elements, or a -1 that cannot be inferred.
pub fn reshape(a: &Array, shape: &[i32]) -> Result<Array> {
    let known: Vec<i32> = shape.iter().copied().filter(|&dim| dim != -1).collect();
    let count = element_count("reshape", &known)?;
    if known.len() != shape.len() && count == 0 {
        return Err(Error::shape("reshape", format!("cannot infer the -1 in {shape:?} beside a 0")));
    }
    op!("reshape", mlx_reshape(a, [shape]))
}

/// Merges the axes `start_axis..=end_axis` into one.
///
/// # Errors
/// Axes out of range or out of order.
pub fn flatten(a: &Array, start_axis: i32, end_axis: i32) -> Result<Array> {
    op!("flatten", mlx_flatten(a, start_axis, end_axis))
}

/// Splits `axis` into `shape`; one dimension may be -1.
///
/// # Errors
/// A shape with another number of elements than the axis, or an empty one.
pub fn unflatten(a: &Array, axis: i32, shape: &[i32]) -> Result<Array> {
    let known: Vec<i32> = shape.iter().copied().filter(|&dim| dim != -1).collect();
    let count = element_count("unflatten", &known)?;
    if known.len() != shape.len() && count == 0 {
        return Err(Error::shape("unflatten", format!("cannot infer the -1 in {shape:?} beside a 0")));
    }
    op!("unflatten", mlx_unflatten(a, axis, [shape]))
}

/// Inserts axes of size 1 at the positions `axes` of the result.
///
/// # Errors
/// A position out of range or given twice.
pub fn expand_dims(a: &Array, axes: &[i32]) -> Result<Array> {
    match axes {
        &[axis] => op!("expand_dims", mlx_expand_dims(a, axis)),
        axes => op!("expand_dims", mlx_expand_dims_axes(a, [axes])),
    }
}

/// Drops axes of size 1; `None` drops all of them.
///
/// # Errors
/// An axis out of range, given twice, or of another size.
pub fn squeeze(a: &Array, axes: Option<&[i32]>) -> Result<Array> {
    match axes {
        None => op!("squeeze", mlx_squeeze(a)),
        Some(&[axis]) => op!("squeeze", mlx_squeeze_axis(a, axis)),
        Some(axes) => op!("squeeze", mlx_squeeze_axes(a, [axes])),
    }
}

macro_rules! at_least_dims {
    ($($(#[$doc:meta])+ $name:ident => $function:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// # Errors
        /// What MLX reports.
        pub fn $name(a: &Array) -> Result<Array> {
            op!(stringify!($name), $function(a))
        }
    )*};
}

at_least_dims! {
    /// A scalar becomes `[1]`; anything else stays.
    atleast_1d => mlx_atleast_1d;
    /// A scalar becomes `[1, 1]` and `[n]` becomes `[1, n]`; anything else stays.
    atleast_2d => mlx_atleast_2d;
    /// A scalar becomes `[1, 1, 1]`, `[n]` becomes `[1, n, 1]`, `[m, n]` becomes `[m, n, 1]`; anything else stays.
    atleast_3d => mlx_atleast_3d;
}

// --- Reorder --------------------------------------------------------------------------------------------------------

/// Permutes the axes; `None` reverses them.
///
/// # Errors
/// `axes` that are no permutation.
pub fn transpose(a: &Array, axes: Option<&[i32]>) -> Result<Array> {
    match axes {
        None => op!("transpose", mlx_transpose(a)),
        Some(axes) => op!("transpose", mlx_transpose_axes(a, [axes])),
    }
}

/// Exchanges two axes.
///
/// # Errors
/// An axis out of range.
pub fn swapaxes(a: &Array, axis1: i32, axis2: i32) -> Result<Array> {
    op!("swapaxes", mlx_swapaxes(a, axis1, axis2))
}

/// Moves one axis to another position.
///
/// # Errors
/// An axis out of range.
pub fn moveaxis(a: &Array, source: i32, destination: i32) -> Result<Array> {
    op!("moveaxis", mlx_moveaxis(a, source, destination))
}

/// Reverses the order along `axes`; `None` along all.
///
/// # Errors
/// An axis out of range or given twice.
pub fn flip(a: &Array, axes: Option<&[i32]>) -> Result<Array> {
    match axes {
        None => op!("flip", mlx_flip(a)),
        Some(&[axis]) => op!("flip", mlx_flip_axis(a, axis)),
        Some(axes) => op!("flip", mlx_flip_axes(a, [axes])),
    }
}

/// Moves elements by `shift` along `axes`, those pushed out coming in again; `None` rolls the flattened array.
///
/// One axis takes the sum of all shifts; several axes take one shift each.
///
/// # Errors
/// An axis out of range, or lists of different lengths.
pub fn roll(a: &Array, shift: &[i32], axes: Option<&[i32]>) -> Result<Array> {
    match axes {
        None => op!("roll", mlx_roll(a, [shift])),
        Some(&[axis]) => op!("roll", mlx_roll_axis(a, [shift], axis)),
        Some(axes) => {
            same_length("roll", "shifts and axes", shift.len(), axes.len())?;
            op!("roll", mlx_roll_axes(a, [shift], [axes]))
        }
    }
}

// --- Broadcast, repeat, pad -----------------------------------------------------------------------------------------

/// The shape that arrays of `shapes` broadcast to.
///
/// # Errors
/// Shapes that do not broadcast.
pub fn broadcast_shapes(shapes: &[&[i32]]) -> Result<Vec<i32>> {
    let ndim = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut out = vec![1; ndim];
    for shape in shapes {
        for (slot, &dim) in out.iter_mut().rev().zip(shape.iter().rev()) {
            if *slot == 1 {
                *slot = dim;
            } else if dim != 1 && dim != *slot {
                return Err(Error::shape("broadcast_shapes", format!("shapes {shapes:?} do not broadcast")));
            }
        }
    }
    Ok(out)
}

/// `a` repeated to `shape` without a copy.
///
/// # Errors
/// A shape that `a` does not broadcast to.
pub fn broadcast_to(a: &Array, shape: &[i32]) -> Result<Array> {
    check_shape("broadcast_to", shape)?;
    op!("broadcast_to", mlx_broadcast_to(a, [shape]))
}

/// All arrays in their common broadcast shape.
///
/// # Errors
/// Shapes that do not broadcast.
pub fn broadcast_arrays<A: Borrow<Array>>(arrays: &[A]) -> Result<Vec<Array>> {
    let arrays = vector(arrays)?;
    list!("broadcast_arrays", mlx_broadcast_arrays(&arrays))
}

/// Each element `repeats` times along `axis`, or of the flattened array.
///
/// # Errors
/// An axis out of range, or a negative count.
pub fn repeat(a: &Array, repeats: i32, axis: Option<i32>) -> Result<Array> {
    at_least("repeat", "repeats", &[repeats], 0)?;
    match axis {
        None => op!("repeat", mlx_repeat(a, repeats)),
        Some(axis) => op!("repeat", mlx_repeat_axis(a, repeats, axis)),
    }
}

/// The whole array `reps` times along each axis, counted from the last.
///
/// # Errors
/// A negative count.
pub fn tile(a: &Array, reps: &[i32]) -> Result<Array> {
    at_least("tile", "reps", reps, 0)?;
    op!("tile", mlx_tile(a, [reps]))
}

/// Adds `(before, after)` elements to each axis, or one pair to all axes. `mode` is `"constant"` (fills with the scalar
/// `value`), `"edge"`, `"reflect"` or `"symmetric"`.
///
/// # Errors
/// A negative width, another mode, or neither one pair nor one per axis.
pub fn pad(a: &Array, widths: &[(i32, i32)], value: &Array, mode: &str) -> Result<Array> {
    let widths = match widths {
        &[all] => vec![all; a.ndim()],
        widths => widths.to_vec(),
    };
    same_length("pad", "widths and axes", widths.len(), a.ndim())?;
    let axes: Vec<i32> = (0..).take(widths.len()).collect();
    let (low, high): (Vec<i32>, Vec<i32>) = widths.into_iter().unzip();
    pad_axes(a, &axes, &low, &high, value, mode)
}

/// Adds `low` elements before and `high` behind the given axes; see [`pad`].
///
/// # Errors
/// A negative width, an axis out of range, another mode, or lists of different lengths.
pub fn pad_axes(a: &Array, axes: &[i32], low: &[i32], high: &[i32], value: &Array, mode: &str) -> Result<Array> {
    same_length("pad", "axes and low widths", axes.len(), low.len())?;
    same_length("pad", "low and high widths", low.len(), high.len())?;
    for &axis in axes {
        a.dim(axis).map_err(|error| Error { op: "pad", ..error })?;
    }
    let mode = c_string("pad", mode)?;
    op!("pad", mlx_pad(a, [axes], [low], [high], value, mode.as_c_str()))
}

/// Adds `width` elements on both sides of every axis; see [`pad`].
///
/// # Errors
/// A negative width, or another mode.
pub fn pad_symmetric(a: &Array, width: i32, value: &Array, mode: &str) -> Result<Array> {
    let mode = c_string("pad", mode)?;
    op!("pad", mlx_pad_symmetric(a, width, value, mode.as_c_str()))
}

// --- Join and cut ---------------------------------------------------------------------------------------------------

/// Joins arrays along an existing axis.
///
/// # Errors
/// No arrays, an axis out of range, or shapes that differ elsewhere.
pub fn concatenate<A: Borrow<Array>>(arrays: &[A], axis: i32) -> Result<Array> {
    let arrays = vector(arrays)?;
    op!("concatenate", mlx_concatenate_axis(&arrays, axis))
}

/// Joins the flattened arrays (Python's `axis=None`).
///
/// # Errors
/// No arrays.
pub fn concatenate_flat<A: Borrow<Array>>(arrays: &[A]) -> Result<Array> {
    let arrays = vector(arrays)?;
    op!("concatenate", mlx_concatenate(&arrays))
}

/// Joins arrays of one shape along a new axis.
///
/// # Errors
/// No arrays, shapes that differ, or an axis out of range.
pub fn stack<A: Borrow<Array>>(arrays: &[A], axis: i32) -> Result<Array> {
    let arrays = vector(arrays)?;
    op!("stack", mlx_stack_axis(&arrays, axis))
}

/// The slices along `axis`, which goes.
///
/// # Errors
/// An axis out of range.
pub fn unstack(a: &Array, axis: i32) -> Result<Vec<Array>> {
    list!("unstack", mlx_unstack_axis(a, axis))
}

/// `n` equal parts along `axis`.
///
/// # Errors
/// An axis out of range, or a size that `n` does not divide.
pub fn split(a: &Array, n: i32, axis: i32) -> Result<Vec<Array>> {
    at_least("split", "number of parts", &[n], 1)?;
    list!("split", mlx_split(a, n, axis))
}

/// The parts between `indices` along `axis`.
///
/// # Errors
/// An axis out of range.
pub fn split_at(a: &Array, indices: &[i32], axis: i32) -> Result<Vec<Array>> {
    list!("split", mlx_split_sections(a, [indices], axis))
}
