//! Supervised fine-tuning: `L = −Σ w·log p / Σ w` over the supervised tokens of the whole window.
//!
//! mlx-lm's mask also counts the first padding token of a row that is shorter than its batch; this one does not.

use mlx_rs_core::{Array, Result, ops};

use super::Denominators;

/// `logp` and `weights` f32 `[M]` to the scalar loss.
///
/// # Errors
/// What MLX reports.
pub fn loss(logp: &Array, weights: &Array, denominators: Denominators) -> Result<Array> {
    &negative_log_likelihood(logp, weights)? / denominators.tokens
}

/// `−Σ w·log p`, scalar, undivided: the sum that ORPO's likelihood term takes too.
///
/// # Errors
/// What MLX reports.
pub fn negative_log_likelihood(logp: &Array, weights: &Array) -> Result<Array> {
    ops::negative(&ops::sum(&ops::multiply(logp, weights)?, None, false)?)
}
