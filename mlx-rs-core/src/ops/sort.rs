//! Sorting and partial sorting along an axis; `None` works on the flattened array.
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let a = Array::from_slice(&[3.0f32, 1.0, 2.0], &[3])?;
//! assert_eq!(ops::sort(&a, Some(-1))?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
//! assert_eq!(ops::argsort(&a, Some(-1))?.to_vec::<u32>()?, [1, 2, 0]);
//! assert_eq!(ops::topk(&a, 1, Some(-1))?.to_vec::<f32>()?, [3.0]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use super::call::op;
use crate::array::Array;
use crate::error::Result;
use crate::ffi::c_string;

/// The values in ascending order.
///
/// # Errors
/// An axis out of range.
pub fn sort(a: &Array, axis: Option<i32>) -> Result<Array> {
    match axis {
        None => op!("sort", mlx_sort(a)),
        Some(axis) => op!("sort", mlx_sort_axis(a, axis)),
    }
}

/// The indices (uint32) that sort `a` in ascending order.
///
/// # Errors
/// An axis out of range.
pub fn argsort(a: &Array, axis: Option<i32>) -> Result<Array> {
    match axis {
        None => op!("argsort", mlx_argsort(a)),
        Some(axis) => op!("argsort", mlx_argsort_axis(a, axis)),
    }
}

/// Reorders so that position `kth` holds its sorted value, smaller ones before it and greater ones behind.
///
/// # Errors
/// An axis or a `kth` out of range; a negative `kth` counts from the end.
pub fn partition(a: &Array, kth: i32, axis: Option<i32>) -> Result<Array> {
    match axis {
        None => op!("partition", mlx_partition(a, kth)),
        Some(axis) => op!("partition", mlx_partition_axis(a, kth, axis)),
    }
}

/// The indices (uint32) that [`partition`] `a`.
///
/// # Errors
/// An axis or a `kth` out of range; a negative `kth` counts from the end.
pub fn argpartition(a: &Array, kth: i32, axis: Option<i32>) -> Result<Array> {
    match axis {
        None => op!("argpartition", mlx_argpartition(a, kth)),
        Some(axis) => op!("argpartition", mlx_argpartition_axis(a, kth, axis)),
    }
}

/// The `k` greatest values, in no particular order.
///
/// # Errors
/// An axis or a `k` out of range.
pub fn topk(a: &Array, k: i32, axis: Option<i32>) -> Result<Array> {
    match axis {
        None => op!("topk", mlx_topk(a, k)),
        Some(axis) => op!("topk", mlx_topk_axis(a, k, axis)),
    }
}

/// Where each of `values` would go into the ascending 1-d `sorted_sequence` (uint32, in the shape of `values`):
/// before equal entries for side `"left"`, behind them for `"right"`.
///
/// # Errors
/// A sequence that is not 1-d, or another side.
pub fn searchsorted(sorted_sequence: &Array, values: &Array, side: &str) -> Result<Array> {
    let side = c_string("searchsorted", side)?;
    op!("searchsorted", mlx_searchsorted(sorted_sequence, values, side.as_c_str()))
}
