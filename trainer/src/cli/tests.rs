use std::collections::BTreeSet;

use clap::error::ErrorKind;

use super::*;
use crate::config::schema::keys;

fn parsed(args: &[&str]) -> Cli {
    parse(std::iter::once("mlx-train").chain(args.iter().copied()), &[]).unwrap()
}

fn config_args(args: &[&str]) -> ConfigArgs {
    match parsed(args).command {
        Command::Train(args) | Command::Check(args) => args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn the_configuration_is_positional_or_an_option() {
    assert_eq!(config_args(&["train", "a.toml"]).file, Some("a.toml".into()));
    assert_eq!(config_args(&["check", "-c", "a.toml"]).config, Some("a.toml".into()));
    assert_eq!(config_args(&["train", "--config", "a.toml"]).config, Some("a.toml".into()));
    assert!(parse(["mlx-train", "train", "a.toml", "-c", "b.toml"], &[]).is_err());
}

#[test]
fn every_flag_sets_a_key_of_its_own() {
    let command = Overrides::augment_args(clap::Command::new("x"));
    let flags: Vec<_> = command.get_arguments().filter(|arg| arg.get_id() != "set").collect();
    let mut reached = BTreeSet::new();
    for flag in &flags {
        let name = format!("--{}", flag.get_long().unwrap());
        let mut args = vec!["train", &name];
        if flag.get_action().takes_values() {
            args.push("7");
        }
        let values = config_args(&args).overrides.flag_values();
        assert_eq!(values.len(), 1, "{name}");
        assert_eq!(values[0].flag, name);
        assert!(keys().any(|key| key.path == values[0].key), "{name}");
        let help = flag.get_help().unwrap().to_string();
        assert!(help.contains(&format!("[{}]", values[0].key)), "{name} does not name its key: {help}");
        reached.insert(values[0].key);
    }
    assert_eq!((reached.len(), flags.len()), (11, 11));
}

#[test]
fn flags_go_before_sets_and_sets_before_the_environment() {
    let args = ["train", "--model", "m", "--data", "d", "--iters", "3", "--num-layers", "-1", "--lr", "2e-4"];
    let mut args = config_args(&args);
    args.overrides.set = vec!["train.iters=2".into(), "lora.rank=2".into()];
    let env = [("TRAINER_TRAIN_ITERS", "1"), ("TRAINER_LORA_RANK", "1"), ("TRAINER_TRAIN_SEED", "1")];
    let env = env.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let Resolved { config, origins } = args.load_with(env.to_vec()).unwrap();
    assert_eq!((config.train.iters, config.lora.rank, config.train.seed), (3, 2, 1));
    assert_eq!((config.lora.num_layers, config.optimizer.learning_rate), (-1, 2e-4));
    assert_eq!(origins.of("model.path").to_string(), "--model");
}

#[test]
fn usage_errors_have_exit_status_two() {
    let usage = |args: &[&str]| parse(args.iter().copied(), &[]).unwrap_err();
    assert_eq!(usage(&["mlx-train", "trian"]).exit_code(), 2);
    assert_eq!(usage(&["mlx-train", "train", "--itres", "3"]).exit_code(), 2);
    assert!(usage(&["mlx-train", "train", "--itres", "3"]).to_string().contains("--iters"));
    assert_eq!(usage(&["mlx-train", "train", "--overwrite", "--resume"]).kind(), ErrorKind::ArgumentConflict);
    assert_eq!(usage(&["mlx-train", "generate", "-p", "hi"]).kind(), ErrorKind::MissingRequiredArgument);
}

#[test]
fn the_long_version_has_the_lines_it_is_given() {
    let lines = ["MLX 1.2.3 (cpu)".to_owned(), "BLAS: ours".to_owned()];
    let version = parse(["mlx-train", "--version"], &lines).unwrap_err();
    assert_eq!((version.kind(), version.exit_code()), (ErrorKind::DisplayVersion, 0));
    let own = env!("CARGO_PKG_VERSION");
    assert_eq!(version.to_string(), format!("mlx-train {own}\nMLX 1.2.3 (cpu)\nBLAS: ours\n"));
    assert_eq!(parse(["mlx-train", "-V"], &lines).unwrap_err().to_string(), format!("mlx-train {own}\n"));
}

#[test]
fn help_is_in_groups() {
    let help = parse(["mlx-train", "train", "--help"], &[]).unwrap_err().to_string();
    for heading in ["Model:", "Data:", "LoRA:", "Training:", "Output:", "Logging:"] {
        assert!(help.contains(heading), "{heading} is missing in {help}");
    }
}

#[test]
fn generate_takes_a_run_or_a_model() {
    let Command::Generate(args) = parsed(&["generate", "runs/a", "-p", "hi", "-m", "9"]).command else { panic!() };
    assert_eq!((args.run, args.prompt, args.max_tokens, args.temp), (Some("runs/a".into()), "hi".into(), 9, 0.0));
    let Command::Generate(args) = parsed(&["generate", "--model", "m", "-p", "hi"]).command else { panic!() };
    assert_eq!((args.run, args.model), (None, Some("m".into())));
}
