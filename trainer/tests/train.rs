//! Runs that go well: every shape of rows, every file they leave, every line they print.

use serde_json::{Value, json};

use crate::fixture::{Outcome, Workshop, lines, preferences};

const SFT_KEYS: [&str; 10] = [
    "iteration",
    "train_loss",
    "learning_rate",
    "iterations_per_second",
    "tokens_per_second",
    "trained_tokens",
    "peak_memory",
    "grad_norm",
    "epoch",
    "skipped_steps",
];

const PREFERENCE_KEYS: [&str; 9] = [
    "rewards/chosen",
    "rewards/rejected",
    "rewards/accuracies",
    "rewards/margins",
    "logps/chosen",
    "logps/rejected",
    "nll_loss",
    "log_odds_ratio",
    "log_odds_chosen",
];

/// First and last training loss of the run in `out`.
fn losses(shop: &Workshop) -> (f64, f64) {
    let losses: Vec<f64> = shop.metrics().iter().filter_map(|record| record.get("train_loss")?.as_f64()).collect();
    (losses[0], losses[losses.len() - 1])
}

#[track_caller]
fn learns(shop: &Workshop, args: &[&str]) -> Outcome {
    let outcome = shop.train(args).succeeded();
    let (first, last) = losses(shop);
    assert!(last < first, "{first} → {last}");
    outcome
}

#[test]
fn a_run_on_conversations_leaves_its_files_and_prints_its_lines() {
    let shop = Workshop::new();
    let outcome = learns(&shop, &[]);
    let files = [
        "0000006_adapters.safetensors",
        "0000006_optimizer_state.safetensors",
        "adapter_config.json",
        "adapters.safetensors",
        "config.toml",
        "metrics.jsonl",
        "trainer_state.json",
    ];
    assert_eq!(shop.list("out"), files);
    assert_eq!(shop.read("out/adapters.safetensors"), shop.read("out/0000006_adapters.safetensors"));
    let iterations = outcome.iterations();
    assert_eq!(outcome.stdout.lines().count(), iterations.len(), "nothing else on stdout:\n{}", outcome.stdout);
    for (line, number) in iterations.iter().zip(1..=6) {
        assert!(line.starts_with(&format!("Iter {number}: Train loss ")), "{line}");
        assert!(line.contains(", Learning Rate 1.000e-03, It/sec ") && line.ends_with(" GB"), "{line}");
    }
    assert_eq!(
        iterations[6..],
        ["Iter 6: Saved adapter weights to out/adapters.safetensors and out/0000006_adapters.safetensors."]
    );
    let notes: Vec<&str> = outcome.stderr.lines().collect();
    assert!(notes[0].starts_with("train.jsonl: 10 of 10 rows, "), "{notes:?}");
    assert_eq!(
        notes[1..],
        [
            "LoRA on 14 linears, rank 8, scale 20 (alpha 160), 16384 trainable values",
            "6 steps of 1 x 2 rows, results in out",
        ]
    );
}

#[test]
fn the_adapters_configuration_is_what_mlx_lm_reads() {
    let shop = Workshop::new();
    shop.train(&["--num-layers", "1", "--set", "lora.targets=q_proj,down_proj", "--iters", "1"]).succeeded();
    assert_eq!(
        shop.json("out/adapter_config.json"),
        json!({
            "fine_tune_type": "lora",
            "model": "model",
            "num_layers": 1,
            "lora_parameters": {
                "rank": 8, "scale": 20.0, "dropout": 0.0, "keys": ["mlp.down_proj", "self_attn.q_proj"],
            },
            "base_model_name_or_path": "model",
            "r": 8,
            "lora_alpha": 160.0,
            "lora_dropout": 0.0,
            "target_modules": ["q_proj", "down_proj"],
        })
    );
    let bytes = shop.read("out/adapters.safetensors");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut names: Vec<(&str, Vec<usize>)> = tensors.iter().map(|(name, view)| (name, view.shape().to_vec())).collect();
    names.sort();
    assert_eq!(
        names,
        [
            ("model.layers.1.mlp.down_proj.lora_a", vec![128, 8]),
            ("model.layers.1.mlp.down_proj.lora_b", vec![8, 64]),
            ("model.layers.1.self_attn.q_proj.lora_a", vec![64, 8]),
            ("model.layers.1.self_attn.q_proj.lora_b", vec![8, 64]),
        ]
    );
}

#[test]
fn metrics_have_the_keys_of_mlx_lm() {
    let shop = Workshop::new();
    shop.train(&["--set", "report.every=2", "--iters", "5"]).succeeded();
    let records = shop.metrics();
    let iterations: Vec<&Value> = records.iter().map(|record| &record["iteration"]).collect();
    assert_eq!(iterations, [2, 4, 5]);
    for record in &records {
        assert_eq!(record.keys().collect::<Vec<_>>(), SFT_KEYS);
    }
    assert_eq!((&records[2]["epoch"], &records[2]["skipped_steps"]), (&json!(1.0), &json!(0)));
    assert_eq!(records[2]["learning_rate"], 1e-3);
    assert_eq!(shop.json("out/trainer_state.json")["trained_tokens"], records[2]["trained_tokens"]);
}

#[test]
fn prompts_with_completions_are_learned() {
    let shop = Workshop::new();
    let row = |number: usize| json!({"prompt": format!("say {number}"), "completion": format!("I say {number}.")});
    shop.write("train.jsonl", &lines((0..8).map(row)));
    learns(&shop, &[]);
    learns(&shop, &["--overwrite", "--set", "data.chat_template=never"]);
}

#[test]
fn plain_texts_are_learned_with_or_without_a_template() {
    let shop = Workshop::new();
    shop.write("train.jsonl", &lines((0..8).map(|number| json!({"text": format!("the text number {number}")}))));
    learns(&shop, &[]);
    shop.write_tokenizer_config(None);
    learns(&shop, &["--overwrite"]);
}

#[test]
fn a_json_array_with_a_byte_order_mark_is_read() {
    let shop = Workshop::new();
    shop.write("train.jsonl", "\u{feff}[\r\n{\"text\": \"one text\"},\r\n{\"text\": \"two texts\"}]\r\n");
    let outcome = learns(&shop, &[]);
    assert!(outcome.stderr.starts_with("train.jsonl: 2 of 2 rows, "), "{}", outcome.stderr);
}

#[test]
fn orpo_learns_from_strings_and_reports_preferences() {
    let shop = Workshop::new();
    shop.write("train.jsonl", &preferences(8));
    let outcome = learns(&shop, &["--set", "method.name=orpo", "--set", "method.lambda=0.5", "--iters", "20"]);
    let records = shop.metrics();
    let keys = [&SFT_KEYS[..], &PREFERENCE_KEYS].concat();
    assert!(records.iter().all(|record| record.keys().eq(&keys)), "{:?}", records[0]);
    let (first, last) = (&records[0], &records[19]);
    let number = |record: &serde_json::Map<String, Value>, key: &str| record[key].as_f64().unwrap();
    assert!(number(last, "rewards/margins") > number(first, "rewards/margins"), "{last:?}");
    assert_eq!(number(last, "rewards/accuracies"), 1.0);
    for record in &records {
        let half = 0.5 * number(record, "logps/chosen");
        assert!((number(record, "rewards/chosen") - half).abs() < 1e-12, "{record:?}");
        let loss = number(record, "nll_loss") - 0.5 * number(record, "log_odds_ratio");
        assert!((number(record, "train_loss") - loss).abs() < 1e-4, "{record:?}");
    }
    assert!(outcome.iterations()[0].contains(" GB, Accuracy "), "{}", outcome.stdout);
}

#[test]
fn orpo_reads_message_lists_as_it_reads_strings() {
    let shop = Workshop::new();
    let args = ["--set", "method.name=orpo"];
    shop.write("train.jsonl", &preferences(8));
    shop.train(&[&args[..], &["--adapter-path", "strings"]].concat()).succeeded();
    let list =
        |prompt: &str, text: &str| json!([{"role": "user", "content": prompt}, {"role": "assistant", "content": text}]);
    let row = |number: usize| {
        let prompt = format!("say {number}");
        json!({"chosen": list(&prompt, &format!("I say {number}.")), "rejected": list(&prompt, "No, never.")})
    };
    shop.write("train.jsonl", &lines((0..8).map(row)));
    shop.train(&[&args[..], &["--adapter-path", "lists"]].concat()).succeeded();
    assert_eq!(shop.figures("strings"), shop.figures("lists"));
    assert_eq!(shop.read("strings/adapters.safetensors"), shop.read("lists/adapters.safetensors"));
}

#[test]
fn a_quantised_model_learns() {
    learns(&Workshop::with_model("llama_4bit"), &["--iters", "12"]);
}

#[test]
fn bfloat16_learns_and_keeps_its_adapter_in_f32() {
    let shop = Workshop::new();
    learns(&shop, &["--set", "train.compute_dtype=bf16"]);
    let bytes = shop.read("out/adapters.safetensors");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert!(tensors.iter().all(|(_, view)| view.dtype() == safetensors::Dtype::F32));
    let bf16 = losses(&shop).0;
    shop.train(&["--overwrite"]).succeeded();
    let f32 = losses(&shop).0;
    assert!(bf16 != f32 && (bf16 - f32).abs() < 0.1, "{bf16} {f32}");
}

#[test]
fn a_run_in_epochs_ends_with_its_rows() {
    let shop = Workshop::new();
    let config = shop.text("run.toml").replace("iters = 6", "epochs = 1.5");
    shop.write("run.toml", &config);
    shop.train(&["--set", "train.grad_accumulation_steps=2"]).succeeded();
    // 10 rows, 5 batches an epoch, 8 in one and a half, two a step.
    let records = shop.metrics();
    assert_eq!((records.len(), &records[3]["epoch"]), (4, &json!(1.6)));
}

#[test]
fn validation_comes_before_during_and_after_and_the_summary_compares() {
    let shop = Workshop::new();
    shop.write("valid.jsonl", &crate::fixture::conversations(3));
    let args = ["--set", "data.valid=valid.jsonl", "--set", "eval.every=4", "--set", "summary.prompts=say 1,say 2"];
    let outcome = shop.train(&[&args[..], &["--set", "summary.max_tokens=8"]].concat()).succeeded();
    let valid: Vec<_> = shop.metrics().into_iter().filter(|record| record.contains_key("val_loss")).collect();
    let iterations: Vec<&Value> = valid.iter().map(|record| &record["iteration"]).collect();
    assert_eq!(iterations, [0, 4, 6]);
    assert_eq!(valid[0].keys().collect::<Vec<_>>(), ["iteration", "val_loss", "val_time"]);
    let (before, after) = (valid[0]["val_loss"].as_f64().unwrap(), valid[2]["val_loss"].as_f64().unwrap());
    assert!(after < before, "{before} → {after}");
    assert!(outcome.stdout.contains(&format!("Iter 0: Val loss {before:.3}, Val took ")), "{}", outcome.stdout);
    let numbers =
        format!("\nHeld-out rows              before     after\n  loss                  {before:>9.3} {after:>9.3}\n");
    assert!(outcome.stdout.contains(&numbers), "{}", outcome.stdout);
    for prompt in ["\n> say 1\n  before: ", "\n> say 2\n  before: "] {
        assert!(outcome.stdout.contains(prompt), "{}", outcome.stdout);
    }
}

#[test]
fn a_folder_of_data_brings_its_validation_rows() {
    let shop = Workshop::new();
    std::fs::create_dir(shop.path("rows")).unwrap();
    shop.write("rows/train.jsonl", &crate::fixture::conversations(4));
    shop.write("rows/valid.jsonl", &crate::fixture::conversations(2));
    let outcome = shop.train(&["--data", "rows", "--set", "eval.every=3"]).succeeded();
    assert!(outcome.stderr.contains("rows/valid.jsonl: 2 of 2 rows"), "{}", outcome.stderr);
    assert_eq!(shop.metrics().iter().filter(|record| record.contains_key("val_loss")).count(), 3);
}

#[test]
fn equal_runs_are_equal_and_seeds_differ() {
    let shop = Workshop::new();
    for (folder, seed) in [("a", "7"), ("b", "7"), ("c", "8")] {
        shop.train(&["--adapter-path", folder, "--seed", seed]).succeeded();
    }
    assert_eq!(shop.read("a/adapters.safetensors"), shop.read("b/adapters.safetensors"));
    assert_eq!(shop.figures("a"), shop.figures("b"));
    assert_ne!(shop.read("a/adapters.safetensors"), shop.read("c/adapters.safetensors"));
}
