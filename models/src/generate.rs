//! The decoding loop: prefill, then one token at a time.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use mlx_rs_core::{Array, Dtype, ops, transforms};

use crate::error::{ModelError, Result};
use crate::model::Model;
use crate::nn::{KvCache, Mask};
use crate::sample::{Sampler, SamplingOptions};
use crate::tokenizer::Tokenizer;

/// Prompt tokens per forward pass: bounds the memory of a long prompt.
const PREFILL_STEP: usize = 512;

/// How to decode.
#[derive(Debug, Clone)]
pub struct GenerateOptions {
    /// Most tokens to produce.
    pub max_tokens: usize,
    /// Ids that end the text, beside the tokenizer's own.
    pub stop_ids: Vec<u32>,
    /// Temperature, filters, penalties, seed.
    pub sampling: SamplingOptions,
}

/// Why decoding ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// A stop id was sampled.
    Stop,
    /// `max_tokens` were produced.
    Length,
    /// The caller asked to stop.
    Cancelled,
}

/// A finished text with its figures.
#[derive(Debug, Clone)]
pub struct Generation {
    /// The new tokens, without the stop id.
    pub ids: Vec<u32>,
    /// Their text.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
    /// Time of the prompt's forward passes.
    pub prefill: Duration,
    /// Time of the rest.
    pub decode: Duration,
}

/// Continues `prompt`, handing each piece of text to `on_text` as soon as its characters are complete.
///
/// # Errors
/// An empty prompt, ids outside of the vocabulary, or what MLX reports.
pub fn generate(
    model: &Model,
    tokenizer: &Tokenizer,
    prompt: &[u32],
    options: &GenerateOptions,
    mut on_text: impl FnMut(&str) -> ControlFlow<()>,
) -> Result<Generation> {
    let mut sampler = Sampler::new(options.sampling)?;
    let mut decoder = tokenizer.decode_stream(true);
    let mut cache = model.new_cache();
    let start = Instant::now();
    let mut logits = prefill(model, prompt, &mut cache)?;
    let limit = tokenizer.id_limit();
    let prefill = start.elapsed();
    let (mut history, mut ids, mut text) = (prompt.to_vec(), Vec::new(), String::new());
    let mut finish = Finish::Length;
    while ids.len() < options.max_tokens {
        // Embeddings are often padded: an id that the tokenizer does not have must not be drawn.
        logits.iter_mut().skip(limit).for_each(|logit| *logit = f32::NEG_INFINITY);
        let token = sampler.sample(&logits, &history)?;
        if tokenizer.eos_ids().contains(&token) || options.stop_ids.contains(&token) {
            finish = Finish::Stop;
            break;
        }
        ids.push(token);
        history.push(token);
        if let Some(piece) = decoder.push(token)? {
            text.push_str(&piece);
            if on_text(&piece).is_break() {
                finish = Finish::Cancelled;
                break;
            }
        }
        if ids.len() < options.max_tokens {
            logits = step(model, &[token], &mut cache)?;
        }
    }
    if let Some(rest) = decoder.finish()?
        && finish != Finish::Cancelled
    {
        text.push_str(&rest);
        // The text is over, so there is nothing left to stop.
        let _ = on_text(&rest);
    }
    Ok(Generation { ids, text, finish, prefill, decode: start.elapsed() - prefill })
}

/// Runs the prompt through the model in bounded pieces; returns the last position's logits.
fn prefill(model: &Model, prompt: &[u32], cache: &mut [KvCache]) -> Result<Vec<f32>> {
    let vocabulary = model.config().vocab_size;
    if let Some(id) = prompt.iter().find(|id| **id as usize >= vocabulary) {
        return Err(ModelError::generation(format!("prompt has id {id}, but the vocabulary has {vocabulary}")));
    }
    let Some((last, head)) = prompt.split_last() else {
        return Err(ModelError::generation("the prompt has no tokens"));
    };
    for piece in head.chunks(PREFILL_STEP) {
        model.hidden(&tokens(piece)?, Some(cache), &Mask::Causal)?;
        transforms::eval(cache.iter().flat_map(KvCache::arrays))?;
    }
    step(model, std::slice::from_ref(last), cache)
}

/// One forward pass; returns the last position's logits, f32 `[vocabulary]`.
fn step(model: &Model, ids: &[u32], cache: &mut [KvCache]) -> Result<Vec<f32>> {
    let hidden = model.hidden(&tokens(ids)?, Some(cache), &Mask::Causal)?; // [1, L, H]
    let (length, width) = (hidden.dim(1)?, hidden.dim(2)?);
    let last = ops::slice(&hidden, &[0, length - 1, 0], &[1, length, width], &[1, 1, 1])?;
    let logits = model.head(&last)?.astype(Dtype::Float32)?;
    transforms::eval(cache.iter().flat_map(KvCache::arrays).chain([&logits]))?;
    Ok(logits.to_vec()?)
}

/// Ids as a batch of one row.
fn tokens(ids: &[u32]) -> Result<Array> {
    let ids: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
    Ok(Array::from_slice(&ids, &[1, ids.len() as i32])?)
}

#[cfg(test)]
mod tests;
