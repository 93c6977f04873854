//! What is gathered between two reports.

use std::time::{Duration, Instant};

use crate::error::{Detail, Place, Result, TrainError};
use crate::loss::Method;
use crate::metrics::TrainRecord;
use crate::report_values::preference_metrics;
use crate::step::StepReport;

/// Sums over the steps since the last report.
pub struct Window {
    steps: u64,
    applied: u64,
    loss: f64,
    tokens: u64,
    values: Vec<f32>,
    busy: Duration,
}

impl Window {
    /// An empty one.
    pub fn new() -> Self {
        Self { steps: 0, applied: 0, loss: 0.0, tokens: 0, values: Vec::new(), busy: Duration::ZERO }
    }

    /// Adds a step that began at `start`.
    pub fn add(&mut self, report: &StepReport, tokens: u64, start: Instant) {
        self.steps += 1;
        self.tokens += tokens;
        self.busy += start.elapsed();
        if report.applied {
            self.applied += 1;
            self.loss += f64::from(report.loss);
            self.values.resize(report.values.len(), 0.0);
            self.values.iter_mut().zip(&report.values).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.steps == 0
    }

    /// Closes the window. Losses are means over the steps that were finite.
    pub fn record(&mut self, now: &Now, method: Method) -> TrainRecord {
        let window = std::mem::take(self);
        let (count, seconds) = (window.applied as f64, window.busy.as_secs_f64());
        let means: Vec<f32> = window.values.iter().map(|sum| sum / window.applied as f32).collect();
        TrainRecord {
            iteration: now.iteration,
            train_loss: window.loss / count,
            learning_rate: now.learning_rate,
            iterations_per_second: window.steps as f64 / seconds,
            tokens_per_second: window.tokens as f64 / seconds,
            trained_tokens: now.trained_tokens,
            peak_memory: now.peak_memory as f64 / 1e9,
            grad_norm: f64::from(now.grad_norm),
            epoch: now.epoch,
            skipped_steps: now.skipped_steps,
            preference: match method {
                Method::Sft => None,
                Method::Orpo { lambda, .. } => Some(preference_metrics(&means, f64::from(lambda))),
            },
        }
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

/// Where the run stands when a window is closed.
pub struct Now {
    /// Optimizer steps done.
    pub iteration: u64,
    /// Rate of the last step.
    pub learning_rate: f64,
    /// Targets since the start.
    pub trained_tokens: u64,
    /// Bytes.
    pub peak_memory: usize,
    /// Of the last step, before clipping.
    pub grad_norm: f32,
    /// Passes over the data.
    pub epoch: f64,
    /// Since the start.
    pub skipped_steps: u64,
}

/// Watches for steps that teach nothing.
pub struct Guard {
    limit: u64,
    in_a_row: u64,
    has_learned: bool,
}

impl Guard {
    /// Stops after `limit` steps in a row that were not finite; 0 never stops.
    pub fn new(limit: u64) -> Self {
        Self { limit, in_a_row: 0, has_learned: false }
    }

    /// Looks at the first finite step.
    ///
    /// # Errors
    /// A gradient that is zero everywhere: the run would learn nothing.
    pub fn require_gradient(&mut self, step: u64, report: &StepReport) -> Result<()> {
        if self.has_learned || !report.applied {
            return Ok(());
        }
        if report.grad_norm == 0.0 {
            let got = "a gradient of zero in every parameter";
            let detail = Detail::new(Place::Nowhere, format!("step {step}"), got, "one that is not zero");
            let hint = "nothing would be learned: look at the rows with `mlx-train inspect`, and at lora.scale";
            return Err(TrainError::training(detail.hint(hint)));
        }
        self.has_learned = true;
        Ok(())
    }

    /// Counts the steps in a row that were not finite.
    ///
    /// # Errors
    /// Too many of them. `rows` says which rows the step saw.
    pub fn check(&mut self, step: u64, report: &StepReport, rows: &dyn Fn() -> String) -> Result<()> {
        self.in_a_row = if report.applied { 0 } else { self.in_a_row + 1 };
        if self.limit == 0 || self.in_a_row < self.limit {
            return Ok(());
        }
        let got = format!(
            "loss {} and gradient norm {}, not finite for {} steps in a row, the last on {}",
            report.loss,
            report.grad_norm,
            self.in_a_row,
            rows()
        );
        Err(TrainError::training(
            Detail::new(Place::Nowhere, format!("step {step}"), got, "finite numbers")
                .hint("the last good state is saved; lower optimizer.learning_rate, or look at those rows"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(loss: f32, grad_norm: f32) -> StepReport {
        let applied = loss.is_finite() && grad_norm.is_finite();
        StepReport { loss, grad_norm, values: vec![], applied }
    }

    fn now() -> Now {
        Now {
            iteration: 4,
            learning_rate: 0.5,
            trained_tokens: 70,
            peak_memory: 2_500_000_000,
            grad_norm: 3.0,
            epoch: 1.5,
            skipped_steps: 1,
        }
    }

    #[test]
    fn a_window_reports_the_mean_of_its_finite_steps_and_starts_anew() {
        let mut window = Window::new();
        let start = Instant::now();
        window.add(&report(1.0, 1.0), 10, start);
        window.add(&report(f32::NAN, 1.0), 10, start);
        window.add(&report(4.0, 1.0), 20, start);
        let record = window.record(&now(), Method::Sft);
        assert_eq!((record.train_loss, record.iteration, record.trained_tokens), (2.5, 4, 70));
        assert_eq!((record.peak_memory, record.grad_norm, record.epoch, record.skipped_steps), (2.5, 3.0, 1.5, 1));
        assert_eq!(record.preference, None);
        assert!((record.tokens_per_second / record.iterations_per_second - 40.0 / 3.0).abs() < 1e-9);
        assert!(window.is_empty());
        window.add(&report(7.0, 1.0), 10, start);
        assert_eq!(window.record(&now(), Method::Sft).train_loss, 7.0);
    }

    #[test]
    fn a_window_without_a_finite_step_has_no_loss() {
        let mut window = Window::new();
        window.add(&report(f32::INFINITY, 1.0), 10, Instant::now());
        assert!(window.record(&now(), Method::Sft).train_loss.is_nan());
    }

    #[test]
    fn preference_values_are_means_over_steps() {
        let mut window = Window::new();
        for chosen in [-1.0, -3.0] {
            let values = vec![2.0, chosen, -4.0, 1.0, -0.5, 0.25];
            window.add(&StepReport { values, ..report(1.0, 1.0) }, 1, Instant::now());
        }
        let method = Method::Orpo { lambda: 0.5, scope: crate::loss::SftScope::Full };
        let metrics = window.record(&now(), method).preference.unwrap();
        assert_eq!((metrics.logps_chosen, metrics.logps_rejected, metrics.nll_loss), (-2.0, -4.0, 2.0));
        assert_eq!((metrics.rewards_chosen, metrics.rewards_rejected, metrics.rewards_margins), (-1.0, -2.0, 1.0));
    }

    #[test]
    fn only_non_finite_steps_in_a_row_stop_a_run() {
        let mut guard = Guard::new(2);
        let rows = || "d.jsonl:3".to_owned();
        let (good, bad) = (report(1.0, 1.0), report(1.0, f32::INFINITY));
        assert!([&bad, &good, &bad].iter().zip(1..).all(|(report, step)| guard.check(step, report, &rows).is_ok()));
        let error = guard.check(4, &bad, &rows).unwrap_err();
        assert_eq!(
            error.to_string(),
            "step 4: found loss 1 and gradient norm inf, not finite for 2 steps in a row, the last on d.jsonl:3, \
             wanted finite numbers"
        );
    }

    #[test]
    fn a_limit_of_zero_never_stops() {
        let mut guard = Guard::new(0);
        assert!((1..100).all(|step| guard.check(step, &report(f32::NAN, 0.0), &String::new).is_ok()));
    }

    #[test]
    fn only_the_first_finite_step_must_have_a_gradient() {
        let mut guard = Guard::new(0);
        guard.require_gradient(1, &report(f32::NAN, 0.0)).unwrap();
        let error = guard.require_gradient(2, &report(1.0, 0.0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "step 2: found a gradient of zero in every parameter, wanted one that is not zero"
        );
        guard.require_gradient(3, &report(1.0, 0.1)).unwrap();
        guard.require_gradient(4, &report(1.0, 0.0)).unwrap();
    }
}
