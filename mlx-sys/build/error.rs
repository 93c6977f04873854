//! The one way a native build step fails: what went wrong, why, and what mends it.

use std::fmt;
use std::path::Path;

/// A failed step of the native build.
#[derive(Debug)]
pub struct BuildError {
    what: String,
    causes: Vec<String>,
    hints: Vec<String>,
}

/// The result of a native build step.
pub type Result<T, E = BuildError> = std::result::Result<T, E>;

impl BuildError {
    /// An error that says `what` failed: lower case, no final period.
    pub fn new(what: impl Into<String>) -> Self {
        BuildError { what: what.into(), causes: Vec::new(), hints: Vec::new() }
    }

    /// A failed file operation: `verb` in the infinitive, the path, and the system's reason.
    pub fn io(verb: &str, path: &Path, error: &std::io::Error) -> Self {
        BuildError::new(format!("cannot {verb} {}", path.display())).cause(error.to_string())
    }

    /// Adds the reason, one line of output each.
    #[must_use]
    pub fn cause(mut self, text: impl AsRef<str>) -> Self {
        self.causes.extend(text.as_ref().lines().map(str::trim_end).filter(|l| !l.is_empty()).map(String::from));
        self
    }

    /// Adds something the reader can do about it.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.hints.push(text.into());
        self
    }

    /// Adds the hint that belongs to every failed download.
    #[must_use]
    pub fn offline_hint(self) -> Self {
        self.hint(
            "without a network: build once on a connected machine of the same kind and copy its cache folder here \
             (MLX_RS_CACHE names it), or set MLX_PREFIX, MLX_C_SOURCE and LIBCLANG_PATH to what is installed",
        )
    }

    /// Prints the error for cargo, which puts `error:` and the package's name before each line.
    pub fn report(&self) {
        let text = self.to_string();
        for line in text.strip_prefix("error: ").unwrap_or(&text).lines() {
            println!("cargo::error={line}");
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        for cause in &self.causes {
            write!(f, "\n  {cause}")?;
        }
        for hint in &self.hints {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}
