use std::path::Path;

use serde_json::{Value, json};

use super::*;

fn base() -> Value {
    json!({
        "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "rms_norm_eps": 1e-5, "vocab_size": 100
    })
}

/// The base with some fields put in; a null takes one out.
fn with(changes: Value) -> Result<ModelConfig> {
    let mut fields = base().as_object().unwrap().clone();
    fields.extend(changes.as_object().unwrap().clone());
    fields.retain(|_, value| !value.is_null());
    ModelConfig::from_json(Path::new("config.json"), fields)
}

fn complaint(changes: Value) -> String {
    with(changes).unwrap_err().to_string()
}

#[test]
fn absent_fields_take_the_defaults_of_mlx_lm() {
    let config = with(json!({})).unwrap();
    assert_eq!((config.num_key_value_heads, config.head_dim), (4, 16));
    assert_eq!(config.rope, RopeConfig { theta: 10_000.0, traditional: false, scaling: RopeScaling::None });
    assert!(config.tie_word_embeddings && !config.attention_bias && !config.mlp_bias);
    assert_eq!((config.bos_ids.len(), config.eos_ids.len()), (0, 0));
    assert_eq!((config.dtype, config.quantization, config.max_position_embeddings), (None, None, None));
    assert!(!with(json!({"model_type": "qwen3"})).unwrap().tie_word_embeddings);
}

#[test]
fn stated_fields_go_before_defaults() {
    let config = with(json!({
        "num_key_value_heads": 2, "head_dim": 32, "rope_theta": 5e6, "rope_traditional": true, "attention_bias": true,
        "mlp_bias": true, "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": [2, 7],
        "torch_dtype": "bfloat16", "max_position_embeddings": 2048, "layer_types": ["full_attention", "full_attention"],
        "sliding_window": 512
    }))
    .unwrap();
    assert_eq!((config.num_key_value_heads, config.head_dim, config.rope.theta), (2, 32, 5e6));
    assert!(config.rope.traditional && config.attention_bias && config.mlp_bias && !config.tie_word_embeddings);
    assert_eq!((config.bos_ids, config.eos_ids), (vec![1], vec![2, 7]));
    assert_eq!((config.dtype, config.max_position_embeddings), (Some(SavedDtype::Bfloat16), Some(2048)));
    assert_eq!((config.layer_types.unwrap().len(), config.sliding_window), (2, Some(512)));
    assert_eq!(config.raw["rope_theta"], json!(5e6));
}

#[test]
fn a_text_config_inside_goes_before_the_fields_around_it() {
    let config = with(json!({
        "model_type": "outer", "eos_token_id": 9,
        "text_config": {
            "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
            "rms_norm_eps": 1e-6, "vocab_size": 7, "eos_token_id": 3
        }
    }))
    .unwrap();
    assert_eq!((config.model_type.as_str(), config.hidden_size, config.vocab_size), ("outer", 32, 7));
    assert_eq!(config.eos_ids, [9]);
}

#[test]
fn every_known_rope_scaling_is_read() {
    let scaling = |value: Value| {
        with(json!({"rope_scaling": value, "max_position_embeddings": 2048})).map(|config| config.rope.scaling)
    };
    assert_eq!(scaling(json!({"type": "linear", "factor": 2})).unwrap(), RopeScaling::Linear { factor: 2.0 });
    assert_eq!(scaling(json!({"rope_type": "default"})).unwrap(), RopeScaling::None);
    assert_eq!(scaling(json!({"type": "dynamic", "factor": 4.0})).unwrap(), RopeScaling::Dynamic { factor: 4.0 });
    let llama3 = |factor, low, high, original| RopeScaling::Llama3 {
        factor,
        low_freq_factor: low,
        high_freq_factor: high,
        original_max_position_embeddings: original,
    };
    assert_eq!(scaling(json!({"rope_type": "llama3", "factor": 32.0})).unwrap(), llama3(32.0, 1.0, 4.0, 8192));
    let full = json!({
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 2.0, "high_freq_factor": 8.0,
        "original_max_position_embeddings": 4096
    });
    assert_eq!(scaling(full).unwrap(), llama3(8.0, 2.0, 8.0, 4096));
    assert_eq!(
        scaling(json!({"rope_type": "yarn", "factor": 4.0})).unwrap_err().to_string(),
        "model config: config.json: field `rope_scaling.rope_type`: found \"yarn\", \
         wanted one of: default, linear, dynamic, llama3"
    );
    assert_eq!(
        scaling(json!({"type": "linear"})).unwrap_err().to_string(),
        "model config: config.json: field `rope_scaling.factor`: found nothing, wanted a number above zero"
    );
    assert_eq!(
        complaint(json!({"rope_scaling": {"type": "dynamic", "factor": 2.0}})),
        "model config: config.json: field `max_position_embeddings`: found nothing, \
         wanted a number, which dynamic rope scaling needs"
    );
}

#[test]
fn rope_parameters_of_newer_files_are_understood() {
    let config = with(json!({"rope_parameters": {"rope_theta": 1e6, "rope_type": "linear", "factor": 2.0}})).unwrap();
    assert_eq!((config.rope.theta, config.rope.scaling), (1e6, RopeScaling::Linear { factor: 2.0 }));
}

#[test]
fn quantisation_is_read_with_its_exceptions() {
    let config = with(json!({"quantization": {
        "group_size": 32, "bits": 4, "model.a": {"bits": 8}, "model.b": false, "model.c": true,
        "model.d": {"group_size": 64, "bits": 6}, "model.e": {"mode": "mxfp8"}
    }}))
    .unwrap();
    let affine = |group_size, bits| Some(QuantSpec { group_size, bits, mode: QuantMode::Affine });
    assert_eq!(config.quant_for("elsewhere"), affine(32, 4));
    assert_eq!(config.quant_for("model.a"), affine(32, 8));
    assert_eq!(config.quant_for("model.b"), None);
    assert_eq!(config.quant_for("model.c"), affine(32, 4));
    assert_eq!(config.quant_for("model.d"), affine(64, 6));
    assert_eq!(config.quant_for("model.e"), Some(QuantSpec { group_size: 32, bits: 8, mode: QuantMode::Mxfp8 }));
    let same = with(json!({"quantization_config": {"bits": 4, "group_size": 64}})).unwrap();
    assert_eq!(same.quant_for("x"), affine(64, 4));
    assert_eq!(with(json!({})).unwrap().quant_for("x"), None);
}

#[test]
fn quantisation_that_mlx_does_not_have_is_refused() {
    let cases = [
        (
            json!({"quantization": {"bits": 7}}),
            "field `quantization.bits`: found 7, wanted one of [2, 3, 4, 5, 6, 8] for affine",
        ),
        (
            json!({"quantization": {"group_size": 48}}),
            "field `quantization.group_size`: found 48, wanted one of [32, 64, 128] for affine",
        ),
        (
            json!({"quantization": {"mode": "nf4"}}),
            "field `quantization.mode`: found \"nf4\", wanted affine, mxfp4, mxfp8 or nvfp4",
        ),
        (
            json!({"quantization": {"model.a": 3}}),
            "field `quantization.model.a`: found the number 3, wanted true, false or an object with group_size and bits",
        ),
        (
            json!({"quantization_config": {"quant_method": "awq", "bits": 4}}),
            "field `quantization_config.quant_method`: found \"awq\", wanted MLX's own quantisation (group_size, bits, mode)",
        ),
    ];
    for (changes, wanted) in cases {
        assert_eq!(complaint(changes), format!("model config: config.json: {wanted}"));
    }
}

#[test]
fn wrong_fields_are_named_with_what_was_found_and_wanted() {
    let cases = [
        (json!({"hidden_size": null}), "field `hidden_size`: found nothing, wanted a positive integer"),
        (json!({"model_type": null}), "field `model_type`: found nothing, wanted a string"),
        (json!({"hidden_size": "64"}), "field `hidden_size`: found the string \"64\", wanted a positive integer"),
        (json!({"num_hidden_layers": 0}), "field `num_hidden_layers`: found the number 0, wanted a positive integer"),
        (json!({"vocab_size": -5}), "field `vocab_size`: found the number -5, wanted a positive integer"),
        (json!({"num_key_value_heads": 3}), "field `num_key_value_heads`: found 3, wanted a divisor of 4 heads"),
        (
            json!({"hidden_size": 66}),
            "field `hidden_size`: found 66, wanted a multiple of the 4 heads, or a field `head_dim`",
        ),
        (json!({"head_dim": 15}), "field `head_dim`: found 15, wanted an even size, since rotary positions turn pairs"),
        (json!({"rms_norm_eps": true}), "field `rms_norm_eps`: found the boolean true, wanted a number"),
        (
            json!({"eos_token_id": [1, "x"]}),
            "field `eos_token_id`: found an array of 2 items, wanted a token id or an array of token ids",
        ),
        (json!({"dtype": "int8"}), "field `dtype`: found \"int8\", wanted float32, bfloat16 or float16"),
        (
            json!({"layer_types": ["full_attention"]}),
            "field `layer_types`: found 1 entries, wanted one for each of 2 layers",
        ),
        (json!({"rope_scaling": 2}), "field `rope_scaling`: found the number 2, wanted an object"),
    ];
    for (changes, wanted) in cases {
        assert_eq!(complaint(changes), format!("model config: config.json: {wanted}"));
    }
}

#[test]
fn an_unknown_model_type_lists_the_known_ones_and_suggests_the_nearest() {
    let error = with(json!({"model_type": "lama"})).unwrap().unknown_model_type(&["llama", "qwen3"]);
    assert_eq!(
        error.to_string(),
        "model config: config.json: field `model_type`: found \"lama\", wanted one of: llama, qwen3"
    );
    assert_eq!(error.hint(), Some("did you mean \"llama\"?"));
}

#[test]
fn a_missing_and_a_broken_file_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let error = ModelConfig::from_dir(folder.path()).unwrap_err();
    assert!(matches!(&error, ModelError::Io { action: "read", path, .. } if path.ends_with("config.json")), "{error}");
    std::fs::write(folder.path().join("config.json"), "{\"model_type\": \"llama\"").unwrap();
    let message = ModelConfig::from_dir(folder.path()).unwrap_err().to_string();
    assert!(
        message.ends_with(
            "config.json: line 1 column 22: found broken JSON (EOF while parsing an object), wanted one JSON object"
        ),
        "{message}"
    );
}
