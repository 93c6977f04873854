//! `value_and_grad`, `grad`, `vjp`, `jvp`: the scoped transforms, whose function may borrow.

use mlx_sys as sys;

use super::closure::{self, Closure};
use crate::array::Array;
use crate::error::{self, Error, Result};
use crate::ffi::{self, ArrayVector};
use crate::ops;

/// Runs `f` on `inputs` and differentiates its first output, a scalar, by the inputs at `argnums`.
///
/// Returns all outputs of `f` and one gradient per entry of `argnums`, in its order.
///
/// # Errors
/// Empty or out-of-range `argnums`, a first output that is missing or no floating scalar, a primitive without a gradient, an error of `f`.
pub fn value_and_grad<F>(f: F, argnums: &[i32], inputs: &[Array]) -> Result<(Vec<Array>, Vec<Array>)>
where
    F: Fn(&[Array]) -> Result<Vec<Array>>,
{
    const OP: &str = "value_and_grad";
    if argnums.is_empty() {
        return Err(Error::argument(OP, "argnums is empty: nothing to differentiate by"));
    }
    if let Some(bad) = argnums.iter().find(|&&n| n < 0 || n as usize >= inputs.len()) {
        return Err(Error::argument(OP, format!("argnums has {bad}, but there are {} inputs", inputs.len())));
    }
    // MLX differentiates by a set of positions and answers in ascending order.
    let mut positions = argnums.to_vec();
    positions.sort_unstable();
    positions.dedup();
    let checked = |args: &[Array]| {
        let outputs = f(args)?;
        check_loss(OP, &outputs)?;
        Ok(outputs)
    };
    let (values, grads) = closure::with_scoped(&checked, |closure| {
        let transformed = ValueAndGrad::new(closure, &positions)?;
        let inputs = ArrayVector::from_slice(inputs)?;
        let (mut values, mut grads) = (ArrayVector::new(), ArrayVector::new());
        // SAFETY: all handles are live.
        ffi::check(OP, || unsafe {
            sys::mlx_closure_value_and_grad_apply(values.raw_mut(), grads.raw_mut(), transformed.0, inputs.raw())
        })?;
        Ok((values.to_vec(OP)?, grads.to_vec(OP)?))
    })?;
    if grads.len() != positions.len() {
        return Err(Error::closure(OP, format!("expected {} gradients, got {}", positions.len(), grads.len())));
    }
    let asked = argnums.iter().map(|n| grads[positions.partition_point(|position| position < n)].clone()).collect();
    Ok((values, asked))
}

/// MLX would take a missing loss for one without gradients, and reports a wrong one in words that name no loss.
fn check_loss(op: &'static str, outputs: &[Array]) -> Result<()> {
    let Some(loss) = outputs.first() else {
        return Err(Error::closure(op, "the function returned no arrays, wanted a scalar loss first"));
    };
    if !loss.shape().is_empty() {
        return Err(Error::closure(op, format!("the first output has shape {:?}, wanted a scalar loss", loss.shape())));
    }
    if !loss.dtype().is_floating() {
        return Err(Error::closure(op, format!("the first output is {}, wanted a floating loss", loss.dtype())));
    }
    Ok(())
}

/// The gradients of [`value_and_grad`] alone.
///
/// # Errors
/// As [`value_and_grad`].
pub fn grad<F>(f: F, argnums: &[i32], inputs: &[Array]) -> Result<Vec<Array>>
where
    F: Fn(&[Array]) -> Result<Vec<Array>>,
{
    Ok(value_and_grad(f, argnums, inputs)?.1)
}

struct ValueAndGrad(sys::mlx_closure_value_and_grad);

impl ValueAndGrad {
    fn new(closure: &Closure, argnums: &[i32]) -> Result<Self> {
        error::install_handler();
        // SAFETY: creates an empty handle.
        let mut transformed = Self(unsafe { sys::mlx_closure_value_and_grad_new() });
        // SAFETY: C copies the argument numbers.
        ffi::check("value_and_grad", || unsafe {
            sys::mlx_value_and_grad(&mut transformed.0, closure.raw(), argnums.as_ptr(), argnums.len())
        })?;
        Ok(transformed)
    }
}

impl Drop for ValueAndGrad {
    fn drop(&mut self) {
        // SAFETY: this value owns the handle.
        unsafe { sys::mlx_closure_value_and_grad_free(self.0) };
    }
}

/// Vector-Jacobian product: the outputs of `f` at `primals`, and one gradient per primal for the given cotangents.
///
/// # Errors
/// Another number of cotangents than outputs (MLX would pair the wrong ones in silence), shapes that do not match,
/// a primitive without a gradient, an error of `f`.
pub fn vjp<F>(f: F, primals: &[Array], cotangents: &[Array]) -> Result<(Vec<Array>, Vec<Array>)>
where
    F: Fn(&[Array]) -> Result<Vec<Array>>,
{
    let checked = |args: &[Array]| {
        let outputs = f(args)?;
        if outputs.len() != cotangents.len() {
            return Err(Error::argument(
                "vjp",
                format!("expected {} cotangents, got {}", outputs.len(), cotangents.len()),
            ));
        }
        outputs.iter().map(behind_views).collect()
    };
    let (outputs, gradients) = both("vjp", &checked, primals, cotangents, |out, other, closure, primals, tangents| {
        // SAFETY: `both` passes live handles.
        unsafe { sys::mlx_vjp(out, other, closure, primals, tangents) }
    })?;
    if gradients.len() != primals.len() {
        return Err(Error::closure("vjp", format!("expected {} gradients, got {}", primals.len(), gradients.len())));
    }
    Ok((outputs, gradients))
}

/// The same array as the result of views. MLX skips an output that is a bare `stop_gradient` without using up its
/// cotangent, so that all later outputs would get the cotangent of their neighbour; behind a view it is not skipped.
fn behind_views(output: &Array) -> Result<Array> {
    ops::squeeze(&ops::expand_dims(output, &[0])?, Some(&[0]))
}

/// Jacobian-vector product: the outputs of `f` at `primals`, and their tangents for the given input tangents.
///
/// # Errors
/// Another number of tangents than primals, a primitive without a jvp, an error of `f`.
pub fn jvp<F>(f: F, primals: &[Array], tangents: &[Array]) -> Result<(Vec<Array>, Vec<Array>)>
where
    F: Fn(&[Array]) -> Result<Vec<Array>>,
{
    if primals.len() != tangents.len() {
        return Err(Error::argument("jvp", format!("expected {} tangents, got {}", primals.len(), tangents.len())));
    }
    both("jvp", &f, primals, tangents, |out, other, closure, primals, tangents| {
        // SAFETY: `both` passes live handles.
        unsafe { sys::mlx_jvp(out, other, closure, primals, tangents) }
    })
}

/// The shared form of vjp and jvp: two lists in, two lists out.
fn both(
    op: &'static str,
    f: &dyn Fn(&[Array]) -> Result<Vec<Array>>,
    primals: &[Array],
    vectors: &[Array],
    call: impl FnOnce(
        *mut sys::mlx_vector_array,
        *mut sys::mlx_vector_array,
        sys::mlx_closure,
        sys::mlx_vector_array,
        sys::mlx_vector_array,
    ) -> i32,
) -> Result<(Vec<Array>, Vec<Array>)> {
    closure::with_scoped(f, |closure| {
        let (primals, vectors) = (ArrayVector::from_slice(primals)?, ArrayVector::from_slice(vectors)?);
        let (mut first, mut second) = (ArrayVector::new(), ArrayVector::new());
        ffi::check(op, || call(first.raw_mut(), second.raw_mut(), closure.raw(), primals.raw(), vectors.raw()))?;
        Ok((first.to_vec(op)?, second.to_vec(op)?))
    })
}
