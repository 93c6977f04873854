//! `generate`: an answer of a model, with or without an adapter.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use models::Model;
use models::generate::GenerateOptions;
use models::lora::Adapter;
use models::sample::SamplingOptions;
use models::source::ModelSource;

use super::print;
use crate::base::{self, ModelText, model_error};
use crate::checkpoint;
use crate::cli::{ConfigArgs, GenerateArgs};
use crate::config::value::ComputeDtype;
use crate::error::Result;
use crate::output::{ADAPTER_FILE, CONFIG_FILE};

/// Answers the prompt of `args`; the answer goes to `out` as it grows, its figures to `notes`.
///
/// # Errors
/// A model or adapter that cannot be loaded, sampling options out of range, or when `out` cannot be written.
pub fn run(args: &GenerateArgs, out: &mut dyn Write, notes: &mut dyn Write) -> Result<()> {
    let (model_spec, adapter) = resolve(args)?;
    let source = ModelSource::resolve(&model_spec, Path::new("")).map_err(|e| model_error("find the model", e))?;
    let text = ModelText::load(&source)?;
    let model = base::load_model(&source, ComputeDtype::Auto)?;
    let model = match &adapter {
        Some(folder) => adapted(&model, folder)?,
        None => model,
    };
    let prompt = text.prompt(args.system_prompt.as_deref(), &args.prompt, !args.ignore_chat_template)?;
    let mut failure = None;
    let answer =
        text.answer(&base::for_decoding(&model)?, &prompt, &options(args), |piece| match print(out, piece) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        })?;
    failure.map_or(Ok(()), Err)?;
    print(out, "\n")?;
    let rate = |count: usize, time: std::time::Duration| count as f64 / time.as_secs_f64().max(1e-9);
    print(
        notes,
        &format!(
            "prompt {} tokens, {:.1} tokens/s; answer {} tokens, {:.1} tokens/s\n",
            prompt.len(),
            rate(prompt.len(), answer.prefill),
            answer.ids.len(),
            rate(answer.ids.len(), answer.decode)
        ),
    )
}

/// The model, and the folder of the adapter. A run's folder names both.
fn resolve(args: &GenerateArgs) -> Result<(String, Option<PathBuf>)> {
    let Some(run) = &args.run else {
        return Ok((args.model.clone().unwrap_or_default(), args.adapter_path.clone()));
    };
    let model = match &args.model {
        Some(model) => model.clone(),
        None => {
            let config = ConfigArgs { file: Some(run.join(CONFIG_FILE)), ..ConfigArgs::default() };
            config.load_with(Vec::new())?.config.model.path.as_str().to_owned()
        }
    };
    Ok((model, Some(run.clone())))
}

fn adapted(model: &Model, folder: &Path) -> Result<Model> {
    let scale = checkpoint::read_scale(folder)?;
    Adapter::load(model, &folder.join(ADAPTER_FILE), scale)
        .and_then(|adapter| adapter.apply(model))
        .map_err(|error| model_error("load the adapter", error))
}

fn options(args: &GenerateArgs) -> GenerateOptions {
    GenerateOptions {
        max_tokens: args.max_tokens,
        stop_ids: Vec::new(),
        sampling: SamplingOptions {
            temperature: args.temp,
            top_p: args.top_p,
            top_k: args.top_k,
            min_p: args.min_p,
            repetition_penalty: args.repetition_penalty,
            seed: args.seed,
            ..SamplingOptions::default()
        },
    }
}
