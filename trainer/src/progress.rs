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
        let window = std::mem::replace(self, Self::new());
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
}

impl Guard {
    /// Stops after `limit` steps in a row that were not finite; 0 never stops.
    pub fn new(limit: u64) -> Self {
        Self { limit, in_a_row: 0 }
    }

    /// Looks at a step.
    ///
    /// # Errors
    /// A first step whose gradient is zero everywhere, or too many steps in a row that were not finite. `rows` says
    /// which rows the step saw.
    pub fn check(&mut self, step: u64, report: &StepReport, rows: &dyn Fn() -> String) -> Result<()> {
        if step == 1 && report.grad_norm == 0.0 {
            return Err(TrainError::training(
                Detail::new(Place::Nowhere, "step 1", "a gradient of zero in every parameter", "one that is not zero")
                    .hint("nothing would be learned: look at the rows with `inspect`, and at lora.targets"),
            ));
        }
        self.in_a_row = if report.applied { 0 } else { self.in_a_row + 1 };
        if self.limit == 0 || self.in_a_row < self.limit {
            return Ok(());
        }
        let got = format!(
            "loss {} and gradient norm {} for {} steps in a row, the last on {}",
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
