//! Precedence: default < file < `TRAINER_*` environment < `--set table.key=value` < flag, with every value's origin.
//!
//! A relative path in a file is relative to that file's folder, so that a recipe works from anywhere; a relative path
//! in the environment or on the command line is relative to the current folder.

use std::ffi::OsString;
use std::path::Path;

use toml::Value;

use super::file::{ConfigFile, FileValue, elsewhere, suggest, unknown_key};
use super::origin::{Origin, Origins};
use super::schema::{self, Config, KeyInfo, TABLES};
use super::suggest::nearest;
use super::validate;
use crate::error::{Detail, Place, Result, TrainError};

/// Variables that begin with `TRAINER_` and are no settings.
pub const RESERVED_VARIABLES: [&str; 1] = ["TRAINER_LOG"];

/// A flag of the command line that sets a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagValue {
    /// The flag as typed, e.g. `--iters`.
    pub flag: &'static str,
    /// The key it sets, e.g. `train.iters`.
    pub key: &'static str,
    /// Its text.
    pub value: String,
}

/// Everything that sets values, lowest layer first.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The configuration file.
    pub file: Option<ConfigFile>,
    /// The environment; variables that do not begin with `TRAINER_` are passed over.
    pub env: Vec<(OsString, OsString)>,
    /// `table.key=value` of each `--set`, in order.
    pub sets: Vec<String>,
    /// The flags.
    pub flags: Vec<FlagValue>,
}

/// A checked configuration, and where each value was set.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The values.
    pub config: Config,
    /// Where they come from.
    pub origins: Origins,
}

/// Lays the sources over the defaults and checks the result.
///
/// # Errors
/// An unknown key or variable, a value of the wrong type or out of range, a missing required key, keys that exclude
/// each other or that the chosen method does not use.
pub fn resolve(sources: &Sources) -> Result<Resolved> {
    let mut resolved = Resolved { config: Config::default(), origins: Origins::default() };
    if let Some(file) = &sources.file {
        let folder = file.path.parent().unwrap_or(Path::new(""));
        for value in file.values()? {
            resolved.apply_file_value(value, folder)?;
        }
    }
    for (name, value) in &sources.env {
        if let Some((key, name, text)) = variable(name, value)? {
            resolved.apply_text(key, &text, Origin::Env(name))?;
        }
    }
    for set in &sources.sets {
        let (key, text) = split_set(set)?;
        resolved.apply_text(key, text, Origin::Set)?;
    }
    for FlagValue { flag, key, value } in &sources.flags {
        let key = schema::keys().find(|known| known.path == *key).ok_or_else(|| {
            TrainError::config(Detail::new(Place::Setting((*flag).to_owned()), *key, "an unknown key", "a known one"))
        })?;
        resolved.apply_text(key, value, Origin::Flag(flag))?;
    }
    validate::check(&mut resolved)?;
    Ok(resolved)
}

impl Resolved {
    fn apply_file_value(&mut self, found: FileValue, folder: &Path) -> Result<()> {
        let FileValue { key, value, origin } = found;
        let value = if key.is_path { rebase(value, folder) } else { value };
        self.config
            .set_value(key, &value)
            .map_err(|_| TrainError::config(Detail::new(origin.place(), key.path, describe(&value), (key.wanted)())))?;
        let place = origin.place();
        match self.origins.record(key.path, origin) {
            None => Ok(()),
            Some(first) => {
                let got = format!("a second value (the first is at {})", first.place());
                let wanted = match key.aliases {
                    [] => "one value".to_owned(),
                    aliases => format!("one value for `{}` and its alias {}", key.name, aliases.join(", ")),
                };
                Err(TrainError::config(Detail::new(place, key.path, got, wanted)))
            }
        }
    }

    fn apply_text(&mut self, key: &'static KeyInfo, text: &str, origin: Origin) -> Result<()> {
        self.config.set_text(key, text).map_err(|_| {
            TrainError::config(Detail::new(origin.place(), key.path, format!("\"{text}\""), (key.wanted)()))
        })?;
        self.origins.record(key.path, origin);
        Ok(())
    }
}

/// Puts `folder` before a relative path. A scheme such as `pip:` is not a path.
fn rebase(value: Value, folder: &Path) -> Value {
    match value.as_str() {
        Some(text) if !text.is_empty() && !has_scheme(text) => {
            Value::String(folder.join(text).to_string_lossy().into_owned())
        }
        _ => value,
    }
}

/// Whether `text` begins with a scheme: two or more letters and a colon (one letter is a drive).
pub(super) fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

fn describe(value: &Value) -> String {
    match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(items) if items.len() > 4 => format!("a list of {}", items.len()),
        other => other.to_string(),
    }
}

fn variable(name: &OsString, value: &OsString) -> Result<Option<(&'static KeyInfo, String, String)>> {
    let name = name.to_string_lossy();
    if !name.starts_with("TRAINER_") || RESERVED_VARIABLES.contains(&&*name) {
        return Ok(None);
    }
    let place = || Place::Setting(format!("env {name}"));
    let spellings = |key: &KeyInfo| {
        let aliases = key.aliases.iter().map(|alias| format!("TRAINER_{}_{alias}", key.table).to_uppercase());
        aliases.chain([key.variable()]).collect::<Vec<_>>()
    };
    let Some(key) = schema::keys().find(|key| spellings(key).iter().any(|known| *known == name)) else {
        let known: Vec<String> = schema::keys().flat_map(spellings).collect();
        let wanted = "TRAINER_TABLE_KEY of a key that mlx-train check prints";
        let detail = Detail::new(place(), "", "an unknown variable", wanted);
        return Err(TrainError::config(suggest(detail, nearest(&name, known.iter().map(String::as_str)))));
    };
    let text = value.to_str().ok_or_else(|| {
        TrainError::config(Detail::new(place(), key.path, "bytes that are not UTF-8", (key.wanted)()))
    })?;
    Ok(Some((key, name.into_owned(), text.to_owned())))
}

fn split_set(set: &str) -> Result<(&'static KeyInfo, &str)> {
    let place = || Place::Setting("--set".to_owned());
    let malformed = || {
        let detail = Detail::new(place(), "", format!("\"{set}\""), "table.key=value");
        TrainError::config(detail.hint("for example --set lora.rank=16"))
    };
    let (path, text) = set.split_once('=').ok_or_else(malformed)?;
    let path = path.trim();
    let Some((table, name)) = path.split_once('.') else {
        return Err(match elsewhere(path) {
            Some(key) => malformed().with_hint(format!("did you mean `{}`?", key.path)),
            None => malformed(),
        });
    };
    let table = schema::table(table).ok_or_else(|| {
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        let detail = Detail::new(place(), path, "an unknown table", format!("one of {}", names.join(", ")));
        TrainError::config(suggest(detail, nearest(table, names)))
    })?;
    let key = table.key(name).ok_or_else(|| TrainError::config(unknown_key(place(), table, name)))?;
    Ok((key, text.trim()))
}
