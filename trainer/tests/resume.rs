//! A run that stops and goes on is the run that never stopped, bit for bit.

use crate::fixture::{Workshop, conversations, preferences};

/// Trains to `last` in one go and, beside it, to each of `stops` and on; both must be equal.
fn stops_and_goes_on(shop: &Workshop, args: &[&str], stops: &[&str], last: &str) {
    let to = |folder: &str, iters: &str, more: &[&str]| {
        shop.train(&[args, &["--adapter-path", folder, "--iters", iters], more].concat()).succeeded()
    };
    to("whole", last, &[]);
    for (index, stop) in stops.iter().enumerate() {
        to("parts", stop, if index == 0 { &[] } else { &["--resume"] });
    }
    let outcome = to("parts", last, &["--resume"]);
    let note = format!("resumed after step {}\n", stops[stops.len() - 1]);
    assert!(outcome.stderr.ends_with(&note), "{}", outcome.stderr);
    assert_equal(shop, "whole", "parts", last);
}

/// Both folders hold the same state and the same history.
#[track_caller]
pub fn assert_equal(shop: &Workshop, left: &str, right: &str, last: &str) {
    assert_eq!(shop.figures(left), shop.figures(right));
    let state = format!("{:07}_optimizer_state.safetensors", last.parse::<u64>().unwrap());
    for name in ["adapters.safetensors", "trainer_state.json", &state] {
        let (left, right) = (shop.read(&format!("{left}/{name}")), shop.read(&format!("{right}/{name}")));
        assert!(left == right, "{name} differs");
    }
}

#[test]
fn over_several_shuffled_epochs() {
    // 7 rows in batches of 2: four batches an epoch, the last of one row.
    let shop = Workshop::new();
    shop.write("train.jsonl", &conversations(7));
    stops_and_goes_on(&shop, &[], &["3", "6"], "11");
}

#[test]
fn with_accumulation_across_the_end_of_an_epoch() {
    let shop = Workshop::new();
    let args = ["--set", "train.grad_accumulation_steps=3", "--set", "data.order=length_grouped"];
    stops_and_goes_on(&shop, &args, &["4"], "7");
}

#[test]
fn with_a_warm_up_and_adam_and_no_clipping() {
    let shop = Workshop::new();
    let args = ["--set", "schedule.warmup=5", "--set", "optimizer.name=adam", "--set", "train.max_grad_norm=0"];
    stops_and_goes_on(&shop, &args, &["3"], "8");
}

#[test]
fn of_preferences_on_a_quantised_model() {
    let shop = Workshop::with_model("llama_4bit");
    shop.write("train.jsonl", &preferences(5));
    stops_and_goes_on(&shop, &["--set", "method.name=orpo"], &["2"], "5");
}

#[test]
fn with_validation_and_a_summary_that_still_compares_with_the_base() {
    let shop = Workshop::new();
    let args = [
        "--set",
        "data.valid_fraction=0.2",
        "--set",
        "eval.every=2",
        "--set",
        "summary.prompts=say 1",
        "--set",
        "summary.max_tokens=6",
    ];
    let whole = shop.train(&[&args[..], &["--adapter-path", "whole", "--iters", "6"]].concat()).succeeded();
    shop.train(&[&args[..], &["--iters", "4"]].concat()).succeeded();
    let resumed = shop.train(&[&args[..], &["--iters", "6", "--resume"]].concat()).succeeded();
    assert_equal(&shop, "whole", "out", "6");
    let summary = |text: &str| text[text.find("\n> say 1\n").unwrap()..].to_owned();
    assert_eq!(summary(&resumed.stdout), summary(&whole.stdout));
}

#[test]
fn from_the_saved_configuration_and_a_moved_model() {
    let shop = Workshop::new();
    shop.train(&["--adapter-path", "whole", "--iters", "5"]).succeeded();
    shop.train(&["--iters", "3"]).succeeded();
    std::fs::rename(shop.path("model"), shop.path("moved")).unwrap();
    shop.run(&["train", "out/config.toml", "--model", "moved", "--resume", "--iters", "5"]).succeeded();
    assert_equal(&shop, "whole", "out", "5");
}

#[test]
fn a_finished_run_stays_as_it_is() {
    let shop = Workshop::new();
    shop.train(&[]).succeeded();
    let (adapter, metrics) = (shop.read("out/adapters.safetensors"), shop.read("out/metrics.jsonl"));
    let outcome = shop.train(&["--resume"]).succeeded();
    assert!(outcome.stderr.ends_with("all 6 steps are done already\n"), "{}", outcome.stderr);
    assert!(adapter == shop.read("out/adapters.safetensors") && metrics == shop.read("out/metrics.jsonl"));
}

#[test]
fn another_learning_rate_or_other_rows_are_refused() {
    const HINT: &str =
        "\n\nhint: resume with the configuration that is saved beside it, or start anew with --overwrite";
    let shop = Workshop::new();
    shop.train(&["--iters", "2"]).succeeded();
    let before = shop.read("out/adapters.safetensors");
    let refused = |args: &[&str], what: &str| {
        shop.train(&[args, &["--resume"]].concat()).failed(1, &format!("error: out/trainer_state.json: {what}{HINT}"));
    };
    refused(&["--learning-rate", "0.002"], "optimizer.learning_rate: found 0.001, wanted 0.002");
    refused(&["--set", "lora.rank=4"], "lora.rank: found 8, wanted 4");
    refused(&["--seed", "1"], "train.seed: found 0, wanted 1");
    refused(&["--set", "train.grad_accumulation_steps=2"], "train.grad_accumulation_steps: found 1, wanted 2");
    shop.write("train.jsonl", &conversations(9));
    refused(&[], "training rows: found other ones than in this run, wanted the same");
    shop.write("train.jsonl", &conversations(10));
    let config = shop.text("model/config.json").replace("10000.0", "20000.0");
    shop.write("model/config.json", &config);
    refused(&[], "model: found other ones than in this run, wanted the same");
    assert!(before == shop.read("out/adapters.safetensors"));
}

#[test]
fn only_the_newest_numbered_adapters_are_kept() {
    let shop = Workshop::new();
    let args = ["--set", "checkpoint.every=1", "--set", "checkpoint.save_total_limit=2"];
    let numbered = |shop: &Workshop| -> Vec<String> {
        shop.list("out").into_iter().filter(|name| name.starts_with("0000")).collect()
    };
    shop.train(&args).succeeded();
    let names = ["0000005_adapters.safetensors", "0000006_adapters.safetensors", "0000006_optimizer_state.safetensors"];
    assert_eq!(numbered(&shop), names);
    // What a save left that was cut off counts neither as a checkpoint nor as the newest one.
    for name in ["0000009_adapters.safetensors", "0000009_optimizer_state.safetensors"] {
        std::fs::copy(shop.path("out/0000006_adapters.safetensors"), shop.path("out").join(name)).unwrap();
    }
    shop.write("out/.1234-0.tmp.adapters.safetensors", "half");
    shop.train(&[&args[..], &["--resume", "--iters", "7"]].concat()).succeeded();
    let names = ["0000006_adapters.safetensors", "0000007_adapters.safetensors", "0000007_optimizer_state.safetensors"];
    assert_eq!(numbered(&shop), names);
    assert!(!shop.path("out/.1234-0.tmp.adapters.safetensors").exists());
}

#[test]
fn a_broken_checkpoint_is_named() {
    let shop = Workshop::new();
    shop.train(&["--iters", "2"]).succeeded();
    let whole = shop.read("out/0000002_adapters.safetensors");
    std::fs::write(shop.path("out/0000002_adapters.safetensors"), &whole[..whole.len() / 2]).unwrap();
    let outcome = shop.train(&["--resume"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.starts_with("error: cannot read out/0000002_adapters.safetensors\n"), "{}", outcome.stderr);
    std::fs::write(shop.path("out/0000002_adapters.safetensors"), &whole).unwrap();
    shop.write("out/trainer_state.json", "{\"step\": 2");
    let outcome = shop.train(&["--resume"]);
    assert!(outcome.stderr.starts_with("error: out/trainer_state.json: found EOF while parsing"), "{}", outcome.stderr);
    assert_eq!(outcome.status, 1);
}
