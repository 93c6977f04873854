//! Attention through the CPU engine against MLX's own op.

use mlx_rs_core::cpu_engine::with_engine;
use mlx_rs_core::{Array, Device, Dtype, Result, device, ops, random, transforms};

use super::{Mask, attention};

fn noise(shape: &[i32], seed: u64) -> Result<Array> {
    random::normal(shape, Dtype::Float32, 0.0, 1.0, Some(&random::key(seed)?))
}

/// q, k and v of 2 sequences, `heads` over `kv_heads`, width 8.
fn parts(heads: i32, kv_heads: i32, queries: i32, keys: i32) -> Result<Vec<Array>> {
    let kv = [2, kv_heads, keys, 8];
    Ok(vec![noise(&[2, heads, queries, 8], 1)?, noise(&kv, 2)?, noise(&kv, 3)?])
}

fn on_and_off<R>(f: impl Fn() -> Result<R>) -> Result<(R, R)> {
    device::with_device(Device::Cpu, || Ok((with_engine(true, &f)?, with_engine(false, &f)?)))
}

fn assert_close(ours: &Array, theirs: &Array, tolerance: f32, what: &str) -> Result<()> {
    assert_eq!(ours.shape(), theirs.shape(), "{what}");
    for (ours, theirs) in ours.to_vec::<f32>()?.into_iter().zip(theirs.to_vec::<f32>()?) {
        let near = (ours - theirs).abs() <= tolerance * theirs.abs().max(1.0);
        assert!(near || (ours.is_nan() && theirs.is_nan()), "{what}: {ours} instead of {theirs}");
    }
    Ok(())
}

/// Values and gradients of all three inputs, engine on against off.
fn assert_same(qkv: &[Array], mask: &Mask, what: &str) -> Result<()> {
    let (ours, theirs) = on_and_off(|| attention(&qkv[0], &qkv[1], &qkv[2], 0.3, mask))?;
    assert_close(&ours, &theirs, 1e-5, what)?;
    let loss = |x: &[Array]| {
        let y = attention(&x[0], &x[1], &x[2], 0.3, mask)?;
        let weights = noise(y.shape(), 4)?;
        Ok(vec![ops::sum(&ops::multiply(&y, &weights)?, None, false)?])
    };
    let (ours, theirs) = on_and_off(|| transforms::grad(loss, &[0, 1, 2], qkv))?;
    for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_close(ours, theirs, 1e-5, &format!("{what}, gradient {at}"))?;
    }
    Ok(())
}

#[test]
fn the_engine_attends_as_mlx_does_under_every_mask() -> Result<()> {
    for (heads, kv_heads, queries, keys) in [(4, 2, 7, 7), (3, 3, 5, 9), (6, 2, 1, 12), (2, 1, 33, 33)] {
        let qkv = parts(heads, kv_heads, queries, keys)?;
        let what = format!("{heads}/{kv_heads} heads, {queries} queries, {keys} keys");
        assert_same(&qkv, &Mask::None, &format!("no mask, {what}"))?;
        assert_same(&qkv, &Mask::Causal, &format!("causal, {what}"))?;
        assert_same(&qkv, &Mask::CausalWindow(3), &format!("window, {what}"))?;
        assert_same(&qkv, &Mask::CausalWindow(100), &format!("wide window, {what}"))?;
        let added = noise(&[2, 1, queries, keys], 5)?;
        let seen = ops::greater(&added, &Array::scalar(-0.5f32)?)?;
        assert_same(&qkv, &Mask::Array(added), &format!("added mask, {what}"))?;
        assert_same(&qkv, &Mask::Array(seen), &format!("bool mask, {what}"))?;
    }
    Ok(())
}

#[test]
fn a_query_that_sees_nothing_is_mlxs() -> Result<()> {
    let qkv = parts(4, 2, 3, 5)?;
    let rows = [true, true, true, true, true, false, false, false, false, false, true, false, true, false, true];
    let seen = Array::from_slice(&rows, &[3, 5])?;
    assert_same(&qkv, &Mask::Array(seen.clone()), "bool")?;
    let hidden = ops::where_(&seen, &Array::scalar(0.0f32)?, &Array::scalar(f32::NEG_INFINITY)?)?;
    let (ours, theirs) = on_and_off(|| attention(&qkv[0], &qkv[1], &qkv[2], 0.3, &Mask::Array(hidden.clone())))?;
    assert_close(&ours, &theirs, 1e-5, "added")?;
    // The second query's scores are −∞ alone.
    let second = ops::slice(&ours, &[0, 0, 1, 0], &[2, 4, 2, 8], &[1, 1, 1, 1])?.to_vec::<f32>()?;
    assert!(second.iter().all(|value| value.is_nan()));
    // More queries than keys: the first see none.
    assert_same(&parts(4, 2, 6, 4)?, &Mask::Causal, "more queries than keys")
}

#[test]
fn shapes_that_do_not_fit_are_refused_either_way() -> Result<()> {
    let [q, k, v] = &parts(4, 2, 3, 5)?[..] else { unreachable!("three parts") };
    let mask = |shape: &[i32]| Ok::<_, mlx_rs_core::Error>(Mask::Array(ops::ones(shape, Dtype::Bool)?));
    for on in [true, false] {
        with_engine(on, || {
            assert!(attention(q, k, &noise(&[2, 2, 4, 8], 1)?, 1.0, &Mask::Causal).is_err());
            assert!(attention(q, &noise(&[2, 3, 5, 8], 1)?, &noise(&[2, 3, 5, 8], 1)?, 1.0, &Mask::None).is_err());
            assert!(attention(q, k, v, 1.0, &mask(&[4, 5])?).is_err());
            assert!(attention(q, k, v, 1.0, &mask(&[7, 2, 4, 3, 5])?).is_err());
            Ok::<_, mlx_rs_core::Error>(())
        })?;
    }
    Ok(())
}
