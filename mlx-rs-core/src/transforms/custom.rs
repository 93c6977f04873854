//! `custom_vjp` and `checkpoint`: retained transforms, whose functions live as long as a graph may run them.

use mlx_sys as sys;

use super::closure::{BackwardClosure, Closure};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::ffi;

/// A function with a gradient rule of its own.
///
/// Captured arrays are constants: they get no gradient, so everything that is trained is an argument. What the rule
/// needs beside the inputs is an extra output of the forward function, read from `outputs`.
///
/// ```
/// use mlx_rs_core::{Array, ops, transforms::{self, CustomVjp}};
/// // The gradient is deliberately 3 per unit of cotangent.
/// let odd = CustomVjp::new(
///     |x: &[Array]| Ok(vec![ops::square(&x[0])?]),
///     |_primals: &[Array], cotangents: &[Array], _outputs: &[Array]| Ok(vec![(&cotangents[0] * 3.0)?]),
/// )?;
/// let grads = transforms::grad(|x| odd.call(x), &[0], &[Array::scalar(5.0f32)?])?;
/// assert_eq!(grads[0].item::<f32>()?, 3.0);
/// # Ok::<(), mlx_rs_core::Error>(())
/// ```
pub struct CustomVjp(Closure);

impl CustomVjp {
    /// `backward(primals, cotangents, outputs)` returns one gradient per primal, of its shape and dtype. An output that
    /// nobody used has a cotangent of zeros.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn new<F, B>(forward: F, backward: B) -> Result<Self>
    where
        F: Fn(&[Array]) -> Result<Vec<Array>> + 'static,
        B: Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>> + 'static,
    {
        let forward = Closure::retained(Box::new(forward))?;
        let backward = BackwardClosure::retained(Box::new(move |primals, cotangents, outputs| {
            let gradients = backward(primals, cotangents, outputs)?;
            check_gradients(primals, &gradients)?;
            Ok(gradients)
        }))?;
        let mut joined = Closure::empty();
        // SAFETY: all handles are live; C++ shares the payloads.
        ffi::check("custom_vjp", || unsafe { sys::mlx_custom_vjp(joined.raw_mut(), forward.raw(), backward.raw()) })?;
        Ok(Self(joined))
    }

    /// Runs the forward function.
    ///
    /// # Errors
    /// What the forward function returns.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        self.0.apply("custom_vjp", inputs)
    }
}

fn check_gradients(primals: &[Array], gradients: &[Array]) -> Result<()> {
    if gradients.len() != primals.len() {
        return Err(Error::closure(
            "custom_vjp",
            format!("the rule returned {} gradients for {} primals", gradients.len(), primals.len()),
        ));
    }
    for (index, (primal, gradient)) in primals.iter().zip(gradients).enumerate() {
        if primal.shape() != gradient.shape() || primal.dtype() != gradient.dtype() {
            return Err(Error::closure(
                "custom_vjp",
                format!("gradient {index} is {gradient:?}, but its primal is {primal:?}"),
            ));
        }
    }
    Ok(())
}

/// A function whose inside is computed again in the backward pass instead of being kept.
///
/// Gradients reach the explicit inputs only: a captured array gets gradient zero, in silence.
///
/// ```
/// use mlx_rs_core::{Array, ops, transforms::{self, Checkpoint}};
/// let f = Checkpoint::new(|x: &[Array]| Ok(vec![ops::square(&x[0])?]))?;
/// let grads = transforms::grad(|x| f.call(x), &[0], &[Array::scalar(5.0f32)?])?;
/// assert_eq!(grads[0].item::<f32>()?, 10.0);
/// # Ok::<(), mlx_rs_core::Error>(())
/// ```
pub struct Checkpoint(Closure);

impl Checkpoint {
    /// Wraps `function`, which must depend on its arguments and constants only.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn new<F>(function: F) -> Result<Self>
    where
        F: Fn(&[Array]) -> Result<Vec<Array>> + 'static,
    {
        let inner = Closure::retained(Box::new(function))?;
        let mut wrapped = Closure::empty();
        // SAFETY: both handles are live; C++ shares the payload.
        ffi::check("checkpoint", || unsafe { sys::mlx_checkpoint(wrapped.raw_mut(), inner.raw()) })?;
        Ok(Self(wrapped))
    }

    /// Runs the function.
    ///
    /// # Errors
    /// What the function returns.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        self.0.apply("checkpoint", inputs)
    }
}
