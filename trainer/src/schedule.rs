//! Learning rate by optimizer step: a linear warm-up, then constant, half a cosine, or a straight line.
//!
//! Steps count from 1. With `s = step − 1`, `w = max(warmup, 1)`, `r = max(total − warmup, 1)` and
//! `min = min_ratio · peak`:
//!
//! ```text
//! s < w:  lr = peak · min(1, (s + 1) / w)
//! else:   u = clamp((s − w) / r, 0, 1)
//!         constant  lr = peak
//!         cosine    lr = min + (peak − min) · (1 + cos πu) / 2
//!         linear    lr = min + (peak − min) · (1 − u)
//! ```

use std::f64::consts::PI;

use crate::config::schema::Config;
use crate::config::value::ScheduleName;

/// A learning rate for every step of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// What follows the warm-up.
    pub name: ScheduleName,
    /// Highest rate.
    pub peak: f64,
    /// Steps of the warm-up.
    pub warmup: u64,
    /// Steps of the run.
    pub total: u64,
    /// Last rate as a share of the peak.
    pub min_ratio: f64,
}

impl Schedule {
    /// The schedule of a run of `total` optimizer steps.
    pub fn new(config: &Config, total: u64) -> Self {
        Self {
            name: config.schedule.name,
            peak: config.optimizer.learning_rate,
            warmup: config.schedule.warmup,
            total,
            min_ratio: config.schedule.min_lr_ratio,
        }
    }

    /// The rate of `step`, which counts from 1 (0 counts as 1).
    pub fn learning_rate(&self, step: u64) -> f64 {
        let step = step.saturating_sub(1);
        let warmup = self.warmup.max(1);
        if step < warmup {
            return self.peak * ((step + 1) as f64 / warmup as f64).min(1.0);
        }
        let rest = self.total.saturating_sub(self.warmup).max(1);
        let done = ((step - warmup) as f64 / rest as f64).clamp(0.0, 1.0);
        let least = self.min_ratio * self.peak;
        match self.name {
            ScheduleName::Constant => self.peak,
            ScheduleName::Cosine => least + 0.5 * (self.peak - least) * (1.0 + (PI * done).cos()),
            ScheduleName::Linear => least + (self.peak - least) * (1.0 - done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(name: ScheduleName, warmup: u64) -> Schedule {
        Schedule { name, peak: 1.0, warmup, total: 20, min_ratio: 0.1 }
    }

    fn rates(schedule: &Schedule, steps: impl IntoIterator<Item = u64>) -> Vec<f64> {
        steps.into_iter().map(|step| schedule.learning_rate(step)).collect()
    }

    #[test]
    fn the_cosine_follows_the_vectors_of_the_specification() {
        let cosine = schedule(ScheduleName::Cosine, 4);
        assert_eq!(rates(&cosine, 1..=5), [0.25, 0.5, 0.75, 1.0, 1.0]);
        let last = 0.1 + 0.45 * (1.0 + (15.0 * PI / 16.0).cos());
        assert!((cosine.learning_rate(20) - last).abs() < 1e-15);
    }

    #[test]
    fn a_constant_rate_stays_constant_after_its_warm_up() {
        let constant = schedule(ScheduleName::Constant, 4);
        assert_eq!(rates(&constant, [1, 2, 3, 4, 5, 12, 20, 99]), [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn without_a_warm_up_the_first_step_has_the_peak() {
        for name in [ScheduleName::Constant, ScheduleName::Cosine, ScheduleName::Linear] {
            assert_eq!(schedule(name, 0).learning_rate(1), 1.0);
        }
        // The decay begins at step 2, and the last step does not quite reach the minimum.
        let cosine = schedule(ScheduleName::Cosine, 0);
        assert_eq!(cosine.learning_rate(2), 1.0);
        let last = 0.1 + 0.45 * (1.0 + (18.0 * PI / 20.0).cos());
        assert!((cosine.learning_rate(20) - last).abs() < 1e-15);
    }

    #[test]
    fn the_line_falls_evenly_to_its_minimum() {
        let linear = schedule(ScheduleName::Linear, 4);
        let expected = [1.0, 1.0 - 0.9 * 8.0 / 16.0, 1.0 - 0.9 * 15.0 / 16.0];
        for (step, expected) in [5, 13, 20].into_iter().zip(expected) {
            assert!((linear.learning_rate(step) - expected).abs() < 1e-15, "step {step}");
        }
        assert!((linear.learning_rate(1000) - 0.1).abs() < 1e-15);
    }

    #[test]
    fn a_warm_up_longer_than_the_run_only_rises() {
        let short = Schedule { warmup: 40, ..schedule(ScheduleName::Cosine, 0) };
        assert_eq!(short.learning_rate(20), 0.5);
        assert!(rates(&short, 1..=20).is_sorted());
    }
}
