//! Layers that architectures are made of. Each is a value: array handles and sizes, cheap to clone.

mod attention;
mod cache;
mod embedding;
mod linear;
mod norm;
mod quantized;
mod rope;

pub use attention::{Mask, attention, merge_heads, split_heads};
pub use cache::KvCache;
pub use embedding::Embedding;
pub use linear::{Linear, LoraPair, Matrix};
pub use norm::RmsNorm;
pub use quantized::{QuantizedMatrix, QuantizedParts};
pub use rope::Rope;

#[cfg(test)]
mod tests;
