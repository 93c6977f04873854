//! A two-layer network learns to tell two spirals apart.
//!
//!     cargo run -p mlx-rs-core --example two_layer_network

use mlx_rs_core::{Array, Dtype, Result, memory, ops, random, transforms};

const ROWS: i32 = 200;
const HIDDEN: i32 = 64;

/// Points `[2·ROWS, 2]` of two spiral arms, and the arm of each, `[2·ROWS, 1]`.
fn spirals() -> Result<(Array, Array)> {
    let (mut points, mut arms) = (Vec::new(), Vec::new());
    for arm in [0.0f32, 1.0] {
        for row in 0..ROWS {
            let along = row as f32 / ROWS as f32;
            let angle = 4.0 * along + arm * std::f32::consts::PI;
            points.extend([(0.2 + along) * angle.cos(), (0.2 + along) * angle.sin()]);
            arms.push(arm);
        }
    }
    Ok((Array::from_slice(&points, &[2 * ROWS, 2])?, Array::from_slice(&arms, &[2 * ROWS, 1])?))
}

/// The weights: `[2, H]`, `[H]`, `[H, 1]`, `[1]`.
fn initial_weights() -> Result<Vec<Array>> {
    let (first, second) = random::split_pair(&random::key(0)?)?;
    let normal = |shape: &[i32], scale: f32, key| random::normal(shape, Dtype::Float32, 0.0, scale, Some(key));
    Ok(vec![
        normal(&[2, HIDDEN], 2.0, &first)?,
        ops::zeros(&[HIDDEN], Dtype::Float32)?,
        normal(&[HIDDEN, 1], 0.2, &second)?,
        ops::zeros(&[1], Dtype::Float32)?,
    ])
}

/// One logit per point: `tanh(x·w₁ + b₁)·w₂ + b₂`.
fn logits(w: &[Array], x: &Array) -> Result<Array> {
    let hidden = ops::tanh(&(ops::matmul(x, &w[0])? + &w[1])?)?; // [B, H]
    ops::matmul(&hidden, &w[2])? + &w[3] // [B, 1]
}

/// Mean binary cross-entropy, in its stable form `softplus(z) - z·y`.
fn loss(w: &[Array], x: &Array, y: &Array) -> Result<Array> {
    let z = logits(w, x)?;
    let softplus = ops::logaddexp(&z, &Array::scalar(0.0f32)?)?;
    ops::mean(&(softplus - (&z * y)?)?, None, false)
}

fn accuracy(w: &[Array], x: &Array, y: &Array) -> Result<f32> {
    let guess = ops::greater(&logits(w, x)?, &Array::scalar(0.0f32)?)?.astype(Dtype::Float32)?;
    ops::mean(&ops::equal(&guess, y)?.astype(Dtype::Float32)?, None, false)?.item()
}

fn main() -> Result<()> {
    let (x, y) = spirals()?;
    let mut weights = initial_weights()?;
    let mut momentum = weights.iter().map(ops::zeros_like).collect::<Result<Vec<Array>>>()?;
    let mut losses = Vec::new();
    for step in 0..=1500 {
        let (value, grads) = transforms::value_and_grad(|w| Ok(vec![loss(w, &x, &y)?]), &[0, 1, 2, 3], &weights)?;
        for ((w, m), g) in weights.iter_mut().zip(&mut momentum).zip(&grads) {
            *m = (&*m * 0.9 + g)?;
            *w = (&*w - (&*m * 0.1)?)?;
        }
        // Loss, weights and momentum are computed together, once per step.
        transforms::eval(weights.iter().chain(&momentum).chain(&value))?;
        losses.push(value[0].item::<f32>()?);
        if step % 250 == 0 {
            println!("step {step:4}: loss {:.4}", losses[step]);
        }
    }
    let (right, kib) = (accuracy(&weights, &x, &y)?, memory::get_peak_memory()? / 1024);
    println!("{:.1} % of the points are on the right arm; peak memory {kib} KiB", 100.0 * right);
    assert!(losses[1500] < losses[0] / 10.0, "{} → {}", losses[0], losses[1500]);
    assert!(right > 0.99, "accuracy {right}");
    Ok(())
}
