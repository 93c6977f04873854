//! One error type for the whole crate, a variant per stage.

use std::fmt;
use std::path::{Path, PathBuf};

/// The crate's result.
pub type Result<T> = std::result::Result<T, ModelError>;

/// Where something went wrong, what was found there and what was wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// The file or folder, or an empty path when no file is concerned.
    pub path: PathBuf,
    /// The place: a field, a tensor, a metadata key, an option, a line.
    pub item: String,
    /// What was found.
    pub got: String,
    /// What was wanted.
    pub wanted: String,
    /// What the user can do about it.
    pub hint: Option<String>,
}

impl Detail {
    /// A detail without a hint.
    pub fn new(path: &Path, item: impl Into<String>, got: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self { path: path.to_owned(), item: item.into(), got: got.into(), wanted: wanted.into(), hint: None }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.as_os_str().is_empty() {
            write!(f, "{}: ", self.path.display())?;
        }
        if !self.item.is_empty() {
            write!(f, "{}: ", self.item)?;
        }
        write!(f, "found {}, wanted {}", self.got, self.wanted)
    }
}

/// A failure while finding, reading, describing or driving a model.
///
/// The text names the place, the finding and the wish; [`ModelError::hint`] holds the remedy, so that a program can
/// print it on its own line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The operating system refused to read or write a file.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: `read`, `write`, `create`, `lock`, `run`.
        action: &'static str,
        /// The file, folder or program.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// A model name that leads nowhere.
    #[error("model source: {0}")]
    Source(Box<Detail>),
    /// A model package could not be fetched or is not what was pinned.
    #[error("model package: {0}")]
    Package(Box<Detail>),
    /// A field of `config.json` (or of GGUF metadata standing in for it) is wrong or absent.
    #[error("model config: {0}")]
    Config(Box<Detail>),
    /// A JSON file is not JSON, or not the kind of value it must be.
    #[error("json: {0}")]
    Json(Box<Detail>),
    /// The structure of a GGUF file is broken.
    #[error("gguf: {0}")]
    Gguf(Box<Detail>),
    /// A tensor is missing, cut off, or of the wrong type or shape.
    #[error("tensor: {0}")]
    Tensor(Box<Detail>),
    /// A tokenizer is missing, broken, or refused its input.
    #[error("tokenizer: {0}")]
    Tokenizer(Box<Detail>),
    /// A chat template is missing, does not compile, or refused a conversation.
    #[error("chat template: {0}")]
    Template(Box<Detail>),
    /// A sampling option or a vector of logits that cannot be sampled from.
    #[error("sampling: {0}")]
    Sampling(Box<Detail>),
    /// An adapter that does not fit its model.
    #[error("adapter: {0}")]
    Adapter(String),
    /// The weights of a model as a whole.
    #[error("weights: {}: {message}", path.display())]
    Weights {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A generation that cannot begin.
    #[error("generation: {0}")]
    Generation(String),
    /// MLX refused or failed a call.
    #[error("mlx: {0}")]
    Mlx(#[from] mlx_rs_core::Error),
}

macro_rules! constructors {
    ($($name:ident => $variant:ident: $doc:literal),* $(,)?) => {
        $(
            #[doc = $doc]
            pub fn $name(
                path: &Path,
                item: impl Into<String>,
                got: impl Into<String>,
                wanted: impl Into<String>,
            ) -> Self {
                Self::$variant(Box::new(Detail::new(path, item, got, wanted)))
            }
        )*
    };
}

impl ModelError {
    constructors! {
        origin => Source: "A [`ModelError::Source`].",
        package => Package: "A [`ModelError::Package`].",
        config => Config: "A [`ModelError::Config`].",
        json => Json: "A [`ModelError::Json`].",
        gguf => Gguf: "A [`ModelError::Gguf`].",
        tensor => Tensor: "A [`ModelError::Tensor`].",
        tokenizer => Tokenizer: "A [`ModelError::Tokenizer`].",
        template => Template: "A [`ModelError::Template`].",
    }

    /// A [`ModelError::Sampling`]; it concerns no file.
    pub fn sampling(item: impl Into<String>, got: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self::Sampling(Box::new(Detail::new(Path::new(""), item, got, wanted)))
    }

    /// A [`ModelError::Adapter`].
    pub fn adapter(message: impl Into<String>) -> Self {
        Self::Adapter(message.into())
    }

    /// A [`ModelError::Weights`].
    pub fn weights(path: &Path, message: impl Into<String>) -> Self {
        Self::Weights { path: path.to_owned(), message: message.into() }
    }

    /// A [`ModelError::Generation`].
    pub fn generation(message: impl Into<String>) -> Self {
        Self::Generation(message.into())
    }

    /// A [`ModelError::Io`].
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source, hint: None }
    }

    /// The same error with a remedy.
    #[must_use]
    pub fn with_hint(mut self, text: impl Into<String>) -> Self {
        if let Some(hint) = self.hint_slot() {
            *hint = Some(text.into());
        }
        self
    }

    /// What the user can do about it, when something can be said.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Io { hint, .. } => hint.as_deref(),
            other => other.detail().and_then(|detail| detail.hint.as_deref()),
        }
    }

    /// Place, finding and wish, for the variants that carry them.
    pub fn detail(&self) -> Option<&Detail> {
        match self {
            Self::Io { .. } | Self::Adapter(_) | Self::Weights { .. } | Self::Generation(_) | Self::Mlx(_) => None,
            Self::Source(detail)
            | Self::Package(detail)
            | Self::Config(detail)
            | Self::Json(detail)
            | Self::Gguf(detail)
            | Self::Tensor(detail)
            | Self::Tokenizer(detail)
            | Self::Template(detail)
            | Self::Sampling(detail) => Some(detail),
        }
    }

    fn hint_slot(&mut self) -> Option<&mut Option<String>> {
        match self {
            Self::Io { hint, .. } => Some(hint),
            Self::Adapter(_) | Self::Weights { .. } | Self::Generation(_) | Self::Mlx(_) => None,
            Self::Source(detail)
            | Self::Package(detail)
            | Self::Config(detail)
            | Self::Json(detail)
            | Self::Gguf(detail)
            | Self::Tensor(detail)
            | Self::Tokenizer(detail)
            | Self::Template(detail)
            | Self::Sampling(detail) => Some(&mut detail.hint),
        }
    }
}

/// Reads a whole text file.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|source| ModelError::io("read", path, source))
}

/// Reads a text file that may be absent.
pub(crate) fn read_text_if_present(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ModelError::io("read", path, error)),
    }
}

/// Parses the text of a JSON file that must hold an object.
pub(crate) fn parse_json_object(path: &Path, text: &str) -> Result<serde_json::Map<String, serde_json::Value>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        let complaint = error.to_string();
        let complaint = complaint.split(" at line ").next().unwrap_or_default().to_owned();
        ModelError::json(path, place, format!("broken JSON ({complaint})"), "one JSON object")
    })?;
    match value {
        serde_json::Value::Object(object) => Ok(object),
        other => Err(ModelError::json(path, "top level", describe(&other), "a JSON object")),
    }
}

/// A short description of a JSON value for the `found` part of an error.
pub(crate) fn describe(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => format!("the boolean {flag}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() > 60 => {
            format!("the string \"{}…\"", text.chars().take(57).collect::<String>())
        }
        Value::String(text) => format!("the string \"{text}\""),
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(object) => format!("an object of {} fields", object.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_place_then_finding_then_wish_and_keeps_its_hint_apart() {
        let error = ModelError::config(Path::new("m/config.json"), "field `hidden_size`", "null", "a positive integer")
            .with_hint("fetch the model again");
        assert_eq!(
            error.to_string(),
            "model config: m/config.json: field `hidden_size`: found null, wanted a positive integer"
        );
        assert_eq!(error.hint(), Some("fetch the model again"));
        assert_eq!(error.detail().map(|detail| detail.got.as_str()), Some("null"));
    }

    #[test]
    fn broken_json_is_reported_with_its_line_and_column() {
        let error = parse_json_object(Path::new("config.json"), "{\n  \"a\": ,\n}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "json: config.json: line 2 column 8: found broken JSON (expected value), wanted one JSON object"
        );
    }

    #[test]
    fn a_byte_order_mark_before_json_is_tolerated() {
        let object = parse_json_object(Path::new("config.json"), "\u{feff}{\"a\": 1}").unwrap();
        assert_eq!(object["a"], 1);
    }

    #[test]
    fn json_that_is_no_object_says_what_it_is() {
        let error = parse_json_object(Path::new("c.json"), "[1, 2]").unwrap_err();
        assert_eq!(error.to_string(), "json: c.json: top level: found an array of 2 items, wanted a JSON object");
    }
}
