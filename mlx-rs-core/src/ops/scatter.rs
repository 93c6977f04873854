//! Writing into copies of an array: slices, rows by index, masks.
//!
//! Index arrays are not checked; see the [module above](super).
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let a = Array::from_slice(&[1i32, 2, 3, 4], &[4])?;
//! let two = Array::from_slice(&[20i32, 30], &[2])?;
//! assert_eq!(ops::slice_update(&a, &two, &[1], &[3], &[1])?.to_vec::<i32>()?, [1, 20, 30, 4]);
//! let at = Array::from_slice(&[0i32, 0], &[2])?;
//! assert_eq!(ops::scatter_add_axis(&a, &at, &two, 0)?.to_vec::<i32>()?, [51, 2, 3, 4]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use super::call::{op, same_length, vector};
use super::index::check_bounds;
use crate::array::Array;
use crate::error::{Error, Result};

macro_rules! slice_update {
    ($($(#[$doc:meta])+ $name:ident => $function:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// The slice is that of [`slice`](super::slice); `update` broadcasts to its shape. The result has the shape
        /// and dtype of `src`.
        ///
        /// # Errors
        /// Lists that are not one entry per axis, a stride of 0, or an update that does not broadcast.
        pub fn $name(
            src: &Array,
            update: &Array,
            start: &[i32],
            stop: &[i32],
            strides: &[i32],
        ) -> Result<Array> {
            check_bounds(stringify!($name), src, start, stop, strides)?;
            op!(stringify!($name), $function(src, update, [start], [stop], [strides]))
        }
    )*};
}

slice_update! {
    /// `src` with `update` in place of a slice.
    slice_update => mlx_slice_update;
    /// `src` with `update` added to a slice.
    slice_update_add => mlx_slice_update_add;
    /// `src` with a slice multiplied by `update`.
    slice_update_prod => mlx_slice_update_prod;
    /// `src` with a slice raised to at least `update`.
    slice_update_max => mlx_slice_update_max;
    /// `src` with a slice lowered to at most `update`.
    slice_update_min => mlx_slice_update_min;
}

/// `src` with `update` at a `start` (an integer array, one entry per listed axis) that is only known when the graph
/// runs. Python names this `slice_update`.
///
/// # Errors
/// An axis out of range or given twice, or an update that does not fit.
pub fn slice_update_dynamic(src: &Array, update: &Array, start: &Array, axes: &[i32]) -> Result<Array> {
    // C writes past its own lists otherwise.
    if update.ndim() > src.ndim() {
        let (update, src) = (update.shape(), src.shape());
        return Err(Error::shape("slice_update", format!("update of shape {update:?} for an array of shape {src:?}")));
    }
    op!("slice_update", mlx_slice_update_dynamic(src, update, start, [axes]))
}

macro_rules! scatter {
    ($($(#[$doc:meta])+ $name:ident => $function:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// `indices` are the corners on `axes`, one array per axis. `updates` has the broadcast shape of the indices
        /// followed by one dimension per axis of `a`: the block that goes to the corner.
        ///
        /// # Errors
        /// Updates or axes that do not fit, or indices that do not broadcast.
        pub fn $name(a: &Array, indices: &[Array], updates: &Array, axes: &[i32]) -> Result<Array> {
            same_length(stringify!($name), "indices and axes", indices.len(), axes.len())?;
            let indices = vector(indices)?;
            op!(stringify!($name), $function(a, &indices, updates, [axes]))
        }
    )*};
}

scatter! {
    /// `a` with blocks replaced; of two blocks in one place, either may win.
    scatter => mlx_scatter;
    /// `a` with blocks added.
    scatter_add => mlx_scatter_add;
    /// `a` with blocks multiplied in.
    scatter_prod => mlx_scatter_prod;
    /// The greater of `a` and the blocks.
    scatter_max => mlx_scatter_max;
    /// The smaller of `a` and the blocks.
    scatter_min => mlx_scatter_min;
}

/// `a` with `values` at `indices` along `axis`: what [`take_along_axis`](super::take_along_axis) reads.
///
/// # Errors
/// An axis out of range, or shapes that do not fit.
pub fn put_along_axis(a: &Array, indices: &Array, values: &Array, axis: i32) -> Result<Array> {
    op!("put_along_axis", mlx_put_along_axis(a, indices, values, axis))
}

/// `a` with `values` added at `indices` along `axis`; equal indices add up.
///
/// # Errors
/// An axis out of range, or shapes that do not fit.
pub fn scatter_add_axis(a: &Array, indices: &Array, values: &Array, axis: i32) -> Result<Array> {
    op!("scatter_add_axis", mlx_scatter_add_axis(a, indices, values, axis))
}

/// `a` with the elements of `src`, in order, where the bool `mask` holds: Python's `a[mask] = src`.
///
/// # Errors
/// A mask that does not fit, or a source with fewer axes than it needs.
pub fn masked_scatter(a: &Array, mask: &Array, src: &Array) -> Result<Array> {
    if mask.ndim() > a.ndim() {
        return Err(Error::shape(
            "masked_scatter",
            format!("mask of shape {:?} for an array of shape {:?}", mask.shape(), a.shape()),
        ));
    }
    op!("masked_scatter", mlx_masked_scatter(a, mask, src))
}
