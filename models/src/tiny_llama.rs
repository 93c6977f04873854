//! A llama of two layers with seeded weights, for the tests of this crate.

use std::collections::BTreeMap;
use std::path::Path;

use mlx_rs_core::{Array, Dtype, ops, random};
use serde_json::{Value, json};

use crate::config::ModelConfig;
use crate::model::Model;
use crate::weights::{Compute, Weights};

/// The folder that stands in its errors.
pub(crate) const ORIGIN: &str = "tiny";

/// Its configuration with some fields changed; null removes one.
pub(crate) fn config(changes: &Value) -> ModelConfig {
    let mut fields = json!({
        "model_type": "llama",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "intermediate_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 24,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": true,
        "eos_token_id": 2,
    });
    let object = fields.as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap() {
        object.insert(key.clone(), value.clone());
    }
    object.retain(|_, value| !value.is_null());
    ModelConfig::from_json(&Path::new(ORIGIN).join("config.json"), object.clone()).unwrap()
}

/// Its tensors, tied.
pub(crate) fn tensors() -> BTreeMap<String, Array> {
    let mut shapes: Vec<(String, Vec<i32>)> =
        vec![("model.embed_tokens.weight".to_owned(), vec![24, 32]), ("model.norm.weight".to_owned(), vec![32])];
    for layer in 0..2 {
        let at = |name: &str| format!("model.layers.{layer}.{name}.weight");
        for (name, out, width) in [
            ("self_attn.q_proj", 32, 32),
            ("self_attn.k_proj", 16, 32),
            ("self_attn.v_proj", 16, 32),
            ("self_attn.o_proj", 32, 32),
            ("mlp.gate_proj", 64, 32),
            ("mlp.up_proj", 64, 32),
            ("mlp.down_proj", 32, 64),
        ] {
            shapes.push((at(name), vec![out, width]));
        }
        shapes.extend([(at("input_layernorm"), vec![32]), (at("post_attention_layernorm"), vec![32])]);
    }
    shapes.into_iter().enumerate().map(|(seed, (name, shape))| (name, noise(&shape, seed as u64))).collect()
}

/// Norm gains are ones; matrices are normal with a deviation that keeps attention away from uniform.
fn noise(shape: &[i32], seed: u64) -> Array {
    match shape {
        [size] => ops::ones(&[*size], Dtype::Float32).unwrap(),
        _ => random::normal(shape, Dtype::Float32, 0.0, 0.3, Some(&random::key(seed).unwrap())).unwrap(),
    }
}

/// The model of these tensors and this configuration.
pub(crate) fn build(config: &ModelConfig, tensors: BTreeMap<String, Array>) -> crate::Result<Model> {
    let weights = Weights::new(tensors, Path::new(ORIGIN), config, Compute::AsStored)?;
    Model::build(config.clone(), weights)
}

/// The model.
pub(crate) fn model() -> Model {
    build(&config(&json!({})), tensors()).unwrap()
}

/// One row of ids.
pub(crate) fn row(ids: &[i32]) -> Array {
    Array::from_slice(ids, &[1, ids.len() as i32]).unwrap()
}

/// Values in row order.
pub(crate) fn values(array: &Array) -> Vec<f32> {
    array.to_vec().unwrap()
}

/// Fails unless both have one shape and differ by at most `tolerance`.
pub(crate) fn assert_near(got: &Array, want: &Array, tolerance: f32) {
    assert_eq!(got.shape(), want.shape());
    for (index, (got, want)) in values(got).iter().zip(values(want)).enumerate() {
        assert!((got - want).abs() <= tolerance, "value {index}: got {got}, wanted {want}");
    }
}
