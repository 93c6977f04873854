//! Texts made from the schema: `docs/CONFIG.md` and the commented file that `init` writes.

use std::fmt::Write as _;

use super::print::inline;
use super::schema::{Config, KeyInfo, TABLES};

const INTRODUCTION: &str = "\
# Configuration

Made from `trainer/src/config/schema.rs`; after a change there, `UPDATE_DOCS=1 cargo test -p trainer reference` writes
this file anew, and a test fails until it is in step.

A value comes from the highest of these layers that sets it: default, configuration file, environment variable
(`TRAINER_LORA_RANK` sets `lora.rank`), `--set lora.rank=16`, flag. `mlx-train check FILE` prints every value and where
it was set. An unknown key, an unknown `TRAINER_` variable, and a key that the chosen method does not use are errors.

A relative path in a file is relative to that file's folder; in a variable or on the command line it is relative to the
current folder. On the command line and in variables, a list is TOML (`[\"a\", \"b\"]`) or words between commas, and an
empty text takes an optional key away.

Of two keys that exclude each other, the one from the higher layer stays; both in one layer are an error.
";

/// The text of `docs/CONFIG.md`.
pub fn markdown() -> String {
    let config = Config::default();
    let mut text = INTRODUCTION.to_owned();
    for table in TABLES {
        let _ = write!(text, "\n## `[{}]`\n\n{}\n\n", table.name, prose(table.docs));
        text.push_str("| key | default | value | meaning |\n|---|---|---|---|\n");
        for key in table.keys {
            let default = default_of(&config, key).map_or_else(|| "–".to_owned(), |value| format!("`{value}`"));
            let mut meaning = prose(key.docs);
            if !key.aliases.is_empty() {
                let _ = write!(meaning, " Also: `{}`.", key.aliases.join("`, `"));
            }
            let _ = writeln!(text, "| `{}` | {default} | {} | {meaning} |", key.name, (key.wanted)());
        }
    }
    text
}

/// A configuration to start from: required keys to fill in, all others as comments with their defaults.
pub fn commented_toml() -> String {
    let config = Config::default();
    let mut text = String::from("# Configuration of mlx-train. Lines behind `#` show the defaults.\n");
    for table in TABLES {
        let _ = write!(text, "\n# {}\n[{}]\n", prose(table.docs), table.name);
        for key in table.keys {
            for line in key.docs {
                let _ = writeln!(text, "# {}", line.trim());
            }
            let _ = match (default_of(&config, key), key.example) {
                (Some(value), _) => writeln!(text, "# {} = {value}", key.name),
                (None, Some(example)) if is_required(key) => writeln!(text, "{} = {example}", key.name),
                (None, example) => writeln!(text, "# {} = {}", key.name, example.unwrap_or("\"\"")),
            };
        }
    }
    text
}

fn is_required(key: &KeyInfo) -> bool {
    matches!(key.path, "model.path" | "data.train")
}

/// The default in TOML; required and optional keys, and an empty list with an example, have none to show.
fn default_of(config: &Config, key: &KeyInfo) -> Option<String> {
    let value = config.get(key.path)?;
    let empty = value.as_array().is_some_and(Vec::is_empty) && key.example.is_some();
    (!is_required(key) && !empty).then(|| inline(&value))
}

fn prose(docs: &[&str]) -> String {
    docs.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
