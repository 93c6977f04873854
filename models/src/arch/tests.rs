use std::path::Path;

use mlx_rs_core::{Array, Dtype, ops, random};
use serde_json::json;

use super::*;
use crate::model::Model;
use crate::tiny_llama::{assert_near, build, config, model, row, tensors, values};

#[test]
fn an_unknown_model_type_lists_the_known_ones_and_the_nearest() {
    let refusal = |name: &str| build(&config(&json!({"model_type": name})), tensors()).err().unwrap();
    let error = refusal("mamba");
    let place = Path::new("tiny").join("config.json");
    assert_eq!(
        error.to_string(),
        format!(
            "model config: {}: field `model_type`: found \"mamba\", wanted one of: llama, mistral",
            place.display()
        )
    );
    assert_eq!(error.hint(), None);
    assert_eq!(refusal("lama").hint(), Some("did you mean \"llama\"?"));
}

/// The logits of one position of `[1, L, V]`.
fn at(logits: &Array, position: i32) -> Array {
    let width = logits.shape()[2];
    ops::slice(logits, &[0, position, 0], &[1, position + 1, width], &[1, 1, 1]).unwrap()
}

fn differ(left: &Array, right: &Array) -> bool {
    values(left).iter().zip(values(right)).any(|(left, right)| (left - right).abs() > 1e-3)
}

#[test]
fn a_token_moves_its_own_logits_and_later_ones_only() {
    let model = model();
    let base = model.forward(&row(&[5, 6, 7, 8, 9]), None).unwrap();
    let changed = model.forward(&row(&[5, 6, 3, 8, 9]), None).unwrap();
    assert_eq!(base.shape(), [1, 5, 24]);
    for position in 0..5 {
        assert_eq!(differ(&at(&base, position), &at(&changed, position)), position >= 2, "position {position}");
    }
}

#[test]
fn rows_of_a_batch_do_not_see_each_other() {
    let model = model();
    let batch = Array::from_slice(&[5, 6, 7, 11, 4, 1], &[2, 3]).unwrap();
    let alone = [row(&[5, 6, 7]), row(&[11, 4, 1])].map(|ids| model.forward(&ids, None).unwrap());
    assert_near(&model.forward(&batch, None).unwrap(), &ops::concatenate(&alone, 0).unwrap(), 1e-5);
}

#[test]
fn a_sliding_window_hides_what_lies_further_back() {
    // With a window of 1 in both layers a token sees itself only, so its logits are those of a text of one token (whose
    // position does not matter, for rotary positions are relative).
    let windowed = |window: i32| {
        let types = ["sliding_attention", "sliding_attention"];
        let fields = json!({"model_type": "mistral", "sliding_window": window, "layer_types": types});
        build(&config(&fields), tensors()).unwrap()
    };
    let model = windowed(1);
    let logits = model.forward(&row(&[5, 6, 7]), None).unwrap();
    assert_near(&at(&logits, 2), &model.forward(&row(&[7]), None).unwrap(), 1e-5);
    let wide = windowed(3).forward(&row(&[5, 6, 7]), None).unwrap();
    assert_near(&wide, &self::model().forward(&row(&[5, 6, 7]), None).unwrap(), 1e-5);
    assert!(differ(&at(&wide, 2), &at(&logits, 2)));
}

#[test]
fn an_untied_head_is_its_own_matrix() {
    let head = random::normal(&[24, 32], Dtype::Float32, 0.0, 0.3, Some(&random::key(77).unwrap())).unwrap();
    let mut tensors = tensors();
    tensors.insert("lm_head.weight".to_owned(), head.clone());
    let untied = build(&config(&json!({"tie_word_embeddings": false})), tensors).unwrap();
    let tokens = row(&[5, 6, 7]);
    let hidden = untied.hidden(&tokens, None, &Mask::Causal).unwrap();
    let want = ops::matmul(&hidden, &ops::transpose(&head, None).unwrap()).unwrap();
    assert_near(&untied.forward(&tokens, None).unwrap(), &want, 1e-5);
    assert!(differ(&model().forward(&tokens, None).unwrap(), &want));
}

#[test]
fn linears_are_listed_layer_by_layer_and_both_lists_agree() {
    let mut model = model();
    let names: Vec<String> = model.linears().into_iter().map(|(path, _)| path).collect();
    assert_eq!(names.len(), 14);
    assert_eq!(names[0], "model.layers.0.self_attn.q_proj");
    assert_eq!(names[7], "model.layers.1.self_attn.q_proj");
    assert!(model.linears_mut().into_iter().map(|(path, _)| path).eq(names));
    let shapes: Vec<(i32, i32)> = model.linears()[..7]
        .iter()
        .map(|(_, linear)| (linear.weight.in_features(), linear.weight.out_features()))
        .collect();
    assert_eq!(shapes, [(32, 32), (32, 16), (32, 16), (32, 32), (32, 64), (64, 32), (32, 64)]);
}

#[test]
fn a_copy_with_an_adapter_leaves_the_original_alone() {
    let model: Model = model();
    let tokens = row(&[5, 6, 7]);
    let before = values(&model.forward(&tokens, None).unwrap());
    let mut copy = model.clone();
    for (_, linear) in copy.linears_mut() {
        let (wide, out) = (linear.weight.in_features(), linear.weight.out_features());
        let ones = |shape: &[i32]| ops::ones(shape, Dtype::Float32).unwrap();
        linear.lora = Some(crate::nn::LoraPair { a: ones(&[wide, 2]), b: ones(&[2, out]), scale: 0.1 });
    }
    assert_ne!(values(&copy.forward(&tokens, None).unwrap()), before);
    assert_eq!(values(&model.forward(&tokens, None).unwrap()), before);
}
