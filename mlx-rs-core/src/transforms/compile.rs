//! `compile`: trace once, run the simplified graph after that.

use std::cell::Cell;
use std::rc::Rc;

use mlx_sys as sys;

use super::closure::Closure;
use crate::array::Array;
use crate::error::Result;
use crate::ffi;

/// A compiled function. It is traced once per signature of inputs; captured arrays become constants of the trace, so
/// whatever changes between calls is an argument.
///
/// MLX's CPU backend compiles fused kernels with `g++` at run time. Without it the function simply runs at every call:
/// the values are the same, nothing is fused, and [`trace_count`](Self::trace_count) counts the calls.
///
/// ```
/// use mlx_rs_core::{Array, ops, transforms::Compiled};
/// let f = Compiled::new(|x: &[Array]| Ok(vec![ops::exp(&ops::abs(&x[0])?)?]), false)?;
/// for _ in 0..3 {
///     f.call(&[Array::from_slice(&[-1.0f32, 0.0], &[2])?])?;
/// }
/// assert_eq!(f.trace_count(), 1);
/// # Ok::<(), mlx_rs_core::Error>(())
/// ```
pub struct Compiled {
    closure: Closure,
    traces: Rc<Cell<usize>>,
}

impl Compiled {
    /// Wraps `function`. A `shapeless` one is traced once per number of dimensions and dtype, and must not turn sizes
    /// into constants.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn new<F>(function: F, shapeless: bool) -> Result<Self>
    where
        F: Fn(&[Array]) -> Result<Vec<Array>> + 'static,
    {
        let traces = Rc::new(Cell::new(0));
        let counter = Rc::clone(&traces);
        let inner = Closure::retained(Box::new(move |inputs| {
            counter.set(counter.get() + 1);
            function(inputs)
        }))?;
        let mut closure = Closure::empty();
        // SAFETY: both handles are live; C++ shares the payload.
        ffi::check("compile", || unsafe { sys::mlx_compile(closure.raw_mut(), inner.raw(), shapeless) })?;
        Ok(Self { closure, traces })
    }

    /// Runs the compiled function.
    ///
    /// # Errors
    /// What the function returns while it is traced, or what MLX reports.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        self.closure.apply("compile", inputs)
    }

    /// How often the function was traced; more than expected is a performance fault.
    pub fn trace_count(&self) -> usize {
        self.traces.get()
    }
}

/// How much `compile` does, for the whole process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileMode {
    /// Functions run as they are.
    Disabled,
    /// Traced, not simplified.
    NoSimplify,
    /// Simplified, not fused.
    NoFuse,
    /// Simplified and fused.
    Enabled,
}

/// Sets the mode of `compile` for the whole process.
///
/// # Errors
/// What MLX reports.
pub fn set_compile_mode(mode: CompileMode) -> Result<()> {
    let mode = match mode {
        CompileMode::Disabled => sys::MLX_COMPILE_MODE_DISABLED,
        CompileMode::NoSimplify => sys::MLX_COMPILE_MODE_NO_SIMPLIFY,
        CompileMode::NoFuse => sys::MLX_COMPILE_MODE_NO_FUSE,
        CompileMode::Enabled => sys::MLX_COMPILE_MODE_ENABLED,
    };
    // SAFETY: a plain enum value.
    ffi::check("set_compile_mode", || unsafe { sys::mlx_set_compile_mode(mode) })
}
