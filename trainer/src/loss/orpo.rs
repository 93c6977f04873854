//! Odds ratio preference optimisation (Hong, Lee and Thorne 2024, eq. 6–7).
//!
//! With `ℓ` the mean log-probability per response token of a row:
//!
//! ```text
//! log odds ratio  z = (ℓ_w − ℓ_r) − (log(1 − e^ℓ_w) − log(1 − e^ℓ_r))
//! L = NLL + λ · mean(−log σ(z))
//! ```
//!
//! `NLL` is the token mean over the chosen rows: prompt and response (`full`, as in the paper and TRL), or the mean over
//! rows of `−ℓ_w` (`response`). All in f32. `log(1 − e^x)` is computed as `log(−expm1(x))` near 0 and `log1p(−e^x)`
//! elsewhere (Mächler 2012), without a clamp that would bias the gradient.

use mlx_rs_core::{Array, Dtype, Result, ops};

use super::Denominators;

/// Which tokens of the chosen row carry the likelihood term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SftScope {
    /// Every token after the first, prompt included.
    Full,
    /// The response.
    Response,
}

/// What one batch of pairs gives: the loss, and what is reported about it.
pub struct OrpoTerms {
    /// Scalar loss.
    pub loss: Array,
    /// The likelihood term of the loss, scalar.
    pub nll: Array,
    /// `Σ −log σ(z)` over pairs divided by the window's pairs, scalar (without λ).
    pub odds_term: Array,
    /// `z` per pair, `[B]`.
    pub log_odds: Array,
}

/// Loss of `B` pairs.
///
/// `chosen` and `rejected` are the mean response log-probabilities `[B]`; `nll_sum` is the sum of `−log p` over the
/// tokens of the likelihood term under `full`, or the sum of `−ℓ_w` over rows under `response` (with
/// `denominators.tokens` the number of tokens or of rows).
///
/// # Errors
/// What MLX reports.
pub fn loss(
    chosen: &Array,
    rejected: &Array,
    nll_sum: &Array,
    lambda: f32,
    denominators: Denominators,
) -> Result<OrpoTerms> {
    let log_odds = log_odds_ratio(chosen, rejected)?; // [B]
    let penalties = softplus(&ops::negative(&log_odds)?)?; // −log σ(z)
    let odds_term = (&ops::sum(&penalties, None, false)? / denominators.pairs)?;
    let nll = (nll_sum / denominators.tokens)?;
    let loss = (&nll + (&odds_term * lambda))?;
    Ok(OrpoTerms { loss, nll, odds_term, log_odds })
}

/// The values of [`super::PREFERENCE_REPORT`], without a gradient: f32 `[6]`.
///
/// # Errors
/// What MLX reports.
pub fn report(chosen: &Array, rejected: &Array, terms: &OrpoTerms, denominators: Denominators) -> Result<Array> {
    let mean = |values: &Array| -> Result<Array> { &ops::sum(values, None, false)? / denominators.pairs };
    let accurate = ops::greater(chosen, rejected)?.astype(Dtype::Float32)?;
    let values = [
        terms.nll.clone(),
        mean(chosen)?,
        mean(rejected)?,
        mean(&accurate)?,
        ops::negative(&terms.odds_term)?,
        mean(&terms.log_odds)?,
    ];
    ops::stop_gradient(&ops::stack(&values, 0)?)
}

/// `z` per pair.
///
/// # Errors
/// What MLX reports.
pub fn log_odds_ratio(chosen: &Array, rejected: &Array) -> Result<Array> {
    let complements = ops::subtract(&log1mexp(chosen)?, &log1mexp(rejected)?)?;
    ops::subtract(chosen, rejected)? - &complements
}

/// `log(1 − e^x)` for `x < 0`. Each branch is fed a value inside its own range, so the branch that `where` drops cannot
/// put a NaN into the gradient. At `x = 0` (probability one in f32) the odds are infinite: above −2⁻²⁴, the last step of
/// f32 below one, the value at −2⁻²⁴ is used, which keeps loss and gradient finite.
///
/// # Errors
/// What MLX reports.
pub fn log1mexp(x: &Array) -> Result<Array> {
    let below_zero = Array::scalar(-f32::EPSILON / 2.0)?;
    let split = Array::scalar(-std::f32::consts::LN_2)?;
    let x = ops::minimum(x, &below_zero)?;
    let near = ops::greater(&x, &split)?;
    let near_x = ops::where_(&near, &x, &split)?;
    let far_x = ops::where_(&near, &split, &x)?;
    let near_value = ops::log(&ops::negative(&ops::expm1(&near_x)?)?)?;
    let far_value = ops::log1p(&ops::negative(&ops::exp(&far_x)?)?)?;
    ops::where_(&near, &near_value, &far_value)
}

/// `log(1 + e^x)`.
fn softplus(x: &Array) -> Result<Array> {
    ops::logaddexp(x, &Array::scalar(0.0f32)?)
}
