//! llama.cpp's GGUF files: metadata, tensors, vocabulary and configuration, on the host.

mod arrays;
mod config;
mod header;
mod names;
mod permute;
mod tensor;
mod types;
mod value;
mod vocab;

pub use arrays::load_arrays;
pub use config::model_config;
pub use header::{GgufFile, TensorInfo};
pub use names::hf_name;
pub use permute::unpermute_rows;
pub use tensor::{AffineParts, HostTensor, TensorData};
pub use types::GgmlType;
pub use value::{MetaArray, MetaValue};
pub(crate) use vocab::read_vocabulary;

#[cfg(test)]
pub(crate) mod builder;
#[cfg(test)]
mod tests;
