//! `inspect`: what the data becomes before any training.

use std::io::Write;

use super::print;
use crate::config::Resolved;
use crate::data::inspect::{Marks, describe};
use crate::data::{Dataset, TextEncoder};
use crate::error::Result;

/// Loads the data of `resolved` and prints counts, lengths, truncation and `samples` rows with their loss mask.
///
/// # Errors
/// What loading the data rejects; when `out` cannot be written.
pub fn run(
    resolved: &Resolved,
    encoder: &dyn TextEncoder,
    samples: usize,
    marks: Marks,
    out: &mut dyn Write,
) -> Result<()> {
    let dataset = Dataset::load(&resolved.config, encoder)?;
    print(out, &describe(&dataset, encoder, samples, marks)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Command, parse};
    use crate::data::encoder::testing::LetterEncoder;

    #[test]
    fn a_preference_set_is_shown_with_both_sides() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.jsonl");
        std::fs::write(&path, "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}\n").unwrap();
        let data = path.to_str().unwrap();
        let args = ["mlx-train", "inspect", "--model", "m", "--data", data, "--set", "method.name=orpo"];
        let Command::Inspect(args) = parse(args, &[]).unwrap().command else { panic!() };
        let resolved = args.config.load_with(vec![]).unwrap();
        let mut out = Vec::new();
        run(&resolved, &LetterEncoder::chat(), args.samples, Marks::Brackets, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with(&format!("{data}: 1 of 1 row, 46 tokens, 6 trained, longest 23\n")), "{text}");
        assert!(text.contains("train: 1 rows\n  tokens per row: min 23,"), "{text}");
        assert!(text.ends_with("<start>user:a<end>\n<start>assistant:⟦c<end>\n⟧\n"), "{text}");
    }
}
