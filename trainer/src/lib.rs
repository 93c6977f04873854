//! Fine-tuning of language models on MLX: config → data → loss → gradients → optimizer → checkpoint → report.
#![forbid(unsafe_code)]

pub mod base;
pub mod batch;
pub mod checkpoint;
pub mod cli;
pub mod clip;
pub mod command;
pub mod config;
pub mod data;
pub mod error;
pub mod fingerprint;
pub mod fit;
pub mod gradients;
pub mod interrupt;
pub mod loss;
pub mod metrics;
pub mod optimizer;
pub mod output;
pub mod plan;
pub mod progress;
pub mod report;
pub mod report_values;
pub mod run;
pub mod schedule;
pub mod step;
pub mod summary;
pub mod validate;
pub mod window;
