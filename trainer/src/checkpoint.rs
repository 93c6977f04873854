//! What a run leaves on disk, and how it comes back.
//!
//! ```text
//! adapters.safetensors, adapter_config.json     the newest adapter, as mlx-lm loads it
//! 0000100_adapters.safetensors                  the adapter after step 100
//! 0000100_optimizer_state.safetensors           `<parameter>.m`, `<parameter>.v`, f32; of the newest step only
//! trainer_state.json                            which step that is, counters, fingerprint of the run
//! ```
//!
//! Every file is written beside its place, synced and renamed. `trainer_state.json` comes last and names the step whose
//! files belong together, so a run that is killed while it saves resumes from the save before.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mlx_rs_core::{Array, Dtype};
use models::lora::{Adapter, LoraSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Detail, Place, Result, Stage, TrainError};
use crate::fingerprint::Fingerprint;
use crate::optimizer::Adam;
use crate::output::{ADAPTER_CONFIG_FILE, ADAPTER_FILE, OPTIMIZER_FILE, RunFolder, STATE_FILE, write_atomically};
use crate::step::{StepReport, TrainState};

/// Counters of a run at a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Optimizer steps taken, skipped ones included: it places the run in the data.
    pub step: u64,
    /// Steps that changed the parameters: the optimizer's own count.
    pub applied_steps: u64,
    /// Supervised tokens seen.
    pub trained_tokens: u64,
    /// Steps skipped because they were not finite.
    pub skipped_steps: u64,
    /// Fingerprint of everything that decides the numbers: another one cannot resume.
    pub fingerprint: Fingerprint,
}

impl Progress {
    /// Before the first step.
    pub fn start(fingerprint: Fingerprint) -> Self {
        Self { step: 0, applied_steps: 0, trained_tokens: 0, skipped_steps: 0, fingerprint }
    }

    /// Counts a step that saw `tokens` targets.
    pub fn count(&mut self, step: u64, tokens: u64, report: &StepReport) {
        self.step = step;
        if report.applied {
            self.applied_steps += 1;
            self.trained_tokens += tokens;
        } else {
            self.skipped_steps += 1;
        }
    }
}

/// Writes adapters and checkpoints of one run.
pub struct Checkpointer<'a> {
    folder: &'a RunFolder,
    adapter_config: Value,
    keep: u64,
}

impl<'a> Checkpointer<'a> {
    /// For a run's folder; `keep` numbered adapters are kept, 0 keeps all.
    pub fn new(folder: &'a RunFolder, adapter_config: Value, keep: u64) -> Self {
        Self { folder, adapter_config, keep }
    }

    /// Saves adapter and state after `progress.step`; returns both adapter files.
    ///
    /// # Errors
    /// A parameter that is not finite, a file that cannot be written; what was saved before stays usable.
    pub fn save(&self, adapter: &Adapter, state: &TrainState, progress: &Progress) -> Result<(PathBuf, PathBuf)> {
        let (newest, numbered) = (self.folder.path(ADAPTER_FILE), self.folder.checkpoint(progress.step));
        let parameters = host(named(adapter, &state.parameters, ""))?;
        require_finite(&parameters, progress.step)?;
        write_tensors(&numbered, &parameters)?;
        let (first, second) = state.optimizer.moments();
        let mut moments = named(adapter, first, ".m");
        moments.extend(named(adapter, second, ".v"));
        let optimizer = optimizer_file(self.folder, progress.step);
        write_tensors(&optimizer, &host(moments)?)?;
        write_tensors(&newest, &parameters)?;
        write_json(&self.folder.path(ADAPTER_CONFIG_FILE), &self.adapter_config)?;
        write_json(&self.folder.path(STATE_FILE), &json!(progress))?;
        self.folder.keep_newest(self.keep)?;
        self.folder.remove_optimizer_states_but(&optimizer)?;
        Ok((newest, numbered))
    }
}

fn optimizer_file(folder: &RunFolder, step: u64) -> PathBuf {
    folder.path(&format!("{step:07}_{OPTIMIZER_FILE}"))
}

fn named<'a>(adapter: &Adapter, arrays: &'a [Array], suffix: &str) -> Vec<(String, &'a Array)> {
    adapter.parameter_names().into_iter().map(|name| name + suffix).zip(arrays).collect()
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    write_atomically(path, |out| writeln!(out, "{value:#}"))
}

/// Reads the newest save of the run in `folder` back into the adapter's shape.
///
/// # Errors
/// A missing or broken file, a save of another configuration, tensors that do not fit the adapter.
pub fn load(
    folder: &RunFolder,
    adapter: &Adapter,
    optimizer: &Adam,
    fingerprint: &Fingerprint,
) -> Result<(TrainState, Progress)> {
    let state_path = folder.path(STATE_FILE);
    let text =
        fs::read_to_string(&state_path).map_err(|e| TrainError::io(Stage::Checkpoint, "read", &state_path, e))?;
    let progress: Progress = serde_json::from_str(&text)
        .map_err(|error| broken(&state_path, "", error.to_string(), "the state of a run"))?;
    if let Some(found) = fingerprint.difference(&progress.fingerprint) {
        let detail = Detail::new(Place::file(&state_path), found.field, found.saved, found.wanted);
        let hint = "resume with the configuration that is saved beside it, or start anew with --overwrite";
        return Err(TrainError::checkpoint(detail.hint(hint)));
    }
    let weights_path = folder.checkpoint(progress.step);
    let moments_path = optimizer_file(folder, progress.step);
    let (mut weights, mut moments) = (read_tensors(&weights_path)?, read_tensors(&moments_path)?);
    let (mut parameters, mut first, mut second) = (vec![], vec![], vec![]);
    for (name, like) in adapter.parameter_names().iter().zip(adapter.parameters()) {
        parameters.push(take(&mut weights, &weights_path, name, like)?);
        first.push(take(&mut moments, &moments_path, &format!("{name}.m"), like)?);
        second.push(take(&mut moments, &moments_path, &format!("{name}.v"), like)?);
    }
    let optimizer = optimizer.resumed(progress.applied_steps, first, second);
    Ok((TrainState { parameters, optimizer }, progress))
}

/// `adapter_config.json`: mlx-lm's keys, and PEFT's names of the same facts for people and other tools.
pub fn adapter_config(adapter: &Adapter, spec: &LoraSpec, model: &str, total_layers: usize) -> Value {
    let layers = if spec.num_layers < 0 { total_layers as i32 } else { spec.num_layers };
    // mlx-lm resolves keys inside a layer: the part of the path after the layer's index.
    let mut keys: Vec<String> = adapter
        .targets()
        .iter()
        .filter_map(|target| target.path.split(".layers.").nth(1)?.split_once('.').map(|(_, key)| key.to_owned()))
        .collect();
    keys.sort();
    keys.dedup();
    json!({
        "fine_tune_type": "lora",
        "model": model,
        "num_layers": layers,
        "lora_parameters": {"rank": spec.rank, "scale": spec.scale, "dropout": 0.0, "keys": keys},
        "base_model_name_or_path": model,
        "r": spec.rank,
        "lora_alpha": f64::from(spec.scale) * f64::from(spec.rank),
        "lora_dropout": 0.0,
        "target_modules": spec.targets,
    })
}

/// The multiplier that the adapter in `folder` was trained with.
///
/// # Errors
/// No `adapter_config.json`, or one without `lora_parameters.scale`.
pub fn read_scale(folder: &Path) -> Result<f32> {
    let path = folder.join(ADAPTER_CONFIG_FILE);
    let text = fs::read_to_string(&path).map_err(|error| TrainError::io(Stage::Checkpoint, "read", &path, error))?;
    let config: Value =
        serde_json::from_str(&text).map_err(|error| broken(&path, "", error.to_string(), "a JSON object"))?;
    let scale = config.get("lora_parameters").and_then(|parameters| parameters.get("scale")).and_then(Value::as_f64);
    scale.map(|scale| scale as f32).ok_or_else(|| broken(&path, "lora_parameters.scale", "no number", "the scale"))
}

/// Values of f32 tensors by name: shape and little-endian bytes.
type HostTensors = BTreeMap<String, (Vec<usize>, Vec<u8>)>;

fn host(tensors: Vec<(String, &Array)>) -> Result<HostTensors> {
    let mut values = HostTensors::new();
    for (name, array) in tensors {
        let shape = array.shape().iter().map(|dim| *dim as usize).collect();
        let bytes = array
            .astype(Dtype::Float32)
            .and_then(|array| array.to_bytes())
            .map_err(|error| TrainError::model(format!("read the values of {name}"), error))?;
        values.insert(name, (shape, bytes));
    }
    Ok(values)
}

/// A save must never replace a good adapter by one that computes nothing.
fn require_finite(tensors: &HostTensors, step: u64) -> Result<()> {
    for (name, (_, bytes)) in tensors {
        let mut numbers = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_ne_bytes(*bytes));
        if let Some(number) = numbers.find(|number| !number.is_finite()) {
            let detail =
                Detail::new(Place::Nowhere, format!("step {step}: {name}"), number.to_string(), "finite values");
            return Err(TrainError::training(
                detail.hint("nothing was written, an earlier save is untouched; lower optimizer.learning_rate"),
            ));
        }
    }
    Ok(())
}

/// Writes f32 tensors as safetensors, in name order.
fn write_tensors(path: &Path, tensors: &HostTensors) -> Result<()> {
    let mut views = Vec::new();
    for (name, (shape, values)) in tensors {
        let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), values);
        views.push((name.clone(), view.map_err(|error| broken(path, name, error.to_string(), "a tensor"))?));
    }
    // Readers such as transformers refuse metadata without `format`.
    let metadata = std::collections::HashMap::from([("format".to_owned(), "mlx".to_owned())]);
    let file = safetensors::serialize(views, Some(metadata))
        .map_err(|error| broken(path, "", error.to_string(), "tensors that can be written"))?;
    write_atomically(path, |out| out.write_all(&file))
}

fn read_tensors(path: &Path) -> Result<BTreeMap<String, Array>> {
    mlx_rs_core::io::load_safetensors(path)
        .map(|(tensors, _)| tensors)
        .map_err(|error| TrainError::model(format!("read {}", path.display()), error))
}

fn take(tensors: &mut BTreeMap<String, Array>, dir: &Path, name: &str, like: &Array) -> Result<Array> {
    let tensor = tensors.remove(name).ok_or_else(|| broken(dir, name, "no such tensor", "the tensor"))?;
    if tensor.shape() == like.shape() {
        return Ok(tensor);
    }
    Err(broken(dir, name, format!("shape {:?}", tensor.shape()), format!("shape {:?}", like.shape())))
}

fn broken(path: &Path, field: &str, got: impl Into<String>, wanted: impl Into<String>) -> TrainError {
    TrainError::checkpoint(Detail::new(Place::file(path), field, got, wanted))
}
