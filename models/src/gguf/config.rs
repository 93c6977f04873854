//! GGUF metadata → [`ModelConfig`], by way of the `config.json` that a Hugging Face folder of the same model has.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::header::GgufFile;
use super::names::hf_name;
use crate::config::{ModelConfig, RopeScaling};
use crate::error::{ModelError, Result};

/// Architectures whose metadata is understood, with the `model_type` each becomes.
const ARCHITECTURES: &[(&str, &str)] = &[("llama", "llama")];

/// The configuration of the model in `file`.
///
/// The vocabulary size is the number of embedding rows, the head is tied when `output.weight` is absent, biases are
/// on when the first layer has them, and the quantisation of every matrix is read off the tensor table.
///
/// # Errors
/// An unknown architecture, a metadata key that is missing or of the wrong kind, a rotary scaling that cannot be
/// expressed, or no embedding tensor.
pub fn model_config(file: &GgufFile) -> Result<ModelConfig> {
    let architecture = required(file, "general.architecture", GgufFile::text)?;
    let Some(&(_, model_type)) = ARCHITECTURES.iter().find(|(name, _)| *name == architecture) else {
        let known = ARCHITECTURES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let got = format!("the architecture \"{architecture}\"");
        return Err(ModelError::gguf(file.path(), "metadata `general.architecture`", got, format!("one of: {known}"))
            .with_hint("other architectures load from a Hugging Face folder"));
    };
    let mut raw = Map::new();
    raw.insert("model_type".to_owned(), json!(model_type));
    sizes(file, architecture, &mut raw)?;
    rope(file, architecture, &mut raw)?;
    special_ids(file, &mut raw)?;
    if let Some(quantization) = quantization(file) {
        raw.insert("quantization".to_owned(), quantization);
    }
    let mut config = ModelConfig::from_json(file.path(), raw)?;
    if file.tensor("rope_freqs.weight").is_some() {
        config.rope.scaling = frequency_factors(file, config.head_dim)?;
    }
    Ok(config)
}

fn required<'f, T>(file: &'f GgufFile, key: &str, read: impl Fn(&'f GgufFile, &str) -> Result<Option<T>>) -> Result<T> {
    read(file, key)?.ok_or_else(|| {
        ModelError::gguf(file.path(), format!("metadata `{key}`"), "no such key", "the key with a value")
    })
}

fn sizes(file: &GgufFile, architecture: &str, raw: &mut Map<String, Value>) -> Result<()> {
    let count = |key: &str| required(file, &format!("{architecture}.{key}"), GgufFile::count);
    let heads = count("attention.head_count")?;
    let hidden = count("embedding_length")?;
    raw.insert("hidden_size".to_owned(), json!(hidden));
    raw.insert("num_hidden_layers".to_owned(), json!(count("block_count")?));
    raw.insert("intermediate_size".to_owned(), json!(count("feed_forward_length")?));
    raw.insert("num_attention_heads".to_owned(), json!(heads));
    let kv_heads = file.count(&format!("{architecture}.attention.head_count_kv"))?.unwrap_or(heads);
    raw.insert("num_key_value_heads".to_owned(), json!(kv_heads));
    if let Some(head) = file.count(&format!("{architecture}.attention.key_length"))? {
        raw.insert("head_dim".to_owned(), json!(head));
    }
    let epsilon = required(file, &format!("{architecture}.attention.layer_norm_rms_epsilon"), GgufFile::number)?;
    raw.insert("rms_norm_eps".to_owned(), json!(epsilon));
    raw.insert("max_position_embeddings".to_owned(), json!(count("context_length")?));
    let embedding = file
        .tensor("token_embd.weight")
        .ok_or_else(|| ModelError::tensor(file.path(), "token_embd.weight", "no such tensor", "the embedding"))?;
    raw.insert("vocab_size".to_owned(), json!(embedding.shape[0]));
    raw.insert("tie_word_embeddings".to_owned(), json!(file.tensor("output.weight").is_none()));
    let any = |names: &[&str]| names.iter().any(|name| file.tensor(&format!("blk.0.{name}.bias")).is_some());
    raw.insert("attention_bias".to_owned(), json!(any(&["attn_q", "attn_k", "attn_v", "attn_output"])));
    raw.insert("mlp_bias".to_owned(), json!(any(&["ffn_gate", "ffn_up", "ffn_down"])));
    Ok(())
}

fn rope(file: &GgufFile, architecture: &str, raw: &mut Map<String, Value>) -> Result<()> {
    let key = |name: &str| format!("{architecture}.rope.{name}");
    if let Some(base) = file.number(&key("freq_base"))? {
        raw.insert("rope_theta".to_owned(), json!(base));
    }
    let (heads, hidden) = (raw["num_attention_heads"].as_u64().unwrap_or(1), raw["hidden_size"].as_u64().unwrap_or(0));
    let head = raw.get("head_dim").and_then(Value::as_u64).unwrap_or(hidden.checked_div(heads).unwrap_or(0));
    if let Some(rotated) = file.count(&key("dimension_count"))?
        && rotated as u64 != head
    {
        let place = format!("metadata `{}`", key("dimension_count"));
        return Err(ModelError::gguf(file.path(), place, rotated.to_string(), format!("the head size {head}")));
    }
    let legacy = file.number(&key("scale_linear"))?;
    let kind = file.text(&key("scaling.type"))?.unwrap_or(if legacy.is_some() { "linear" } else { "none" });
    let scaling = match kind {
        "none" => return Ok(()),
        "linear" => {
            let factor = match legacy {
                Some(factor) => factor,
                None => required(file, &key("scaling.factor"), GgufFile::number)?,
            };
            json!({ "rope_type": "linear", "factor": factor })
        }
        other => {
            let place = format!("metadata `{}`", key("scaling.type"));
            return Err(ModelError::gguf(file.path(), place, format!("\"{other}\""), "none or linear"));
        }
    };
    raw.insert("rope_scaling".to_owned(), scaling);
    Ok(())
}

fn special_ids(file: &GgufFile, raw: &mut Map<String, Value>) -> Result<()> {
    if let Some(id) = file.token_id("tokenizer.ggml.bos_token_id")? {
        raw.insert("bos_token_id".to_owned(), json!(id));
    }
    let ids = end_ids(file)?;
    if !ids.is_empty() {
        raw.insert("eos_token_id".to_owned(), json!(ids));
    }
    Ok(())
}

/// Ids that end a generation: end of text, end of turn, end of message, without repetition.
pub(super) fn end_ids(file: &GgufFile) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    for key in ["eos", "eot", "eom"] {
        if let Some(id) = file.token_id(&format!("tokenizer.ggml.{key}_token_id"))?
            && !ids.contains(&id)
        {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// MLX's `quantization` entry: the commonest form as the default, the other matrices by name.
fn quantization(file: &GgufFile) -> Option<Value> {
    let mut modules = BTreeMap::new();
    let mut votes: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    for tensor in file.tensors().iter().filter(|tensor| tensor.shape.len() == 2) {
        let Some(module) = hf_name(&tensor.name).and_then(|name| name.strip_suffix(".weight").map(str::to_owned))
        else {
            continue;
        };
        let form = tensor.kind.affine();
        if let Some(form) = form {
            *votes.entry(form).or_default() += 1;
        }
        modules.insert(module, form);
    }
    let (&default, _) = votes.iter().max_by_key(|(_, votes)| **votes)?;
    let mut entry = Map::new();
    entry.insert("group_size".to_owned(), json!(default.1));
    entry.insert("bits".to_owned(), json!(default.0));
    entry.insert("mode".to_owned(), json!("affine"));
    for (module, form) in modules.into_iter().filter(|(_, form)| *form != Some(default)) {
        let value = form.map_or(json!(false), |(bits, group)| json!({ "group_size": group, "bits": bits }));
        entry.insert(module, value);
    }
    Some(Value::Object(entry))
}

/// llama.cpp writes Llama 3's scaling as a tensor of divisors of the frequencies, one for each rotated pair.
fn frequency_factors(file: &GgufFile, head_dim: usize) -> Result<RopeScaling> {
    let name = "rope_freqs.weight";
    let tensor = file.read_tensor(name)?;
    match tensor.data {
        super::TensorData::F32(factors) if factors.len() == head_dim / 2 => Ok(RopeScaling::Factors { factors }),
        _ => {
            let got = format!("shape {:?}", tensor.shape);
            Err(ModelError::tensor(file.path(), name, got, format!("{} F32 factors", head_dim / 2)))
        }
    }
}
