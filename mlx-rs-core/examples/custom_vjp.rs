//! A gradient rule of one's own: rounding whose gradient passes straight through, so that codes can be trained.
//!
//!     cargo run -p mlx-rs-core --example custom_vjp

use mlx_rs_core::transforms::{self, CustomVjp};
use mlx_rs_core::{Array, Result, ops};

fn main() -> Result<()> {
    let x = Array::from_slice(&[0.2f32, 0.6, 1.4, 2.5], &[4])?;

    // Rounding is flat nearly everywhere, so its own gradient teaches nothing.
    let rounded = |x: &[Array]| Ok(vec![ops::sum(&ops::round(&x[0], 0)?, None, false)?]);
    let plain = transforms::grad(rounded, &[0], std::slice::from_ref(&x))?;
    println!("gradient of round:            {}", plain[0]);
    assert_eq!(plain[0].to_vec::<f32>()?, [0.0; 4]);

    // The rule gets the inputs, one cotangent per output, and the outputs; it returns one gradient per input.
    let straight_through = CustomVjp::new(
        |x| Ok(vec![ops::round(&x[0], 0)?]),
        |_inputs, cotangents, _outputs| Ok(vec![cotangents[0].clone()]),
    )?;
    let sum = |x: &[Array]| Ok(vec![ops::sum(&straight_through.call(x)?[0], None, false)?]);
    let passed = transforms::grad(sum, &[0], std::slice::from_ref(&x))?;
    println!("gradient straight through:    {}", passed[0]);
    assert_eq!(passed[0].to_vec::<f32>()?, [1.0; 4]);

    // What a rule needs from the forward pass is an extra output, never a captured array.
    let log_sum_exp = CustomVjp::new(
        |x| {
            let lse = ops::logsumexp(&x[0], Some(&[-1]), true)?;
            let softmax = ops::exp(&(&x[0] - &lse)?)?;
            Ok(vec![ops::sum(&lse, None, false)?, softmax])
        },
        |_inputs, cotangents, outputs| Ok(vec![(&outputs[1] * &cotangents[0])?]),
    )?;
    let ours = transforms::grad(|x| Ok(vec![log_sum_exp.call(x)?.remove(0)]), &[0], std::slice::from_ref(&x))?;
    println!("gradient of logsumexp:        {}", ours[0]);
    let theirs = ops::softmax(&x, Some(&[-1]), false)?;
    assert!(ops::allclose(&ours[0], &theirs, 1e-6, 1e-6, false)?.item::<bool>()?);

    // Weights that are rounded in the forward pass still learn their codes.
    let target = Array::from_slice(&[3.0f32, -1.0, 0.0, 2.0], &[4])?;
    let loss = |w: &[Array]| {
        let error = (&straight_through.call(w)?[0] - &target)?;
        Ok(vec![ops::mean(&ops::square(&error)?, None, false)?])
    };
    let mut w = vec![x];
    for _ in 0..40 {
        let grads = transforms::grad(loss, &[0], &w)?;
        w = vec![(&w[0] - (&grads[0] * 0.2)?)?];
        transforms::eval(&w)?;
    }
    let codes = straight_through.call(&w)?.remove(0);
    println!("codes after 40 steps:         {codes}");
    assert_eq!(codes.to_vec::<f32>()?, target.to_vec::<f32>()?);
    Ok(())
}
