use std::ffi::OsString;
use std::path::PathBuf;

use super::reference::{commented_toml, markdown};
use super::schema::keys;
use super::value::{Format, MethodName, TrainOn};
use super::*;
use crate::error::TrainError;

const BASE: &str = "[model]\npath = \"m\"\n[data]\ntrain = \"t.jsonl\"\n";

fn file(text: &str) -> Sources {
    let file = ConfigFile { path: PathBuf::from("recipes/x.toml"), text: text.to_owned() };
    Sources { file: Some(file), ..Sources::default() }
}

fn with_base(text: &str) -> Sources {
    file(&format!("{BASE}{text}"))
}

fn env(name: &str, value: &str) -> (OsString, OsString) {
    (OsString::from(name), OsString::from(value))
}

fn failure(sources: &Sources) -> (String, Option<String>) {
    let error = resolve(sources).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    (error.to_string(), error.hint())
}

fn complaint(text: &str) -> String {
    failure(&with_base(text)).0
}

#[test]
fn defaults_are_those_of_the_reference() {
    let config = resolve(&with_base("")).unwrap().config;
    assert_eq!((config.lora.rank, config.lora.effective_scale(), config.lora.num_layers), (8, 20.0, -1));
    assert_eq!((config.train.iters, config.train.batch_size, config.train.seed), (1000, 4, 0));
    assert_eq!((config.optimizer.learning_rate, config.train.max_grad_norm), (1e-5, 1.0));
    assert_eq!((config.method.lambda, config.method.name), (0.1, MethodName::Sft));
    assert_eq!(config.lora.targets.len(), 7);
}

#[test]
fn each_layer_goes_before_the_one_below() {
    let mut sources = with_base("[lora]\nrank = 1\n[train]\niters = 1\nseed = 1\n[report]\nevery = 1\n");
    sources.env = vec![env("TRAINER_LORA_RANK", "2"), env("TRAINER_TRAIN_ITERS", "2"), env("TRAINER_TRAIN_SEED", "2")];
    sources.sets = vec!["train.iters=3".to_owned(), "train.seed = 3".to_owned()];
    sources.flags = vec![FlagValue { flag: "--seed", key: "train.seed", value: "4".to_owned() }];
    let Resolved { config, origins } = resolve(&sources).unwrap();
    assert_eq!((config.report.every, config.lora.rank, config.train.iters, config.train.seed), (1, 2, 3, 4));
    assert_eq!(origins.of("report.every").to_string(), "file recipes/x.toml:11");
    assert_eq!(origins.of("lora.rank").to_string(), "env TRAINER_LORA_RANK");
    assert_eq!(origins.of("train.iters").to_string(), "--set");
    assert_eq!(origins.of("train.seed").to_string(), "--seed");
    assert_eq!(origins.of("eval.every").to_string(), "default");
}

#[test]
fn check_prints_one_line_per_key_with_its_origin() {
    let mut sources = with_base("[lora]\nalpha = 32\n");
    sources.flags = vec![FlagValue { flag: "--iters", key: "train.iters", value: "60".to_owned() }];
    let text = resolve(&sources).unwrap().describe();
    let line = |key: &str| text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap().to_owned();
    assert_eq!(line("model.path"), "model.path = \"recipes/m\"                          # file recipes/x.toml:2");
    assert_eq!(line("lora.alpha"), "lora.alpha = 32.0                                 # file recipes/x.toml:6");
    assert_eq!(line("train.iters"), "train.iters = 60                                  # --iters");
    assert_eq!(line("optimizer.learning_rate"), "optimizer.learning_rate = 1e-5                    # default");
    assert_eq!(line("optimizer.betas"), "optimizer.betas = [0.9, 0.999]                    # default");
}

#[test]
fn an_unknown_key_names_the_place_the_keys_and_the_nearest() {
    let (text, hint) = failure(&with_base("[lora]\nrnak = 4\n"));
    let known = "rank, scale, alpha, num_layers, targets";
    assert_eq!(text, format!("recipes/x.toml:6:1: lora.rnak: found an unknown key, wanted one of {known}"));
    assert_eq!(hint.as_deref(), Some("did you mean `rank`?"));
}

#[test]
fn a_key_of_another_table_is_found_there() {
    let (_, hint) = failure(&with_base("[train]\nlearning_rate = 1e-4\n"));
    assert_eq!(hint.as_deref(), Some("did you mean `learning_rate` in table [optimizer]?"));
    let (text, hint) = failure(&file("iters = 3\n"));
    assert!(
        text.starts_with("recipes/x.toml:1:1: iters: found an unknown table, wanted one of model, data,"),
        "{text}"
    );
    assert_eq!(hint.as_deref(), Some("did you mean `iters` in table [train]?"));
}

#[test]
fn an_unknown_table_and_a_table_that_is_none_are_named() {
    let (text, hint) = failure(&with_base("[lroa]\nrank = 4\n"));
    assert!(text.starts_with("recipes/x.toml:5:2: lroa: found an unknown table"), "{text}");
    assert_eq!(hint.as_deref(), Some("did you mean `lora`?"));
    let (text, _) = failure(&file("lora = 8\n"));
    assert_eq!(text, "recipes/x.toml:1:8: lora: found an integer, wanted a table, opened by [lora]");
}

#[test]
fn broken_toml_names_line_and_column() {
    let text = complaint("[lora]\nrank = \n");
    assert!(text.starts_with("recipes/x.toml:6:"), "{text}");
    assert!(text.ends_with("wanted TOML"), "{text}");
}

#[test]
fn a_value_of_the_wrong_type_names_what_was_wanted() {
    let start = "recipes/x.toml:6";
    assert_eq!(
        complaint("[lora]\nrank = \"8\"\n"),
        format!("{start}:8: lora.rank: found \"8\", wanted an integer of at least 0")
    );
    assert_eq!(
        complaint("[method]\nname = \"dpo\"\n"),
        format!("{start}:8: method.name: found \"dpo\", wanted \"sft\" or \"orpo\"")
    );
    assert_eq!(
        complaint("[optimizer]\nbetas = [0.9]\n"),
        format!("{start}:9: optimizer.betas: found [0.9], wanted a list of two numbers")
    );
    assert_eq!(
        complaint("[optimizer]\nlearning_rate = nan\n"),
        format!("{start}:17: optimizer.learning_rate: found nan, wanted a finite number")
    );
}

#[test]
fn a_value_out_of_range_names_its_line() {
    assert_eq!(complaint("[lora]\nrank = 0\n"), "recipes/x.toml:6:8: lora.rank: found 0, wanted at least 1");
    assert_eq!(
        complaint("[train]\ngrad_accumulation_steps = 9000000000000000000\n"),
        "recipes/x.toml:6:27: train.grad_accumulation_steps: found 9000000000000000000, wanted from 1 to 1000000"
    );
    let mut sources = with_base("");
    sources.sets = vec!["lora.num_layers=0".to_owned()];
    let wanted = "--set: lora.num_layers: found 0, wanted at least 1, or -1 for all layers";
    assert_eq!(failure(&sources).0, wanted);
    assert_eq!(
        complaint("[optimizer]\nbetas = [0.9, 1.0]\n"),
        "recipes/x.toml:6:9: optimizer.betas: found [0.9, 1.0], wanted each at least 0 and below 1"
    );
    assert_eq!(
        complaint("[lora]\ntargets = [\"q_proj\", \"q_proj\"]\n"),
        "recipes/x.toml:6:11: lora.targets: found \"q_proj\" twice, wanted each name once"
    );
}

#[test]
fn a_missing_required_key_says_how_to_set_it() {
    let (text, hint) = failure(&file("[data]\ntrain = \"t\"\n"));
    assert_eq!(text, "model.path: found no value, wanted one: this key is required");
    assert!(hint.unwrap().contains("--model"));
    assert!(failure(&file("[model]\npath = \"m\"\n")).0.starts_with("data.train: found no value"));
}

#[test]
fn aliases_set_the_key_and_exclude_it() {
    let text = "[lora]\nr = 4\nlora_alpha = 8\ntarget_modules = [\"q_proj\"]\n[optimizer]\nlr = 1\n";
    let config = resolve(&with_base(text)).unwrap().config;
    assert_eq!((config.lora.rank, config.lora.effective_scale(), config.optimizer.learning_rate), (4, 2.0, 1.0));
    let text = complaint("[lora]\nr = 4\nrank = 4\n");
    assert!(
        text.starts_with("recipes/x.toml:7:8: lora.rank: found a second value (the first is at recipes/x.toml:6:5)")
    );
}

#[test]
fn scale_and_alpha_together_are_an_error() {
    assert_eq!(
        complaint("[lora]\nscale = 2.0\nalpha = 16.0\n"),
        "recipes/x.toml:7:9: lora.alpha: found a value beside lora.scale (file recipes/x.toml:6), \
         wanted lora.scale or lora.alpha, not both"
    );
}

#[test]
fn of_two_exclusive_keys_the_higher_layer_stays() {
    let mut sources = with_base("[train]\nepochs = 3\n[lora]\nscale = 2.0\n");
    sources.flags = vec![FlagValue { flag: "--iters", key: "train.iters", value: "5".to_owned() }];
    sources.sets = vec!["lora.alpha=4".to_owned()];
    let config = resolve(&sources).unwrap().config;
    assert_eq!((config.train.iters, config.train.epochs), (5, None));
    assert_eq!(config.lora.effective_scale(), 0.5);
}

#[test]
fn options_that_the_method_does_not_use_are_refused() {
    assert_eq!(
        complaint("[method]\nname = \"sft\"\nlambda = 0.2\n"),
        "recipes/x.toml:7:10: method.lambda: found a value that has no effect, \
         wanted method.name = \"orpo\": sft has no odds-ratio term"
    );
    assert!(complaint("[method]\nname = \"orpo\"\n[data2]\n").contains("unknown table"));
    let orpo = "[model]\npath=\"m\"\n[data]\ntrain=\"t\"\ntrain_on=\"last\"\n[method]\nname=\"orpo\"\n";
    assert!(failure(&file(orpo)).0.starts_with("recipes/x.toml:5:10: data.train_on: found a value that has no effect"));
    assert!(complaint("[optimizer]\nname = \"adam\"\nweight_decay = 0.1\n").contains("adam has no decay"));
    assert!(complaint("[schedule]\nmin_lr_ratio = 0.1\n").contains("a constant rate has no minimum"));
    let format = "[model]\npath=\"m\"\n[data]\ntrain=\"t\"\nformat=\"preference\"\n";
    assert_eq!(
        failure(&file(format)).0,
        "recipes/x.toml:5:8: data.format: found \"preference\" with method.name = \"sft\", \
         wanted a format for sft, or \"auto\""
    );
}

#[test]
fn overwrite_and_resume_exclude_each_other() {
    assert!(complaint("[output]\noverwrite = true\nresume = true\n").contains("one of the two"));
}

#[test]
fn mask_prompt_is_train_on_in_mlx_lm_spelling() {
    let text = "[model]\npath=\"m\"\n[data]\ntrain=\"t\"\nmask_prompt=false\n";
    assert_eq!(resolve(&file(text)).unwrap().config.data.train_on, TrainOn::All);
    let text = text.replace("false", "true");
    assert_eq!(resolve(&file(&text)).unwrap().config.data.train_on, TrainOn::AllAssistant);
}

#[test]
fn an_unknown_variable_is_an_error_with_a_suggestion() {
    let mut sources = with_base("");
    sources.env = vec![env("TRAINER_LORA_RNAK", "2")];
    let (text, hint) = failure(&sources);
    assert!(text.starts_with("env TRAINER_LORA_RNAK: found an unknown variable"), "{text}");
    assert_eq!(hint.as_deref(), Some("did you mean `TRAINER_LORA_RANK`?"));
    sources.env = vec![env("TRAINER_LOG", "debug"), env("HOME", "x")];
    assert!(resolve(&sources).is_ok());
    sources.env = vec![env("TRAINER_LORA_RANK", "many")];
    assert_eq!(
        failure(&sources).0,
        "env TRAINER_LORA_RANK: lora.rank: found \"many\", wanted an integer of at least 0"
    );
}

#[test]
fn a_malformed_set_says_how_it_looks() {
    let set = |text: &str| {
        let mut sources = with_base("");
        sources.sets = vec![text.to_owned()];
        failure(&sources)
    };
    assert_eq!(set("lora.rank").0, "--set: found \"lora.rank\", wanted table.key=value");
    assert_eq!(set("lora.rnak=1").1.as_deref(), Some("did you mean `rank`?"));
    assert_eq!(set("lroa.rank=1").1.as_deref(), Some("did you mean `lora`?"));
}

#[test]
fn texts_of_the_command_line_become_every_type() {
    let mut sources = with_base("[data2]\n".replace("[data2]\n", "").as_str());
    let sets = [
        "model.path=123",
        "data.valid=",
        "data.format=messages",
        "lora.targets=q_proj, v_proj",
        "summary.prompts=[\"a, b\"]",
        "optimizer.betas=[0.8, 0.9]",
        "optimizer.learning_rate=2e-4",
        "output.overwrite=true",
        "train.seed=0",
    ];
    sources.sets = sets.map(str::to_owned).to_vec();
    let config = resolve(&sources).unwrap().config;
    assert_eq!(config.model.path.as_str(), "123");
    assert_eq!((config.data.valid, config.data.format), (None, Format::Messages));
    assert_eq!(
        (config.lora.targets, config.summary.prompts),
        (vec!["q_proj".into(), "v_proj".into()], vec!["a, b".into()])
    );
    assert_eq!((config.optimizer.betas, config.optimizer.learning_rate), ((0.8, 0.9), 2e-4));
    assert!(config.output.overwrite);
}

#[test]
fn a_text_cannot_define_a_second_key() {
    let mut sources = with_base("");
    sources.sets = vec!["lora.rank=1\nother = 2".to_owned()];
    assert!(failure(&sources).0.contains("lora.rank"));
}

#[test]
fn relative_paths_of_a_file_are_relative_to_it_and_others_are_not() {
    let text = "[model]\npath = \"pip:smollm\"\n[data]\ntrain = \"d/t.jsonl\"\nvalid = \"/abs/v.jsonl\"\n";
    let mut sources = file(text);
    sources.flags = vec![FlagValue { flag: "--adapter-path", key: "output.dir", value: "out".to_owned() }];
    let config = resolve(&sources).unwrap().config;
    assert_eq!(config.model.path.as_str(), "pip:smollm");
    assert_eq!(config.data.train, PathBuf::from("recipes/d/t.jsonl"));
    assert_eq!(config.data.valid, Some(PathBuf::from("/abs/v.jsonl")));
    assert_eq!(config.output.dir, PathBuf::from("out"));
}

#[test]
fn the_saved_configuration_reads_back_to_the_same_run() {
    let texts = [
        "",
        "[method]\nname = \"orpo\"\n[lora]\nalpha = 16\n[schedule]\nname = \"cosine\"\n[train]\nepochs = 2\n",
        "[optimizer]\nname = \"adam\"\n[summary]\nprompts = [\"a\\n\\\"b\\\"\"]\n[output]\noverwrite = true\n",
    ];
    for text in texts {
        let first = resolve(&with_base(text)).unwrap();
        let saved = first.resolved_toml();
        let file = ConfigFile { path: PathBuf::from("elsewhere/config.toml"), text: saved.clone() };
        let second = resolve(&Sources { file: Some(file), ..Sources::default() }).unwrap();
        let mut expected = first.config.clone();
        expected.output.overwrite = false;
        expected.output.dir = std::path::absolute(&expected.output.dir).unwrap();
        expected.data.train = std::path::absolute(&expected.data.train).unwrap();
        expected.model.path.0 = std::path::absolute(expected.model.path.as_str()).unwrap().display().to_string();
        assert_eq!(second.config, expected, "{saved}");
    }
}

#[test]
fn a_missing_configuration_file_points_to_init() {
    let error = ConfigFile::read(std::path::Path::new("no/such.toml")).unwrap_err();
    assert!(matches!(error, TrainError::Io { .. }));
    assert_eq!((error.to_string().as_str(), error.exit_code()), ("cannot read no/such.toml", 2));
    assert!(error.hint().unwrap().contains("mlx-train init"));
}

#[test]
fn a_configuration_that_is_not_utf8_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.toml");
    std::fs::write(&path, b"[lora]\n\xff").unwrap();
    assert!(ConfigFile::read(&path).unwrap_err().to_string().contains("not UTF-8 at offset 7"));
}

#[test]
fn the_commented_configuration_is_valid_as_it_is_and_line_by_line() {
    let text = commented_toml();
    assert!(resolve(&file(&text)).is_ok(), "{text}");
    let mut table = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']').to_owned();
        }
        let Some((name, value)) = line.strip_prefix("# ").and_then(|line| line.split_once(" = ")) else { continue };
        let Some(key) = keys().find(|key| key.table == table && key.name == name) else { continue };
        let value = toml::from_str::<toml::Table>(&format!("v = {value}")).unwrap().remove("v").unwrap();
        Config::default().set_value(key, &value).unwrap();
    }
    let lines = |name: &str| text.lines().filter(|line| line.starts_with(&format!("# {name} = "))).count();
    assert_eq!((lines("rank"), lines("alpha"), lines("every")), (1, 1, 3));
}

#[test]
fn every_key_and_alias_is_there_once_in_its_table() {
    for table in schema::TABLES {
        let names: Vec<_> = table.keys.iter().flat_map(|key| key.aliases.iter().copied().chain([key.name])).collect();
        let unique: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{}", table.name);
    }
}

#[test]
fn the_reference_in_docs_is_in_step() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/CONFIG.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, markdown()).unwrap();
    }
    let docs = std::fs::read_to_string(path).unwrap_or_default();
    assert!(docs == markdown(), "docs/CONFIG.md is out of step: run UPDATE_DOCS=1 cargo test -p trainer reference");
}

#[test]
fn every_recipe_is_a_valid_configuration() {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../recipes"));
    let recipes: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    assert!(!recipes.is_empty());
    for path in recipes {
        let file = ConfigFile::read(&path).unwrap();
        let config = resolve(&Sources { file: Some(file), ..Sources::default() }).unwrap().config;
        assert!(config.data.train.exists(), "{}: {}", path.display(), config.data.train.display());
    }
}
