//! `generate`: with a run's folder, with a model, with every flag of sampling.

use crate::fixture::{Outcome, Workshop};

const PROMPT: [&str; 4] = ["-p", "say 4", "-m", "12"];

fn answer(shop: &Workshop, args: &[&str]) -> String {
    let Outcome { stdout, stderr, .. } = shop.run(&[&["generate"], args, &PROMPT].concat()).succeeded();
    assert!(stderr.starts_with("prompt 24 tokens, ") && stderr.contains("; answer "), "{stderr}");
    stdout
}

#[test]
fn a_runs_folder_brings_model_and_adapter() {
    let shop = Workshop::new();
    shop.write("train.jsonl", "{\"prompt\": \"say 4\", \"completion\": \"I say 4.\"}\n");
    shop.train(&["--iters", "40", "--learning-rate", "5e-3"]).succeeded();
    let base = answer(&shop, &["--model", "model"]);
    let tuned = answer(&shop, &["out"]);
    assert_eq!(tuned, "I say 4.\n", "a row of the training set is answered by heart");
    assert_ne!(base, tuned);
    assert_eq!(answer(&shop, &["--model", "model", "--adapter-path", "out"]), tuned);
    assert_eq!(answer(&shop, &["out", "--model", "model"]), tuned);
}

#[test]
fn seeds_repeat_and_differ() {
    let shop = Workshop::new();
    let hot = |seed| answer(&shop, &["--model", "model", "--temp", "1.5", "--seed", seed]);
    assert_eq!(hot("1"), hot("1"));
    assert_ne!(hot("1"), hot("2"));
}

#[test]
fn the_flags_of_sampling_take_effect() {
    let shop = Workshop::new();
    let with = |args: &[&str]| answer(&shop, &[&["--model", "model"], args].concat());
    let greedy = with(&[]);
    let hot = ["--temp", "1.5", "--seed", "3"];
    assert_ne!(with(&hot), greedy);
    // Each of these leaves one token to draw.
    assert_eq!(with(&[&hot[..], &["--top-k", "1"]].concat()), greedy);
    assert_eq!(with(&[&hot[..], &["--top-p", "0.000001"]].concat()), greedy);
    assert_eq!(with(&[&hot[..], &["--min-p", "1"]].concat()), greedy);
    assert_ne!(with(&["--repetition-penalty", "5"]), greedy);
}

#[test]
fn options_out_of_range_are_named() {
    let shop = Workshop::new();
    let outcome = shop.run(&["generate", "--model", "model", "-p", "x", "--top-p", "1.5"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.contains("top_p") && outcome.stderr.contains("1.5"), "{}", outcome.stderr);
}

#[test]
fn a_prompt_may_go_without_the_template() {
    let shop = Workshop::new();
    let args = ["generate", "--model", "model", "-p", "say 4", "-m", "4", "--ignore-chat-template"];
    let outcome = shop.run(&args).succeeded();
    assert!(outcome.stderr.starts_with("prompt 5 tokens, "), "{}", outcome.stderr);
    let args = ["generate", "--model", "model", "-p", "say 4", "-m", "4", "--system-prompt", "be brief"];
    let outcome = shop.run(&args).succeeded();
    assert!(outcome.stderr.starts_with("prompt 42 tokens, "), "{}", outcome.stderr);
}

#[test]
fn a_folder_without_a_run_is_named() {
    let shop = Workshop::new();
    shop.run(&["generate", "out", "-p", "x"]).failed(
        2,
        "error: cannot read out/config.toml\n  caused by: No such file or directory (os error 2)\n\n\
         hint: mlx-train init writes a configuration to start from",
    );
    shop.run(&["generate", "--model", "model", "--adapter-path", "nowhere", "-p", "x"]).failed(
        1,
        "error: cannot read nowhere/adapter_config.json\n  caused by: No such file or directory (os error 2)",
    );
}

#[test]
fn an_adapter_of_another_base_is_refused() {
    let shop = Workshop::new();
    shop.train(&["--iters", "1"]).succeeded();
    let config = shop.text("model/config.json").replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
    std::fs::create_dir(shop.path("small")).unwrap();
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(shop.path("model").join(name), shop.path("small").join(name)).unwrap();
    }
    shop.write("small/config.json", &config);
    let bytes = shop.read("model/model.safetensors");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let kept = tensors.iter().filter(|(name, _)| !name.contains("layers.1."));
    safetensors::serialize_to_file(kept, None, &shop.path("small/model.safetensors")).unwrap();
    let outcome = shop.run(&["generate", "out", "--model", "small", "-p", "x"]);
    outcome.failed(
        1,
        "error: cannot load the adapter\n  caused by: adapter: the model has no linear \
         `model.layers.1.mlp.down_proj`: was the adapter made for another base?",
    );
}
