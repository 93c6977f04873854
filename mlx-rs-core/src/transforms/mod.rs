//! Function transforms and evaluation.
//!
//! A function handed to a transform takes `&[Array]` and returns `Result<Vec<Array>>`. It is run with traced arrays: it
//! may build graphs, capture other arrays as constants and fail, but must not read values. An error or a panic inside
//! comes out of the call that ran it.
//!
//! ```
//! use mlx_rs_core::{Array, ops, transforms};
//! let cube = |args: &[Array]| Ok(vec![(&ops::square(&args[0])? * &args[0])?]);
//! let (value, grad) = transforms::value_and_grad(cube, &[0], &[Array::scalar(2.0f32)?])?;
//! assert_eq!((value[0].item::<f32>()?, grad[0].item::<f32>()?), (8.0, 12.0));
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

pub(crate) mod closure;
mod compile;
mod custom;
mod grad;

pub use compile::{CompileMode, Compiled, set_compile_mode};
pub use custom::{Checkpoint, CustomVjp};
pub use grad::{grad, jvp, value_and_grad, vjp};

use mlx_sys as sys;

use crate::array::Array;
use crate::error::Result;
use crate::ffi::{self, ArrayVector};

/// Computes all of `arrays`; afterwards they hold values and no graph.
///
/// # Errors
/// What MLX reports while it computes.
pub fn eval<'a>(arrays: impl IntoIterator<Item = &'a Array>) -> Result<()> {
    let arrays: Vec<Array> = arrays.into_iter().cloned().collect();
    let vector = ArrayVector::from_slice(&arrays)?;
    // SAFETY: the vector is live.
    ffi::check("eval", || unsafe { sys::mlx_eval(vector.raw()) })
}

/// Schedules all of `arrays` and returns before they are done.
///
/// # Errors
/// What MLX reports while it schedules.
pub fn async_eval<'a>(arrays: impl IntoIterator<Item = &'a Array>) -> Result<()> {
    let arrays: Vec<Array> = arrays.into_iter().cloned().collect();
    let vector = ArrayVector::from_slice(&arrays)?;
    // SAFETY: the vector is live.
    ffi::check("async_eval", || unsafe { sys::mlx_async_eval(vector.raw()) })
}
