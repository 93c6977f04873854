//! 10,000 gradient steps keep the active memory exactly where it was after the first hundred.

use std::time::Instant;

use mlx_rs_core::transforms::{self, Checkpoint, CustomVjp};
use mlx_rs_core::{Array, Dtype, Result, memory, ops, random};

use super::alone;

const STEPS: usize = 10_000;

/// The weights of a network 4 → 8 → 1, and a batch of 16 rows with its targets.
fn start() -> Result<(Vec<Array>, Vec<Array>)> {
    let keys = random::split(&random::key(0)?, 3)?;
    let normal = |shape: &[i32], i: i32| {
        let key = ops::take(&keys, &Array::scalar(i)?, Some(0))?;
        random::normal(shape, Dtype::Float32, 0.0, 0.5, Some(&key))
    };
    let (w, v, x) = (normal(&[4, 8], 0)?, normal(&[8, 1], 1)?, normal(&[16, 4], 2)?);
    let y = ops::sum(&x, Some(&[1]), true)?;
    transforms::eval([&w, &v, &x, &y])?;
    Ok((vec![w, v], vec![x, y]))
}

fn hidden(x: &Array, w: &Array) -> Result<Array> {
    ops::tanh(&ops::matmul(x, w)?)
}

fn loss(hidden: &Array, v: &Array, y: &Array) -> Result<Vec<Array>> {
    let error = (&ops::matmul(hidden, v)? - y)?;
    Ok(vec![ops::mean(&ops::square(&error)?, None, false)?])
}

/// Trains with `layer` as the hidden layer, and compares memory and loss early and late.
fn train_flat(layer: impl Fn(&Array, &Array) -> Result<Array>) -> Result<()> {
    let (mut weights, batch) = start()?;
    let (x, y) = (&batch[0], &batch[1]);
    let f = |weights: &[Array]| loss(&layer(x, &weights[0])?, &weights[1], y);
    let (mut early_memory, mut first_loss, mut last_loss) = (0, 0.0, 0.0);
    let began = Instant::now();
    for step in 1..=STEPS {
        let (values, grads) = transforms::value_and_grad(f, &[0, 1], &weights)?;
        weights =
            weights.iter().zip(&grads).map(|(weight, grad)| weight - (grad * 0.05)?).collect::<Result<Vec<Array>>>()?;
        transforms::eval(weights.iter().chain(&values))?;
        last_loss = values[0].item::<f32>()?;
        drop((values, grads));
        match step {
            1 => first_loss = last_loss,
            100 => early_memory = memory::get_active_memory()?,
            _ => {}
        }
    }
    println!("{STEPS} steps in {:.1} s, loss {first_loss} → {last_loss}", began.elapsed().as_secs_f32());
    // 4·8 + 8 + 16·4 + 16 floats are alive, so zero would mean that nothing is counted.
    assert!(early_memory >= 4 * (32 + 8 + 64 + 16), "{early_memory}");
    assert_eq!(memory::get_active_memory()?, early_memory, "active memory after step 100 and after the last");
    assert!(last_loss < first_loss / 10.0, "{first_loss} → {last_loss}");
    assert!(began.elapsed().as_secs() < 120, "{:?}", began.elapsed());
    Ok(())
}

#[test]
fn ten_thousand_gradient_steps_keep_active_memory_flat() {
    alone("memory::training::ten_thousand_gradient_steps_keep_active_memory_flat", || train_flat(hidden).unwrap());
}

#[test]
fn ten_thousand_steps_through_a_custom_vjp_keep_active_memory_flat() {
    alone("memory::training::ten_thousand_steps_through_a_custom_vjp_keep_active_memory_flat", || {
        // Made in each step, as a rule that captures something of the step is.
        let layer = |x: &Array, w: &Array| {
            let custom = CustomVjp::new(
                |a| Ok(vec![hidden(&a[0], &a[1])?]),
                |primals, cotangents, outputs| {
                    // d tanh = 1 - tanh²
                    let inner = (&cotangents[0] - (&cotangents[0] * &ops::square(&outputs[0])?)?)?;
                    let dx = ops::matmul(&inner, &ops::transpose(&primals[1], None)?)?;
                    Ok(vec![dx, ops::matmul(&ops::transpose(&primals[0], None)?, &inner)?])
                },
            )?;
            Ok(custom.call(&[x.clone(), w.clone()])?.remove(0))
        };
        train_flat(layer).unwrap();
    });
}

#[test]
fn ten_thousand_steps_through_a_checkpoint_keep_active_memory_flat() {
    alone("memory::training::ten_thousand_steps_through_a_checkpoint_keep_active_memory_flat", || {
        let layer = |x: &Array, w: &Array| {
            let checkpoint = Checkpoint::new(|a| Ok(vec![hidden(&a[0], &a[1])?]))?;
            Ok(checkpoint.call(&[x.clone(), w.clone()])?.remove(0))
        };
        train_flat(layer).unwrap();
    });
}
