//! Operations on arrays, one function per op, named as in MLX's Python API.
//!
//! Ops record a graph; nothing runs until a value is read or evaluated. They run on the stream of the current
//! [device scope](crate::device), so they take no stream argument. Shapes and axes are `i32`; negative axes count from
//! the end; `None` for axes means all of them (or, for sorting and scanning, the flattened array).
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
//! let rows = ops::sum(&a, Some(&[1]), false)?;
//! assert_eq!(rows.to_vec::<f32>()?, [6.0, 15.0]);
//! let centred = ops::subtract(&a, &ops::mean(&a, Some(&[-1]), true)?)?;
//! assert_eq!(centred.to_vec::<f32>()?, [-1.0, 0.0, 1.0, -1.0, 0.0, 1.0]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```
//!
//! Indices given as arrays (`take`, `gather`, `scatter`, `gather_mm`, …) are not checked, because checking would run
//! the graph: as in Python, an index out of range reads or writes other memory of the process. Check indices that
//! come from outside before they become arrays.

pub(crate) mod call;

mod compare;
mod conv;
mod create;
mod elementwise;
mod index;
mod matmul;
mod quantize;
mod reduce;
mod scan;
mod scatter;
mod shape;
mod sort;

pub use compare::*;
pub use conv::*;
pub use create::*;
pub use elementwise::*;
pub use index::*;
pub use matmul::*;
pub use quantize::*;
pub use reduce::*;
pub use scan::*;
pub use scatter::*;
pub use shape::*;
pub use sort::*;
