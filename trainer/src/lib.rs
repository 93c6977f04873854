//! Fine-tuning of language models on MLX: config → data → loss → gradients → optimizer → checkpoint → report.
#![forbid(unsafe_code)]

pub mod batch;
pub mod cli;
pub mod clip;
pub mod command;
pub mod config;
pub mod data;
pub mod error;
pub mod gradients;
pub mod interrupt;
pub mod loss;
pub mod metrics;
pub mod optimizer;
pub mod output;
pub mod report;
pub mod schedule;
pub mod step;
