//! A configuration file → assignments with their line and column.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Value;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::origin::Origin;
use super::schema::{self, KeyInfo, TABLES, TableInfo};
use super::suggest::nearest;
use crate::error::{Detail, Place, Result, Stage, TrainError};

/// A configuration file's path and text.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// A key, its value in the file, and where that stands.
pub(super) struct FileValue {
    pub key: &'static KeyInfo,
    pub value: Value,
    pub origin: Origin,
}

impl ConfigFile {
    /// Reads `path`.
    ///
    /// # Errors
    /// A file that is missing, unreadable or not UTF-8.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let error = TrainError::io(Stage::Config, "read", path, error);
            if missing { error.with_hint("mlx-train init writes a configuration to start from") } else { error }
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let got = format!("a byte that is not UTF-8 at offset {}", error.utf8_error().valid_up_to());
            TrainError::config(Detail::new(Place::file(path), "", got, "TOML in UTF-8"))
        })?;
        Ok(Self { path: path.to_owned(), text })
    }

    /// Every value of the file, in its order.
    pub(super) fn values(&self) -> Result<Vec<FileValue>> {
        let root = DeTable::parse(&self.text).map_err(|error| self.syntax_error(&error))?;
        let mut values = Vec::new();
        for (name, item) in root.into_inner() {
            let at = name.span().start;
            let table = schema::table(name.get_ref()).ok_or_else(|| self.unknown_table(name.get_ref(), at))?;
            let DeValue::Table(entries) = item.get_ref() else {
                let wanted = format!("a table, opened by [{}]", table.name);
                let got = kind_of(item.get_ref());
                return Err(TrainError::config(Detail::new(self.place(item.span().start), table.name, got, wanted)));
            };
            for (name, value) in entries {
                let at = name.span().start;
                let key = table.key(name.get_ref()).ok_or_else(|| self.unknown_key(table, name.get_ref(), at))?;
                let (line, column) = self.position(value.span().start);
                let origin = Origin::File { path: self.path.clone(), line, column };
                let value = Value::deserialize(ValueDeserializer::from(value.clone()))
                    .map_err(|error| self.syntax_error(&error))?;
                values.push(FileValue { key, value, origin });
            }
        }
        Ok(values)
    }

    fn syntax_error(&self, error: &toml::de::Error) -> TrainError {
        let place = error.span().map_or_else(|| Place::file(&self.path), |span| self.place(span.start));
        let got = error.message().replace('\n', ", ");
        TrainError::config(Detail::new(place, "", format!("text that is not TOML ({got})"), "TOML"))
    }

    fn unknown_table(&self, name: &str, at: usize) -> TrainError {
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        let detail = Detail::new(self.place(at), name, "an unknown table", format!("one of {}", names.join(", ")));
        TrainError::config(match elsewhere(name) {
            Some(key) => detail.hint(format!("did you mean `{}` in table [{}]?", key.name, key.table)),
            None => suggest(detail, nearest(name, names)),
        })
    }

    fn unknown_key(&self, table: &TableInfo, name: &str, at: usize) -> TrainError {
        TrainError::config(unknown_key(self.place(at), table, name))
    }

    fn place(&self, offset: usize) -> Place {
        let (line, column) = self.position(offset);
        Place::column(&self.path, line, column)
    }

    fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }
}

/// The error of a key that `table` does not have.
pub(super) fn unknown_key(place: Place, table: &TableInfo, name: &str) -> Detail {
    let names: Vec<&str> = table.keys.iter().map(|key| key.name).collect();
    let wanted = format!("one of {}", names.join(", "));
    let detail = Detail::new(place, format!("{}.{name}", table.name), "an unknown key", wanted);
    match nearest(name, table.keys.iter().flat_map(|key| key.aliases.iter().copied().chain([key.name]))) {
        Some(near) => suggest(detail, Some(near)),
        None => match elsewhere(name) {
            Some(key) => detail.hint(format!("did you mean `{}` in table [{}]?", key.name, key.table)),
            None => detail,
        },
    }
}

pub(super) fn suggest(detail: Detail, near: Option<&str>) -> Detail {
    match near {
        Some(near) => detail.hint(format!("did you mean `{near}`?")),
        None => detail,
    }
}

/// The key of this very name in whatever table has it.
pub(super) fn elsewhere(name: &str) -> Option<&'static KeyInfo> {
    schema::keys().find(|key| key.name == name || key.aliases.contains(&name))
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
