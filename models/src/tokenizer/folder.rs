//! The tokenizer files of a Hugging Face folder.

use std::path::Path;

use serde_json::{Map, Value};
use tokenizers::Tokenizer as Backend;

use super::Tokenizer;
use crate::chat::ChatTemplate;
use crate::config::Fields;
use crate::error::{ModelError, Result, describe, parse_json_object, read_text_if_present};

pub(super) fn read(dir: &Path) -> Result<Tokenizer> {
    let backend = read_backend(dir)?;
    let config = read_object(dir, "tokenizer_config.json")?;
    let config_path = dir.join("tokenizer_config.json");
    let special = |name: &str| special_token(&config_path, &config, name, &backend);
    let (bos, eos) = (special("bos_token")?, special("eos_token")?);
    let mut ends = end_ids(dir)?;
    if let Some((_, id)) = &eos
        && !ends.contains(id)
    {
        ends.push(*id);
    }
    let text = |token: &Option<(String, u32)>| token.as_ref().map(|(text, _)| text.clone()).unwrap_or_default();
    let template = match template_source(dir, &config_path, &config)? {
        Some((path, source)) => Some(ChatTemplate::at(&path, &source, &text(&bos), &text(&eos))?),
        None => None,
    };
    let id = |token: Option<(String, u32)>| token.map(|(_, id)| id);
    Ok(Tokenizer { path: dir.to_owned(), backend, bos: id(bos), eos: id(eos), ends, template })
}

fn read_backend(dir: &Path) -> Result<Backend> {
    let path = dir.join("tokenizer.json");
    let Some(text) = read_text_if_present(&path)? else {
        return Err(ModelError::tokenizer(&path, "", "no such file", "the tokenizer of the model")
            .with_hint("a folder with only tokenizer.model must be converted to tokenizer.json first"));
    };
    let mut backend = Backend::from_bytes(text.as_bytes())
        .map_err(|error| ModelError::tokenizer(&path, "", error.to_string(), "a tokenizer in Hugging Face's format"))?;
    // A saved tokenizer may carry the padding and truncation of its last use; neither belongs to the vocabulary.
    backend
        .with_truncation(None)
        .map_err(|error| ModelError::tokenizer(&path, "truncation", error.to_string(), "no truncation"))?;
    backend.with_padding(None);
    Ok(backend)
}

fn read_object(dir: &Path, name: &str) -> Result<Map<String, Value>> {
    let path = dir.join(name);
    read_text_if_present(&path)?.map_or_else(|| Ok(Map::new()), |text| parse_json_object(&path, &text))
}

/// A special token is a string, or an object with the string in `content`.
fn special_token(
    path: &Path,
    config: &Map<String, Value>,
    name: &str,
    backend: &Backend,
) -> Result<Option<(String, u32)>> {
    let place = format!("field `{name}`");
    let token = match config.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.as_str(),
        Some(Value::Object(object)) if object.get("content").is_some_and(Value::is_string) => {
            object["content"].as_str().unwrap_or_default()
        }
        Some(other) => return Err(ModelError::tokenizer(path, place, describe(other), "a token's text")),
    };
    match backend.token_to_id(token) {
        Some(id) => Ok(Some((token.to_owned(), id))),
        None => Err(ModelError::tokenizer(path, place, format!("\"{token}\""), "a token of the vocabulary")),
    }
}

fn end_ids(dir: &Path) -> Result<Vec<u32>> {
    for name in ["generation_config.json", "config.json"] {
        let object = read_object(dir, name)?;
        if let Some(ids) = Fields::new(&dir.join(name), &object, "").ids("eos_token_id")? {
            return Ok(ids);
        }
    }
    Ok(Vec::new())
}

/// The file and text of the chat template.
fn template_source(
    dir: &Path,
    config_path: &Path,
    config: &Map<String, Value>,
) -> Result<Option<(std::path::PathBuf, String)>> {
    let own = dir.join("chat_template.jinja");
    if let Some(source) = read_text_if_present(&own)? {
        return Ok(Some((own, source)));
    }
    let wanted = "a template, or a list of templates with one named default";
    let fail = |got: String| Err(ModelError::tokenizer(config_path, "field `chat_template`", got, wanted));
    let source = match config.get("chat_template") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(source)) => source.clone(),
        Some(Value::Array(list)) => {
            let default = list.iter().find(|entry| entry["name"] == "default");
            match default.and_then(|entry| entry["template"].as_str()) {
                Some(source) => source.to_owned(),
                None => return fail(format!("a list of {} without a default", list.len())),
            }
        }
        Some(other) => return fail(describe(other)),
    };
    Ok(Some((config_path.to_owned(), source)))
}
