//! [`Weights`]: the tensors of a model, taken by name with the expected shape, none left over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use mlx_rs_core::{Array, Dtype, io, ops, transforms};

use crate::config::{ModelConfig, QuantMode};
use crate::error::{ModelError, Result};
use crate::gguf::GgufFile;
use crate::nn::{Embedding, Linear, Matrix, QuantizedMatrix, QuantizedParts, RmsNorm};

/// The dtype of activations, and so of every floating tensor that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compute {
    /// Whatever the file holds.
    AsStored,
    /// Cast on loading.
    Cast(Dtype),
}

/// Tensors by name, on their way into an architecture.
pub struct Weights {
    tensors: BTreeMap<String, Array>,
    origin: PathBuf,
    config: ModelConfig,
    ignored: Vec<String>,
    known: BTreeSet<String>,
}

impl Weights {
    /// Reads the safetensors of a model folder: the shards that the index names, or every file there is.
    ///
    /// # Errors
    /// No weights, a missing shard, a broken file, a value that is not finite.
    pub fn from_directory(dir: &Path, config: &ModelConfig, compute: Compute) -> Result<Self> {
        let mut tensors = BTreeMap::new();
        for file in shard_files(dir)? {
            let (loaded, _) = io::load_safetensors(&file)?;
            for (name, tensor) in loaded {
                if tensors.insert(name.clone(), tensor).is_some() {
                    return Err(ModelError::weights(&file, format!("tensor `{name}` is in two shards")));
                }
            }
        }
        Self::new(tensors, dir, config, compute)
    }

    /// Reads every tensor of a GGUF file under its Hugging Face name.
    ///
    /// # Errors
    /// A tensor type that is not supported, an unknown name, a value that is not finite.
    pub fn from_gguf(file: &GgufFile, config: &ModelConfig, compute: Compute) -> Result<Self> {
        Self::new(crate::gguf::load_arrays(file, config)?, file.path(), config, compute)
    }

    /// Wraps tensors that were made by other means; `origin` stands in error messages.
    ///
    /// # Errors
    /// A value that is not finite.
    pub fn new(
        tensors: BTreeMap<String, Array>,
        origin: &Path,
        config: &ModelConfig,
        compute: Compute,
    ) -> Result<Self> {
        let mut cast = BTreeMap::new();
        for (name, tensor) in tensors {
            let tensor = match compute {
                Compute::Cast(dtype) if tensor.dtype().is_floating() => tensor.astype(dtype)?,
                _ => tensor,
            };
            cast.insert(name, tensor);
        }
        // Evaluated here: later the file may be gone, and a lazy load would fail in the middle of a run.
        transforms::eval(cast.values())?;
        check_finite(&cast, origin)?;
        Ok(Self {
            known: cast.keys().cloned().collect(),
            tensors: cast,
            origin: origin.to_owned(),
            config: config.clone(),
            ignored: Vec::new(),
        })
    }

    /// Takes one tensor.
    ///
    /// # Errors
    /// A missing name (the error lists the nearest ones) or another shape.
    pub fn take(&mut self, name: &str, shape: &[i32]) -> Result<Array> {
        let tensor = self.tensors.remove(name).ok_or_else(|| self.missing(name))?;
        if tensor.shape() != shape {
            return Err(ModelError::weights(
                &self.origin,
                format!("tensor `{name}` has shape {:?}, wanted {shape:?}", tensor.shape()),
            ));
        }
        Ok(tensor)
    }

    /// Takes a matrix `[out, in]`: quantised when `<path>.scales` is there, dense otherwise.
    ///
    /// # Errors
    /// As [`Weights::take`].
    pub fn matrix(&mut self, path: &str, in_features: i32, out_features: i32) -> Result<Matrix> {
        let scales_name = format!("{path}.scales");
        let weight_name = format!("{path}.weight");
        if !self.tensors.contains_key(&scales_name) {
            return Ok(Matrix::Dense(self.take(&weight_name, &[out_features, in_features])?));
        }
        let format = self.config.quant_for(path).ok_or_else(|| {
            ModelError::weights(&self.origin, format!("`{path}` is quantised, but the configuration does not say how"))
        })?;
        let (bits, group) = (int(format.bits as usize), int(format.group_size));
        if in_features % group != 0 {
            let message = format!("`{path}` has rows of {in_features}, wanted a multiple of its group size {group}");
            return Err(ModelError::weights(&self.origin, message));
        }
        let scales = self.take(&scales_name, &[out_features, in_features / group])?;
        let biases_name = format!("{path}.biases");
        let biases = match format.mode {
            QuantMode::Affine => Some(self.take(&biases_name, &[out_features, in_features / group])?),
            _ => None,
        };
        let packed = (i64::from(in_features) * i64::from(bits) / 32) as i32;
        let weight = self.take(&weight_name, &[out_features, packed])?;
        let parts = QuantizedParts { weight, scales, biases, group_size: group, bits, mode: format.mode.name() };
        Ok(Matrix::Quantized(QuantizedMatrix::new(parts)?))
    }

    /// Takes a linear layer.
    ///
    /// # Errors
    /// As [`Weights::take`].
    pub fn linear(&mut self, path: &str, in_features: i32, out_features: i32, bias: bool) -> Result<Linear> {
        let weight = self.matrix(path, in_features, out_features)?;
        let bias = if bias { Some(self.take(&format!("{path}.bias"), &[out_features])?) } else { None };
        Ok(Linear::new(weight, bias))
    }

    /// Takes an embedding table.
    ///
    /// # Errors
    /// As [`Weights::take`].
    pub fn embedding(&mut self, path: &str, vocabulary: i32, hidden: i32) -> Result<Embedding> {
        Ok(Embedding(self.matrix(path, hidden, vocabulary)?))
    }

    /// Takes a norm.
    ///
    /// # Errors
    /// As [`Weights::take`].
    pub fn rms_norm(&mut self, path: &str, hidden: i32, eps: f32) -> Result<RmsNorm> {
        Ok(RmsNorm { weight: self.take(&format!("{path}.weight"), &[hidden])?, eps })
    }

    /// Lets tensors whose name ends so be left over.
    pub fn ignore_suffix(&mut self, suffix: &str) {
        self.ignored.push(suffix.to_owned());
    }

    /// Ends the taking.
    ///
    /// # Errors
    /// Tensors that nobody took.
    pub fn finish(self) -> Result<()> {
        let left: Vec<&String> =
            self.tensors.keys().filter(|name| !self.ignored.iter().any(|suffix| name.ends_with(suffix))).collect();
        match left.as_slice() {
            [] => Ok(()),
            [first, rest @ ..] => {
                let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
                let message = format!("tensor `{first}` is not part of this architecture{more}");
                Err(ModelError::weights(&self.origin, message))
            }
        }
    }

    fn missing(&self, name: &str) -> ModelError {
        let mut near: Vec<(usize, &String)> =
            self.known.iter().map(|known| (strsim::damerau_levenshtein(known, name), known)).collect();
        near.sort();
        let nearest: Vec<String> = near.iter().take(3).map(|(_, name)| format!("`{name}`")).collect();
        let message = format!("tensor `{name}` is missing (nearest: {})", nearest.join(", "));
        ModelError::weights(&self.origin, message)
    }
}

/// A size of the configuration as MLX counts; one that does not fit fails later, as a shape that no tensor has.
pub(crate) fn int(size: usize) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

/// A NaN in a weight would surface as a NaN loss, thousands of operations away from its cause.
pub(crate) fn check_finite(tensors: &BTreeMap<String, Array>, origin: &Path) -> Result<()> {
    let mut verdicts = Vec::new();
    for (name, tensor) in tensors {
        if tensor.dtype().is_floating() {
            verdicts.push((name, ops::all(&ops::isfinite(tensor)?, None, false)?));
        }
    }
    transforms::eval(verdicts.iter().map(|(_, verdict)| verdict))?;
    for (name, verdict) in verdicts {
        if !verdict.item::<bool>()? {
            return Err(ModelError::weights(origin, format!("tensor `{name}` holds NaN or infinite values")));
        }
    }
    Ok(())
}

/// The files to read, in order.
fn shard_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let index = dir.join("model.safetensors.index.json");
    if index.is_file() {
        return indexed_shards(dir, &index);
    }
    let entries = fs::read_dir(dir).map_err(|error| ModelError::weights(dir, error.to_string()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("model")))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(ModelError::weights(dir, "no model*.safetensors in this folder"));
    }
    Ok(files)
}

fn indexed_shards(dir: &Path, index: &Path) -> Result<Vec<PathBuf>> {
    let bad = |message: String| ModelError::weights(index, message);
    let text = fs::read_to_string(index).map_err(|error| bad(error.to_string()))?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let map = value.get("weight_map").and_then(|map| map.as_object());
    let map = map.ok_or_else(|| bad("field `weight_map` is missing or no object".to_owned()))?;
    let names: BTreeSet<&str> = map.values().filter_map(|name| name.as_str()).collect();
    names
        .into_iter()
        .map(|name| {
            // A name with a folder in it could reach outside of the model.
            let mut parts = Path::new(name).components();
            if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
                return Err(bad(format!("shard name `{name}` is no plain file name")));
            }
            let file = dir.join(name);
            if file.is_file() {
                Ok(file)
            } else {
                Err(bad(format!("shard `{name}` is missing from {}", dir.display())))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
