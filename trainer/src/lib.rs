//! Fine-tuning of language models on MLX: config → data → loss → gradients → optimizer → checkpoint → report.
#![forbid(unsafe_code)]

pub mod batch;
pub mod clip;
pub mod gradients;
pub mod loss;
pub mod optimizer;
pub mod step;
