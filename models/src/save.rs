//! Writes a model as a folder that mlx-lm and we load: `config.json`, `model.safetensors`, tokenizer files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use mlx_rs_core::{Array, Dtype, io};
use serde_json::{Map, Value, json};

use crate::config::RopeScaling;
use crate::error::{ModelError, Result};
use crate::gguf::{self, GgufFile};
use crate::tokenizer::Tokenizer;

/// Writes the model of a GGUF file to `dir`, floating tensors (and so all computation with them) as `dtype`.
///
/// # Errors
/// A file that cannot be read, frequency factors (no field of `config.json` holds them), or a folder that cannot be
/// written.
pub fn gguf_to_folder(file: &GgufFile, dir: &Path, dtype: Dtype) -> Result<()> {
    let config = gguf::model_config(file)?;
    if matches!(config.rope.scaling, RopeScaling::Factors { .. }) {
        let got = "divisors of the rotary frequencies";
        let error = ModelError::tensor(file.path(), "rope_freqs.weight", got, "a scaling that config.json can state");
        return Err(error.with_hint("load the GGUF file itself, or the model's original folder"));
    }
    let tensors: BTreeMap<String, Array> = gguf::load_arrays(file, &config)?
        .into_iter()
        .map(|(name, tensor)| {
            let tensor = if tensor.dtype().is_floating() { tensor.astype(dtype)? } else { tensor };
            Ok((name, tensor))
        })
        .collect::<Result<_>>()?;
    fs::create_dir_all(dir).map_err(|error| ModelError::io("create", dir, error))?;
    let mut fields = config.raw.clone();
    fields.insert("torch_dtype".to_owned(), json!(dtype.name()));
    write_json(&dir.join("config.json"), &Value::Object(fields))?;
    save_weights(&dir.join("model.safetensors"), &tensors)?;
    save_tokenizer(&Tokenizer::from_gguf(file)?, dir)
}

/// Writes tensors with `format: mlx` as metadata, which transformers asks for.
fn save_weights(path: &Path, tensors: &BTreeMap<String, Array>) -> Result<()> {
    Ok(io::save_safetensors(path, tensors, None)?)
}

fn save_tokenizer(tokenizer: &Tokenizer, dir: &Path) -> Result<()> {
    let path = dir.join("tokenizer.json");
    fs::write(&path, tokenizer.to_json()?).map_err(|error| ModelError::io("write", &path, error))?;
    let mut fields = Map::new();
    fields.insert("tokenizer_class".to_owned(), json!("PreTrainedTokenizerFast"));
    if let Some(template) = tokenizer.chat_template() {
        fields.insert("chat_template".to_owned(), json!(template.source()));
    }
    for (key, id) in [("bos_token", tokenizer.bos_id()), ("eos_token", tokenizer.eos_id())] {
        if let Some(token) = id.and_then(|id| tokenizer.token_of(id)) {
            fields.insert(key.to_owned(), json!(token));
        }
    }
    write_json(&dir.join("tokenizer_config.json"), &Value::Object(fields))
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    fs::write(path, format!("{value:#}\n")).map_err(|error| ModelError::io("write", path, error))
}

#[cfg(test)]
mod tests;
