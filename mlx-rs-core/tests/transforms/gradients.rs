//! `value_and_grad`, `grad`, `vjp`, `jvp`.

use mlx_rs_core::transforms;
use mlx_rs_core::{Array, Dtype, Result, ops};

fn scalar(value: f32) -> Array {
    Array::scalar(value).unwrap()
}

fn cube(x: &[Array]) -> Result<Vec<Array>> {
    Ok(vec![(&ops::square(&x[0])? * &x[0])?])
}

#[test]
fn value_and_grad_gives_all_outputs_and_the_asked_gradients_in_order() -> Result<()> {
    // loss = a·b², and b as a second output that no gradient flows through.
    let f = |x: &[Array]| Ok(vec![(&x[0] * &ops::square(&x[1])?)?, (&x[1] * 10.0)?]);
    let (values, grads) = transforms::value_and_grad(f, &[1, 0], &[scalar(2.0), scalar(3.0)])?;
    let read = |arrays: &[Array]| arrays.iter().map(|a| a.item::<f32>().unwrap()).collect::<Vec<_>>();
    assert_eq!((read(&values), read(&grads)), (vec![18.0, 30.0], vec![12.0, 9.0]));
    Ok(())
}

#[test]
fn a_function_may_borrow_what_lives_on_the_stack() -> Result<()> {
    let weights = [scalar(4.0)];
    let calls = std::cell::Cell::new(0);
    let f = |x: &[Array]| {
        calls.set(calls.get() + 1);
        Ok(vec![(&x[0] * &weights[0])?])
    };
    assert_eq!(transforms::grad(f, &[0], &[scalar(1.0)])?[0].item::<f32>()?, 4.0);
    assert_eq!(calls.get(), 1);
    Ok(())
}

#[test]
fn gradients_of_gradients() -> Result<()> {
    let first = |x: &[Array]| transforms::grad(cube, &[0], x);
    let second = |x: &[Array]| transforms::grad(first, &[0], x);
    assert_eq!(transforms::grad(first, &[0], &[scalar(2.0)])?[0].item::<f32>()?, 12.0);
    assert_eq!(transforms::grad(second, &[0], &[scalar(2.0)])?[0].item::<f32>()?, 6.0);
    Ok(())
}

#[test]
fn vjp_pairs_cotangents_with_outputs_in_order() -> Result<()> {
    let f = |x: &[Array]| Ok(vec![ops::square(&x[0])?, (&x[0] * &x[1])?]);
    let (outputs, grads) = transforms::vjp(f, &[scalar(3.0), scalar(5.0)], &[scalar(1.0), scalar(10.0)])?;
    assert_eq!((outputs[0].item::<f32>()?, outputs[1].item::<f32>()?), (9.0, 15.0));
    // d/dx = 1·2x + 10·y, d/dy = 10·x.
    assert_eq!((grads[0].item::<f32>()?, grads[1].item::<f32>()?), (56.0, 30.0));
    Ok(())
}

#[test]
fn vjp_keeps_the_pairs_when_an_output_is_cut_off_from_the_gradient() -> Result<()> {
    // MLX skips a bare stop_gradient output without using its cotangent, which would shift all later pairs.
    let f = |x: &[Array]| Ok(vec![ops::stop_gradient(&x[0])?, ops::square(&x[0])?]);
    let (_, grads) = transforms::vjp(f, &[scalar(3.0)], &[scalar(100.0), scalar(1.0)])?;
    assert_eq!(grads[0].item::<f32>()?, 6.0);
    Ok(())
}

#[test]
fn jvp_is_the_directional_derivative() -> Result<()> {
    let (outputs, tangents) = transforms::jvp(cube, &[scalar(2.0)], &[scalar(0.5)])?;
    assert_eq!((outputs[0].item::<f32>()?, tangents[0].item::<f32>()?), (8.0, 6.0));
    Ok(())
}

#[test]
fn gradients_have_the_dtype_of_their_input() -> Result<()> {
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?.astype(Dtype::Bfloat16)?;
    let f = |x: &[Array]| Ok(vec![ops::sum(&ops::square(&x[0].astype(Dtype::Float32)?)?, None, false)?]);
    let grads = transforms::grad(f, &[0], &[x])?;
    assert_eq!(grads[0].dtype(), Dtype::Bfloat16);
    assert_eq!(grads[0].astype(Dtype::Float32)?.to_vec::<f32>()?, [2.0, 4.0]);
    Ok(())
}

#[test]
fn eval_and_async_eval_compute_all_they_are_given() -> Result<()> {
    let (a, b) = ((&scalar(2.0) * 3.0)?, (&scalar(2.0) + 3.0)?);
    transforms::async_eval([&a, &b])?;
    transforms::eval([&a, &b])?;
    assert_eq!((a.item::<f32>()?, b.item::<f32>()?), (6.0, 5.0));
    transforms::eval(&[])
}
