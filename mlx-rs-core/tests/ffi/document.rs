//! `docs/FFI.md` names a test per rule; a renamed or removed test must not leave a rule without one.

use std::fs;
use std::path::Path;

/// All Rust source below `folder`, in one text.
fn source(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).expect("a folder of this crate") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            text += &source(&path);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text += &fs::read_to_string(&path).expect("UTF-8 source");
        }
    }
    text
}

#[test]
fn every_rule_has_a_test_and_every_named_test_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("../docs/FFI.md")).expect("the document");
    let code = source(&root.join("src")) + &source(&root.join("tests"));
    let (mut rules, mut named) = (0, 0);
    for section in document.split("\n## ").skip(1) {
        rules += 1;
        let title = section.lines().next().unwrap_or_default();
        let listed = section.lines().filter(|line| line.starts_with("- "));
        let tests: Vec<&str> = listed
            .flat_map(|line| line.split('`').skip(1).step_by(2))
            .filter_map(|path| path.trim_start_matches('…').rsplit("::").next())
            // Test names are sentences; types and files in the same lines are not.
            .filter(|name| name.matches('_').count() >= 3)
            .collect();
        for test in &tests {
            assert!(code.contains(&format!("fn {test}()")), "rule {title:?} names the test {test}, which is gone");
        }
        // The rule on `unsafe` is kept by lints.
        assert!(!tests.is_empty() || title.contains("`unsafe`"), "rule {title:?} has no test");
        named += tests.len();
    }
    assert!(rules >= 13 && named >= 60, "{rules} rules, {named} tests: is the document read right?");
}
