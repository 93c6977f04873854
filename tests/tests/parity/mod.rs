//! Parity with mlx-lm 0.32.2 on MLX 0.32.2; `docs/PARITY.md` has the table.

mod accumulation;
mod adapter;
mod llama;
mod orpo;
mod orpo_formula;
mod orpo_reference;
mod smollm2;

use std::fs;

use workspace_tests::{golden, peer};

#[test]
fn every_golden_folder_has_its_tests() {
    let mut tested: Vec<&str> = [llama::TESTED, orpo::TESTED, &["orpo_formula"]].concat();
    tested.sort_unstable();
    assert_eq!(golden::names(), tested);
}

/// `file::test`, `file::*::test` or `file::*`, in backticks, each in a file beside this one.
#[test]
fn every_test_that_the_document_names_exists() {
    let document = fs::read_to_string(peer::root().join("docs/PARITY.md")).unwrap();
    let names: Vec<&str> = document.split('`').skip(1).step_by(2).filter(|name| name.contains("::")).collect();
    let tests = names.iter().filter(|name| !name.starts_with("parity::"));
    let mut checked = 0;
    for name in tests {
        let (file, rest) = name.split_once("::").unwrap();
        let test = rest.trim_start_matches("*::");
        let source = fs::read_to_string(peer::root().join("tests/tests/parity").join(file).with_extension("rs"))
            .unwrap_or_else(|error| panic!("`{name}`: {error}"));
        assert!(test == "*" || source.contains(&format!("fn {test}(")), "no test `{name}`");
        checked += 1;
    }
    assert!(checked > 15, "{checked} names in docs/PARITY.md");
}
