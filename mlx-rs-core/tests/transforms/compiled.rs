//! `Compiled`: one trace per signature, constants, separate functions.

use std::cell::Cell;
use std::rc::Rc;

use mlx_rs_core::transforms::{self, Compiled};
use mlx_rs_core::{Array, Dtype, Result, ops};

fn vector(values: &[f32]) -> Array {
    Array::from_slice(values, &[values.len() as i32]).unwrap()
}

fn times(factor: f32) -> Result<Compiled> {
    let factor = Array::scalar(factor)?;
    Compiled::new(move |x: &[Array]| Ok(vec![(&ops::exp(&x[0])? * &factor)?]), false)
}

#[test]
fn a_function_is_traced_once_per_shape_and_dtype() -> Result<()> {
    let f = Compiled::new(|x: &[Array]| Ok(vec![ops::exp(&ops::negative(&x[0])?)?]), false)?;
    for _ in 0..3 {
        assert_eq!(f.call(&[vector(&[0.0, 0.0])])?[0].to_vec::<f32>()?, [1.0, 1.0]);
    }
    assert_eq!(f.trace_count(), 1);
    f.call(&[vector(&[0.0, 0.0, 0.0])])?;
    assert_eq!(f.trace_count(), 2);
    f.call(&[vector(&[0.0, 0.0]).astype(Dtype::Float16)?])?;
    assert_eq!(f.trace_count(), 3);
    f.call(&[vector(&[5.0, 5.0])])?;
    assert_eq!(f.trace_count(), 3);
    Ok(())
}

#[test]
fn a_shapeless_function_is_traced_once_for_all_sizes() -> Result<()> {
    let f = Compiled::new(|x: &[Array]| Ok(vec![ops::square(&ops::abs(&x[0])?)?]), true)?;
    assert_eq!(f.call(&[vector(&[1.0, -2.0])])?[0].to_vec::<f32>()?, [1.0, 4.0]);
    assert_eq!(f.call(&[vector(&[1.0, -2.0, 3.0])])?[0].to_vec::<f32>()?, [1.0, 4.0, 9.0]);
    assert_eq!(f.trace_count(), 1);
    Ok(())
}

#[test]
fn what_a_function_captures_is_a_constant_of_its_trace() -> Result<()> {
    let factor = Rc::new(Cell::new(2.0f32));
    let seen = Rc::clone(&factor);
    let f = Compiled::new(move |x: &[Array]| Ok(vec![(&x[0] * f64::from(seen.get()))?]), false)?;
    assert_eq!(f.call(&[vector(&[1.0])])?[0].to_vec::<f32>()?, [2.0]);
    factor.set(100.0);
    assert_eq!(f.call(&[vector(&[1.0])])?[0].to_vec::<f32>()?, [2.0]);
    Ok(())
}

#[test]
fn two_functions_of_one_type_do_not_share_a_trace() -> Result<()> {
    // Both closures have the same code; only what they capture differs.
    let (two, three) = (times(2.0)?, times(3.0)?);
    let zero = [vector(&[0.0])];
    for _ in 0..2 {
        assert_eq!(two.call(&zero)?[0].to_vec::<f32>()?, [2.0]);
        assert_eq!(three.call(&zero)?[0].to_vec::<f32>()?, [3.0]);
    }
    drop(two);
    // A function that may lie where the dropped one lay starts without its traces.
    let five = times(5.0)?;
    assert_eq!(five.call(&zero)?[0].to_vec::<f32>()?, [5.0]);
    assert_eq!((three.call(&zero)?[0].to_vec::<f32>()?, three.trace_count()), (vec![3.0], 1));
    Ok(())
}

#[test]
fn a_compiled_function_can_be_differentiated_and_can_differentiate() -> Result<()> {
    let f = Compiled::new(|x: &[Array]| Ok(vec![ops::sum(&ops::square(&ops::sin(&x[0])?)?, None, false)?]), false)?;
    let gradient = transforms::grad(|x| f.call(x), &[0], &[vector(&[0.5])])?[0].item::<f32>()?;
    assert!((gradient - 1.0f32.sin()).abs() < 1e-6, "{gradient}");
    let step = Compiled::new(
        |x: &[Array]| {
            let (loss, grads) =
                transforms::value_and_grad(|x| Ok(vec![ops::sum(&ops::square(&x[0])?, None, false)?]), &[0], x)?;
            Ok(vec![loss[0].clone(), (&x[0] - (&grads[0] * 0.25)?)?])
        },
        false,
    )?;
    let mut x = vector(&[8.0]);
    for expected in [4.0, 2.0, 1.0] {
        x = step.call(&[x])?.remove(1);
        assert_eq!(x.item::<f32>()?, expected);
    }
    assert_eq!(step.trace_count(), 1);
    Ok(())
}
