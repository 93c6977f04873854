//! The CPU engine against MLX's own ops, which run with the engine off.

mod gradients;
mod values;

use mlx_rs_core::cpu_engine::with_engine;
use mlx_rs_core::{Array, Device, Dtype, Result, device, random};

const INF: f32 = f32::INFINITY;

/// Numbers of a normal distribution, the same for the same seed.
fn noise(shape: &[i32], scale: f32, seed: u64) -> Result<Array> {
    random::normal(shape, Dtype::Float32, 0.0, scale, Some(&random::key(seed)?))
}

fn numbers(array: &Array) -> Result<Vec<f32>> {
    array.to_vec::<f32>()
}

fn bits(array: &Array) -> Result<Vec<u32>> {
    Ok(numbers(array)?.into_iter().map(f32::to_bits).collect())
}

/// What `f` gives on the CPU with the engine on, and with it off.
fn both<R>(f: impl Fn() -> Result<R>) -> Result<(R, R)> {
    device::with_device(Device::Cpu, || Ok((with_engine(true, &f)?, with_engine(false, &f)?)))
}

/// Fails unless |ours − theirs| ≤ relative · |theirs| + absolute everywhere; NaN equals NaN.
fn assert_close(ours: &Array, theirs: &Array, relative: f32, absolute: f32, what: &str) -> Result<()> {
    assert_eq!((ours.shape(), ours.dtype()), (theirs.shape(), theirs.dtype()), "{what}");
    for (at, (ours, theirs)) in numbers(ours)?.into_iter().zip(numbers(theirs)?).enumerate() {
        let same = ours == theirs || (ours.is_nan() && theirs.is_nan());
        let near = (ours - theirs).abs() <= relative * theirs.abs() + absolute;
        assert!(same || near, "{what} at {at}: {ours} instead of {theirs}");
    }
    Ok(())
}

/// The largest magnitude of an array.
fn largest(array: &Array) -> Result<f32> {
    Ok(numbers(array)?.into_iter().fold(0.0, |most, value| value.abs().max(most)))
}
