use std::fs;

use tempfile::TempDir;

use super::*;
use crate::data::encoder::testing::LetterEncoder;

fn config(folder: &TempDir) -> Config {
    let mut config = Config::default();
    config.data.train = folder.path().join("train.jsonl");
    config
}

fn write(folder: &TempDir, name: &str, lines: &[&str]) {
    fs::write(folder.path().join(name), lines.join("\n")).unwrap();
}

#[test]
fn a_folder_gives_training_and_validation_rows() {
    let folder = TempDir::new().unwrap();
    write(&folder, "train.jsonl", &[r#"{"text": "ab"}"#, r#"{"text": "cde"}"#]);
    write(&folder, "valid.jsonl", &[r#"{"text": "f"}"#]);
    let mut config = config(&folder);
    config.data.train = folder.path().to_owned();
    let dataset = Dataset::load(&config, &LetterEncoder::base()).unwrap();
    assert_eq!(dataset.train.lengths(), [4, 5]);
    assert_eq!(dataset.valid.unwrap().lengths(), [3]);
    assert_eq!(dataset.reports.len(), 2);
}

#[test]
fn validation_is_optional() {
    let folder = TempDir::new().unwrap();
    write(&folder, "train.jsonl", &[r#"{"text": "ab"}"#]);
    let dataset = Dataset::load(&config(&folder), &LetterEncoder::base()).unwrap();
    assert_eq!((dataset.train.len(), dataset.valid), (1, None));
}

#[test]
fn a_fraction_of_the_rows_is_held_out_by_the_seed() {
    let folder = TempDir::new().unwrap();
    let lines: Vec<String> = (0..20).map(|n| format!(r#"{{"text": "{}"}}"#, "x".repeat(n + 1))).collect();
    write(&folder, "train.jsonl", &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let mut config = config(&folder);
    config.data.valid_fraction = 0.25;
    let split = |seed: u64, config: &mut Config| {
        config.train.seed = seed;
        let dataset = Dataset::load(config, &LetterEncoder::base()).unwrap();
        (dataset.train.lengths(), dataset.valid.unwrap().lengths())
    };
    let (train, valid) = split(0, &mut config);
    assert_eq!((train.len(), valid.len()), (15, 5));
    let mut all = [train.clone(), valid.clone()].concat();
    all.sort_unstable();
    assert_eq!(all, (3..23).collect::<Vec<_>>());
    assert!(train.is_sorted() && valid.is_sorted());
    assert_eq!(split(0, &mut config), (train, valid.clone()));
    assert_ne!(split(1, &mut config).1, valid);
}

#[test]
fn one_row_cannot_be_split() {
    let folder = TempDir::new().unwrap();
    write(&folder, "train.jsonl", &[r#"{"text": "ab"}"#]);
    let mut config = config(&folder);
    config.data.valid_fraction = 0.5;
    let error = Dataset::load(&config, &LetterEncoder::base()).unwrap_err();
    assert!(error.to_string().ends_with("found one usable row, wanted two or more, to keep some for validation"));
}

#[test]
fn the_report_counts_drops_and_truncation_with_their_first_row() {
    let folder = TempDir::new().unwrap();
    let rows = [
        r#"{"prompt": "ab", "completion": "cd"}"#,
        r#"{"prompt": "abcdefgh", "completion": "cd"}"#,
        "",
        r#"{"prompt": "ab", "completion": "cdefgh"}"#,
        r#"{"prompt": "ab", "completion": " "}"#,
        r#"{"prompt": "abcdefghi", "completion": "cd"}"#,
    ];
    write(&folder, "train.jsonl", &rows);
    let mut config = config(&folder);
    config.data.max_seq_length = 6;
    let dataset = Dataset::load(&config, &LetterEncoder::base()).unwrap();
    let path = folder.path().join("train.jsonl");
    let path = path.display();
    assert_eq!(
        dataset.reports[0].summary(),
        format!(
            "{path}: 2 of 5 rows, 12 tokens, 6 trained, longest 6\n  \
             dropped 2 rows: the response lies beyond max_seq_length (first at {path}:2)\n  \
             dropped 1 row: empty response (first at {path}:5)\n  \
             1 row longer than 6 tokens, truncated (first at {path}:4)\n  \
             1 row of which a response lost its end at 6 tokens (first at {path}:4)"
        )
    );
}

#[test]
fn when_no_row_is_left_the_error_names_the_reasons() {
    let folder = TempDir::new().unwrap();
    let rows = [
        r#"{"prompt": "a", "chosen": "b", "rejected": "b"}"#,
        r#"{"prompt": "a", "chosen": "c", "rejected": "c"}"#,
        r#"{"prompt": "a", "chosen": "", "rejected": "b"}"#,
    ];
    write(&folder, "train.jsonl", &rows);
    let mut config = config(&folder);
    config.method.name = MethodName::Orpo;
    let error = Dataset::load(&config, &LetterEncoder::base()).unwrap_err();
    assert!(
        error.to_string().ends_with(
            "train.jsonl: found no usable row of 3 (2 dropped: chosen and rejected are the same; \
             1 dropped: empty response), wanted at least one row with trainable tokens"
        ),
        "{error}"
    );
    assert_eq!((error.hint().as_deref(), error.exit_code()), (Some("chosen and rejected must differ"), 1));
}

#[test]
fn prompts_longer_than_the_limit_leave_nothing_and_say_what_to_raise() {
    let folder = TempDir::new().unwrap();
    write(&folder, "train.jsonl", &[r#"{"prompt": "abcdefgh", "completion": "cd"}"#]);
    let mut config = config(&folder);
    config.data.max_seq_length = 4;
    let error = Dataset::load(&config, &LetterEncoder::base()).unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("raise data.max_seq_length"));
}
