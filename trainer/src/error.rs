//! One error type for the whole crate, a variant per stage, and the one place that prints it.

use std::error::Error as StdError;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The crate's result.
pub type Result<T> = std::result::Result<T, TrainError>;

/// The exit status of a run that did what was asked.
pub const EXIT_DONE: u8 = 0;
/// The exit status when the run failed or the data was rejected.
pub const EXIT_FAILED: u8 = 1;
/// The exit status of a mistake in the command line or the configuration.
pub const EXIT_USAGE: u8 = 2;
/// The exit status after Ctrl-C, with the state saved.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Where something is written that is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Place {
    /// No place to point at.
    #[default]
    Nowhere,
    /// A file; line and column count from 1.
    File {
        /// The file or folder.
        path: PathBuf,
        /// Line.
        line: Option<usize>,
        /// Column, in characters.
        column: Option<usize>,
    },
    /// A setting outside a file: `env TRAINER_LORA_RANK`, `--set`, `--iters`.
    Setting(String),
}

impl Place {
    /// A whole file or folder.
    pub fn file(path: &Path) -> Self {
        Self::File { path: path.to_owned(), line: None, column: None }
    }

    /// A line of a file.
    pub fn line(path: &Path, line: usize) -> Self {
        Self::File { path: path.to_owned(), line: Some(line), column: None }
    }

    /// A character of a file.
    pub fn column(path: &Path, line: usize, column: usize) -> Self {
        Self::File { path: path.to_owned(), line: Some(line), column: Some(column) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => Ok(()),
            Self::Setting(name) => f.write_str(name),
            Self::File { path, line, column } => {
                write!(f, "{}", path.display())?;
                [line, column].into_iter().flatten().try_for_each(|number| write!(f, ":{number}"))
            }
        }
    }
}

/// What was found, what was wanted, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail {
    /// The file and line, or the setting.
    pub place: Place,
    /// The key, column or file concerned; empty when the place says it all.
    pub field: String,
    /// What was found.
    pub got: String,
    /// What was wanted.
    pub wanted: String,
    /// What the user can do about it.
    pub hint: Option<String>,
}

impl Detail {
    /// A detail without a hint.
    pub fn new(place: Place, field: impl Into<String>, got: impl Into<String>, wanted: impl Into<String>) -> Self {
        Self { place, field: field.into(), got: got.into(), wanted: wanted.into(), hint: None }
    }

    /// The same with a remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place != Place::Nowhere {
            write!(f, "{}: ", self.place)?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        write!(f, "found {}, wanted {}", self.got, self.wanted)
    }
}

/// The stage that a failed file operation belongs to; it decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading or writing a configuration file.
    Config,
    /// Reading data.
    Data,
    /// Writing results.
    Output,
    /// Reading or writing a checkpoint.
    Checkpoint,
}

/// A failure of a command, by stage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The configuration is wrong: an unknown key, a value out of range, keys that exclude each other.
    #[error("{0}")]
    Config(Box<Detail>),
    /// The data is rejected.
    #[error("{0}")]
    Data(Box<Detail>),
    /// The model cannot be found, read or driven.
    #[error("cannot {action}")]
    Model {
        /// What was tried, e.g. `load the model`.
        action: String,
        /// Why it failed.
        source: Box<dyn StdError + Send + Sync>,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// The training itself went wrong, e.g. the loss is not finite any more.
    #[error("{0}")]
    Training(Box<Detail>),
    /// A checkpoint is missing, broken or of another run.
    #[error("{0}")]
    Checkpoint(Box<Detail>),
    /// The output folder cannot be used.
    #[error("{0}")]
    Output(Box<Detail>),
    /// The operating system refused a file operation.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The stage it belongs to.
        stage: Stage,
        /// What was tried: `read`, `write`, `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
        /// What the user can do about it.
        hint: Option<String>,
    },
    /// Ctrl-C: the step was finished and the state saved.
    #[error("interrupted after step {step}; the state is saved in {}", folder.display())]
    Interrupted {
        /// Optimizer steps done.
        step: u64,
        /// Where the state is.
        folder: PathBuf,
    },
}

impl TrainError {
    /// A mistake in the configuration.
    pub fn config(detail: Detail) -> Self {
        Self::Config(Box::new(detail))
    }

    /// Rejected data.
    pub fn data(detail: Detail) -> Self {
        Self::Data(Box::new(detail))
    }

    /// A training that went wrong.
    pub fn training(detail: Detail) -> Self {
        Self::Training(Box::new(detail))
    }

    /// An unusable checkpoint.
    pub fn checkpoint(detail: Detail) -> Self {
        Self::Checkpoint(Box::new(detail))
    }

    /// An unusable output folder.
    pub fn output(detail: Detail) -> Self {
        Self::Output(Box::new(detail))
    }

    /// A failure of the model, e.g. `action` = `load the model`.
    pub fn model(action: impl Into<String>, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Model { action: action.into(), source: source.into(), hint: None }
    }

    /// A refused file operation.
    pub fn io(stage: Stage, action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { stage, action, path: path.to_owned(), source, hint: None }
    }

    /// The same failure with a remedy; a remedy that is there already stays.
    #[must_use]
    pub fn with_hint(mut self, text: impl Into<String>) -> Self {
        let slot = match &mut self {
            Self::Config(detail)
            | Self::Data(detail)
            | Self::Training(detail)
            | Self::Checkpoint(detail)
            | Self::Output(detail) => &mut detail.hint,
            Self::Model { hint, .. } | Self::Io { hint, .. } => hint,
            Self::Interrupted { .. } => return self,
        };
        slot.get_or_insert_with(|| text.into());
        self
    }

    /// The remedy, if one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config(detail)
            | Self::Data(detail)
            | Self::Training(detail)
            | Self::Checkpoint(detail)
            | Self::Output(detail) => detail.hint.clone(),
            Self::Model { hint, .. } | Self::Io { hint, .. } => hint.clone(),
            Self::Interrupted { .. } => Some("run the same command with --resume to go on".to_owned()),
        }
    }

    /// The exit status: 1 the run failed or the data was rejected, 2 usage or configuration, 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Io { stage: Stage::Config, .. } => EXIT_USAGE,
            Self::Interrupted { .. } => EXIT_INTERRUPTED,
            _ => EXIT_FAILED,
        }
    }

    /// Prints `error: …`, its causes one per line, a blank line and `hint: …`.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "error: {self}")?;
        let (mut told, mut cause) = (self.to_string(), self.source());
        while let Some(error) = cause {
            let text = error.to_string();
            // Some errors end with their cause.
            if !told.ends_with(&text) {
                writeln!(out, "  caused by: {text}")?;
                told = text;
            }
            cause = error.source();
        }
        match self.hint() {
            Some(hint) => writeln!(out, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(error: &TrainError) -> String {
        let mut out = Vec::new();
        error.print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_error_prints_place_field_finding_wish_and_hint() {
        let place = Place::column(Path::new("a.toml"), 3, 8);
        let detail = Detail::new(place, "lora.rank", "0", "an integer of at least 1").hint("use 8");
        let text = printed(&TrainError::config(detail));
        assert_eq!(text, "error: a.toml:3:8: lora.rank: found 0, wanted an integer of at least 1\n\nhint: use 8\n");
    }

    #[test]
    fn causes_stand_between_the_error_and_the_hint() {
        let source = std::io::Error::other("no space left");
        let error = TrainError::io(Stage::Output, "write", Path::new("out/a"), source).with_hint("free some space");
        let text = printed(&error);
        assert_eq!(text, "error: cannot write out/a\n  caused by: no space left\n\nhint: free some space\n");
    }

    #[test]
    fn a_cause_that_was_told_already_is_not_repeated() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot read m: {0}")]
        struct Telling(#[source] std::io::Error);
        let error = TrainError::model("load the model", Telling(std::io::Error::other("no such file")));
        assert_eq!(printed(&error), "error: cannot load the model\n  caused by: cannot read m: no such file\n");
    }

    #[test]
    fn an_error_without_a_hint_prints_one_line() {
        let detail = Detail::new(Place::Nowhere, "", "nothing", "something");
        assert_eq!(printed(&TrainError::data(detail)), "error: found nothing, wanted something\n");
    }

    #[test]
    fn exit_codes_follow_the_stage() {
        let detail = || Detail::new(Place::Nowhere, "", "a", "b");
        let io = |stage| TrainError::io(stage, "read", Path::new("x"), std::io::Error::other("no"));
        assert_eq!(TrainError::config(detail()).exit_code(), 2);
        assert_eq!(io(Stage::Config).exit_code(), 2);
        assert_eq!(io(Stage::Data).exit_code(), 1);
        assert_eq!(TrainError::data(detail()).exit_code(), 1);
        assert_eq!(TrainError::model("load the model", "no").exit_code(), 1);
        assert_eq!(TrainError::Interrupted { step: 7, folder: "out".into() }.exit_code(), 130);
    }

    #[test]
    fn the_first_hint_stays() {
        let error = TrainError::model("load the model", "no").with_hint("first").with_hint("second");
        assert_eq!(error.hint().as_deref(), Some("first"));
    }
}
