//! The base model of a run: where it is, its tokenizer, its weights, and how it speaks to the data stage.

use std::path::Path;

use mlx_rs_core::{Device, Dtype, Stream};
use models::Model;
use models::chat::Message as ChatMessage;
use models::generate::{GenerateOptions, Generation, generate};
use models::source::ModelSource;
use models::tokenizer::Tokenizer;
use models::weights::Compute;
use serde_json::Value;

use crate::config::Resolved;
use crate::config::value::ComputeDtype;
use crate::data::TextEncoder;
use crate::data::encoder::{EncoderError, MarkedText};
use crate::data::row::Message;
use crate::error::{Detail, Result, TrainError};

/// A tokenizer with its chat template, as the data stage wants it.
pub struct ModelText {
    tokenizer: Tokenizer,
    bos: Option<u32>,
    eos: Option<u32>,
}

impl ModelText {
    /// Wraps the tokenizer of `source`.
    ///
    /// # Errors
    /// A missing or broken tokenizer.
    pub fn load(source: &ModelSource) -> Result<Self> {
        let failed = |error| model_error("load the tokenizer", error);
        let tokenizer = source.tokenizer().map_err(failed)?;
        // Only a tokenizer that begins plain texts with it says so.
        let begun = tokenizer.encode("a", true).map_err(failed)?;
        let bos = tokenizer.bos_id().filter(|bos| begun.first() == Some(bos));
        Ok(Self { bos, eos: tokenizer.eos_id(), tokenizer })
    }

    /// The same with another token that ends a row, `data.eos_token`.
    ///
    /// # Errors
    /// A token that is not in the vocabulary.
    pub fn ending_with(self, resolved: &Resolved) -> Result<Self> {
        let Some(token) = &resolved.config.data.eos_token else { return Ok(self) };
        match self.tokenizer.id_of(token) {
            Some(id) => Ok(Self { eos: Some(id), ..self }),
            None => {
                let place = resolved.origins.of("data.eos_token").place();
                let got = format!("\"{token}\"");
                Err(TrainError::config(Detail::new(place, "data.eos_token", got, "a token of the model's vocabulary")))
            }
        }
    }

    /// The same for a model by its name in the configuration.
    ///
    /// # Errors
    /// No model there, or a missing or broken tokenizer.
    pub fn find(model: &str) -> Result<Self> {
        let source =
            ModelSource::resolve(model, Path::new("")).map_err(|error| model_error("find the model", error))?;
        Self::load(&source)
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The prompt of one user message, by the chat template if there is one.
    ///
    /// # Errors
    /// A template or a tokenizer that refuses it.
    pub fn prompt(&self, system: Option<&str>, user: &str, templated: bool) -> Result<Vec<u32>> {
        let failed = |error| model_error("write the prompt", error);
        let Some(template) = self.tokenizer.chat_template().filter(|_| templated) else {
            return self.tokenizer.encode(user, true).map_err(failed);
        };
        let system = system.map(|text| ChatMessage::new("system", text));
        let messages: Vec<ChatMessage> = system.into_iter().chain([ChatMessage::new("user", user)]).collect();
        let text = template.render(&messages, None, true, &[]).map_err(failed)?;
        // The template wrote its own special tokens.
        self.tokenizer.encode(&text, false).map_err(failed)
    }

    /// Answers `prompt`; `on_text` gets the answer as it grows.
    ///
    /// # Errors
    /// What generation reports.
    pub fn answer(
        &self,
        model: &Model,
        prompt: &[u32],
        options: &GenerateOptions,
        on_text: impl FnMut(&str) -> std::ops::ControlFlow<()>,
    ) -> Result<Generation> {
        generate(model, &self.tokenizer, prompt, options, on_text).map_err(|error| model_error("generate", error))
    }
}

impl TextEncoder for ModelText {
    fn encode(&self, text: &str) -> std::result::Result<Vec<u32>, EncoderError> {
        Ok(self.tokenizer.encode(text, false)?)
    }

    fn decode(&self, ids: &[u32]) -> std::result::Result<String, EncoderError> {
        Ok(self.tokenizer.decode(ids, false)?)
    }

    fn render(
        &self,
        messages: &[Message],
        tools: Option<&Value>,
        add_generation_prompt: bool,
    ) -> std::result::Result<String, EncoderError> {
        let template = self.tokenizer.require_chat_template()?;
        Ok(template.render(&chat(messages), tools, add_generation_prompt, &[])?)
    }

    fn render_assistant_spans(
        &self,
        messages: &[Message],
        tools: Option<&Value>,
    ) -> std::result::Result<Option<MarkedText>, EncoderError> {
        let template = self.tokenizer.require_chat_template()?;
        if !template.marks_assistant() {
            return Ok(None);
        }
        Ok(Some(template.render_with_assistant_spans(&chat(messages), tools, false, &[])?))
    }

    fn bos(&self) -> Option<u32> {
        self.bos
    }

    fn eos(&self) -> Option<u32> {
        self.eos
    }

    fn is_end(&self, id: u32) -> bool {
        self.eos == Some(id) || self.tokenizer.eos_ids().contains(&id)
    }

    fn has_template(&self) -> bool {
        self.tokenizer.chat_template().is_some()
    }
}

fn chat(messages: &[Message]) -> Vec<ChatMessage> {
    let turn = |message: &Message| ChatMessage {
        role: message.role.clone(),
        content: message.content.clone(),
        extra: message.extra.clone(),
    };
    messages.iter().map(turn).collect()
}

/// Loads the weights of `source`.
///
/// # Errors
/// Missing or broken files, an unknown architecture, tensors that do not fit.
pub fn load_model(source: &ModelSource, dtype: ComputeDtype) -> Result<Model> {
    let compute = compute(dtype)?;
    Model::load(source, compute).map_err(|error| model_error("load the model", error))
}

/// `auto` is f32 on a CPU, whose products are fast in f32 only, and the file's own dtype on a GPU.
///
/// # Errors
/// What MLX reports when it has no device.
pub fn compute(dtype: ComputeDtype) -> Result<Compute> {
    let device = Stream::current().and_then(|stream| stream.device());
    Ok(match dtype {
        ComputeDtype::F32 => Compute::Cast(Dtype::Float32),
        ComputeDtype::Bf16 => Compute::Cast(Dtype::Bfloat16),
        ComputeDtype::Auto => match device.map_err(|error| TrainError::model("find a device", error))? {
            Device::Cpu => Compute::Cast(Dtype::Float32),
            Device::Gpu(_) => Compute::AsStored,
        },
    })
}

/// A model that decodes fast on this device.
///
/// # Errors
/// What MLX reports.
pub fn for_decoding(model: &Model) -> Result<Model> {
    let device = Stream::current().and_then(|stream| stream.device());
    match device.map_err(|error| TrainError::model("find a device", error))? {
        Device::Cpu => model.dense().map_err(|error| model_error("unpack the weights", error)),
        Device::Gpu(_) => Ok(model.clone()),
    }
}

/// A model's error with its hint.
pub fn model_error(action: &str, error: models::ModelError) -> TrainError {
    let hint = error.hint().map(str::to_owned);
    let wrapped = TrainError::model(action, error);
    match hint {
        Some(hint) => wrapped.with_hint(hint),
        None => wrapped,
    }
}

/// An error of MLX in the middle of a run.
pub fn mlx_error(action: &'static str) -> impl Fn(mlx_rs_core::Error) -> TrainError {
    move |error| TrainError::model(action, error)
}
