//! Losses: pure functions of per-token log-probabilities, in f32.
//!
//! A loss is a *sum* divided by [`Denominators`] that cover the whole accumulation window, so the gradients of its
//! micro-batches add up to the gradient of one big batch, whatever their sizes.

pub mod logprobs;
pub mod orpo;
pub mod sft;

use mlx_rs_core::{Array, Result, ops};
use models::Model;

use crate::batch::Rows;
pub use orpo::SftScope;

/// What the sums of a window are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Denominators {
    /// Predictions in the likelihood term (rows, for ORPO with the `response` scope).
    pub tokens: f64,
    /// Preference pairs; 0 for methods without.
    pub pairs: f64,
}

/// A training method with its constants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Supervised fine-tuning.
    Sft,
    /// Odds ratio preference optimisation.
    Orpo {
        /// Weight of the odds term.
        lambda: f32,
        /// Tokens of the likelihood term.
        scope: SftScope,
    },
}

/// Names of what [`Method::evaluate`] reports, in order: sums over the batch's pairs, already divided by the window's.
pub const PREFERENCE_REPORT: [&str; 6] =
    ["nll_loss", "logps/chosen", "logps/rejected", "rewards/accuracies", "log_odds_ratio", "log_odds_chosen"];

/// The scalar loss, and the values reported beside it.
pub struct Evaluated {
    /// Scalar, f32.
    pub loss: Array,
    /// f32 `[6]` as [`PREFERENCE_REPORT`], for preference methods.
    pub report: Option<Array>,
}

impl Method {
    /// The loss of one micro-batch. For preference methods the first half of the rows are the chosen ones, the second
    /// half the rejected ones in the same order.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn evaluate(&self, model: &Model, rows: &Rows, denominators: Denominators) -> Result<Evaluated> {
        self.of_logprobs(&logprobs::target_logprobs(model, rows)?, rows, denominators)
    }

    /// The same from the log-probabilities of the rows' targets, f32 `[M]`.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn of_logprobs(&self, logp: &Array, rows: &Rows, denominators: Denominators) -> Result<Evaluated> {
        match *self {
            Method::Sft => Ok(Evaluated { loss: sft::loss(logp, &rows.likelihood, denominators)?, report: None }),
            Method::Orpo { lambda, scope } => {
                let halves = ops::split(&logprobs::response_means(logp, rows)?, 2, 0)?;
                let (chosen, rejected) = (&halves[0], &halves[1]); // [B] each
                let nll_sum = match scope {
                    SftScope::Full => sft::negative_log_likelihood(logp, &rows.likelihood)?,
                    SftScope::Response => ops::negative(&ops::sum(chosen, None, false)?)?,
                };
                let terms = orpo::loss(chosen, rejected, &nll_sum, lambda, denominators)?;
                let report = orpo::report(chosen, rejected, &terms, denominators)?;
                Ok(Evaluated { loss: terms.loss, report: Some(report) })
            }
        }
    }
}

#[cfg(test)]
mod tests;
