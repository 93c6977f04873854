//! Log-probabilities of target tokens: `log p(t) = logit_t − logsumexp(logits)`, in f32.
//!
//! The head is applied to the positions that predict a supervised token and to no others: prompts and padding cost no
//! `[position, vocabulary]` row.

use mlx_rs_core::{Array, Dtype, Result, ops};
use models::Model;
use models::nn::Mask;

use crate::batch::Rows;

/// `log p` of each target of `rows`, f32 `[M]`.
///
/// # Errors
/// What MLX reports.
pub fn target_logprobs(model: &Model, rows: &Rows) -> Result<Array> {
    let (batch, length) = (rows.tokens.dim(0)?, rows.tokens.dim(1)?);
    let inputs = ops::slice(&rows.tokens, &[0, 0], &[batch, length - 1], &[1, 1])?; // [B, L−1]
    let hidden = model.hidden(&inputs, None, &Mask::Causal)?; // [B, L−1, H]
    let hidden = hidden.reshape(&[batch * (length - 1), -1])?; // [B·(L−1), H]
    let hidden = match &rows.positions {
        Some(positions) => ops::take(&hidden, positions, Some(0))?, // [M, H]
        None => hidden,
    };
    of_logits(&model.head(&hidden)?, &rows.targets)
}

/// `log p` of each target under its row of logits: `[M, V]` and i32 `[M]` to f32 `[M]`, whatever the dtype of the logits.
///
/// # Errors
/// Another number of targets than rows.
pub fn of_logits(logits: &Array, targets: &Array) -> Result<Array> {
    let logits = logits.astype(Dtype::Float32)?;
    let score = ops::take_along_axis(&logits, &ops::expand_dims(targets, &[1])?, 1)?; // [M, 1]
    let normaliser = ops::logsumexp(&logits, Some(&[1]), false)?; // [M]
    ops::subtract(&ops::squeeze(&score, Some(&[1]))?, &normaliser)
}

/// The mean `log p` of each row's response: `logp` f32 `[M]` to f32 `[B]`.
///
/// # Errors
/// Another number of log-probabilities than predictions.
pub fn response_means(logp: &Array, rows: &Rows) -> Result<Array> {
    let means = ops::matmul(&rows.response_mean, &ops::expand_dims(logp, &[1])?)?; // [B, 1]
    ops::squeeze(&means, Some(&[1]))
}
