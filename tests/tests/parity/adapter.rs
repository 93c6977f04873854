//! Adapters of ours in the real mlx-lm: the trainer's own files load there and mean the same.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use mlx_rs_core::{Array, Dtype, io};
use models::Model;
use models::generate::{GenerateOptions, generate};
use models::lora::{Adapter, LoraSpec};
use models::sample::SamplingOptions;
use models::tokenizer::Tokenizer;
use models::weights::Compute;
use serde_json::{Value, json};
use trainer::checkpoint::{Checkpointer, Progress, adapter_config, read_scale};
use trainer::optimizer::Adam;
use trainer::output::{FolderUse, RunFolder};
use trainer::step::TrainState;
use workspace_tests::golden::{Golden, Tolerance, assert_close, host};
use workspace_tests::peer;

const LOGITS: Tolerance = Tolerance { rtol: 2e-6, atol: 2e-5 };

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// What the trainer leaves on disk after a step, in `dir`.
fn save(golden: &Golden, model: &Model, adapter: &Adapter, dir: &Path) {
    let optimizer = Adam::new(golden.adam(true), adapter.parameters()).unwrap();
    let state = TrainState { parameters: adapter.parameters().to_vec(), optimizer };
    let folder = RunFolder::open(dir, FolderUse::New).unwrap();
    let config = adapter_config(adapter, &golden.lora_spec(), "base", model.num_layers());
    Checkpointer::new(&folder, config, 0).save(adapter, &state, &Progress::start(Default::default())).unwrap();
}

/// Logits `[1, T, V]` of `ids` by mlx-lm, with the adapter in `adapter` loaded by mlx-lm.
fn their_logits(model: &Path, adapter: &Path, ids: &[i32]) -> Array {
    let listed = ids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let out = adapter.join("logits.safetensors");
    let arguments = [text(model), "--ids", &listed, "--out", text(&out), "--adapter", text(adapter)];
    peer::script("tests/golden/mlx_lm_logits.py", &arguments);
    let mut tensors = io::load_safetensors(&out).unwrap().0;
    tensors.remove("logits").unwrap()
}

/// The three forms of what is adapted: all linears of all layers, a list of keys with -1, the last layer only; and a
/// quantised base.
#[test]
fn every_form_of_adapter_gives_our_logits_in_mlx_lm() {
    for name in ["llama_untied", "llama_bias", "llama3_rope", "llama_4bit"] {
        let golden = Golden::open(name);
        let model = golden.model();
        let adapter = golden.start_adapter(&model);
        let dir = tempfile::tempdir().unwrap();
        save(&golden, &model, &adapter, dir.path());
        let ids = golden.ints("prompt");
        let theirs = their_logits(golden.folder(), dir.path(), &ids);
        let prompt = golden.tensor("prompt");
        let ours = adapter.apply(&model).unwrap().forward(prompt, None).unwrap();
        assert_close(&format!("{name}/adapter in mlx-lm"), &ours, &theirs, LOGITS);
        let (with, without) = (host(&theirs), host(golden.tensor("logits_prompt")));
        let moved = with.iter().zip(&without).map(|(with, without)| (with - without).abs()).fold(0.0, f64::max);
        assert!(moved > 0.1, "{name}: the adapter changes nothing, so the comparison shows nothing");
        let scale = read_scale(dir.path()).unwrap();
        let back = Adapter::load(&model, &dir.path().join("adapters.safetensors"), scale).unwrap();
        assert_eq!(back.targets(), adapter.targets());
        for ((name, back), kept) in adapter.parameter_names().iter().zip(back.parameters()).zip(adapter.parameters()) {
            assert_close(name, back, kept, Tolerance::EXACT);
        }
    }
}

/// One word per id, so that a text is a list of ids.
fn write_tokenizer(dir: &Path, vocabulary: usize) {
    let word = |id: usize| match id {
        1 => "<s>".to_owned(),
        2 => "</s>".to_owned(),
        id => format!("w{id}"),
    };
    let vocab: serde_json::Map<String, Value> = (0..vocabulary).map(|id| (word(id), json!(id))).collect();
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "w0"},
    });
    let config = json!({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "bos_token": "<s>"});
    fs::write(dir.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    fs::write(dir.join("tokenizer_config.json"), config.to_string()).unwrap();
}

#[test]
fn mlx_lm_generates_with_our_adapter_what_we_generate() {
    let golden = Golden::open("llama_tied");
    let dir = tempfile::tempdir().unwrap();
    let (base, run) = (dir.path().join("base"), dir.path().join("run"));
    fs::create_dir(&base).unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(golden.folder().join(file), base.join(file)).unwrap();
    }
    write_tokenizer(&base, 160);
    let model = Model::load_directory(&base, Compute::Cast(Dtype::Float32)).unwrap();
    let adapter = golden.start_adapter(&model);
    save(&golden, &model, &adapter, &run);
    let prompt = "w5 w77 w140 w9 w33";
    let arguments = [text(&base), "--adapter", text(&run), "--prompt", prompt, "--max-tokens", "12"];
    let theirs: Value = serde_json::from_str(&peer::script("tests/golden/mlx_lm_generate.py", &arguments)).unwrap();
    assert_eq!(theirs["adapter_tensors"], 28, "mlx-lm took 14 pairs");
    let tokenizer = Tokenizer::from_dir(&base).unwrap();
    let ids = tokenizer.encode(prompt, false).unwrap();
    assert_eq!(json!(ids), theirs["prompt_ids"]);
    let options = GenerateOptions { max_tokens: 12, stop_ids: Vec::new(), sampling: SamplingOptions::default() };
    let with_adapter = adapter.apply(&model).unwrap();
    let said = |model: &Model| generate(model, &tokenizer, &ids, &options, |_| ControlFlow::Continue(())).unwrap().ids;
    assert_eq!(json!(said(&with_adapter)), theirs["tokens"]);
    assert_ne!(said(&with_adapter), said(&model), "without the adapter the text is another");
}

#[test]
fn the_configuration_names_targets_as_mlx_lm_looks_for_them() {
    let golden = Golden::open("llama_tied");
    let model = golden.model();
    let spec = LoraSpec { targets: vec!["v_proj".to_owned()], ..golden.lora_spec() };
    let adapter = Adapter::new(&model, &spec, 1).unwrap();
    let config = adapter_config(&adapter, &spec, "base", model.num_layers());
    // mlx-lm matches keys inside of a layer by equality: a bare `v_proj` would adapt nothing there.
    assert_eq!(config["lora_parameters"]["keys"], json!(["self_attn.v_proj"]));
    assert_eq!((&config["fine_tune_type"], &config["num_layers"]), (&json!("lora"), &json!(2)));
    assert_eq!(config["lora_parameters"]["scale"], json!(2.5));
}
