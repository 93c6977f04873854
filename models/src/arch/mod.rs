//! The architectures, one file per family, and the table that maps `model_type` to them.
//!
//! Adding one: its file, its `mod` line, its row in [`ARCHS`], its golden.

mod llama;

use mlx_rs_core::Array;

use crate::config::ModelConfig;
use crate::error::Result;
use crate::nn::{KvCache, Linear, Mask, Matrix};
use crate::weights::Weights;

/// A decoder-only language model as a value: array handles that clone cheaply. Nothing inside changes by itself.
pub trait Architecture {
    /// Final hidden states, after the last norm: tokens `[B, L]` to `[B, L, hidden]`. With a cache, one entry per
    /// layer, the tokens follow what it holds.
    ///
    /// # Errors
    /// Shapes that do not fit, or what MLX reports.
    fn hidden(&self, tokens: &Array, cache: Option<&mut [KvCache]>, mask: &Mask) -> mlx_rs_core::Result<Array>;

    /// The head: `[…, hidden]` to logits `[…, vocabulary]`.
    ///
    /// # Errors
    /// Hidden states of another width.
    fn head(&self, hidden: &Array) -> mlx_rs_core::Result<Array>;

    /// Number of transformer layers.
    fn num_layers(&self) -> usize;

    /// The linears of each layer that an adapter can sit on, with their weight-file paths, in the order in which the
    /// reference implementation defines them.
    fn linears(&self) -> Vec<(String, &Linear)>;

    /// The same, to attach adapters and to put traced arrays into their slots.
    fn linears_mut(&mut self) -> Vec<(String, &mut Linear)>;

    /// Every weight matrix: embedding, linears, head.
    fn matrices_mut(&mut self) -> Vec<&mut Matrix>;

    /// A copy that shares all arrays.
    fn clone_box(&self) -> Box<dyn Architecture>;
}

/// Builds an architecture from its configuration and weights.
pub type Build = fn(&ModelConfig, &mut Weights) -> Result<Box<dyn Architecture>>;

/// `model_type` of `config.json` and what builds it.
pub const ARCHS: &[(&str, Build)] = &[("llama", llama::build), ("mistral", llama::build)];

/// The builder for the `model_type` of `config`.
///
/// # Errors
/// An unknown type; the error lists the known ones.
pub fn builder(config: &ModelConfig) -> Result<Build> {
    let row = ARCHS.iter().find(|(name, _)| *name == config.model_type);
    row.map(|(_, build)| *build).ok_or_else(|| {
        let known: Vec<&str> = ARCHS.iter().map(|(name, _)| *name).collect();
        config.unknown_model_type(&known)
    })
}

#[cfg(test)]
mod tests;
