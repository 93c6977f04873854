//! [`Model`]: a loaded language model with its configuration and tokenizer-independent parts.

use std::path::Path;

use mlx_rs_core::Array;

use crate::arch::{self, Architecture};
use crate::config::ModelConfig;
use crate::error::Result;
use crate::gguf::{self, GgufFile};
use crate::nn::{KvCache, Linear, Mask, Matrix};
use crate::source::ModelSource;
use crate::weights::{Compute, Weights};

/// A language model as a value: cloning shares all arrays.
pub struct Model {
    arch: Box<dyn Architecture>,
    config: ModelConfig,
}

impl Clone for Model {
    fn clone(&self) -> Self {
        Self { arch: self.arch.clone_box(), config: self.config.clone() }
    }
}

impl Model {
    /// Loads configuration and weights; `compute` is the dtype of activations.
    ///
    /// # Errors
    /// Missing or broken files, an unknown architecture, tensors that are missing, left over or of another shape.
    pub fn load(source: &ModelSource, compute: Compute) -> Result<Self> {
        match source {
            ModelSource::Folder(dir) => Self::load_directory(dir, compute),
            ModelSource::Gguf(file) => Self::load_gguf(&GgufFile::open(file)?, compute),
        }
    }

    /// Loads a folder with `config.json` and safetensors.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn load_directory(dir: &Path, compute: Compute) -> Result<Self> {
        let config = ModelConfig::from_dir(dir)?;
        let weights = Weights::from_directory(dir, &config, compute)?;
        Self::build(config, weights)
    }

    /// Loads a GGUF file.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn load_gguf(file: &GgufFile, compute: Compute) -> Result<Self> {
        let config = gguf::model_config(file)?;
        let weights = Weights::from_gguf(file, &config, compute)?;
        Self::build(config, weights)
    }

    /// Builds the architecture that `config` names from `weights`, which must hold its tensors and no others.
    ///
    /// # Errors
    /// An unknown architecture, tensors that are missing, left over or of another shape.
    pub fn build(config: ModelConfig, mut weights: Weights) -> Result<Self> {
        let arch = arch::builder(&config)?(&config, &mut weights)?;
        weights.finish()?;
        Ok(Self { arch, config })
    }

    /// A copy whose quantised matrices are dequantised once and kept: on a CPU it decodes token by token without
    /// unpacking every weight each time, for as much memory as an unquantised model.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn dense(&self) -> Result<Self> {
        let mut model = self.clone();
        for matrix in model.arch.matrices_mut() {
            let dense = matrix.dense()?;
            dense.eval()?;
            *matrix = Matrix::Dense(dense);
        }
        Ok(model)
    }

    /// The configuration it was built from.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Final hidden states `[B, L, hidden]` of tokens `[B, L]`.
    ///
    /// # Errors
    /// Shapes that do not fit, or what MLX reports.
    pub fn hidden(&self, tokens: &Array, cache: Option<&mut [KvCache]>, mask: &Mask) -> mlx_rs_core::Result<Array> {
        self.arch.hidden(tokens, cache, mask)
    }

    /// Logits `[…, vocabulary]` of hidden states.
    ///
    /// # Errors
    /// Hidden states of another width.
    pub fn head(&self, hidden: &Array) -> mlx_rs_core::Result<Array> {
        self.arch.head(hidden)
    }

    /// Logits `[B, L, vocabulary]` of tokens `[B, L]` under a causal mask.
    ///
    /// # Errors
    /// Shapes that do not fit, or what MLX reports.
    pub fn forward(&self, tokens: &Array, cache: Option<&mut [KvCache]>) -> mlx_rs_core::Result<Array> {
        self.head(&self.hidden(tokens, cache, &Mask::Causal)?)
    }

    /// An empty cache, one entry per layer.
    pub fn new_cache(&self) -> Vec<KvCache> {
        vec![KvCache::default(); self.num_layers()]
    }

    /// Number of transformer layers.
    pub fn num_layers(&self) -> usize {
        self.arch.num_layers()
    }

    /// The linears that an adapter can sit on, with their weight-file paths.
    pub fn linears(&self) -> Vec<(String, &Linear)> {
        self.arch.linears()
    }

    /// The same, mutable.
    pub fn linears_mut(&mut self) -> Vec<(String, &mut Linear)> {
        self.arch.linears_mut()
    }
}

#[cfg(test)]
mod tests;
