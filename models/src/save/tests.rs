use mlx_rs_core::ops;

use super::*;
use crate::gguf::builder::{Builder, small_llama};
use crate::model::Model;
use crate::tiny_llama::{assert_near, row};
use crate::weights::Compute;

/// A number in ±0.5 for each place.
fn wave(count: usize, seed: f32) -> Vec<f32> {
    (0..count).map(|at| ((at as f32 + 1.0) * (seed + 0.7)).sin() / 2.0).collect()
}

/// A whole one-layer llama with a byte-level tokenizer, its `q` and `down` in four bits.
fn file() -> Builder {
    let tokens: Vec<String> = (b'!'..=b'@').map(|byte| char::from(byte).to_string()).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    // 20 bytes per block of 32: scale 0.0625, bias -0.5, then the codes.
    let q4_1 = |blocks: usize| -> Vec<u8> {
        let head = [half::f16::from_f32(0.0625).to_le_bytes(), half::f16::from_f32(-0.5).to_le_bytes()].concat();
        let codes = |block: usize| (0..16).map(move |at| (block * 37 + at * 11) as u8);
        (0..blocks).flat_map(|block| head.clone().into_iter().chain(codes(block))).collect()
    };
    let mut builder = small_llama()
        .string("tokenizer.ggml.model", "gpt2")
        .string("tokenizer.ggml.pre", "gpt-2")
        .strings("tokenizer.ggml.tokens", &tokens)
        .strings("tokenizer.ggml.merges", &[])
        .count("tokenizer.ggml.bos_token_id", 0)
        .count("tokenizer.ggml.eos_token_id", 1)
        .string("tokenizer.chat_template", "{{ messages[0]['content'] }}")
        .dense("token_embd.weight", &[32, 32], &wave(1024, 0.0))
        .dense("output_norm.weight", &[32], &[1.0; 32])
        .dense("blk.0.attn_norm.weight", &[32], &[1.0; 32])
        .dense("blk.0.ffn_norm.weight", &[32], &[1.0; 32])
        .tensor("blk.0.attn_q.weight", &[32, 32], 3, &q4_1(32))
        .tensor("blk.0.ffn_down.weight", &[32, 64], 3, &q4_1(64));
    let dense =
        [("attn_k", 16, 32), ("attn_v", 16, 32), ("attn_output", 32, 32), ("ffn_gate", 64, 32), ("ffn_up", 64, 32)];
    for (seed, (name, rows, columns)) in dense.into_iter().enumerate() {
        let values = wave((rows * columns) as usize, seed as f32 + 1.0);
        builder = builder.dense(&format!("blk.0.{name}.weight"), &[rows, columns], &values);
    }
    builder
}

#[test]
fn the_folder_of_a_gguf_file_loads_to_the_same_model_and_tokenizer() {
    let (_keep, path) = file().write();
    let file = GgufFile::open(&path).unwrap();
    let dir = tempfile::tempdir().unwrap();
    gguf_to_folder(&file, dir.path(), Dtype::Float32).unwrap();
    let compute = Compute::Cast(Dtype::Float32);
    let (ours, theirs) =
        (Model::load_gguf(&file, compute).unwrap(), Model::load_directory(dir.path(), compute).unwrap());
    let tokens = row(&[3, 1, 4, 1, 5]);
    let logits = ours.forward(&tokens, None).unwrap();
    assert_near(&theirs.forward(&tokens, None).unwrap(), &logits, 0.0);
    assert!(
        ops::any(&ops::greater(&logits, &Array::scalar(0.1f32).unwrap()).unwrap(), None, false)
            .unwrap()
            .item::<bool>()
            .unwrap()
    );
    let (from_file, from_folder) = (Tokenizer::from_gguf(&file).unwrap(), Tokenizer::from_dir(dir.path()).unwrap());
    assert_eq!(from_folder.encode("1+1=2", true).unwrap(), from_file.encode("1+1=2", true).unwrap());
    assert_eq!(from_folder.eos_ids(), from_file.eos_ids());
    assert_eq!((from_folder.bos_id(), from_folder.eos_id()), (Some(0), Some(1)));
    assert_eq!(from_folder.require_chat_template().unwrap().source(), "{{ messages[0]['content'] }}");
}

#[test]
fn floating_tensors_are_written_in_the_asked_dtype_and_codes_as_they_are() {
    let (_keep, path) = file().write();
    let dir = tempfile::tempdir().unwrap();
    gguf_to_folder(&GgufFile::open(&path).unwrap(), dir.path(), Dtype::Bfloat16).unwrap();
    let (tensors, metadata) = io::load_safetensors(dir.path().join("model.safetensors")).unwrap();
    assert_eq!(metadata["format"], "mlx");
    let dtype = |name: &str| tensors[name].dtype();
    assert_eq!(dtype("model.embed_tokens.weight"), Dtype::Bfloat16);
    assert_eq!(dtype("model.layers.0.self_attn.q_proj.scales"), Dtype::Bfloat16);
    assert_eq!(dtype("model.layers.0.self_attn.q_proj.weight"), Dtype::Uint32);
    let config: Value = serde_json::from_str(&fs::read_to_string(dir.path().join("config.json")).unwrap()).unwrap();
    assert_eq!(config["torch_dtype"], "bfloat16");
    assert_eq!(config["quantization"]["bits"], 4);
}

#[test]
fn frequency_factors_that_no_configuration_can_state_are_refused() {
    let (_keep, path) = file().dense("rope_freqs.weight", &[4], &[1.0, 1.0, 4.0, 8.0]).write();
    let dir = tempfile::tempdir().unwrap();
    let error = gguf_to_folder(&GgufFile::open(&path).unwrap(), dir.path(), Dtype::Float32).unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with(
            "rope_freqs.weight: found divisors of the rotary frequencies, wanted a scaling that config.json can state"
        ),
        "{text}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was written");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let (_keep, path) = file().write();
    // A file stands where the folder should be.
    let error = gguf_to_folder(&GgufFile::open(&path).unwrap(), &path.join("sub"), Dtype::Float32).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot create {}", path.join("sub").display())), "{error}");
}
