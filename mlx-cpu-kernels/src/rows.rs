//! Row and elementwise kernels in f32.

pub mod activation;
mod elementwise;
mod exponential;
pub mod softmax;

pub(crate) use exponential::{exp, exp_weight, flush, sigmoid};

#[cfg(test)]
mod tests;
