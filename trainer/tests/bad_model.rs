//! Models that are refused: files that are missing, cut off, or do not fit together.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, TensorView};

use crate::fixture::{Workshop, tokenizer};

/// Training ends with this message and leaves nothing behind.
#[track_caller]
fn refused(shop: &Workshop, message: &str) {
    shop.train(&[]).failed(1, message);
    assert_eq!(shop.list("out"), [""; 0]);
}

/// Rewrites the weights: `change` gives each tensor's new name, shape and f32 bytes, or nothing.
fn rewrite(shop: &Workshop, change: impl Fn(&str, &[usize], &[u8]) -> Option<(String, Vec<usize>, Vec<u8>)>) {
    let bytes = shop.read("model/model.safetensors");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let changed: HashMap<String, (Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .filter_map(|(name, view)| change(name, view.shape(), view.data()))
        .map(|(name, shape, data)| (name, (shape, data)))
        .collect();
    let views = changed
        .iter()
        .map(|(name, (shape, data))| (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), data).unwrap()));
    safetensors::serialize_to_file(views, None, &shop.path("model/model.safetensors")).unwrap();
}

fn replace_in_config(shop: &Workshop, from: &str, to: &str) {
    let text = shop.text("model/config.json");
    assert!(text.contains(from));
    shop.write("model/config.json", &text.replace(from, to));
}

#[test]
fn a_model_that_is_not_there_is_named() {
    let shop = Workshop::new();
    shop.train(&["--model", "models/nope/x"]).failed(
        1,
        "error: cannot find the model\n  caused by: model source: models/nope/x: found nothing, \
         wanted a folder with config.json, a .gguf file, or pip:NAME",
    );
    shop.train(&["--model", "someone/model-7b"]).failed(
        1,
        "error: cannot find the model\n  caused by: model source: someone/model-7b: found nothing, \
         wanted a folder with config.json, a .gguf file, or pip:NAME\n\n\
         hint: \"someone/model-7b\" is not downloaded from a hub: give the folder it lies in",
    );
    std::fs::remove_file(shop.path("model/config.json")).unwrap();
    refused(
        &shop,
        "error: cannot find the model\n  caused by: model source: model: found a folder without config.json, \
         wanted a folder with config.json, a .gguf file, or pip:NAME",
    );
}

#[test]
fn weights_that_are_cut_off_name_the_file() {
    let shop = Workshop::new();
    let bytes = shop.read("model/model.safetensors");
    for length in [0, 5, 1000, 100_000, bytes.len() - 1] {
        std::fs::write(shop.path("model/model.safetensors"), &bytes[..length]).unwrap();
        let outcome = shop.train(&[]);
        assert_eq!(outcome.status, 1);
        let wanted = "error: cannot load the model\n  caused by: ";
        assert!(outcome.stderr.starts_with(wanted), "{length}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("model/model.safetensors"), "{length}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 2, "one cause: {}", outcome.stderr);
    }
    std::fs::remove_file(shop.path("model/model.safetensors")).unwrap();
    refused(&shop, "error: cannot load the model\n  caused by: weights: model: no model*.safetensors in this folder");
}

#[test]
fn a_gguf_file_that_is_cut_off_names_the_tensor() {
    let shop = Workshop::new();
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let number = |number: u32| number.to_le_bytes().to_vec();
    let count = |count: u64| count.to_le_bytes().to_vec();
    // One string of metadata and the table of one f32 tensor [4, 64], whose 1024 bytes are missing.
    let parts = [
        b"GGUF".to_vec(),
        number(3),
        count(1),
        count(1),
        text("general.architecture"),
        number(8),
        text("llama"),
        text("token_embd.weight"),
        number(2),
        count(64),
        count(4),
        number(0),
        count(0),
    ];
    let mut bytes = parts.concat();
    std::fs::write(shop.path("cut.gguf"), &bytes).unwrap();
    let outcome = shop.train(&["--model", "cut.gguf"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.contains("cut.gguf") && outcome.stderr.contains("token_embd.weight"), "{}", outcome.stderr);
    bytes.truncate(60);
    std::fs::write(shop.path("cut.gguf"), &bytes).unwrap();
    let outcome = shop.train(&["--model", "cut.gguf"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.contains("gguf: cut.gguf: "), "{}", outcome.stderr);
}

#[test]
fn an_unknown_model_type_is_named_with_the_nearest_one() {
    let shop = Workshop::new();
    replace_in_config(&shop, "\"model_type\": \"llama\"", "\"model_type\": \"lama\"");
    let outcome = shop.train(&[]);
    assert_eq!(outcome.status, 1);
    let wanted = "error: cannot load the model\n  caused by: model config: model/config.json: field `model_type`: \
                  found \"lama\", wanted one of: llama";
    assert!(outcome.stderr.starts_with(wanted), "{}", outcome.stderr);
    assert!(outcome.stderr.ends_with("\n\nhint: did you mean \"llama\"?\n"), "{}", outcome.stderr);
}

#[test]
fn a_tensor_of_another_shape_is_named() {
    let shop = Workshop::new();
    rewrite(&shop, |name, shape, data| {
        let shape = if name == "model.layers.1.mlp.up_proj.weight" { vec![64, 128] } else { shape.to_vec() };
        Some((name.to_owned(), shape, data.to_vec()))
    });
    refused(
        &shop,
        "error: cannot load the model\n  caused by: weights: model: tensor `model.layers.1.mlp.up_proj.weight` \
         has shape [64, 128], wanted [128, 64]",
    );
}

#[test]
fn missing_and_surplus_tensors_are_named() {
    let shop = Workshop::new();
    rewrite(&shop, |name, shape, data| {
        let name = name.replace("model.norm.weight", "model.nrom.weight");
        Some((name, shape.to_vec(), data.to_vec()))
    });
    let outcome = shop.train(&[]);
    assert_eq!(outcome.status, 1);
    let wanted = "error: cannot load the model\n  caused by: weights: model: tensor `model.norm.weight` is missing \
                  (nearest: `model.nrom.weight`, ";
    assert!(outcome.stderr.starts_with(wanted), "{}", outcome.stderr);
    let shop = Workshop::new();
    replace_in_config(&shop, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
    refused(
        &shop,
        "error: cannot load the model\n  caused by: weights: model: \
         tensor `model.layers.1.input_layernorm.weight` is not part of this architecture (and 8 more)",
    );
}

#[test]
fn a_weight_that_is_nan_is_named() {
    let shop = Workshop::new();
    rewrite(&shop, |name, shape, data| {
        let mut data = data.to_vec();
        if name == "model.layers.0.self_attn.o_proj.weight" {
            data[400..404].copy_from_slice(&f32::NAN.to_le_bytes());
        }
        Some((name.to_owned(), shape.to_vec(), data))
    });
    refused(
        &shop,
        "error: cannot load the model\n  caused by: weights: model: \
         tensor `model.layers.0.self_attn.o_proj.weight` holds NaN or infinite values",
    );
}

#[test]
fn conversations_need_a_chat_template() {
    let shop = Workshop::new();
    shop.write_tokenizer_config(None);
    refused(
        &shop,
        "error: train.jsonl:1: found messages, and a model without a chat template, wanted a chat template\n\n\
         hint: use a chat model, put chat_template.jinja beside the model, or give prompt and completion as strings",
    );
    shop.write_tokenizer_config(Some("{% for x in %}"));
    let outcome = shop.train(&[]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.contains("chat template: model/tokenizer_config.json: "), "{}", outcome.stderr);
}

#[test]
fn a_missing_and_a_broken_tokenizer_are_named() {
    let shop = Workshop::new();
    shop.write("model/tokenizer.json", "{\"version\": \"1.0\"");
    let outcome = shop.train(&[]);
    assert_eq!(outcome.status, 1);
    let wanted =
        "error: cannot load the tokenizer\n  caused by: tokenizer: model/tokenizer.json: found EOF while parsing";
    assert!(outcome.stderr.starts_with(wanted), "{}", outcome.stderr);
    std::fs::remove_file(shop.path("model/tokenizer.json")).unwrap();
    refused(
        &shop,
        "error: cannot load the tokenizer\n  caused by: tokenizer: model/tokenizer.json: found no such file, \
         wanted the tokenizer of the model\n\n\
         hint: a folder with only tokenizer.model must be converted to tokenizer.json first",
    );
}

#[test]
fn a_tokenizer_with_more_tokens_than_the_model_is_refused() {
    let shop = Workshop::new();
    let mut json = tokenizer();
    // `y` is in the first row: its id is now beyond the embedding.
    json["model"]["vocab"]["y"] = 160.into();
    shop.write("model/tokenizer.json", &json.to_string());
    refused(
        &shop,
        "error: train.jsonl:1: found token id 160, wanted ids below 160, the vocabulary of the model\n\n\
         hint: the tokenizer has more tokens than the model: is it another model's?",
    );
}
