//! Scaled dot-product attention with the mask as data.

use mlx_rs_core::fast::AttentionMask;
use mlx_rs_core::{Array, Dtype, Result, cpu_engine, fast, ops};

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
        Mask::Causal if queries > 1 => masked(q, k, v, scale, AttentionMask::Causal),
        Mask::CausalWindow(window) if keys > *window => {
            let mask = window_mask(queries, keys, *window)?;
            masked(q, k, v, scale, AttentionMask::Array(&mask))
        }
        Mask::CausalWindow(_) if queries > 1 => masked(q, k, v, scale, AttentionMask::Causal),
        Mask::Array(mask) => masked(q, k, v, scale, AttentionMask::Array(mask)),
        _ => masked(q, k, v, scale, AttentionMask::None),
    }
}

/// By the CPU engine where it applies, otherwise by MLX's own op.
fn masked(q: &Array, k: &Array, v: &Array, scale: f32, mask: AttentionMask) -> Result<Array> {
    let fits = match mask {
        // Another dtype than bool and f32 is for MLX to convert or refuse.
        AttentionMask::Array(mask) => matches!(mask.dtype(), Dtype::Bool | Dtype::Float32) && mask.ndim() <= 4,
        _ => true,
    };
    match Heads::of(q, k, v) {
        Some(heads) if fits && cpu_engine::applies(&[q, k, v])? => by_engine(q, k, v, scale, mask, &heads),
        _ => fast::scaled_dot_product_attention(q, k, v, scale, mask, None),
    }
}

/// The sizes of an attention whose arrays fit one another.
struct Heads {
    batch: i32,
    heads: i32,
    kv_heads: i32,
    queries: i32,
    keys: i32,
}

impl Heads {
    /// `None` when the arrays do not fit, which MLX's op reports.
    fn of(q: &Array, k: &Array, v: &Array) -> Option<Self> {
        let ([batch, heads, queries, width], [k_batch, kv_heads, keys, k_width]) = (q.shape(), k.shape()) else {
            return None;
        };
        let grouped = *kv_heads > 0 && heads % kv_heads == 0;
        let same = batch == k_batch && width == k_width && v.ndim() == 4 && k.shape()[..3] == v.shape()[..3];
        let [batch, heads, kv_heads, queries, keys] = [*batch, *heads, *kv_heads, *queries, *keys];
        (grouped && same).then_some(Self { batch, heads, kv_heads, queries, keys })
    }
}

/// MLX's composition with the queries of a group of heads stacked over their one key head, and our softmax.
fn by_engine(q: &Array, k: &Array, v: &Array, scale: f32, mask: AttentionMask, heads: &Heads) -> Result<Array> {
    let &Heads { batch, heads, kv_heads, queries, keys } = heads;
    let q = (q * scale)?.reshape(&[batch, kv_heads, heads / kv_heads * queries, -1])?; // [B, Hkv, n·L, D]
    let scores = ops::matmul(&q, &ops::swapaxes(k, -1, -2)?)?; // [B, Hkv, n·L, S]
    let weights = match mask {
        AttentionMask::None => cpu_engine::softmax_last(&scores)?,
        AttentionMask::Causal => cpu_engine::causal_softmax(&scores, queries)?,
        AttentionMask::Array(mask) => {
            let shape = [batch, heads, queries, keys];
            let mask = ops::broadcast_to(mask, &shape)?;
            softmax_under(&scores.reshape(&shape)?, &mask)?.reshape(&[batch, kv_heads, -1, keys])?
        }
    };
    ops::matmul(&weights, v)?.reshape(&[batch, heads, queries, -1]) // [B, H, L, Dv]
}

/// softmax of `scores` under a mask that is bool (true: seen) or added.
fn softmax_under(scores: &Array, mask: &Array) -> Result<Array> {
    let masked = if mask.dtype() == Dtype::Bool {
        // The least number, not −∞, as MLX does: a query that sees nothing weighs all keys alike.
        ops::where_(mask, scores, &Array::scalar(f32::MIN)?)?
    } else {
        ops::add(scores, mask)?
    };
    cpu_engine::softmax_last(&masked)
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

#[cfg(test)]
mod tests;
