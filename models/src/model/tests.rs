use std::collections::BTreeMap;
use std::path::PathBuf;

use mlx_rs_core::{Dtype, io};
use serde_json::{Value, json};

use super::*;
use crate::tiny_llama::{self, assert_near, config, row};

/// A folder with the tiny model and some fields of its configuration changed.
fn folder(changes: &Value, tensors: &BTreeMap<String, Array>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.json"), Value::Object(config(changes).raw).to_string()).unwrap();
    io::save_safetensors(dir.path().join("model.safetensors"), tensors, None).unwrap();
    dir
}

fn refusal(dir: &Path) -> String {
    let error = Model::load_directory(dir, Compute::AsStored).err().expect("a refusal");
    error.to_string().replace(&dir.display().to_string(), "DIR")
}

#[test]
fn a_folder_loads_to_the_model_it_was_made_of_and_may_then_go() {
    let dir = folder(&json!({}), &tiny_llama::tensors());
    let model = Model::load(&ModelSource::Folder(dir.path().to_owned()), Compute::AsStored).unwrap();
    // The weights were read, not only looked up: the file is not needed any more.
    drop(dir);
    let tokens = row(&[4, 8, 15, 16, 23]);
    let want = tiny_llama::model().forward(&tokens, None).unwrap();
    assert_near(&model.forward(&tokens, None).unwrap(), &want, 0.0);
    assert_eq!((model.num_layers(), model.new_cache().len(), model.config().vocab_size), (2, 2, 24));
}

#[test]
fn the_compute_dtype_is_that_of_the_activations() {
    let dir = folder(&json!({}), &tiny_llama::tensors());
    for dtype in [Dtype::Float16, Dtype::Bfloat16, Dtype::Float32] {
        let model = Model::load_directory(dir.path(), Compute::Cast(dtype)).unwrap();
        assert_eq!(model.forward(&row(&[1, 2]), None).unwrap().dtype(), dtype);
    }
}

#[test]
fn a_configuration_that_does_not_fit_the_weights_names_the_tensor() {
    let dir = folder(&json!({"intermediate_size": 48}), &tiny_llama::tensors());
    let name = "model.layers.0.mlp.gate_proj.weight";
    assert_eq!(refusal(dir.path()), format!("weights: DIR: tensor `{name}` has shape [64, 32], wanted [48, 32]"));
    let dir = folder(&json!({"num_hidden_layers": 1}), &tiny_llama::tensors());
    let text = refusal(dir.path());
    let first = "model.layers.1.input_layernorm.weight";
    assert_eq!(text, format!("weights: DIR: tensor `{first}` is not part of this architecture (and 8 more)"));
    let dir = folder(&json!({"tie_word_embeddings": false}), &tiny_llama::tensors());
    assert!(refusal(dir.path()).starts_with("weights: DIR: tensor `lm_head.weight` is missing (nearest: "));
}

#[test]
fn a_missing_folder_and_a_missing_file_are_named() {
    let gone = PathBuf::from("no-such-model");
    let text = Model::load_directory(&gone, Compute::AsStored).err().unwrap().to_string();
    assert!(text.starts_with("cannot read no-such-model"), "{text}");
    let dir = folder(&json!({}), &tiny_llama::tensors());
    std::fs::remove_file(dir.path().join("model.safetensors")).unwrap();
    assert_eq!(refusal(dir.path()), "weights: DIR: no model*.safetensors in this folder");
}

#[test]
fn a_text_fed_through_a_cache_in_any_pieces_gives_the_same_logits() {
    let model = tiny_llama::model();
    let ids = [4, 8, 15, 16, 23, 1, 9];
    let whole = model.forward(&row(&ids), None).unwrap();
    for pieces in [&[7][..], &[1, 1, 1, 1, 1, 1, 1], &[3, 4], &[5, 1, 1]] {
        let (mut cache, mut at) = (model.new_cache(), 0);
        let mut parts = Vec::new();
        for piece in pieces {
            parts.push(model.forward(&row(&ids[at..at + piece]), Some(&mut cache)).unwrap());
            at += piece;
        }
        assert_near(&mlx_rs_core::ops::concatenate(&parts, 1).unwrap(), &whole, 2e-5);
    }
}

#[test]
fn a_dense_copy_of_a_quantised_model_gives_its_logits() {
    let mut tensors = tiny_llama::tensors();
    let names: Vec<String> =
        tensors.keys().filter(|name| name.contains("proj") || name.contains("embed")).cloned().collect();
    for name in names {
        let stem = name.strip_suffix(".weight").unwrap().to_owned();
        let parts = mlx_rs_core::ops::quantize(&tensors[&name], Some(32), Some(4), "affine").unwrap();
        for (suffix, part) in ["weight", "scales", "biases"].into_iter().zip(parts) {
            tensors.insert(format!("{stem}.{suffix}"), part);
        }
    }
    let format = json!({"quantization": {"group_size": 32, "bits": 4}});
    let model = tiny_llama::build(&config(&format), tensors).unwrap();
    let mut dense = model.dense().unwrap();
    assert!(dense.linears_mut().iter().all(|(_, linear)| matches!(linear.weight, Matrix::Dense(_))));
    let tokens = row(&[4, 8, 15, 16]);
    assert_near(&dense.forward(&tokens, None).unwrap(), &model.forward(&tokens, None).unwrap(), 1e-5);
}
