//! What a configuration means in numbers: steps, windows, and the constants of method, adapter and optimizer.

use std::ops::Range;

use models::lora::LoraSpec;

use crate::config::Config;
use crate::config::value::{MethodName, OptimizerName, SftScope};
use crate::loss::{self, Method};
use crate::optimizer::AdamConfig;

/// How many steps there are and which batches each takes. Batches are numbered from 0 over all epochs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Optimizer steps.
    pub steps: u64,
    /// Rows (or pairs) per forward pass.
    pub batch_size: usize,
    /// Batches per step.
    pub accumulation: u64,
    /// The method with its constants.
    pub method: Method,
    batches: u64,
}

impl Plan {
    /// The plan for `rows` training rows. A last window with fewer batches than the others is a step of its own.
    pub fn new(config: &Config, rows: usize) -> Self {
        let batch_size = usize::try_from(config.train.batch_size).unwrap_or(usize::MAX).max(1);
        let accumulation = config.train.grad_accumulation_steps.max(1);
        let per_epoch = rows.div_ceil(batch_size) as f64;
        let batches = match config.train.epochs {
            Some(epochs) => ((epochs * per_epoch).ceil() as u64).max(1),
            None => config.train.iters.saturating_mul(accumulation),
        };
        Self { steps: batches.div_ceil(accumulation), batch_size, accumulation, method: method(config), batches }
    }

    /// Numbers of the batches of `step`, which counts from 1.
    pub fn batches_of(&self, step: u64) -> Range<u64> {
        let start = step.saturating_sub(1) * self.accumulation;
        start..start.saturating_add(self.accumulation).min(self.batches)
    }

    /// The adapter's options.
    pub fn lora(config: &Config) -> LoraSpec {
        LoraSpec {
            rank: i32::try_from(config.lora.rank).unwrap_or(i32::MAX),
            scale: config.lora.effective_scale() as f32,
            targets: config.lora.targets.clone(),
            num_layers: i32::try_from(config.lora.num_layers).unwrap_or(i32::MAX),
        }
    }

    /// The optimizer's constants.
    pub fn adam(config: &Config) -> AdamConfig {
        let table = &config.optimizer;
        AdamConfig {
            betas: table.betas,
            eps: table.eps,
            weight_decay: match table.name {
                OptimizerName::Adamw => table.weight_decay,
                OptimizerName::Adam => 0.0,
            },
            bias_correction: table.bias_correction,
        }
    }
}

fn method(config: &Config) -> Method {
    match config.method.name {
        MethodName::Sft => Method::Sft,
        MethodName::Orpo => Method::Orpo {
            lambda: config.method.lambda as f32,
            scope: match config.method.sft_scope {
                SftScope::Full => loss::SftScope::Full,
                SftScope::Response => loss::SftScope::Response,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(epochs: Option<f64>, iters: u64, batch_size: u64, accumulation: u64) -> Config {
        let mut config = Config::default();
        config.train.epochs = epochs;
        config.train.iters = iters;
        config.train.batch_size = batch_size;
        config.train.grad_accumulation_steps = accumulation;
        config
    }

    #[test]
    fn epochs_end_with_a_smaller_window() {
        // 10 rows in batches of 4: 3 batches an epoch, 6 in two; windows of 4, then 2.
        let plan = Plan::new(&config(Some(2.0), 0, 4, 4), 10);
        assert_eq!(plan.steps, 2);
        assert_eq!(plan.batches_of(1), 0..4);
        assert_eq!(plan.batches_of(2), 4..6);
    }

    #[test]
    fn iters_count_optimizer_steps() {
        let plan = Plan::new(&config(None, 5, 1, 3), 10);
        assert_eq!((plan.steps, plan.batches_of(5)), (5, 12..15));
    }

    #[test]
    fn the_greatest_numbers_do_not_overflow() {
        let half = 1 << 63;
        let plan = Plan::new(&config(None, 2, 1, half), 10);
        assert_eq!((plan.steps, plan.batches_of(2)), (2, half..u64::MAX));
    }
}
