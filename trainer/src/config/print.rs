//! The resolved configuration as text: with origins for `check`, as TOML to save with a run.

use std::fmt::Write as _;
use std::path::Path;

use toml::Value;

use super::layers::{Resolved, has_scheme};
use super::schema::{KeyInfo, TABLES, keys};

/// Origins stand in one column where the values leave room for it.
const ORIGIN_COLUMN: usize = 48;

impl Resolved {
    /// One line per key: `key = value  # origin`. Absent keys are left out.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for key in keys() {
            if let Some(value) = self.config.get(key.path) {
                let line = format!("{} = {}", key.path, inline(&value));
                let _ = writeln!(text, "{line:<ORIGIN_COLUMN$}  # {}", self.origins.of(key.path));
            }
        }
        text
    }

    /// The configuration as a TOML file that gives the same run from any folder: paths are absolute, and keys that
    /// have no effect are left out.
    pub fn resolved_toml(&self) -> String {
        let mut text = String::new();
        for table in TABLES {
            let _ = writeln!(text, "{}[{}]", if text.is_empty() { "" } else { "\n" }, table.name);
            for key in table.keys.iter().filter(|key| self.matters(key)) {
                if let Some(value) = self.config.get(key.path) {
                    let value = if key.is_path { absolute(value) } else { value };
                    let _ = writeln!(text, "{} = {}", key.name, inline(&value));
                }
            }
        }
        text
    }

    /// Whether the key may stand in a saved file: a default that excludes a set key, or that the method does not use,
    /// would be refused when the file is read.
    fn matters(&self, key: &KeyInfo) -> bool {
        let config = &self.config;
        let set = self.origins.is_set(key.path);
        match key.path {
            "lora.scale" => config.lora.alpha.is_none(),
            "train.iters" => config.train.epochs.is_none(),
            "data.valid_fraction" => config.data.valid.is_none(),
            "data.train_on"
            | "method.lambda"
            | "method.sft_scope"
            | "optimizer.weight_decay"
            | "schedule.min_lr_ratio" => set || self.is_used(key.path),
            // What was asked for once must not be repeated by whoever reads the saved file.
            "output.overwrite" | "output.resume" => false,
            _ => true,
        }
    }

    fn is_used(&self, key: &str) -> bool {
        use super::value::{Format, MethodName, OptimizerName, ScheduleName};
        let config = &self.config;
        match key {
            "data.train_on" => {
                config.method.name == MethodName::Sft
                    && config.data.mask_prompt.is_none()
                    && config.data.format != Format::Text
            }
            "method.lambda" | "method.sft_scope" => config.method.name == MethodName::Orpo,
            "optimizer.weight_decay" => config.optimizer.name == OptimizerName::Adamw,
            _ => config.schedule.name != ScheduleName::Constant,
        }
    }
}

fn absolute(value: Value) -> Value {
    match value.as_str() {
        Some(text) if !has_scheme(text) => match std::path::absolute(Path::new(text)) {
            Ok(path) => Value::String(path.to_string_lossy().into_owned()),
            Err(_) => value,
        },
        _ => value,
    }
}

/// The value on one line; small and large numbers as `1e-5`, which people recognise.
pub(super) fn inline(value: &Value) -> String {
    match value {
        Value::Float(number) if *number != 0.0 && !(1e-3..1e6).contains(&number.abs()) => format!("{number:e}"),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        // A multi-line string in TOML's triple quotes would break the line.
        Value::String(text) if text.contains(['\n', '\r']) => escaped(text),
        other => other.to_string(),
    }
}

fn escaped(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other if other.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", other as u32);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
