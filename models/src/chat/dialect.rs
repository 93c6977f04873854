//! What Hugging Face templates use beyond minijinja: Python's string methods, its JSON, `raise_exception`,
//! `strftime_now`, whitespace trimming, and an `iterable` test that is false for none.

use std::fmt::Write;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error, ErrorKind, State};

use super::{generation, json};

const RAISED: &str = "raised by the template";

/// An environment with the dialect and no template.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", to_json);
    environment.add_filter(generation::FILTER, generation::mark);
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment.add_function("raise_exception", raise);
    environment.add_function("strftime_now", now);
    environment
}

/// Whether the error was made by `raise_exception`.
pub(super) fn is_raised(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.to_string() == RAISED)
}

fn raise(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message).with_source(std::io::Error::other(RAISED)))
}

fn now(format: &str) -> Result<String, Error> {
    let mut text = String::new();
    // chrono reports an unknown % code as a formatting error; its `to_string` would panic.
    write!(text, "{}", chrono::Local::now().format(format))
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, format!("strftime_now: unknown code in {format:?}")))?;
    Ok(text)
}

fn to_json(_state: &State, value: &Value, options: Kwargs) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson: the value is undefined"));
    }
    let style = json::Style {
        indent: indent(&options)?,
        separators: separators(&options)?,
        ensure_ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    let plain = serde_json::to_value(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, format!("tojson: {error}")))?;
    Ok(Value::from(json::dumps(&plain, &style)))
}

/// `indent` is a number of spaces or the text itself.
fn indent(options: &Kwargs) -> Result<Option<String>, Error> {
    let Some(value) = options.get::<Option<Value>>("indent")?.filter(|value| !value.is_none()) else { return Ok(None) };
    if let Some(text) = value.as_str() {
        return Ok(Some(text.to_owned()));
    }
    match value.as_i64() {
        Some(spaces) if spaces <= 64 => Ok(Some(" ".repeat(spaces.max(0) as usize))),
        _ => Err(Error::new(ErrorKind::InvalidOperation, "tojson: indent must be a number up to 64 or a text")),
    }
}

fn separators(options: &Kwargs) -> Result<Option<(String, String)>, Error> {
    let Some(value) = options.get::<Option<Value>>("separators")?.filter(|value| !value.is_none()) else {
        return Ok(None);
    };
    let parts: Vec<Value> = value.try_iter()?.collect();
    match parts.as_slice() {
        [item, key] if item.as_str().is_some() && key.as_str().is_some() => {
            Ok(Some((item.to_string(), key.to_string())))
        }
        _ => Err(Error::new(ErrorKind::InvalidOperation, "tojson: separators must be two texts")),
    }
}
