//! First and second derivatives, directional derivatives, checkpoints and compiled functions.

use mlx_rs_core::cpu_engine::{self, causal_softmax, with_engine};
use mlx_rs_core::transforms::{self, Checkpoint, Compiled};
use mlx_rs_core::{Array, Dtype, Result, ops};

use super::{assert_close, both, largest, noise, numbers};

/// Named functions of `[6, 40]` arrays, with the number of them that each takes.
type Function = fn(&[Array]) -> Result<Array>;
const FUNCTIONS: [(&str, usize, Function); 5] = [
    ("softmax", 1, |x| ops::softmax(&x[0], Some(&[-1]), true)),
    ("logsumexp", 1, |x| ops::logsumexp(&x[0], Some(&[-1]), true)),
    ("causal", 1, |x| causal_softmax(&x[0], 3)),
    ("blind", 1, |x| causal_softmax(&ops::slice(&x[0], &[0, 0], &[6, 4], &[1, 1])?, 6)),
    ("swiglu", 2, |x| cpu_engine::swiglu(&x[0], &x[1])),
];

fn inputs(count: usize) -> Result<Vec<Array>> {
    (0..count as u64).map(|at| noise(&[6, 40], 2.0, 20 + at)).collect()
}

/// A scalar of `f` in which every element counts differently.
fn weighted(f: Function, x: &[Array]) -> Result<Vec<Array>> {
    let y = f(x)?;
    let weights = noise(y.shape(), 1.0, 30)?;
    Ok(vec![ops::sum(&ops::multiply(&y, &weights)?, None, false)?])
}

fn arguments(count: usize) -> Vec<i32> {
    (0..count as i32).collect()
}

fn assert_gradients(ours: &[Array], theirs: &[Array], what: &str) -> Result<()> {
    assert_eq!(ours.len(), theirs.len());
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let most = largest(theirs)?;
        assert!(most > 1e-3, "{what} {at} has nothing to compare");
        assert_close(ours, theirs, 1e-5, 1e-6 * most, &format!("{what} {at}"))?;
    }
    Ok(())
}

#[test]
fn gradients_are_mlxs() -> Result<()> {
    for (name, count, f) in FUNCTIONS {
        let x = inputs(count)?;
        let gradients = || transforms::grad(|x: &[Array]| weighted(f, x), &arguments(count), &x);
        let (ours, theirs) = both(gradients)?;
        assert_gradients(&ours, &theirs, name)?;
    }
    Ok(())
}

#[test]
fn one_argument_of_two_can_be_asked_for() -> Result<()> {
    let x = inputs(2)?;
    for argument in [0, 1] {
        let f = |x: &[Array]| weighted(|x| cpu_engine::swiglu(&x[0], &x[1]), x);
        let (ours, theirs) = both(|| transforms::grad(f, &[argument], &x))?;
        assert_gradients(&ours, &theirs, &format!("argument {argument}"))?;
    }
    Ok(())
}

#[test]
fn gradients_reach_through_transposed_inputs_and_broadcast_cotangents() -> Result<()> {
    let x = inputs(1)?;
    let f = |x: &[Array]| {
        let y = ops::softmax(&ops::transpose(&x[0], None)?, Some(&[-1]), true)?; // [40, 6]
        let z = ops::sum(&ops::square(&y)?, Some(&[1]), false)?;
        let l = ops::logsumexp(&ops::transpose(&x[0], None)?, Some(&[-1]), false)?;
        // The cotangents of both are broadcast scalars.
        Ok(vec![(ops::sum(&z, None, false)? + ops::mean(&l, None, false)?)?])
    };
    let (ours, theirs) = both(|| transforms::grad(f, &[0], &x))?;
    assert_gradients(&ours, &theirs, "transposed")
}

#[test]
fn gradients_of_gradients_are_mlxs() -> Result<()> {
    for (name, count, f) in FUNCTIONS {
        let x = inputs(count)?;
        let second = || {
            let squared = |x: &[Array]| {
                let first = transforms::grad(|x: &[Array]| weighted(f, x), &arguments(count), x)?;
                let sums: Vec<Array> =
                    first.iter().map(|g| ops::sum(&ops::square(g)?, None, false)).collect::<Result<_>>()?;
                Ok(vec![sums[1..].iter().try_fold(sums[0].clone(), |all, sum| ops::add(&all, sum))?])
            };
            transforms::grad(squared, &arguments(count), &x)
        };
        let (ours, theirs) = both(second)?;
        assert_gradients(&ours, &theirs, name)?;
    }
    Ok(())
}

#[test]
fn directional_derivatives_are_mlxs() -> Result<()> {
    for (name, count, f) in FUNCTIONS {
        let x = inputs(count)?;
        let tangents: Vec<Array> = (0..count as u64).map(|at| noise(&[6, 40], 1.0, 40 + at)).collect::<Result<_>>()?;
        let (ours, theirs) = both(|| Ok(transforms::jvp(|x: &[Array]| Ok(vec![f(x)?]), &x, &tangents)?.1))?;
        assert_gradients(&ours, &theirs, name)?;
    }
    Ok(())
}

#[test]
fn scales_and_biases_of_a_quantised_matrix_have_gradients_and_codes_have_none() -> Result<()> {
    let parts = ops::quantize(&noise(&[4, 128], 1.0, 50)?, Some(64), Some(4), "affine")?;
    let f = |x: &[Array]| {
        let dense = cpu_engine::dequantize(&parts[0], &x[0], Some(&x[1]), 64, 4, "affine")?;
        Ok(vec![ops::sum(&ops::square(&dense)?, None, false)?])
    };
    let (ours, theirs) = both(|| transforms::grad(f, &[0, 1], &parts[1..]))?;
    assert_gradients(&ours, &theirs, "parts")?;
    // Ours has no directional derivative; the message shows that it ran.
    let tangents = [ops::ones_like(&parts[1])?, ops::ones_like(&parts[2])?];
    let error = with_engine(true, || transforms::jvp(f, &parts[1..], &tangents)).unwrap_err();
    assert!(error.message.contains("MlxrsDequantize"), "{error}");
    Ok(())
}

#[test]
fn a_checkpoint_gives_the_plain_gradient() -> Result<()> {
    for (name, count, f) in FUNCTIONS {
        let x = inputs(count)?;
        with_engine(true, || {
            let checkpoint = Checkpoint::new(move |x: &[Array]| weighted(f, x))?;
            let plain = transforms::grad(|x: &[Array]| weighted(f, x), &arguments(count), &x)?;
            let again = transforms::grad(|x: &[Array]| checkpoint.call(x), &arguments(count), &x)?;
            for (plain, again) in plain.iter().zip(&again) {
                assert_eq!(numbers(plain)?, numbers(again)?, "{name}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_compiled_function_computes_and_differentiates_through_the_engine() -> Result<()> {
    for (name, count, f) in FUNCTIONS {
        let x = inputs(count)?;
        with_engine(true, || {
            let wrapped = move |x: &[Array]| {
                // Elementwise work around the op, for the compiler to fuse.
                let x: Vec<Array> = x.iter().map(|x| (x * 0.5)? + 0.25).collect::<Result<_>>()?;
                Ok(vec![ops::sum(&ops::square(&f(&x)?)?, None, false)?])
            };
            let compiled = Compiled::new(wrapped, false)?;
            let value = compiled.call(&x)?[0].item::<f32>()?;
            let plain = wrapped(&x)?[0].item::<f32>()?;
            assert!((value - plain).abs() <= 1e-6 * plain.abs(), "{name}: {value} instead of {plain}");
            let ours = transforms::grad(|x: &[Array]| compiled.call(x), &arguments(count), &x)?;
            let theirs = transforms::grad(wrapped, &arguments(count), &x)?;
            assert_gradients(&ours, &theirs, name)
        })?;
    }
    Ok(())
}

#[test]
fn a_shapeless_trace_serves_other_shapes() -> Result<()> {
    with_engine(true, || {
        let compiled = Compiled::new(
            |x: &[Array]| {
                let y = ops::softmax(&x[0], Some(&[-1]), true)?;
                Ok(vec![cpu_engine::swiglu(&y, &y)?, ops::logsumexp(&x[0], Some(&[-1]), true)?])
            },
            true,
        )?;
        for size in [3, 5] {
            let out = compiled.call(&[ops::zeros(&[2, size], Dtype::Float32)?])?;
            assert_eq!((out[0].shape(), out[1].shape()), (&[2, size][..], &[2, 1][..]));
            assert!((numbers(&out[1])?[1] - (size as f32).ln()).abs() < 1e-6);
        }
        assert_eq!(compiled.trace_count(), 1);
        Ok(())
    })
}
