//! Scaled dot-product attention with the mask as data.

use mlx_rs_core::fast::AttentionMask;
use mlx_rs_core::{Array, Dtype, Result, fast, ops};

/// Which keys a query may see. Position `i` of `L` queries over `S` keys stands at `i + S − L`.
#[derive(Clone)]
pub enum Mask {
    /// All keys.
    None,
    /// Keys at or before the query.
    Causal,
    /// Keys at or before the query, and less than this many positions back.
    CausalWindow(i32),
    /// True where a query sees a key; broadcasts to `[B, H, L, S]`.
    Array(Array),
}

/// Attention over `q` `[B, H, L, D]` and `k`, `v` `[B, Hkv, S, D]`, giving `[B, H, L, D]`. `H` is a multiple of `Hkv`.
///
/// # Errors
/// Shapes that do not fit.
pub fn attention(q: &Array, k: &Array, v: &Array, scale: f32, mask: &Mask) -> Result<Array> {
    let (queries, keys) = (q.dim(2)?, k.dim(2)?);
    match mask {
        // A single query sees every key, so the mask says nothing; without it MLX takes its shorter path.
        Mask::Causal if queries > 1 => fast::scaled_dot_product_attention(q, k, v, scale, AttentionMask::Causal, None),
        Mask::CausalWindow(window) if keys > *window => {
            let mask = window_mask(queries, keys, *window)?;
            fast::scaled_dot_product_attention(q, k, v, scale, AttentionMask::Array(&mask), None)
        }
        Mask::CausalWindow(_) if queries > 1 => attention(q, k, v, scale, &Mask::Causal),
        Mask::Array(mask) => fast::scaled_dot_product_attention(q, k, v, scale, AttentionMask::Array(mask), None),
        _ => fast::scaled_dot_product_attention(q, k, v, scale, AttentionMask::None, None),
    }
}

/// `[L, S]`, true where `0 ≤ i − j < window` for the query at position `i` and the key at `j`.
fn window_mask(queries: i32, keys: i32, window: i32) -> Result<Array> {
    let columns = ops::arange(0.0, f64::from(keys), 1.0, Dtype::Int32)?;
    let rows = ops::arange(f64::from(keys - queries), f64::from(keys), 1.0, Dtype::Int32)?;
    let rows = ops::expand_dims(&rows, &[1])?; // [L, 1]
    let causal = ops::greater_equal(&rows, &columns)?; // [L, S]
    let near = ops::less(&rows, &(&columns + window)?)?;
    ops::logical_and(&causal, &near)
}

/// `[B, L, heads·D]` to `[B, heads, L, D]`.
///
/// # Errors
/// A last axis that is no multiple of `heads`.
pub fn split_heads(x: &Array, heads: i32) -> Result<Array> {
    let (batch, length) = (x.dim(0)?, x.dim(1)?);
    let x = x.reshape(&[batch, length, heads, -1])?; // [B, L, H, D]
    ops::transpose(&x, Some(&[0, 2, 1, 3])) // [B, H, L, D]
}

/// `[B, H, L, D]` to `[B, L, H·D]`.
///
/// # Errors
/// An input that is not four-dimensional.
pub fn merge_heads(x: &Array) -> Result<Array> {
    let (batch, length) = (x.dim(0)?, x.dim(2)?);
    ops::transpose(x, Some(&[0, 2, 1, 3]))?.reshape(&[batch, length, -1])
}
