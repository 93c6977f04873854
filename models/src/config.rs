//! What a model is: the fields of `config.json` that architectures share, checked and with their defaults.
//!
//! Architectures with fields of their own read them from [`ModelConfig::fields`], which gives the same errors.

mod fields;
mod quantization;
mod rope;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

pub use fields::Fields;
pub use quantization::{QuantMode, QuantSpec, QuantizationConfig};
pub use rope::{RopeConfig, RopeScaling};

use crate::error::{ModelError, Result, parse_json_object, read_text};

/// The element type in which the weights were saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavedDtype {
    /// 32-bit floats.
    Float32,
    /// bfloat16.
    Bfloat16,
    /// 16-bit IEEE floats.
    Float16,
}

/// A model's configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The file it was read from, for errors.
    pub path: PathBuf,
    /// The architecture's name, e.g. `llama`.
    pub model_type: String,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Query heads per layer.
    pub num_attention_heads: usize,
    /// Key and value heads per layer; divides the query heads. Defaults to their number.
    pub num_key_value_heads: usize,
    /// Size of a head. Defaults to `hidden_size / num_attention_heads`.
    pub head_dim: usize,
    /// Width of the feed-forward layer.
    pub intermediate_size: usize,
    /// Epsilon of the norms.
    pub rms_norm_eps: f32,
    /// Rows of the embedding.
    pub vocab_size: usize,
    /// Longest position the model was trained for, where stated.
    pub max_position_embeddings: Option<usize>,
    /// Rotary positions.
    pub rope: RopeConfig,
    /// Whether the attention projections have biases. Default false.
    pub attention_bias: bool,
    /// Whether the feed-forward projections have biases. Default false.
    pub mlp_bias: bool,
    /// Whether the head is the embedding. Default as mlx-lm has it for the architecture (`llama`: true).
    pub tie_word_embeddings: bool,
    /// The attention of each layer, where stated, e.g. `full_attention`.
    pub layer_types: Option<Vec<String>>,
    /// Window of the layers with sliding attention, where stated.
    pub sliding_window: Option<usize>,
    /// Ids that begin a text.
    pub bos_ids: Vec<u32>,
    /// Ids that end a text or turn.
    pub eos_ids: Vec<u32>,
    /// Element type of the saved weights, where stated.
    pub dtype: Option<SavedDtype>,
    /// How weights are quantised, where they are.
    pub quantization: Option<QuantizationConfig>,
    /// The whole file.
    pub raw: Map<String, Value>,
}

impl ModelConfig {
    /// Reads `config.json` in the folder `dir`.
    ///
    /// # Errors
    /// No such file, broken JSON, or a field that is missing, of the wrong kind or contradicts another one.
    pub fn from_dir(dir: &Path) -> Result<Self> {
        let path = dir.join("config.json");
        let raw = parse_json_object(&path, &read_text(&path)?)?;
        Self::from_json(&path, raw)
    }

    /// Reads the fields of `raw`; `path` stands in the errors. A `text_config` object inside takes precedence.
    ///
    /// # Errors
    /// As [`ModelConfig::from_dir`].
    pub fn from_json(path: &Path, raw: Map<String, Value>) -> Result<Self> {
        let outer = Fields::new(path, &raw, "");
        let inner = outer.object("text_config")?;
        let t = inner.as_ref().unwrap_or(&outer);
        let model_type = outer.required_text("model_type")?.to_owned();
        let hidden_size = t.required_size("hidden_size")?;
        let heads = t.required_size("num_attention_heads")?;
        let kv_heads = t.size("num_key_value_heads")?.unwrap_or(heads);
        if !heads.is_multiple_of(kv_heads) {
            return Err(t.wrong("num_key_value_heads", kv_heads.to_string(), format!("a divisor of {heads} heads")));
        }
        let max_position_embeddings = t.size("max_position_embeddings")?;
        let rope = RopeConfig::read(t)?;
        if matches!(rope.scaling, RopeScaling::Dynamic { .. }) && max_position_embeddings.is_none() {
            return Err(t.wrong("max_position_embeddings", "nothing", "a number, which dynamic rope scaling needs"));
        }
        let num_hidden_layers = t.required_size("num_hidden_layers")?;
        let config = Self {
            path: path.to_owned(),
            hidden_size,
            num_hidden_layers,
            num_attention_heads: heads,
            num_key_value_heads: kv_heads,
            head_dim: head_dim(t, hidden_size, heads)?,
            intermediate_size: t.required_size("intermediate_size")?,
            rms_norm_eps: t.required_number("rms_norm_eps")? as f32,
            vocab_size: t.required_size("vocab_size")?,
            max_position_embeddings,
            rope,
            attention_bias: t.flag("attention_bias")?.unwrap_or(false),
            mlp_bias: t.flag("mlp_bias")?.unwrap_or(false),
            tie_word_embeddings: first(t, &outer, |f| f.flag("tie_word_embeddings"))?
                .unwrap_or_else(|| ties_by_default(&model_type)),
            layer_types: layer_types(t, num_hidden_layers)?,
            sliding_window: t.size("sliding_window")?,
            bos_ids: first(t, &outer, |f| f.ids("bos_token_id"))?.unwrap_or_default(),
            eos_ids: first(&outer, t, |f| f.ids("eos_token_id"))?.unwrap_or_default(),
            dtype: dtype(&outer)?,
            quantization: QuantizationConfig::read(&outer)?,
            model_type,
            raw: Map::new(),
        };
        Ok(Self { raw, ..config })
    }

    /// The fields of the file, for what an architecture reads on its own.
    pub fn fields(&self) -> Fields<'_> {
        Fields::new(&self.path, &self.raw, "")
    }

    /// Quantisation of the module `name` should its weights turn out to be quantised (that is: when
    /// `<name>.scales` is among them); `None` when nothing is quantised or this module is named as an exception.
    pub fn quant_for(&self, name: &str) -> Option<QuantSpec> {
        self.quantization.as_ref().and_then(|quantization| quantization.spec_for(name))
    }
}

/// mlx-lm's defaults for `tie_word_embeddings`, which differ between architectures.
fn ties_by_default(model_type: &str) -> bool {
    !matches!(model_type, "qwen3" | "phi3")
}

fn first<'a, T>(
    one: &Fields<'a>,
    other: &Fields<'a>,
    read: impl Fn(&Fields<'a>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    match read(one)? {
        Some(value) => Ok(Some(value)),
        None => read(other),
    }
}

fn head_dim(fields: &Fields<'_>, hidden_size: usize, heads: usize) -> Result<usize> {
    let head = match fields.size("head_dim")? {
        Some(head) => head,
        None if hidden_size.is_multiple_of(heads) => hidden_size / heads,
        None => {
            let wanted = format!("a multiple of the {heads} heads, or a field `head_dim`");
            return Err(fields.wrong("hidden_size", hidden_size.to_string(), wanted));
        }
    };
    if head.is_multiple_of(2) {
        Ok(head)
    } else {
        Err(fields.wrong("head_dim", head.to_string(), "an even size, since rotary positions turn pairs"))
    }
}

fn layer_types(fields: &Fields<'_>, layers: usize) -> Result<Option<Vec<String>>> {
    let types = fields.texts("layer_types")?;
    match &types {
        Some(types) if types.len() != layers => Err(fields.wrong(
            "layer_types",
            format!("{} entries", types.len()),
            format!("one for each of {layers} layers"),
        )),
        _ => Ok(types),
    }
}

fn dtype(fields: &Fields<'_>) -> Result<Option<SavedDtype>> {
    for key in ["dtype", "torch_dtype"] {
        let Some(name) = fields.text(key)? else { continue };
        return match name {
            "float32" => Ok(Some(SavedDtype::Float32)),
            "bfloat16" => Ok(Some(SavedDtype::Bfloat16)),
            "float16" => Ok(Some(SavedDtype::Float16)),
            other => Err(fields.wrong(key, format!("\"{other}\""), "float32, bfloat16 or float16")),
        };
    }
    Ok(None)
}

impl ModelConfig {
    /// The error for a `model_type` that no architecture answers to.
    pub fn unknown_model_type(&self, known: &[&str]) -> ModelError {
        let near = known
            .iter()
            .map(|name| (strsim::jaro_winkler(name, &self.model_type), *name))
            .filter(|(score, _)| *score > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let error = self.fields().wrong(
            "model_type",
            format!("\"{}\"", self.model_type),
            format!("one of: {}", known.join(", ")),
        );
        match near {
            Some((_, name)) => error.with_hint(format!("did you mean \"{name}\"?")),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests;
