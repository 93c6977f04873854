//! `CustomVjp` and `Checkpoint`.

use mlx_rs_core::transforms::{self, Checkpoint, CustomVjp};
use mlx_rs_core::{Array, Dtype, Result, ops, random};

fn scalar(value: f32) -> Array {
    Array::scalar(value).unwrap()
}

fn bits(array: &Array) -> Vec<u32> {
    array.to_vec::<f32>().unwrap().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn the_rule_of_a_custom_vjp_is_the_gradient_even_if_it_is_wrong() -> Result<()> {
    let f = CustomVjp::new(|x| Ok(vec![ops::square(&x[0])?]), |_, cotangents, _| Ok(vec![(&cotangents[0] * 3.0)?]))?;
    let (values, grads) = transforms::value_and_grad(|x| f.call(x), &[0], &[scalar(5.0)])?;
    assert_eq!((values[0].item::<f32>()?, grads[0].item::<f32>()?), (25.0, 3.0));
    Ok(())
}

#[test]
fn an_unused_output_has_a_cotangent_of_zeros() -> Result<()> {
    let f = CustomVjp::new(
        |x| Ok(vec![ops::square(&x[0])?, (&x[0] * 2.0)?]),
        |_, cotangents, _| {
            assert_eq!(cotangents.len(), 2);
            // 1·first + 1000·second: a second cotangent other than zero would show.
            Ok(vec![(&cotangents[0] + (&cotangents[1] * 1000.0)?)?])
        },
    )?;
    let only_first = |x: &[Array]| Ok(vec![f.call(x)?[0].clone()]);
    assert_eq!(transforms::grad(only_first, &[0], &[scalar(5.0)])?[0].item::<f32>()?, 1.0);
    let both = |x: &[Array]| {
        let out = f.call(x)?;
        Ok(vec![(&out[0] + &out[1])?])
    };
    assert_eq!(transforms::grad(both, &[0], &[scalar(5.0)])?[0].item::<f32>()?, 1001.0);
    Ok(())
}

#[test]
fn the_rule_reads_primals_and_outputs_of_the_forward() -> Result<()> {
    // y = exp(a)·b with the rule written by the output: dy/da = y, dy/db = y / b.
    let f = CustomVjp::new(
        |x| Ok(vec![(&ops::exp(&x[0])? * &x[1])?]),
        |primals, cotangents, outputs| {
            let da = (&cotangents[0] * &outputs[0])?;
            let db = (&da / &primals[1])?;
            Ok(vec![da, db])
        },
    )?;
    let x = [scalar(0.5), scalar(3.0)];
    let ours = transforms::grad(|x| f.call(x), &[0, 1], &x)?;
    let plain = transforms::grad(|x| Ok(vec![(&ops::exp(&x[0])? * &x[1])?]), &[0, 1], &x)?;
    for (ours, plain) in ours.iter().zip(&plain) {
        assert!((ours.item::<f32>()? - plain.item::<f32>()?).abs() < 1e-6);
    }
    Ok(())
}

#[test]
fn a_rule_may_use_transforms_itself() -> Result<()> {
    // The rule differentiates the plain form by vjp, and so is right without a formula.
    let cube = |x: &[Array]| Ok(vec![(&ops::square(&x[0])? * &x[0])?]);
    let f = CustomVjp::new(cube, move |primals, cotangents, _| Ok(transforms::vjp(cube, primals, cotangents)?.1))?;
    assert_eq!(transforms::grad(|x| f.call(x), &[0], &[scalar(2.0)])?[0].item::<f32>()?, 12.0);
    // And it can be differentiated once more.
    let first = |x: &[Array]| transforms::grad(|x| f.call(x), &[0], x);
    assert_eq!(transforms::grad(first, &[0], &[scalar(2.0)])?[0].item::<f32>()?, 12.0);
    Ok(())
}

#[test]
fn captured_arrays_get_no_gradient_from_a_custom_vjp_or_a_checkpoint() -> Result<()> {
    let loss = |x: &[Array]| {
        // `w` is an input of the loss, but only captured by the inner functions.
        let w = x[1].clone();
        let inner = Checkpoint::new(move |x| Ok(vec![(&x[0] * &w)?]))?;
        inner.call(&x[..1])
    };
    let grads = transforms::grad(loss, &[0, 1], &[scalar(2.0), scalar(3.0)])?;
    assert_eq!((grads[0].item::<f32>()?, grads[1].item::<f32>()?), (3.0, 0.0));

    let loss = |x: &[Array]| {
        let (w, v) = (x[1].clone(), x[1].clone());
        let inner =
            CustomVjp::new(move |x| Ok(vec![(&x[0] * &w)?]), move |_, cotangents, _| Ok(vec![(&cotangents[0] * &v)?]))?;
        inner.call(&x[..1])
    };
    let grads = transforms::grad(loss, &[0, 1], &[scalar(2.0), scalar(3.0)])?;
    assert_eq!((grads[0].item::<f32>()?, grads[1].item::<f32>()?), (3.0, 0.0));
    Ok(())
}

/// tanh(x·w)·v, summed.
fn network(x: &[Array]) -> Result<Vec<Array>> {
    let hidden = ops::tanh(&ops::matmul(&x[0], &x[1])?)?;
    Ok(vec![ops::sum(&ops::matmul(&hidden, &x[2])?, None, false)?])
}

#[test]
fn a_checkpoint_gives_the_plain_gradient_bit_for_bit() -> Result<()> {
    let keys = random::split(&random::key(3)?, 3)?;
    let key = |i: i32| ops::take(&keys, &Array::scalar(i)?, Some(0));
    let normal = |shape: &[i32], i: i32| random::normal(shape, Dtype::Float32, 0.0, 1.0, Some(&key(i)?));
    let inputs = [normal(&[4, 8], 0)?, normal(&[8, 16], 1)?, normal(&[16, 2], 2)?];
    let checkpoint = Checkpoint::new(network)?;
    let plain = transforms::value_and_grad(network, &[0, 1, 2], &inputs)?;
    let recomputed = transforms::value_and_grad(|x| checkpoint.call(x), &[0, 1, 2], &inputs)?;
    assert_eq!(bits(&plain.0[0]), bits(&recomputed.0[0]));
    for (plain, recomputed) in plain.1.iter().zip(&recomputed.1) {
        assert_eq!(bits(plain), bits(recomputed));
        assert!(plain.to_vec::<f32>()?.iter().any(|&value| value != 0.0));
    }
    Ok(())
}

#[test]
fn a_checkpoint_runs_its_function_once_more_in_the_backward_pass() -> Result<()> {
    let runs = std::rc::Rc::new(std::cell::Cell::new(0));
    let counter = std::rc::Rc::clone(&runs);
    let f = Checkpoint::new(move |x| {
        counter.set(counter.get() + 1);
        Ok(vec![ops::square(&x[0])?])
    })?;
    f.call(&[scalar(2.0)])?;
    assert_eq!(runs.get(), 1);
    transforms::grad(|x| f.call(x), &[0], &[scalar(2.0)])?;
    assert_eq!(runs.get(), 3);
    Ok(())
}
