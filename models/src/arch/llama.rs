//! Llama and its relatives: pre-norm, rotary positions, grouped-query attention, gated MLP.
//!
//! Per layer: `h = x + o(attention(rope(q), rope(k), v))` on the normed input, then `h + down(silu(gate)·up)` on the
//! normed `h`. Tied models use the embedding as their head.

use mlx_rs_core::{Array, cpu_engine, ops};

use super::Architecture;
use crate::config::ModelConfig;
use crate::error::{ModelError, Result};
use crate::nn::{Embedding, KvCache, Linear, Mask, Matrix, RmsNorm, Rope, attention, merge_heads, split_heads};
use crate::weights::{Weights, int};

type MlxResult<T> = mlx_rs_core::Result<T>;

#[derive(Clone)]
struct Attention {
    q_proj: Linear,
    k_proj: Linear,
    v_proj: Linear,
    o_proj: Linear,
    heads: i32,
    kv_heads: i32,
    scale: f32,
    rope: Rope,
}

#[derive(Clone)]
struct Mlp {
    gate_proj: Linear,
    up_proj: Linear,
    down_proj: Linear,
}

#[derive(Clone)]
struct Layer {
    self_attn: Attention,
    mlp: Mlp,
    input_layernorm: RmsNorm,
    post_attention_layernorm: RmsNorm,
    window: Option<i32>,
}

#[derive(Clone)]
struct Llama {
    embed_tokens: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
    lm_head: Option<Linear>,
}

/// Takes the weights of a Llama model.
pub(super) fn build(config: &ModelConfig, weights: &mut Weights) -> Result<Box<dyn Architecture>> {
    let (hidden, vocab) = (int(config.hidden_size), int(config.vocab_size));
    let rope = Rope::new(config)?;
    let layers =
        (0..config.num_hidden_layers).map(|index| layer(config, weights, index, &rope)).collect::<Result<_>>()?;
    // Older conversions carry the inverse frequencies, which are computed here.
    weights.ignore_suffix("self_attn.rotary_emb.inv_freq");
    let lm_head = if config.tie_word_embeddings {
        weights.ignore_suffix("lm_head.weight");
        None
    } else {
        Some(weights.linear("lm_head", hidden, vocab, false)?)
    };
    Ok(Box::new(Llama {
        embed_tokens: weights.embedding("model.embed_tokens", vocab, hidden)?,
        layers,
        norm: weights.rms_norm("model.norm", hidden, config.rms_norm_eps)?,
        lm_head,
    }))
}

fn layer(config: &ModelConfig, weights: &mut Weights, index: usize, rope: &Rope) -> Result<Layer> {
    let at = |part: &str| format!("model.layers.{index}.{part}");
    let (hidden, inner, eps) = (int(config.hidden_size), int(config.intermediate_size), config.rms_norm_eps);
    let (heads, kv_heads) = (int(config.num_attention_heads), int(config.num_key_value_heads));
    let width = |heads: usize| int(heads.saturating_mul(config.head_dim));
    let (q_out, kv_out) = (width(config.num_attention_heads), width(config.num_key_value_heads));
    let (attention_bias, mlp_bias) = (config.attention_bias, config.mlp_bias);
    Ok(Layer {
        self_attn: Attention {
            q_proj: weights.linear(&at("self_attn.q_proj"), hidden, q_out, attention_bias)?,
            k_proj: weights.linear(&at("self_attn.k_proj"), hidden, kv_out, attention_bias)?,
            v_proj: weights.linear(&at("self_attn.v_proj"), hidden, kv_out, attention_bias)?,
            o_proj: weights.linear(&at("self_attn.o_proj"), q_out, hidden, attention_bias)?,
            heads,
            kv_heads,
            scale: (config.head_dim as f64).powf(-0.5) as f32,
            rope: rope.clone(),
        },
        mlp: Mlp {
            gate_proj: weights.linear(&at("mlp.gate_proj"), hidden, inner, mlp_bias)?,
            up_proj: weights.linear(&at("mlp.up_proj"), hidden, inner, mlp_bias)?,
            down_proj: weights.linear(&at("mlp.down_proj"), inner, hidden, mlp_bias)?,
        },
        input_layernorm: weights.rms_norm(&at("input_layernorm"), hidden, eps)?,
        post_attention_layernorm: weights.rms_norm(&at("post_attention_layernorm"), hidden, eps)?,
        window: window(config, index)?,
    })
}

/// The window of a layer with sliding attention.
fn window(config: &ModelConfig, layer: usize) -> Result<Option<i32>> {
    match config.layer_types.as_ref().map(|types| types[layer].as_str()) {
        None | Some("full_attention") => Ok(None),
        Some("sliding_attention") => match config.sliding_window {
            Some(window) => Ok(Some(int(window))),
            None => Err(ModelError::config(&config.path, "field `sliding_window`", "nothing", "a number of positions")),
        },
        Some(other) => {
            let wanted = "full_attention or sliding_attention";
            Err(ModelError::config(&config.path, "field `layer_types`", format!("\"{other}\""), wanted))
        }
    }
}

impl Attention {
    fn forward(&self, x: &Array, cache: Option<&mut KvCache>, mask: &Mask) -> MlxResult<Array> {
        let q = split_heads(&self.q_proj.forward(x)?, self.heads)?; // [B, H, L, D]
        let k = split_heads(&self.k_proj.forward(x)?, self.kv_heads)?; // [B, Hkv, L, D]
        let v = split_heads(&self.v_proj.forward(x)?, self.kv_heads)?;
        let offset = cache.as_ref().map_or(0, |cache| cache.offset());
        let q = self.rope.forward(&q, offset)?;
        let k = self.rope.forward(&k, offset)?;
        let (k, v) = match cache {
            Some(cache) => cache.update(&k, &v)?, // [B, Hkv, S, D]
            None => (k, v),
        };
        let mixed = attention(&q, &k, &v, self.scale, mask)?; // [B, H, L, D]
        self.o_proj.forward(&merge_heads(&mixed)?) // [B, L, hidden]
    }
}

impl Mlp {
    fn forward(&self, x: &Array) -> MlxResult<Array> {
        let gate = self.gate_proj.forward(x)?; // [B, L, inner]
        let up = self.up_proj.forward(x)?;
        self.down_proj.forward(&cpu_engine::swiglu(&gate, &up)?)
    }
}

impl Layer {
    fn forward(&self, x: &Array, cache: Option<&mut KvCache>, mask: &Mask) -> MlxResult<Array> {
        let windowed;
        let mask = match (self.window, mask) {
            (Some(window), Mask::Causal) => {
                windowed = Mask::CausalWindow(window);
                &windowed
            }
            _ => mask,
        };
        let mixed = self.self_attn.forward(&self.input_layernorm.forward(x)?, cache, mask)?;
        let h = ops::add(x, &mixed)?;
        let fed = self.mlp.forward(&self.post_attention_layernorm.forward(&h)?)?;
        ops::add(&h, &fed)
    }

    fn linears_mut(&mut self) -> [(&'static str, &mut Linear); 7] {
        let (attn, mlp) = (&mut self.self_attn, &mut self.mlp);
        [
            ("self_attn.q_proj", &mut attn.q_proj),
            ("self_attn.k_proj", &mut attn.k_proj),
            ("self_attn.v_proj", &mut attn.v_proj),
            ("self_attn.o_proj", &mut attn.o_proj),
            ("mlp.gate_proj", &mut mlp.gate_proj),
            ("mlp.down_proj", &mut mlp.down_proj),
            ("mlp.up_proj", &mut mlp.up_proj),
        ]
    }

    fn linears(&self) -> [(&'static str, &Linear); 7] {
        let (attn, mlp) = (&self.self_attn, &self.mlp);
        [
            ("self_attn.q_proj", &attn.q_proj),
            ("self_attn.k_proj", &attn.k_proj),
            ("self_attn.v_proj", &attn.v_proj),
            ("self_attn.o_proj", &attn.o_proj),
            ("mlp.gate_proj", &mlp.gate_proj),
            ("mlp.down_proj", &mlp.down_proj),
            ("mlp.up_proj", &mlp.up_proj),
        ]
    }
}

impl Architecture for Llama {
    fn hidden(&self, tokens: &Array, cache: Option<&mut [KvCache]>, mask: &Mask) -> MlxResult<Array> {
        let mut h = self.embed_tokens.lookup(tokens)?; // [B, L, hidden]
        let mut caches = cache.map(|cache| cache.iter_mut());
        for layer in &self.layers {
            h = layer.forward(&h, caches.as_mut().and_then(Iterator::next), mask)?;
        }
        self.norm.forward(&h)
    }

    fn head(&self, hidden: &Array) -> MlxResult<Array> {
        match &self.lm_head {
            Some(head) => head.forward(hidden),
            None => self.embed_tokens.as_head(hidden),
        }
    }

    fn num_layers(&self) -> usize {
        self.layers.len()
    }

    fn linears(&self) -> Vec<(String, &Linear)> {
        let layers = self.layers.iter().enumerate();
        layers.flat_map(|(i, layer)| layer.linears().map(|(name, linear)| (path(i, name), linear))).collect()
    }

    fn linears_mut(&mut self) -> Vec<(String, &mut Linear)> {
        let layers = self.layers.iter_mut().enumerate();
        layers.flat_map(|(i, layer)| layer.linears_mut().map(|(name, linear)| (path(i, name), linear))).collect()
    }

    fn matrices_mut(&mut self) -> Vec<&mut Matrix> {
        let linears = self.layers.iter_mut().flat_map(Layer::linears_mut).map(|(_, linear)| &mut linear.weight);
        let head = self.lm_head.iter_mut().map(|head| &mut head.weight);
        std::iter::once(&mut self.embed_tokens.0).chain(linears).chain(head).collect()
    }

    fn clone_box(&self) -> Box<dyn Architecture> {
        Box::new(self.clone())
    }
}

fn path(layer: usize, name: &str) -> String {
    format!("model.layers.{layer}.{name}")
}
