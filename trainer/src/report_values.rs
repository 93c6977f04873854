//! A step's report values → the metrics that people know.

use crate::metrics::PreferenceMetrics;

/// From the values of [`crate::loss::PREFERENCE_REPORT`]: rewards are λ times the mean log-probabilities, as in TRL.
pub fn preference_metrics(values: &[f32], lambda: f64) -> PreferenceMetrics {
    let value = |index: usize| f64::from(values.get(index).copied().unwrap_or(f32::NAN));
    let (chosen, rejected) = (value(1), value(2));
    PreferenceMetrics {
        rewards_chosen: lambda * chosen,
        rewards_rejected: lambda * rejected,
        rewards_accuracies: value(3),
        rewards_margins: lambda * (chosen - rejected),
        logps_chosen: chosen,
        logps_rejected: rejected,
        nll_loss: value(0),
        log_odds_ratio: value(4),
        log_odds_chosen: value(5),
    }
}
