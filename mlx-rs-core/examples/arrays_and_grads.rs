//! Arrays, operators, lazy evaluation and gradients: a line fitted by gradient descent.
//!
//!     cargo run -p mlx-rs-core --example arrays_and_grads

use mlx_rs_core::{Array, Dtype, Result, ops, random, transforms};

fn main() -> Result<()> {
    // Host data in; every op returns a `Result`, and a formula needs one `?` at its end.
    let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    let b = (&a * 2.0 + &ops::matmul(&a, &a)?)?;
    println!("b = {b}  ({:?})", b.dtype());

    // Nothing has run before a value is read, and a read gives a copy in row-major order.
    let transposed = ops::transpose(&b, None)?;
    assert_eq!(transposed.to_vec::<f32>()?, [9.0, 21.0, 14.0, 30.0]);

    // The derivative of x³ is 3x², and its derivative is 6x.
    let cube = |x: &[Array]| Ok(vec![(&ops::square(&x[0])? * &x[0])?]);
    let slope = |x: &[Array]| transforms::grad(cube, &[0], x);
    let at = [Array::scalar(2.0f32)?];
    let (first, second) = (slope(&at)?.remove(0), transforms::grad(slope, &[0], &at)?.remove(0));
    println!("d/dx x³ at 2 = {first}, d²/dx² = {second}");
    assert_eq!((first.item::<f32>()?, second.item::<f32>()?), (12.0, 12.0));

    // y = 3x - 1 with a little noise; explicit keys make the numbers repeatable.
    let (data_key, noise_key) = random::split_pair(&random::key(7)?)?;
    let x = random::uniform(-1.0, 1.0, &[200], Dtype::Float32, Some(&data_key))?;
    let noise = random::normal(&[200], Dtype::Float32, 0.0, 0.05, Some(&noise_key))?;
    let y = (&x * 3.0 + &noise - Array::scalar(1.0f32)?)?;

    // The closure borrows the data; only the listed arguments are differentiated by.
    let loss = |p: &[Array]| {
        let error = ((&x * &p[0] + &p[1])? - &y)?;
        Ok(vec![ops::mean(&ops::square(&error)?, None, false)?])
    };
    let mut line = vec![Array::scalar(0.0f32)?, Array::scalar(0.0f32)?];
    for step in 0..=100 {
        let (value, grads) = transforms::value_and_grad(loss, &[0, 1], &line)?;
        line = line.iter().zip(&grads).map(|(p, g)| p - (g * 0.3)?).collect::<Result<_>>()?;
        // One evaluation point per step keeps the graph from growing.
        transforms::eval(line.iter().chain(&value))?;
        if step % 25 == 0 {
            let (loss, slope, offset) = (value[0].item::<f32>()?, line[0].item::<f32>()?, line[1].item::<f32>()?);
            println!("step {step:3}: loss {loss:.5}, y = {slope:.3} x {offset:+.3}");
        }
    }
    let (slope, offset) = (line[0].item::<f32>()?, line[1].item::<f32>()?);
    assert!((slope - 3.0).abs() < 0.02 && (offset + 1.0).abs() < 0.02, "{slope} {offset}");
    Ok(())
}
