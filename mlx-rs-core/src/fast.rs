//! Fused pieces of transformers, each with its own gradient.
//!
//! ```
//! use mlx_rs_core::{Array, fast};
//! let x = Array::from_slice(&[3.0f32, 4.0], &[1, 2])?;
//! let y = fast::rms_norm(&x, None, 0.0)?.to_vec::<f32>()?; // divided by sqrt((9 + 16) / 2)
//! assert!((y[0] - 0.848528).abs() < 1e-5 && (y[1] - 1.131371).abs() < 1e-5);
//! let logits = Array::from_slice(&[0.0f32, 0.0], &[1, 2])?;
//! let target = Array::from_slice(&[1i32], &[1])?;
//! let loss = fast::cross_entropy(&logits, &target)?.to_vec::<f32>()?;
//! assert!((loss[0] - std::f32::consts::LN_2).abs() < 1e-6);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use crate::array::Array;
use crate::error::{Error, Result};
use crate::ops::call::op;

/// Which keys a query may look at.
#[derive(Debug, Clone, Copy, Default)]
pub enum AttentionMask<'a> {
    /// All of them.
    #[default]
    None,
    /// Those up to its own position; the last query stands at the last key.
    Causal,
    /// A bool mask (true: may look) or one that is added to the scores; it broadcasts to `[B, H, L_q, L_k]`.
    Array(&'a Array),
}

/// `softmax(scale * q kᵀ + mask) v` for `q` `[B, H, L_q, D]`, `k` `[B, H_kv, L_k, D]`, `v` `[B, H_kv, L_k, D_v]`.
///
/// `H` is a multiple of `H_kv`. `sinks` `[H]` adds a score per head that takes weight but has no value.
///
/// # Errors
/// Shapes or dtypes that do not fit.
pub fn scaled_dot_product_attention(
    q: &Array,
    k: &Array,
    v: &Array,
    scale: f32,
    mask: AttentionMask,
    sinks: Option<&Array>,
) -> Result<Array> {
    attention(q, k, v, scale, mask, sinks, false)
}

/// [`scaled_dot_product_attention`] by a fused kernel or not at all (Python's `force_fused=True`).
///
/// # Errors
/// As there, or a device without such a kernel for these shapes.
pub fn scaled_dot_product_attention_fused(
    q: &Array,
    k: &Array,
    v: &Array,
    scale: f32,
    mask: AttentionMask,
    sinks: Option<&Array>,
) -> Result<Array> {
    attention(q, k, v, scale, mask, sinks, true)
}

fn attention(
    q: &Array,
    k: &Array,
    v: &Array,
    scale: f32,
    mask: AttentionMask,
    sinks: Option<&Array>,
    force_fused: bool,
) -> Result<Array> {
    // C divides the heads of `q` by those of `k`.
    if let [_, 0, ..] = k.shape() {
        return Err(Error::shape("scaled_dot_product_attention", format!("k of shape {:?} has no heads", k.shape())));
    }
    let (mode, array) = match mask {
        AttentionMask::None => (c"", None),
        AttentionMask::Causal => (c"causal", None),
        // Python hands an array over in the mode "array".
        AttentionMask::Array(array) => (c"array", Some(array)),
    };
    op!(
        "scaled_dot_product_attention",
        mlx_fast_scaled_dot_product_attention(q, k, v, scale, mode, array, sinks, force_fused)
    )
}

/// Rotary position embedding of `x` `[B, …, L, D]`: the first `dims` of `D` turn by their position, counted from
/// `offset` and multiplied by `scale`.
///
/// `base` gives the frequencies, or `freqs` `[dims / 2]` their inverses: exactly one of both. `traditional` pairs
/// neighbours instead of halves.
///
/// # Errors
/// Both or neither of `base` and `freqs`, an odd or too large `dims`, or fewer than 3 dimensions.
pub fn rope(
    x: &Array,
    dims: i32,
    traditional: bool,
    base: Option<f32>,
    scale: f32,
    offset: i32,
    freqs: Option<&Array>,
) -> Result<Array> {
    op!("rope", mlx_fast_rope(x, dims, traditional, base, scale, offset, freqs))
}

/// [`rope`] with an `offset` array: a scalar, or `[B]` with one offset per batch entry.
///
/// # Errors
/// As [`rope`], or an offset that is not of integers or does not fit.
pub fn rope_dynamic(
    x: &Array,
    dims: i32,
    traditional: bool,
    base: Option<f32>,
    scale: f32,
    offset: &Array,
    freqs: Option<&Array>,
) -> Result<Array> {
    op!("rope", mlx_fast_rope_dynamic(x, dims, traditional, base, scale, offset, freqs))
}

/// `x` over the root of the mean of its squares along the last axis (plus `eps`), times `weight` `[D]`.
///
/// # Errors
/// A scalar, or a weight that does not fit.
pub fn rms_norm(x: &Array, weight: Option<&Array>, eps: f32) -> Result<Array> {
    op!("rms_norm", mlx_fast_rms_norm(x, weight, eps))
}

/// `x` less its mean, over its standard deviation (plus `eps` in the variance), along the last axis, times `weight`
/// `[D]`, plus `bias` `[D]`.
///
/// # Errors
/// A scalar, or a weight or bias that does not fit.
pub fn layer_norm(x: &Array, weight: Option<&Array>, bias: Option<&Array>, eps: f32) -> Result<Array> {
    op!("layer_norm", mlx_fast_layer_norm(x, weight, bias, eps))
}

/// `logsumexp(logits) - logits[target]` in float32: `logits` `[…, V]`, `targets` `[…]` of class numbers below `V`.
///
/// # Errors
/// Shapes that do not fit, or targets that are not integers.
pub fn cross_entropy(logits: &Array, targets: &Array) -> Result<Array> {
    op!("cross_entropy", mlx_fast_cross_entropy(logits, targets))
}
