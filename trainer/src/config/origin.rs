//! Where a value was set.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::error::Place;

/// Where a value was set; later variants go before earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is the default.
    #[default]
    Default,
    /// In the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// In this environment variable.
    Env(String),
    /// By `--set`.
    Set,
    /// By this flag, e.g. `--iters`.
    Flag(&'static str),
}

impl Origin {
    /// Higher layers go before lower ones: default 0, file 1, environment 2, `--set` 3, flag 4.
    pub fn layer(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Env(_) => 2,
            Self::Set => 3,
            Self::Flag(_) => 4,
        }
    }

    /// The place for an error about the value.
    pub fn place(&self) -> Place {
        match self {
            Self::Default => Place::Nowhere,
            Self::File { path, line, column } => Place::column(path, *line, *column),
            other => Place::Setting(other.to_string()),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, .. } => write!(f, "file {}:{line}", path.display()),
            Self::Env(name) => write!(f, "env {name}"),
            Self::Set => f.write_str("--set"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// The origin of every key that is not at its default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<&'static str, Origin>);

impl Origins {
    /// Where `key` was set.
    pub fn of(&self, key: &str) -> &Origin {
        static DEFAULT: Origin = Origin::Default;
        self.0.get(key).unwrap_or(&DEFAULT)
    }

    /// Whether `key` was set at all.
    pub fn is_set(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn record(&mut self, key: &'static str, origin: Origin) -> Option<Origin> {
        self.0.insert(key, origin)
    }

    pub(super) fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }
}
