//! Configurations that are refused, each with the place, the finding and the wish.

use crate::fixture::{CONFIG, Workshop};

/// `check` and `train` refuse `config` with the same words, and nothing is written.
#[track_caller]
fn refused(config: &str, args: &[&str], message: &str) {
    let shop = Workshop::new();
    shop.write("run.toml", config);
    for command in ["check", "train"] {
        shop.run(&[&[command, "run.toml"], args].concat()).failed(2, message);
    }
    assert!(!shop.path("out").exists());
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_one() {
    let config = CONFIG.replace("learning_rate", "learning_rat");
    let outcome_start = "error: run.toml:8:1: optimizer.learning_rat: found an unknown key, wanted one of name, \
                         learning_rate, betas, eps, weight_decay, bias_correction\n\nhint: did you mean \
                         `learning_rate`?";
    refused(&config, &[], outcome_start);
}

#[test]
fn an_unknown_table_and_an_unknown_set_are_named() {
    let message = |place: &str| {
        format!(
            "error: {place}: found an unknown table, wanted one of model, data, method, lora, optimizer, schedule, \
             train, eval, report, checkpoint, output, summary"
        )
    };
    refused(
        &format!("{CONFIG}\n[loora]\nrank = 4\n"),
        &[],
        &(message("run.toml:23:2: loora") + "\n\nhint: did you mean `lora`?"),
    );
    refused(CONFIG, &["--set", "loora.rank=4"], &(message("--set: loora.rank") + "\n\nhint: did you mean `lora`?"));
}

#[test]
fn a_wrong_type_names_what_was_found() {
    refused(
        &CONFIG.replace("batch_size = 2", "batch_size = \"two\""),
        &[],
        "error: run.toml:12:14: train.batch_size: found \"two\", wanted an integer of at least 0",
    );
    refused(
        CONFIG,
        &["--iters", "many"],
        "error: --iters: train.iters: found \"many\", wanted an integer of at least 0",
    );
    refused(
        &CONFIG.replace("batch_size = 2", "batch_size = 0"),
        &[],
        "error: run.toml:12:14: train.batch_size: found 0, wanted at least 1",
    );
}

#[test]
fn broken_toml_names_line_and_column() {
    let shop = Workshop::new();
    shop.write("run.toml", "[model]\npath = \"model\n");
    let outcome = shop.run(&["check", "run.toml"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.starts_with("error: run.toml:2:"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(": found text that is not TOML ("), "{}", outcome.stderr);
}

#[test]
fn a_missing_file_and_missing_keys_are_named() {
    let shop = Workshop::new();
    shop.run(&["train", "nope.toml"]).failed(
        2,
        "error: cannot read nope.toml\n  caused by: No such file or directory (os error 2)\n\n\
         hint: mlx-train init writes a configuration to start from",
    );
    shop.run(&["train", "--model", "model"]).failed(
        2,
        "error: data.train: found no value, wanted one: this key is required\n\n\
         hint: set it in the configuration file or with --data; mlx-train init writes a file",
    );
}

#[test]
fn scale_and_alpha_exclude_each_other() {
    refused(
        &format!("{CONFIG}\n[lora]\nscale = 2.0\nalpha = 16.0\n"),
        &[],
        "error: run.toml:25:9: lora.alpha: found a value beside lora.scale (file run.toml:24), \
         wanted lora.scale or lora.alpha, not both",
    );
}

#[test]
fn lambda_has_no_effect_under_sft() {
    refused(
        CONFIG,
        &["--set", "method.lambda=0.2"],
        "error: --set: method.lambda: found a value that has no effect, \
         wanted method.name = \"orpo\": sft has no odds-ratio term",
    );
}

#[test]
fn an_unknown_variable_is_named() {
    let shop = Workshop::new();
    let output = shop.program().env("TRAINER_LORA_RANKS", "4").args(["check", "run.toml"]).output().unwrap();
    crate::fixture::Outcome::of(output).failed(
        2,
        "error: env TRAINER_LORA_RANKS: found an unknown variable, \
         wanted TRAINER_TABLE_KEY of a key that mlx-train check prints\n\nhint: did you mean `TRAINER_LORA_RANK`?",
    );
}

#[test]
fn more_layers_than_the_model_has_are_refused() {
    let shop = Workshop::new();
    shop.write("run.toml", &format!("{CONFIG}\n[lora]\nnum_layers = 3\n"));
    shop.train(&[]).failed(
        2,
        "error: run.toml:24:14: lora.num_layers: found 3, wanted at most 2, the layers of the model, or -1 for all",
    );
}

#[test]
fn a_rank_beyond_the_linears_is_refused() {
    Workshop::new().train(&["--set", "lora.rank=3000000000"]).failed(
        2,
        "error: --set: lora.rank: found 3000000000, wanted at most 64, \
         the greater size of `model.layers.0.self_attn.k_proj`",
    );
}

#[test]
fn an_unknown_target_is_refused_with_those_there_are() {
    Workshop::new().train(&["--set", "lora.targets=q_proj,qkv_proj"]).failed(
        2,
        "error: --set: lora.targets: found \"qkv_proj\", wanted linears of the model: \
         q_proj, k_proj, v_proj, o_proj, gate_proj, down_proj, up_proj",
    );
}

#[test]
fn a_number_that_f32_cannot_hold_is_refused() {
    let wanted = |key: &str, got: &str| format!("error: --set: {key}: found {got}, wanted above 0, within f32");
    let huge = format!("1{}.0", "0".repeat(300));
    refused(CONFIG, &["--set", "lora.scale=1e300"], &wanted("lora.scale", &huge));
    let tiny = format!("0.{}1", "0".repeat(49));
    refused(CONFIG, &["--set", "optimizer.eps=1e-50"], &wanted("optimizer.eps", &tiny));
}
