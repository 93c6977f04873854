//! GGUF tensors → MLX arrays under Hugging Face names.

use std::collections::BTreeMap;

use mlx_rs_core::{Array, Element};

use super::header::GgufFile;
use super::names::hf_name;
use super::tensor::{HostTensor, TensorData};
use crate::config::ModelConfig;
use crate::error::{ModelError, Result};

/// Reads every tensor of `file`. Quantised ones become `<path>.weight`, `<path>.scales` and `<path>.biases`; the query
/// and key rows of Llama models return to Hugging Face order.
///
/// # Errors
/// A name that has no Hugging Face counterpart, a type that cannot be read, or what MLX reports.
pub fn load_arrays(file: &GgufFile, config: &ModelConfig) -> Result<BTreeMap<String, Array>> {
    let mut arrays = BTreeMap::new();
    for info in file.tensors() {
        // Read as the configuration's rotary scaling.
        if info.name == "rope_freqs.weight" {
            continue;
        }
        let name = hf_name(&info.name).ok_or_else(|| {
            ModelError::tensor(
                file.path(),
                info.name.as_str(),
                "a name of no known part",
                "a tensor of the llama family",
            )
        })?;
        let tensor = restore_order(file.read_tensor(&info.name)?, &name, config, file)?;
        insert(&mut arrays, &name, &tensor)?;
    }
    Ok(arrays)
}

fn restore_order(tensor: HostTensor, name: &str, config: &ModelConfig, file: &GgufFile) -> Result<HostTensor> {
    if config.model_type != "llama" {
        return Ok(tensor);
    }
    if name.contains(".q_proj.") {
        tensor.unpermute(config.num_attention_heads, file.path())
    } else if name.contains(".k_proj.") {
        tensor.unpermute(config.num_key_value_heads, file.path())
    } else {
        Ok(tensor)
    }
}

fn insert(arrays: &mut BTreeMap<String, Array>, name: &str, tensor: &HostTensor) -> Result<()> {
    let shape = &tensor.shape;
    match &tensor.data {
        TensorData::F32(values) => arrays.insert(name.to_owned(), array(values, shape)?),
        TensorData::F16(values) => arrays.insert(name.to_owned(), array(values, shape)?),
        TensorData::Bf16(values) => arrays.insert(name.to_owned(), array(values, shape)?),
        TensorData::Affine(parts) => {
            let (columns, rows) = (shape.last().copied().unwrap_or(0), &shape[..shape.len().saturating_sub(1)]);
            let cut = |width: usize| [rows, &[width]].concat();
            let module = name.strip_suffix(".weight").unwrap_or(name);
            let groups = cut(columns / parts.group_size);
            arrays.insert(format!("{module}.scales"), array(&parts.scales, &groups)?);
            arrays.insert(format!("{module}.biases"), array(&parts.biases, &groups)?);
            arrays.insert(name.to_owned(), array(&parts.weight, &cut(columns * parts.bits as usize / 32))?)
        }
    };
    Ok(())
}

fn array<T: Element>(values: &[T], shape: &[usize]) -> mlx_rs_core::Result<Array> {
    let shape: Vec<i32> = shape.iter().map(|dim| i32::try_from(*dim).unwrap_or(i32::MAX)).collect();
    Array::from_slice(values, &shape)
}
