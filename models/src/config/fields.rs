//! Typed access to the fields of a JSON object, with errors that name file, field, finding and wish.

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{ModelError, Result, describe};

/// A JSON object with the file and the place in it that errors name. A null counts as an absent field.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    path: &'a Path,
    object: &'a Map<String, Value>,
    prefix: String,
}

impl<'a> Fields<'a> {
    /// The fields of `object`; `prefix` is its dotted place in the file, empty at the top.
    pub fn new(path: &'a Path, object: &'a Map<String, Value>, prefix: &str) -> Self {
        Self { path, object, prefix: prefix.to_owned() }
    }

    /// All entries in file order.
    pub fn entries(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.object.iter()
    }

    /// The error for field `key`.
    pub fn wrong(&self, key: &str, got: impl Into<String>, wanted: impl Into<String>) -> ModelError {
        ModelError::config(self.path, format!("field `{}`", self.name(key)), got, wanted)
    }

    fn name(&self, key: &str) -> String {
        if self.prefix.is_empty() { key.to_owned() } else { format!("{}.{key}", self.prefix) }
    }

    /// The value of a field that is there and not null.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    fn read<T>(&self, key: &str, wanted: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
        self.get(key).map(|value| read(value).ok_or_else(|| self.wrong(key, describe(value), wanted))).transpose()
    }

    fn required<T>(&self, key: &str, wanted: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| self.wrong(key, "nothing", wanted))
    }

    /// A positive integer.
    pub fn size(&self, key: &str) -> Result<Option<usize>> {
        self.read(key, "a positive integer", |value| {
            value
                .as_u64()
                .and_then(|size| usize::try_from(size).ok())
                .filter(|&size| size > 0 && size <= i32::MAX as usize)
        })
    }

    /// A positive integer that must be there.
    pub fn required_size(&self, key: &str) -> Result<usize> {
        self.required(key, "a positive integer", self.size(key)?)
    }

    /// A finite number.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.read(key, "a number", Value::as_f64)
    }

    /// A finite number that must be there.
    pub fn required_number(&self, key: &str) -> Result<f64> {
        self.required(key, "a number", self.number(key)?)
    }

    /// A number above zero.
    pub fn positive(&self, key: &str) -> Result<Option<f64>> {
        self.read(key, "a number above zero", |value| value.as_f64().filter(|&number| number > 0.0))
    }

    /// A number above zero that must be there.
    pub fn required_positive(&self, key: &str) -> Result<f64> {
        self.required(key, "a number above zero", self.positive(key)?)
    }

    /// A boolean.
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        self.read(key, "true or false", Value::as_bool)
    }

    /// A string.
    pub fn text(&self, key: &str) -> Result<Option<&'a str>> {
        self.read(key, "a string", Value::as_str)
    }

    /// A string that must be there.
    pub fn required_text(&self, key: &str) -> Result<&'a str> {
        self.required(key, "a string", self.text(key)?)
    }

    /// An array of strings.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<String>>> {
        self.read(key, "an array of strings", |value| {
            value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        })
    }

    /// A token id or an array of token ids.
    pub fn ids(&self, key: &str) -> Result<Option<Vec<u32>>> {
        let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
        self.read(key, "a token id or an array of token ids", |value| match value {
            Value::Array(items) => items.iter().map(id).collect(),
            other => id(other).map(|id| vec![id]),
        })
    }

    /// An object.
    pub fn object(&self, key: &str) -> Result<Option<Fields<'a>>> {
        let object = self.read(key, "an object", Value::as_object)?;
        Ok(object.map(|object| Fields { path: self.path, object, prefix: self.name(key) }))
    }
}
