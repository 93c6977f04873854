//! The CPU engine: MLX primitives of our own, with fast kernels, in place of MLX's scalar CPU ops.
//!
//! Each function here takes the primitive when the engine is [`enabled`], the current stream is one of the CPU and the
//! arrays fit it (f32, not empty); otherwise it builds MLX's own ops in the form in which mlx-lm has them. Callers
//! cannot tell but by time and the last bits: results agree to 1e-6 relative, and gradients to 1e-5. [`softmax`] and
//! [`logsumexp`] over the last axis come here by themselves.
//!
//! `MLX_RS_CPU_ENGINE=off` (or `0`) gives MLX's own ops everywhere, and then its results to the last bit.
//!
//! ```
//! use mlx_rs_core::{Array, cpu_engine};
//! let gate = Array::from_slice(&[0.0f32, 2.0], &[2])?;
//! let up = Array::from_slice(&[5.0f32, 3.0], &[2])?;
//! let y = cpu_engine::swiglu(&gate, &up)?.to_vec::<f32>()?; // silu(2) · 3
//! assert!(y[0] == 0.0 && (y[1] - 5.284783).abs() < 1e-5);
//! let plain = cpu_engine::with_engine(false, || cpu_engine::swiglu(&gate, &up))?.to_vec::<f32>()?;
//! assert!((plain[1] - y[1]).abs() < 1e-5);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```
//!
//! [`softmax`]: crate::ops::softmax
//! [`logsumexp`]: crate::ops::logsumexp

use std::cell::Cell;
use std::sync::OnceLock;

use crate::array::Array;
use crate::device::{Device, Stream};
use crate::element::Dtype;
use crate::error::{Error, ErrorKind, Result};
use crate::ops;
use crate::ops::call::op;

/// The environment variable that turns the engine off.
pub const ENGINE_VARIABLE: &str = "MLX_RS_CPU_ENGINE";

thread_local! {
    static OVERRIDE: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Whether ops on the CPU may take our primitives: by the innermost [`with_engine`] of this thread, else by
/// `MLX_RS_CPU_ENGINE` as it was when first asked for, else yes.
pub fn enabled() -> bool {
    static FROM_ENVIRONMENT: OnceLock<bool> = OnceLock::new();
    OVERRIDE.get().unwrap_or_else(|| {
        *FROM_ENVIRONMENT.get_or_init(|| std::env::var(ENGINE_VARIABLE).map_or(true, |value| !is_off(&value)))
    })
}

fn is_off(value: &str) -> bool {
    let value = value.trim();
    value == "0" || value.eq_ignore_ascii_case("off")
}

/// Runs `body` with the engine on or off for the ops that this thread builds in it. Scopes nest, and end with a panic too.
pub fn with_engine<R>(on: bool, body: impl FnOnce() -> R) -> R {
    struct Scope(Option<bool>);
    impl Drop for Scope {
        fn drop(&mut self) {
            OVERRIDE.set(self.0);
        }
    }
    let _scope = Scope(OVERRIDE.replace(Some(on)));
    body()
}

/// Whether ops on these arrays would take our primitives now: the engine is on, the current stream is one of the CPU,
/// and every array is f32 and not empty.
///
/// # Errors
/// What MLX reports of the stream.
pub fn applies(arrays: &[&Array]) -> Result<bool> {
    let fit = arrays.iter().all(|array| array.dtype() == Dtype::Float32 && array.size() > 0);
    Ok(enabled() && fit && Stream::current()?.device()? == Device::Cpu)
}

/// softmax over the last axis, summed in f32.
///
/// # Errors
/// A scalar.
pub fn softmax_last(x: &Array) -> Result<Array> {
    if x.ndim() > 0 && applies(&[x])? {
        return op!("softmax", mlxrs_softmax(x));
    }
    op!("softmax", mlx_softmax_axis(x, -1, true))
}

/// softmax over the last axis of `scores` `[…, n·queries, keys]` under a causal mask: row r stands for query
/// r mod `queries`, at position keys − queries + (r mod queries), and sees the keys up to there. A row that sees none
/// weighs all alike.
///
/// # Errors
/// Fewer than two axes, rows that are no multiple of `queries`, or scores that are not floating.
pub fn causal_softmax(scores: &Array, queries: i32) -> Result<Array> {
    let op = "softmax";
    let shape = scores.shape();
    let [before @ .., rows, keys] = shape else {
        return Err(Error::shape(op, format!("scores have shape {shape:?}, wanted at least two axes")));
    };
    if queries < 1 || rows % queries != 0 {
        let wanted = format!("scores have shape {shape:?}, wanted rows in multiples of {queries} queries");
        return Err(Error::shape(op, wanted));
    }
    if applies(&[scores])? {
        return op!("softmax", mlxrs_causal_softmax(scores, queries));
    }
    let stacked = [before, &[rows / queries, queries, *keys]].concat();
    let columns = ops::arange(0.0, f64::from(*keys), 1.0, Dtype::Int32)?;
    let positions = ops::arange(f64::from(keys - queries), f64::from(*keys), 1.0, Dtype::Int32)?;
    let mask = ops::greater_equal(&ops::expand_dims(&positions, &[1])?, &columns)?; // [queries, keys]
    let masked = ops::where_(&mask, &scores.reshape(&stacked)?, &least(scores.dtype())?)?;
    softmax_last(&masked)?.reshape(shape)
}

/// The least finite number of a dtype, by which MLX's attention replaces hidden scores.
fn least(dtype: Dtype) -> Result<Array> {
    match dtype {
        Dtype::Float16 => Array::scalar(half::f16::MIN),
        Dtype::Bfloat16 => Array::scalar(half::bf16::MIN),
        Dtype::Float32 => Array::scalar(f32::MIN),
        Dtype::Float64 => Array::scalar(f64::MIN),
        other => Err(Error::new(ErrorKind::Dtype, "softmax", format!("scores are {other}, wanted a floating dtype"))),
    }
}

/// `log(sum(exp(x)))` over the last axis, which goes, or stays with size 1 under `keepdims`.
///
/// # Errors
/// A scalar, or an empty array.
pub fn logsumexp_last(x: &Array, keepdims: bool) -> Result<Array> {
    if x.ndim() == 0 || !applies(&[x])? {
        return op!("logsumexp", mlx_logsumexp_axis(x, -1, keepdims));
    }
    let kept = op!("logsumexp", mlxrs_logsumexp(x))?; // […, 1]
    if keepdims { Ok(kept) } else { ops::squeeze(&kept, Some(&[-1])) }
}

/// `silu(gate) · up`.
///
/// # Errors
/// Shapes that do not broadcast.
pub fn swiglu(gate: &Array, up: &Array) -> Result<Array> {
    if gate.shape() == up.shape() && applies(&[gate, up])? {
        return op!("swiglu", mlxrs_swiglu(gate, up));
    }
    let silu = ops::multiply(gate, &ops::sigmoid(gate)?)?;
    ops::multiply(&silu, up)
}

/// The dense matrix behind a quantised one, as [`ops::dequantize`] gives it.
///
/// Ours takes mode `"affine"` with f32 scales. With half-precision scales MLX rounds the weights to their dtype, which
/// ours would not.
///
/// # Errors
/// Parts that do not fit one another or the mode.
pub fn dequantize(
    w: &Array,
    scales: &Array,
    biases: Option<&Array>,
    group_size: i32,
    bits: i32,
    mode: &str,
) -> Result<Array> {
    if let Some(biases) = biases.filter(|_| mode == "affine")
        && is_affine(w, scales, biases, group_size, bits)
        && applies(&[scales, biases])?
    {
        return op!("dequantize", mlxrs_dequantize(w, scales, biases, group_size, bits));
    }
    ops::dequantize(w, scales, biases, Some(group_size), Some(bits), mode, None)
}

/// Whether the parts fit one another, so that MLX is the one to say what is wrong when they do not.
fn is_affine(w: &Array, scales: &Array, biases: &Array, group: i32, bits: i32) -> bool {
    let known = matches!(bits, 2 | 3 | 4 | 5 | 6 | 8) && matches!(group, 32 | 64 | 128);
    let (Some((columns, rows)), Some((groups, scale_rows))) = (w.shape().split_last(), scales.shape().split_last())
    else {
        return false;
    };
    // 32 codes fill `bits` words.
    known
        && !rows.is_empty()
        && rows == scale_rows
        && scales.shape() == biases.shape()
        && w.dtype() == Dtype::Uint32
        && i64::from(*columns) == i64::from(*groups) * i64::from(group / 32 * bits)
}
