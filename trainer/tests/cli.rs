//! The command line: help, versions, precedence, origins, `check` and `init`.

use std::process::Stdio;

use crate::fixture::{Outcome, Workshop};

#[test]
fn the_version_names_mlx_and_the_blas() {
    let text = Workshop::new().run(&["--version"]).succeeded().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("mlx-train {}", env!("CARGO_PKG_VERSION")));
    let version = mlx_rs_core::runtime::MLX_VERSION;
    assert!(lines[1].starts_with(&format!("mlx {version} (built for {version}), mlx-c ")), "{text}");
    assert!(lines[2].starts_with("backend "), "{text}");
    assert!(lines[3].starts_with("libraries "), "{text}");
    assert!(lines[4].starts_with("blas ") && lines[4].len() > "blas ".len(), "{text}");
}

#[test]
fn help_lists_the_commands_and_their_flags() {
    let shop = Workshop::new();
    let text = shop.run(&["--help"]).succeeded().stdout;
    for command in ["train", "generate", "check", "inspect", "init"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("  {command} "))), "{command}:\n{text}");
    }
    let text = shop.run(&["train", "--help"]).succeeded().stdout;
    for flag in ["--set", "--model", "--data", "--iters", "--learning-rate", "--resume", "--overwrite"] {
        assert!(text.contains(flag), "{flag}:\n{text}");
    }
}

#[test]
fn mistakes_in_the_command_line_exit_with_2() {
    let shop = Workshop::new();
    let calls: [&[&str]; 6] = [
        &[],
        &["trian"],
        &["train", "--itres", "3"],
        &["generate", "-p", "hi"],
        &["train", "run.toml", "--resume", "--overwrite"],
        &["generate", "out", "-p", "hi", "--temp", "warm"],
    ];
    for args in calls {
        let outcome = shop.run(args);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{args:?}: {}", outcome.stderr);
        assert!(!outcome.stderr.is_empty());
    }
    assert!(shop.run(&["trian"]).stderr.contains("'train'"), "the nearest command is named");
}

#[test]
fn later_layers_go_before_earlier_ones_and_check_tells_which() {
    let shop = Workshop::new();
    let check = |env: bool, args: &[&str]| -> String {
        let mut program = shop.program();
        if env {
            program.env("TRAINER_TRAIN_ITERS", "5");
        }
        let text = Outcome::of(program.args(["check", "run.toml"]).args(args).output().unwrap()).succeeded().stdout;
        let line = text.lines().find(|line| line.starts_with("train.iters = ")).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(check(false, &[]), "train.iters = 6 # file run.toml:11");
    assert_eq!(check(true, &[]), "train.iters = 5 # env TRAINER_TRAIN_ITERS");
    assert_eq!(check(true, &["--set", "train.iters=4"]), "train.iters = 4 # --set");
    assert_eq!(check(true, &["--iters", "3", "--set", "train.iters=4"]), "train.iters = 3 # --iters");
    let mut program = shop.program();
    let program = program.env("TRAINER_TRAIN_ITERS", "5").args(["train", "run.toml", "--set", "train.iters=2"]);
    Outcome::of(program.output().unwrap()).succeeded();
    assert_eq!(shop.metrics().len(), 2);
}

#[test]
fn check_prints_every_key_and_starts_nothing() {
    let shop = Workshop::new();
    let text = shop.run(&["check", "run.toml", "--model", "no/such/model"]).succeeded().stdout;
    let wanted = ["model.path = \"no/such/model\"", "lora.rank = 8", "output.dir = \"out\"", "report.every = 1"];
    let origins = ["--model", "default", "file run.toml:21", "file run.toml:18"];
    for (value, origin) in wanted.iter().zip(origins) {
        let line = text.lines().find(|line| line.starts_with(&format!("{value} "))).unwrap_or_else(|| panic!("{text}"));
        assert!(line.ends_with(&format!("  # {origin}")), "{line}");
    }
    assert!(!shop.path("out").exists());
}

#[test]
fn a_new_configuration_is_accepted_once_model_and_data_are_set() {
    let shop = Workshop::new();
    let outcome = shop.run(&["init", "new.toml"]).succeeded();
    assert_eq!(outcome.stdout, "wrote new.toml; set model.path and data.train in it, then: mlx-train train new.toml\n");
    let text = shop.text("new.toml");
    let mine = text
        .replace("path = \"path/to/model\"", "path = \"model\"")
        .replace("train = \"data/train.jsonl\"", "train = \"train.jsonl\"");
    assert_ne!(text, mine);
    shop.write("new.toml", &mine);
    let checked = shop.run(&["check", "new.toml"]).succeeded().stdout;
    let set: Vec<&str> = checked.lines().filter(|line| !line.ends_with("# default")).collect();
    assert_eq!(set.len(), 2, "all else is commented out: {set:?}");
    shop.run(&["train", "new.toml", "--iters", "1"]).succeeded();
    assert!(shop.path("adapters/adapters.safetensors").is_file());
    shop.run(&["init", "new.toml"]).failed(
        2,
        "error: new.toml: found a file of this name, wanted a new one\n\n\
         hint: name another file: mlx-train init FILE",
    );
    assert_eq!(shop.text("new.toml"), mine);
    assert_eq!(shop.run(&["init", "-"]).succeeded().stdout, text);
}

#[test]
fn the_saved_configuration_gives_the_same_run_from_anywhere() {
    let shop = Workshop::new();
    shop.train(&["--set", "lora.alpha=16", "--seed", "3"]).succeeded();
    let saved = shop.path("out/config.toml");
    let elsewhere = tempfile::tempdir().unwrap();
    let mut program = shop.program();
    program.current_dir(elsewhere.path()).args(["train", saved.to_str().unwrap(), "--adapter-path", "again"]);
    Outcome::of(program.output().unwrap()).succeeded();
    let again = std::fs::read(elsewhere.path().join("again/adapters.safetensors")).unwrap();
    assert!(again == shop.read("out/adapters.safetensors"));
}

#[test]
fn a_closed_standard_output_does_not_end_a_training() {
    let shop = Workshop::new();
    let mut program = shop.program();
    let mut child = program.args(["train", "run.toml"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(shop.metrics().len(), 6);
}
