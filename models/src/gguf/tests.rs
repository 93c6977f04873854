use half::{bf16, f16};

use super::builder::{Builder, small_llama, text, write};
use super::*;
use crate::config::{QuantMode, QuantSpec, RopeScaling};
use crate::error::ModelError;

fn open(builder: &Builder) -> crate::Result<GgufFile> {
    let (_folder, path) = builder.write();
    GgufFile::open(&path)
}

/// The error without the folder it lies in.
fn complaint(error: &ModelError) -> String {
    let text = error.to_string();
    let start = text.find("/m.gguf").map_or(0, |at| at + 1);
    text[start..].to_owned()
}

fn refusal(builder: &Builder) -> String {
    complaint(&open(builder).unwrap_err())
}

fn half_bytes(value: f32) -> [u8; 2] {
    f16::from_f32(value).to_le_bytes()
}

#[test]
fn all_kinds_of_metadata_are_read_with_their_values() {
    let nested =
        [&9u32.to_le_bytes()[..], &1u64.to_le_bytes(), &4u32.to_le_bytes(), &1u64.to_le_bytes(), &7u32.to_le_bytes()];
    let file = open(
        &Builder::new()
            .raw_key("u8", 0, &[200])
            .raw_key("i8", 1, &[0xFF])
            .raw_key("u16", 2, &[0x34, 0x12])
            .raw_key("i16", 3, &[0xFE, 0xFF])
            .raw_key("i32", 5, &(-3i32).to_le_bytes())
            .raw_key("u64", 10, &u64::MAX.to_le_bytes())
            .raw_key("i64", 11, &i64::MIN.to_le_bytes())
            .raw_key("f64", 12, &0.1f64.to_le_bytes())
            .raw_key("nested", 9, &nested.concat())
            .count("u32", 7)
            .number("f32", 1e-5)
            .flag("bool", true)
            .string("text", "grüße")
            .strings("texts", &["a", ""])
            .integers("integers", &[-1, 2])
            .floats("floats", &[0.5]),
    )
    .unwrap();
    let got: Vec<_> =
        ["u8", "i8", "u16", "i16", "i32", "u64", "i64", "f64"].map(|key| file.get(key).unwrap().clone()).into();
    assert_eq!(
        got,
        [
            MetaValue::Uint(200),
            MetaValue::Int(-1),
            MetaValue::Uint(0x1234),
            MetaValue::Int(-2),
            MetaValue::Int(-3),
            MetaValue::Uint(u64::MAX),
            MetaValue::Int(i64::MIN),
            MetaValue::F64(0.1),
        ]
    );
    assert_eq!(file.get("nested"), Some(&MetaValue::Array(MetaArray::Nested(vec![MetaArray::Uint(vec![7])]))));
    assert_eq!(file.count("u32").unwrap(), Some(7));
    assert_eq!(file.number("f32").unwrap(), Some(1e-5));
    assert_eq!(file.flag("bool").unwrap(), Some(true));
    assert_eq!(file.text("text").unwrap(), Some("grüße"));
    assert_eq!(file.texts("texts").unwrap(), Some(&["a".to_owned(), String::new()][..]));
    assert_eq!(file.integers("integers").unwrap(), Some(vec![-1, 2]));
    assert_eq!(file.floats("floats").unwrap(), Some(&[0.5][..]));
    assert_eq!(file.text("absent").unwrap(), None);
    assert_eq!(
        complaint(&file.count("text").unwrap_err()),
        "m.gguf: metadata `text`: found the string \"grüße\", wanted a non-negative integer"
    );
}

#[test]
fn version_two_is_read_like_version_three() {
    let mut builder = Builder::new().count("a", 1);
    builder.version = 2;
    assert_eq!(open(&builder).unwrap().version(), 2);
}

#[test]
fn a_file_of_another_kind_a_wrong_version_and_a_big_endian_file_are_told_apart() {
    let mut builder = Builder::new();
    builder.magic = *b"ggml";
    assert_eq!(refusal(&builder), "m.gguf: the first four bytes: found the bytes \"ggml\", wanted GGUF");
    builder.magic = *b"GGUF";
    builder.version = 1;
    assert_eq!(refusal(&builder), "m.gguf: version: found 1, wanted version 2 or 3");
    builder.version = 3u32.swap_bytes();
    assert_eq!(refusal(&builder), "m.gguf: version: found a big-endian file, wanted a little-endian file");
}

#[test]
fn an_absurd_count_is_refused_before_memory_is_taken_for_it() {
    let mut builder = Builder::new().count("a", 1);
    builder.tensor_count = Some(u64::MAX);
    let message = refusal(&builder);
    assert!(
        message.starts_with("m.gguf: the tensor count: found a count of 18446744073709551615, wanted at most"),
        "{message}"
    );
    let huge = [&8u32.to_le_bytes()[..], &(1u64 << 60).to_le_bytes()].concat();
    let message = refusal(&Builder::new().raw_key("tokens", 9, &huge));
    assert!(message.starts_with("m.gguf: metadata `tokens`: found a count of 1152921504606846976"), "{message}");
    let message = refusal(&Builder::new().raw_key("name", 8, &u64::MAX.to_le_bytes()));
    assert!(message.starts_with("m.gguf: metadata `name`: found the end of the file at byte"), "{message}");
}

#[test]
fn a_file_cut_off_anywhere_in_its_front_is_an_error_and_never_a_panic() {
    let whole = small_llama().strings("tokens", &["a", "b"]).dense("t", &[2, 4], &[1.0; 8]).bytes();
    let front = whole.len() - 32;
    for length in 0..front {
        let (_folder, path) = write(&whole[..length]);
        assert!(GgufFile::open(&path).is_err(), "cut to {length} of {} bytes", whole.len());
    }
}

#[test]
fn a_truncated_file_names_the_tensor_and_the_bytes_missing() {
    let whole = Builder::new().dense("first", &[8], &[1.0; 8]).dense("second", &[4, 8], &[2.0; 32]).bytes();
    let (_folder, path) = write(&whole[..whole.len() - 100]);
    let error = GgufFile::open(&path).unwrap_err();
    let (length, wanted) = (whole.len() - 100, whole.len());
    assert_eq!(
        complaint(&error),
        format!("m.gguf: second: found a file of {length} bytes, 100 bytes missing, wanted {wanted} bytes")
    );
    assert_eq!(error.hint(), Some("the file is cut off: fetch it again"));
}

#[test]
fn doubled_tensors_and_doubled_keys_are_refused() {
    let twice = Builder::new().dense("t", &[8], &[0.0; 8]).dense("t", &[8], &[0.0; 8]);
    assert_eq!(refusal(&twice), "m.gguf: t: found the tensor twice in the table, wanted every tensor once");
    let twice = Builder::new().count("k", 1).count("k", 2);
    assert_eq!(refusal(&twice), "m.gguf: metadata `k`: found the key twice, wanted every key once");
}

#[test]
fn offsets_shapes_and_blocks_that_cannot_be_are_refused() {
    assert_eq!(refusal(&Builder::new().misplaced("t", &[1], 4)), "m.gguf: t: found offset 4, wanted a multiple of 32");
    let message = refusal(&Builder::new().misplaced("t", &[1], u64::MAX - 31));
    assert_eq!(message, "m.gguf: t: found offset 18446744073709551584, wanted an offset inside the file");
    let message = refusal(&Builder::new().misplaced("t", &[1 << 40, 1 << 40], 0));
    assert_eq!(message, "m.gguf: t: found shape [1099511627776, 1099511627776], wanted a tensor that fits in memory");
    let message = refusal(&Builder::new().tensor("q", &[2, 40], 3, &[0; 60]));
    assert_eq!(message, "m.gguf: q: found rows of 40 elements of Q4_1, wanted rows of whole blocks");
    let message = refusal(&Builder::new().misplaced("t", &[1, 1, 1, 1, 1], 0));
    assert_eq!(message, "m.gguf: t: found 5 dimensions, wanted 1 to 4 dimensions");
    let message = refusal(&Builder::new().alignment(12));
    assert_eq!(message, "m.gguf: metadata `general.alignment`: found 12, wanted a multiple of 8 up to 1 MiB");
}

#[test]
fn an_unknown_value_type_and_broken_text_are_named_with_their_key() {
    let message = refusal(&Builder::new().raw_key("k", 99, &[0; 8]));
    assert_eq!(message, "m.gguf: metadata `k`: found value type 99, wanted a value type from 0 to 12");
    let message = refusal(&Builder::new().raw_key("k", 7, &[2]));
    assert_eq!(message, "m.gguf: metadata `k`: found the byte 2, wanted a boolean, 0 or 1");
    let mut broken = text("ab");
    broken[9] = 0xFF;
    let message = refusal(&Builder::new().raw_key("k", 8, &broken));
    assert_eq!(message, "m.gguf: metadata `k`: found invalid UTF-8 at byte 1 of the text, wanted UTF-8");
}

#[test]
fn dense_tensors_keep_their_bits_and_their_row_major_shape() {
    let halves: Vec<u8> = [1.5f32, -0.25].iter().flat_map(|value| half_bytes(*value)).collect();
    let brains: Vec<u8> = [3.0f32, -2.0].iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect();
    let builder = Builder::new()
        .alignment(64)
        .dense("f32", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, f32::NAN])
        .tensor("f16", &[2], 1, &halves)
        .tensor("bf16", &[2], 30, &brains);
    let (_folder, path) = builder.write();
    let file = GgufFile::open(&path).unwrap();
    let tensor = file.read_tensor("f32").unwrap();
    assert_eq!(tensor.shape, [2, 3]);
    let TensorData::F32(values) = tensor.data else { panic!("f32 became something else") };
    assert_eq!(values[..5], [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert!(values[5].is_nan());
    let wanted = TensorData::F16(vec![f16::from_f32(1.5), f16::from_f32(-0.25)]);
    assert_eq!(file.read_tensor("f16").unwrap().data, wanted);
    let wanted = TensorData::Bf16(vec![bf16::from_f32(3.0), bf16::from_f32(-2.0)]);
    assert_eq!(file.read_tensor("bf16").unwrap().data, wanted);
}

#[test]
fn q4_1_blocks_become_affine_words_with_the_first_value_lowest() {
    // Byte j holds value j in its low half and value 16 + j in its high half.
    let nibbles: Vec<u8> = (0..16u8).map(|j| j | (15 - j) << 4).collect();
    let block = [&half_bytes(0.5)[..], &half_bytes(-3.0), &nibbles].concat();
    let (_folder, path) = Builder::new().tensor("q", &[1, 32], 3, &block).write();
    let tensor = GgufFile::open(&path).unwrap().read_tensor("q").unwrap();
    let TensorData::Affine(parts) = tensor.data else { panic!("not affine") };
    assert_eq!(parts.weight, [0x7654_3210, 0xFEDC_BA98, 0x89AB_CDEF, 0x0123_4567]);
    assert_eq!((parts.scales[0].to_f32(), parts.biases[0].to_f32()), (0.5, -3.0));
    assert_eq!((parts.bits, parts.group_size), (4, 32));
    let wanted: Vec<f32> = (0..16).chain((0..16).rev()).map(|q| 0.5 * q as f32 - 3.0).collect();
    assert_eq!(parts.dequantize(), wanted);
}

#[test]
fn q4_0_blocks_get_a_bias_of_minus_eight_scales() {
    let block = [&half_bytes(0.1)[..], &[0x8F; 16]].concat();
    let (_folder, path) = Builder::new().tensor("q", &[1, 32], 2, &block).write();
    let tensor = GgufFile::open(&path).unwrap().read_tensor("q").unwrap();
    let TensorData::Affine(parts) = tensor.data else { panic!("not affine") };
    assert_eq!(parts.weight, [0xFFFF_FFFF, 0xFFFF_FFFF, 0x8888_8888, 0x8888_8888]);
    let scale = f16::from_f32(0.1);
    assert_eq!(parts.biases, [f16::from_f32(-8.0 * scale.to_f32())]);
    let values = parts.dequantize();
    assert_eq!(values[0], 7.0 * scale.to_f32());
    assert_eq!(values[16], 0.0);
}

#[test]
fn q8_0_blocks_are_stored_unsigned_with_128_added() {
    let signed: Vec<u8> = (0..32u8).map(|j| (8 * j).wrapping_sub(127)).collect();
    let block = [&half_bytes(0.25)[..], &signed].concat();
    let (_folder, path) = Builder::new().tensor("q", &[1, 32], 8, &block).write();
    let tensor = GgufFile::open(&path).unwrap().read_tensor("q").unwrap();
    let TensorData::Affine(parts) = tensor.data else { panic!("not affine") };
    assert_eq!(parts.weight[0], u32::from_le_bytes([1, 9, 17, 25]));
    assert_eq!(parts.biases[0].to_f32(), -32.0);
    assert_eq!((parts.bits, parts.weight.len()), (8, 8));
    let wanted: Vec<f32> = signed.iter().map(|byte| 0.25 * f32::from(*byte as i8)).collect();
    assert_eq!(parts.dequantize(), wanted);
}

#[test]
fn a_type_that_cannot_be_read_is_named_when_the_tensor_is_asked_for() {
    let (_folder, path) = Builder::new().tensor("q", &[1, 256], 14, &[0; 210]).tensor("w", &[4], 77, &[]).write();
    let file = GgufFile::open(&path).unwrap();
    let error = file.read_tensor("q").unwrap_err();
    assert_eq!(complaint(&error), "m.gguf: q: found Q6_K, wanted F32, F16, BF16, Q4_0, Q4_1 or Q8_0");
    let error = file.read_tensor("w").unwrap_err();
    assert_eq!(complaint(&error), "m.gguf: w: found type number 77, wanted F32, F16, BF16, Q4_0, Q4_1 or Q8_0");
    let error = file.read_tensor("missing").unwrap_err();
    assert_eq!(complaint(&error), "m.gguf: missing: found no such tensor among 2, wanted the tensor");
}

#[test]
fn names_of_llama_cpp_become_names_of_hugging_face() {
    let cases = [
        ("token_embd.weight", Some("model.embed_tokens.weight")),
        ("output_norm.weight", Some("model.norm.weight")),
        ("output.weight", Some("lm_head.weight")),
        ("blk.0.attn_norm.weight", Some("model.layers.0.input_layernorm.weight")),
        ("blk.29.ffn_norm.weight", Some("model.layers.29.post_attention_layernorm.weight")),
        ("blk.7.attn_q.bias", Some("model.layers.7.self_attn.q_proj.bias")),
        ("blk.7.attn_k.weight", Some("model.layers.7.self_attn.k_proj.weight")),
        ("blk.7.attn_v.weight", Some("model.layers.7.self_attn.v_proj.weight")),
        ("blk.7.attn_output.weight", Some("model.layers.7.self_attn.o_proj.weight")),
        ("blk.7.ffn_gate.weight", Some("model.layers.7.mlp.gate_proj.weight")),
        ("blk.7.ffn_up.weight", Some("model.layers.7.mlp.up_proj.weight")),
        ("blk.7.ffn_down.weight", Some("model.layers.7.mlp.down_proj.weight")),
        ("blk.x.ffn_down.weight", None),
        ("blk.7.ffn_gate_inp.weight", None),
        ("rope_freqs.weight", None),
        ("token_embd", None),
    ];
    for (name, wanted) in cases {
        assert_eq!(hf_name(name).as_deref(), wanted, "{name}");
    }
}

/// llama.cpp's reordering: row `p·half + i` of a head goes to row `2·i + p`.
fn permute(rows: &[usize], heads: usize) -> Vec<usize> {
    let head = rows.len() / heads;
    let mut result = vec![0; rows.len()];
    for (at, row) in rows.iter().enumerate() {
        let (block, p, i) = (at / head, at % head / (head / 2), at % (head / 2));
        result[block * head + 2 * i + p] = *row;
    }
    result
}

#[test]
fn rows_of_queries_and_keys_come_back_to_their_places() {
    let rows: Vec<usize> = (0..24).collect();
    for heads in [1, 2, 3, 6] {
        assert_eq!(unpermute_rows(&permute(&rows, heads), 24, heads).unwrap(), rows, "{heads} heads");
    }
    assert_eq!(unpermute_rows(&[0, 1, 2, 3, 4, 5, 6, 7], 8, 2).unwrap(), [0, 2, 1, 3, 4, 6, 5, 7]);
    let wide = unpermute_rows(&[10, 11, 20, 21, 30, 31, 40, 41], 4, 1).unwrap();
    assert_eq!(wide, [10, 11, 30, 31, 20, 21, 40, 41]);
    assert_eq!(unpermute_rows(&[0; 6], 6, 2), None, "heads of three rows have no pairs");
    assert_eq!(unpermute_rows(&[0; 8], 8, 3), None, "eight rows are not three heads");
    assert_eq!(unpermute_rows::<u8>(&[], 0, 0), None);
}

#[test]
fn packed_rows_scales_and_biases_move_together() {
    let block =
        |row: u8| [&half_bytes(f32::from(row) + 1.0)[..], &half_bytes(-f32::from(row)), &[row * 0x11; 16]].concat();
    let data: Vec<u8> = (0..4).flat_map(block).collect();
    let (_folder, path) = Builder::new().tensor("q", &[4, 32], 3, &data).write();
    let tensor = GgufFile::open(&path).unwrap().read_tensor("q").unwrap();
    let TensorData::Affine(before) = tensor.data.clone() else { panic!("not affine") };
    let TensorData::Affine(after) = tensor.clone().unpermute(1, &path).unwrap().data else { panic!("not affine") };
    for (to, from) in [(0, 0), (1, 2), (2, 1), (3, 3)] {
        assert_eq!(after.weight[to * 4..][..4], before.weight[from * 4..][..4]);
        assert_eq!((after.scales[to], after.biases[to]), (before.scales[from], before.biases[from]));
    }
    let error = tensor.unpermute(3, &path).unwrap_err();
    assert_eq!(complaint(&error), "m.gguf: q: found 4 rows, wanted rows that divide into 3 heads of an even size");
}

#[test]
fn a_configuration_is_read_off_metadata_and_tensors() {
    let q4 = [0u8; 20];
    let builder = small_llama()
        .count("tokenizer.ggml.bos_token_id", 1)
        .count("tokenizer.ggml.eos_token_id", 2)
        .count("tokenizer.ggml.eot_token_id", 3)
        .tensor("token_embd.weight", &[5, 32], 8, &[0; 170])
        .tensor("blk.0.attn_q.weight", &[1, 32], 3, &q4)
        .tensor("blk.0.attn_k.weight", &[1, 32], 3, &q4)
        .dense("blk.0.ffn_up.weight", &[1, 32], &[0.0; 32])
        .dense("blk.0.attn_q.bias", &[1], &[0.0]);
    let (_folder, path) = builder.write();
    let config = model_config(&GgufFile::open(&path).unwrap()).unwrap();
    assert_eq!((config.model_type.as_str(), config.vocab_size, config.hidden_size), ("llama", 5, 32));
    assert_eq!((config.num_attention_heads, config.num_key_value_heads, config.head_dim), (4, 2, 8));
    assert_eq!((config.rms_norm_eps, config.max_position_embeddings), (1e-5, Some(64)));
    assert!(config.tie_word_embeddings && config.attention_bias && !config.mlp_bias);
    assert_eq!((config.bos_ids.clone(), config.eos_ids.clone()), (vec![1], vec![2, 3]));
    let spec = |bits| Some(QuantSpec { group_size: 32, bits, mode: QuantMode::Affine });
    assert_eq!(config.quant_for("model.layers.0.self_attn.q_proj"), spec(4));
    assert_eq!(config.quant_for("model.embed_tokens"), spec(8));
    assert_eq!(config.quant_for("model.layers.0.mlp.up_proj"), None);
    assert_eq!(config.rope.scaling, RopeScaling::None);
    assert_eq!(config.raw["rms_norm_eps"], 1e-5);
}

#[test]
fn rope_scaling_of_a_gguf_file_is_read_or_refused() {
    let embedding = |builder: Builder| builder.dense("token_embd.weight", &[2, 32], &[0.0; 64]);
    let config = |builder: Builder| model_config(&open(&builder).unwrap());
    let linear =
        embedding(small_llama()).string("llama.rope.scaling.type", "linear").number("llama.rope.scaling.factor", 4.0);
    assert_eq!(config(linear).unwrap().rope.scaling, RopeScaling::Linear { factor: 4.0 });
    let yarn = embedding(small_llama()).string("llama.rope.scaling.type", "yarn");
    let error = config(yarn).unwrap_err();
    assert_eq!(complaint(&error), "m.gguf: metadata `llama.rope.scaling.type`: found \"yarn\", wanted none or linear");
    let (_folder, path) = embedding(small_llama()).dense("rope_freqs.weight", &[4], &[1.0, 1.0, 4.0, 8.0]).write();
    let scaling = model_config(&GgufFile::open(&path).unwrap()).unwrap().rope.scaling;
    assert_eq!(scaling, RopeScaling::Factors { factors: vec![1.0, 1.0, 4.0, 8.0] });
}

#[test]
fn an_unknown_architecture_and_a_missing_key_are_named() {
    let error = model_config(&open(&Builder::new().string("general.architecture", "falcon")).unwrap()).unwrap_err();
    assert_eq!(
        complaint(&error),
        "m.gguf: metadata `general.architecture`: found the architecture \"falcon\", wanted one of: llama"
    );
    let error = model_config(&open(&Builder::new().string("general.architecture", "llama")).unwrap()).unwrap_err();
    assert_eq!(
        complaint(&error),
        "m.gguf: metadata `llama.attention.head_count`: found no such key, wanted the key with a value"
    );
    let error = model_config(&open(&small_llama()).unwrap()).unwrap_err();
    assert_eq!(complaint(&error), "m.gguf: token_embd.weight: found no such tensor, wanted the embedding");
}
