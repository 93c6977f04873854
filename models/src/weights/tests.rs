use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::tiny_llama::{self, build, config, values};

type Tensors = BTreeMap<String, Array>;

const Q: &str = "model.layers.0.self_attn.q_proj.weight";

/// The error that building the changed model gives.
fn refusal(change: impl FnOnce(&mut Tensors)) -> String {
    let mut tensors = tiny_llama::tensors();
    change(&mut tensors);
    build(&config(&json!({})), tensors).err().expect("a refusal").to_string()
}

fn filled(value: f32, shape: &[i32]) -> Array {
    ops::full(shape, &Array::scalar(value).unwrap(), Dtype::Float32).unwrap()
}

#[test]
fn a_missing_tensor_is_named_with_the_nearest_names() {
    let text = refusal(|tensors| drop(tensors.remove(Q)));
    let nearest = "`model.layers.0.self_attn.k_proj.weight`, `model.layers.0.self_attn.o_proj.weight`, \
                   `model.layers.0.self_attn.v_proj.weight`";
    assert_eq!(text, format!("weights: tiny: tensor `{Q}` is missing (nearest: {nearest})"));
}

#[test]
fn a_wrong_shape_is_named_with_the_wanted_one() {
    let text = refusal(|tensors| drop(tensors.insert(Q.to_owned(), filled(0.5, &[32, 31]))));
    assert_eq!(text, format!("weights: tiny: tensor `{Q}` has shape [32, 31], wanted [32, 32]"));
}

#[test]
fn tensors_that_nobody_takes_are_refused() {
    let text = refusal(|tensors| {
        tensors.insert("model.layers.0.self_attn.q_norm.weight".to_owned(), filled(1.0, &[8]));
    });
    assert_eq!(text, "weights: tiny: tensor `model.layers.0.self_attn.q_norm.weight` is not part of this architecture");
    let text = refusal(|tensors| {
        tensors.insert("b".to_owned(), filled(1.0, &[8]));
        tensors.insert("a".to_owned(), filled(1.0, &[8]));
        tensors.insert("model.layers.2.mlp.up_proj.weight".to_owned(), filled(1.0, &[8]));
    });
    assert_eq!(text, "weights: tiny: tensor `a` is not part of this architecture (and 2 more)");
}

#[test]
fn computed_frequencies_and_a_tied_head_may_be_left_over() {
    let mut tensors = tiny_llama::tensors();
    tensors.insert("model.layers.0.self_attn.rotary_emb.inv_freq".to_owned(), filled(1.0, &[4]));
    tensors.insert("lm_head.weight".to_owned(), filled(1.0, &[24, 32]));
    assert!(build(&config(&json!({})), tensors).is_ok());
}

#[test]
fn a_weight_that_is_not_finite_is_named() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let text = refusal(|tensors| {
            let mut bad = values(&tensors[Q]);
            bad[77] = value;
            tensors.insert(Q.to_owned(), Array::from_slice(&bad, &[32, 32]).unwrap());
        });
        assert_eq!(text, format!("weights: tiny: tensor `{Q}` holds NaN or infinite values"));
    }
}

#[test]
fn a_value_that_overflows_the_compute_dtype_is_named() {
    let tensors = Tensors::from([("w".to_owned(), filled(1e6, &[2]))]);
    let compute = Compute::Cast(Dtype::Float16);
    let error = Weights::new(tensors, Path::new("m"), &config(&json!({})), compute).err().unwrap();
    assert_eq!(error.to_string(), "weights: m: tensor `w` holds NaN or infinite values");
}

#[test]
fn casting_changes_floating_tensors_and_leaves_packed_integers_alone() {
    let packed = Array::from_slice(&[7u32, 9], &[2]).unwrap();
    let tensors = Tensors::from([("a".to_owned(), filled(1.5, &[2])), ("b".to_owned(), packed)]);
    let with = |compute| Weights::new(tensors.clone(), Path::new("m"), &config(&json!({})), compute).unwrap();
    let mut cast = with(Compute::Cast(Dtype::Bfloat16));
    assert_eq!(cast.take("a", &[2]).unwrap().dtype(), Dtype::Bfloat16);
    assert_eq!(cast.take("b", &[2]).unwrap().to_vec::<u32>().unwrap(), [7, 9]);
    assert_eq!(with(Compute::AsStored).take("a", &[2]).unwrap().dtype(), Dtype::Float32);
}

#[test]
fn a_quantised_matrix_needs_a_configuration_that_says_how() {
    let quantised = || {
        let (name, stem) = (Q.to_owned(), Q.strip_suffix(".weight").unwrap());
        let mut tensors = tiny_llama::tensors();
        let parts = ops::quantize(&tensors[Q], Some(32), Some(4), "affine").unwrap();
        for (name, part) in [name, format!("{stem}.scales"), format!("{stem}.biases")].into_iter().zip(parts) {
            tensors.insert(name, part);
        }
        tensors
    };
    let error = build(&config(&json!({})), quantised()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "weights: tiny: `model.layers.0.self_attn.q_proj` is quantised, but the configuration does not say how"
    );
    let format = json!({"quantization": {"group_size": 32, "bits": 4}});
    assert!(build(&config(&format), quantised()).is_ok());
    let other = json!({"quantization": {"group_size": 32, "bits": 8}});
    let error = build(&config(&other), quantised()).err().unwrap();
    assert_eq!(error.to_string(), format!("weights: tiny: tensor `{Q}` has shape [32, 4], wanted [32, 8]"));
}

#[test]
fn a_group_size_that_does_not_divide_the_rows_is_refused() {
    let mut tensors = tiny_llama::tensors();
    let stem = Q.strip_suffix(".weight").unwrap();
    tensors.insert(format!("{stem}.scales"), filled(1.0, &[32, 0]));
    let format = json!({"quantization": {"group_size": 64, "bits": 4}});
    let error = build(&config(&format), tensors).err().unwrap();
    assert_eq!(
        error.to_string(),
        "weights: tiny: `model.layers.0.self_attn.q_proj` has rows of 32, wanted a multiple of its group size 64"
    );
}

/// A folder with the tiny model in two shards and the index that names them.
fn sharded() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let tensors = tiny_llama::tensors();
    let (first, second): (Vec<_>, Vec<_>) = tensors.iter().partition(|(name, _)| name.contains("layers.0"));
    let mut map = serde_json::Map::new();
    for (file, part) in [("model-1.safetensors", first), ("model-2.safetensors", second)] {
        io::save_safetensors(dir.path().join(file), part.iter().copied(), None).unwrap();
        map.extend(part.iter().map(|(name, _)| ((*name).clone(), json!(file))));
    }
    let index = json!({"metadata": {}, "weight_map": map});
    std::fs::write(dir.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    dir
}

/// The error of loading `dir`, without the path of the folder.
fn folder_refusal(dir: &Path) -> String {
    let error = Weights::from_directory(dir, &config(&json!({})), Compute::AsStored).err().expect("a refusal");
    error.to_string().replace(&dir.display().to_string(), "DIR")
}

#[test]
fn shards_are_read_as_one_model() {
    let dir = sharded();
    let config = config(&json!({}));
    let weights = Weights::from_directory(dir.path(), &config, Compute::AsStored).unwrap();
    assert_eq!(weights.tensors.keys().collect::<Vec<_>>(), tiny_llama::tensors().keys().collect::<Vec<_>>());
    assert!(crate::Model::build(config, weights).is_ok());
}

#[test]
fn a_missing_shard_and_a_shard_name_that_leaves_the_folder_are_refused() {
    let dir = sharded();
    let index = dir.path().join("model.safetensors.index.json");
    std::fs::remove_file(dir.path().join("model-2.safetensors")).unwrap();
    assert_eq!(
        folder_refusal(dir.path()),
        "weights: DIR/model.safetensors.index.json: shard `model-2.safetensors` is missing from DIR"
    );
    std::fs::write(&index, r#"{"weight_map": {"a": "../secret.safetensors"}}"#).unwrap();
    assert_eq!(
        folder_refusal(dir.path()),
        "weights: DIR/model.safetensors.index.json: shard name `../secret.safetensors` is no plain file name"
    );
    std::fs::write(&index, r#"{"weight_map": {"a": ".."}}"#).unwrap();
    assert_eq!(
        folder_refusal(dir.path()),
        "weights: DIR/model.safetensors.index.json: shard name `..` is no plain file name"
    );
    std::fs::write(&index, "{}").unwrap();
    assert_eq!(
        folder_refusal(dir.path()),
        "weights: DIR/model.safetensors.index.json: field `weight_map` is missing or no object"
    );
}

#[test]
fn a_tensor_in_two_shards_is_refused() {
    let dir = sharded();
    let twice = BTreeMap::from([(Q, filled(0.0, &[32, 32]))]);
    io::save_safetensors(dir.path().join("model-2.safetensors"), twice.iter().map(|(k, v)| (*k, v)), None).unwrap();
    assert_eq!(folder_refusal(dir.path()), format!("weights: DIR/model-2.safetensors: tensor `{Q}` is in two shards"));
}

#[test]
fn a_folder_without_weights_and_a_truncated_file_are_named() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(folder_refusal(dir.path()), "weights: DIR: no model*.safetensors in this folder");
    let whole = sharded();
    let bytes = std::fs::read(whole.path().join("model-1.safetensors")).unwrap();
    std::fs::write(dir.path().join("model.safetensors"), &bytes[..bytes.len() - 100]).unwrap();
    let text = folder_refusal(dir.path());
    assert!(text.contains("DIR/model.safetensors"), "{text}");
}
