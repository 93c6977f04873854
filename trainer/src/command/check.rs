//! `check`: every value of a configuration, and where it was set.

use std::io::Write;

use super::print;
use crate::config::Resolved;
use crate::error::Result;

/// Prints one line per key: `key = value  # origin`. Loading the configuration has checked it.
///
/// # Errors
/// When `out` cannot be written.
pub fn run(resolved: &Resolved, out: &mut dyn Write) -> Result<()> {
    print(out, &resolved.describe())
}

#[cfg(test)]
mod tests {
    use crate::cli::{Command, parse};

    #[test]
    fn every_key_with_a_value_is_printed_once() {
        let args = ["mlx-train", "check", "--model", "m", "--data", "d", "--set", "lora.alpha=8"];
        let Command::Check(args) = parse(args, &[]).unwrap().command else { panic!() };
        let resolved = args.load_with(vec![]).unwrap();
        let mut out = Vec::new();
        super::run(&resolved, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let printed: Vec<&str> = text.lines().map(|line| line.split(" = ").next().unwrap()).collect();
        let expected: Vec<&str> = crate::config::schema::keys()
            .map(|key| key.path)
            .filter(|key| resolved.config.get(key).is_some())
            .collect();
        assert_eq!(printed, expected);
        assert!(
            text.lines().any(|line| line.starts_with("lora.alpha = 8.0 ") && line.ends_with("  # --set")),
            "{text}"
        );
    }
}
