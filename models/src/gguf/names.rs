//! llama.cpp's tensor names → Hugging Face's.

/// The Hugging Face name of a llama.cpp tensor, e.g. `model.layers.3.self_attn.q_proj.weight` for
/// `blk.3.attn_q.weight`; `None` for a name that has no counterpart.
pub fn hf_name(name: &str) -> Option<String> {
    let (stem, kind) = name.rsplit_once('.')?;
    if !matches!(kind, "weight" | "bias") {
        return None;
    }
    let module = match stem {
        "token_embd" => "model.embed_tokens".to_owned(),
        "output_norm" => "model.norm".to_owned(),
        "output" => "lm_head".to_owned(),
        _ => {
            let (layer, part) = stem.strip_prefix("blk.")?.split_once('.')?;
            let layer: usize = layer.parse().ok()?;
            format!("model.layers.{layer}.{}", layer_module(part)?)
        }
    };
    Some(format!("{module}.{kind}"))
}

fn layer_module(part: &str) -> Option<&'static str> {
    Some(match part {
        "attn_norm" => "input_layernorm",
        "ffn_norm" => "post_attention_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        _ => return None,
    })
}
