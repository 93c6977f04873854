//! A golden folder: a checkpoint, the tensors that mlx-lm made from it, and how close ours must come.
//!
//! `tests/golden/README.md` says what each tensor is and where it comes from.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use mlx_rs_core::{Array, Dtype, io, ops};
use models::Model;
use models::lora::{Adapter, LoraSpec};
use models::weights::Compute;
use serde_json::Value;
use trainer::optimizer::AdamConfig;

use crate::peer;

/// The seven linears of a llama layer.
pub const PROJECTIONS: [&str; 7] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

/// A value passes when `|got − want| ≤ atol + rtol·|want|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Relative part.
    pub rtol: f64,
    /// Absolute part.
    pub atol: f64,
}

impl Tolerance {
    /// The very same numbers.
    pub const EXACT: Self = Self { rtol: 0.0, atol: 0.0 };

    /// An absolute bound.
    pub const fn absolute(atol: f64) -> Self {
        Self { rtol: 0.0, atol }
    }

    fn allows(self, got: f64, want: f64) -> bool {
        // A NaN or an infinity on either side fails here unless both are the same infinity.
        got == want || (got - want).abs() <= self.atol + self.rtol * want.abs()
    }
}

/// One golden, loaded.
pub struct Golden {
    name: String,
    folder: PathBuf,
    tensors: BTreeMap<String, Array>,
    meta: Value,
}

/// The folder that holds all goldens.
pub fn folder() -> PathBuf {
    peer::root().join("tests/golden")
}

/// Names of all golden folders, sorted.
///
/// # Panics
/// When the folder cannot be read.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("tests/golden can be read");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry of tests/golden").path())
        .filter(|path| path.join("golden.safetensors").is_file())
        .filter_map(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

impl Golden {
    /// Loads `tests/golden/<name>`.
    ///
    /// # Panics
    /// When a file is missing or broken.
    pub fn open(name: &str) -> Self {
        let folder = folder().join(name);
        let file = folder.join("golden.safetensors");
        let (tensors, _) = io::load_safetensors(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        let meta = fs::read_to_string(folder.join("meta.json")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let meta = serde_json::from_str(&meta).unwrap_or_else(|error| panic!("{name}/meta.json: {error}"));
        Self { name: name.to_owned(), folder, tensors, meta }
    }

    /// The folder with the checkpoint.
    pub fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// `meta.json`.
    pub fn meta(&self) -> &Value {
        &self.meta
    }

    /// The checkpoint of this golden, or the one it names, computing in float32.
    ///
    /// # Panics
    /// When it cannot be loaded.
    pub fn model(&self) -> Model {
        let folder = match self.meta["model"].as_str() {
            Some(other) => folder().join(other),
            None => self.folder.clone(),
        };
        Model::load_directory(&folder, Compute::Cast(Dtype::Float32))
            .unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The LoRA settings.
    ///
    /// # Panics
    /// When `meta.json` has none.
    pub fn lora_spec(&self) -> LoraSpec {
        let lora = &self.meta["lora"];
        let targets = match lora["keys"].as_array() {
            Some(keys) => keys.iter().map(|key| key.as_str().expect("a key").to_owned()).collect(),
            None => PROJECTIONS.map(str::to_owned).to_vec(),
        };
        LoraSpec {
            rank: lora["rank"].as_i64().expect("lora.rank") as i32,
            scale: lora["scale"].as_f64().expect("lora.scale") as f32,
            targets,
            num_layers: lora["num_layers"].as_i64().expect("lora.num_layers") as i32,
        }
    }

    /// The adapter as drawn from `seeds.lora`.
    ///
    /// # Panics
    /// When the settings do not fit the model.
    pub fn fresh_adapter(&self, model: &Model) -> Adapter {
        let seed = self.meta["seeds"]["lora"].as_u64().expect("seeds.lora");
        Adapter::new(model, &self.lora_spec(), seed).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The adapter `lora_start`, from which every gradient and curve starts.
    ///
    /// # Panics
    /// When it lacks a tensor of ours.
    pub fn start_adapter(&self, model: &Model) -> Adapter {
        let fresh = self.fresh_adapter(model);
        let named = fresh.parameter_names().into_iter().map(|name| self.tensor(&format!("lora_start.{name}")).clone());
        let parameters = named.collect();
        fresh.with_parameters(parameters).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// The optimizer's constants.
    ///
    /// # Panics
    /// When `meta.json` has none.
    pub fn adam(&self, bias_correction: bool) -> AdamConfig {
        let number = |value: &Value| value.as_f64().expect("a number of meta.optimizer");
        let optimizer = &self.meta["optimizer"];
        AdamConfig {
            betas: (number(&optimizer["betas"][0]), number(&optimizer["betas"][1])),
            eps: number(&optimizer["eps"]),
            weight_decay: number(&optimizer["weight_decay"]),
            bias_correction,
        }
    }

    /// The learning rate of the curves.
    ///
    /// # Panics
    /// When `meta.json` has none.
    pub fn learning_rate(&self) -> f64 {
        self.meta["optimizer"]["learning_rate"].as_f64().expect("optimizer.learning_rate")
    }

    /// A tensor by name.
    ///
    /// # Panics
    /// When there is none of this name.
    pub fn tensor(&self, name: &str) -> &Array {
        self.tensors.get(name).unwrap_or_else(|| panic!("golden {} has no tensor `{name}`", self.name))
    }

    /// A scalar as f64.
    ///
    /// # Panics
    /// When it is missing or no scalar.
    pub fn scalar(&self, name: &str) -> f64 {
        let values = host(self.tensor(name));
        assert_eq!(values.len(), 1, "{name} is no scalar");
        values[0]
    }

    /// An integer tensor, flat.
    ///
    /// # Panics
    /// When it is missing or not of integers.
    pub fn ints(&self, name: &str) -> Vec<i32> {
        self.tensor(name).to_vec::<i32>().unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// An integer tensor `[rows, columns]` as rows of token ids.
    ///
    /// # Panics
    /// When it is missing or not of integers.
    pub fn ids(&self, name: &str) -> Vec<Vec<u32>> {
        let width = self.tensor(name).shape()[1] as usize;
        let ids: Vec<u32> = self.ints(name).into_iter().map(|id| id as u32).collect();
        ids.chunks(width).map(<[u32]>::to_vec).collect()
    }

    /// The names of the tensors `group.NAME`, without the group.
    pub fn group(&self, group: &str) -> Vec<String> {
        let prefix = format!("{group}.");
        self.tensors.keys().filter_map(|name| name.strip_prefix(&prefix)).map(str::to_owned).collect()
    }

    /// The tolerance of a tensor's group.
    ///
    /// # Panics
    /// When `meta.json` has none.
    pub fn tolerance(&self, name: &str) -> Tolerance {
        let group = name.split('.').next().unwrap_or(name);
        let row = &self.meta["tolerances"][group];
        match (row["rtol"].as_f64(), row["atol"].as_f64()) {
            (Some(rtol), Some(atol)) => Tolerance { rtol, atol },
            _ => panic!("golden {} has no tolerance for the group `{group}`", self.name),
        }
    }

    /// Fails unless `got` is the golden's tensor `name` within its tolerance.
    ///
    /// # Panics
    /// When it is not.
    pub fn assert_close(&self, name: &str, got: &Array) {
        self.assert_close_to(name, name, got);
    }

    /// Fails unless `got` is the golden's tensor `want` within that tensor's tolerance.
    ///
    /// # Panics
    /// When it is not.
    pub fn assert_close_to(&self, label: &str, want: &str, got: &Array) {
        assert_close(&format!("{}/{label}", self.name), got, self.tensor(want), self.tolerance(want));
    }

    /// Fails unless `named` holds exactly the tensors of `group`, each within its tolerance.
    ///
    /// # Panics
    /// When it does not.
    pub fn assert_group_close(&self, group: &str, named: &[(String, Array)]) {
        let mut got: Vec<&String> = named.iter().map(|(name, _)| name).collect();
        got.sort();
        let want = self.group(group);
        assert!(got.iter().copied().eq(&want), "{}/{group}: got {got:?}, wanted {want:?}", self.name);
        for (name, array) in named {
            self.assert_close(&format!("{group}.{name}"), array);
        }
    }
}

/// Fails unless every value of `got` is close to that of `want`; prints the worst difference, which
/// `cargo test -- --nocapture` shows and from which `docs/PARITY.md` takes its figures.
///
/// # Panics
/// When they differ: in shape, or by more than the tolerance allows.
pub fn assert_close(name: &str, got: &Array, want: &Array, tolerance: Tolerance) {
    assert_eq!(got.shape(), want.shape(), "{name}: shapes differ");
    match compare(&host(got), &host(want), got.shape(), tolerance) {
        Ok(worst) => println!("parity {name} worst {worst:.2e}"),
        Err(difference) => panic!("{name}: {difference}"),
    }
}

/// Values of any dtype as f64, in row order.
///
/// # Panics
/// When they cannot be computed.
pub fn host(array: &Array) -> Vec<f64> {
    // float64 lives on the CPU only, so the widening happens here and not in MLX.
    let narrow = |array: &Array| array.astype(Dtype::Float32)?.to_vec::<f32>();
    let values = if array.dtype() == Dtype::Float64 {
        array.to_vec::<f64>()
    } else {
        narrow(array).map(|values| values.into_iter().map(f64::from).collect())
    };
    values.unwrap_or_else(|error| panic!("the values of an array cannot be read: {error}"))
}

/// The values that differ too much.
struct Difference {
    count: usize,
    total: usize,
    at: Vec<usize>,
    got: f64,
    want: f64,
    first_got: Vec<f64>,
    first_want: Vec<f64>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, total, at, got, want, first_got, first_want } = self;
        write!(
            f,
            "{count} of {total} values differ; the worst at {at:?}: got {got}, wanted {want}, difference {:e}\n  \
             got    {first_got:?} …\n  wanted {first_want:?} …",
            got - want
        )
    }
}

/// The worst absolute difference, or what differs too much.
fn compare(got: &[f64], want: &[f64], shape: &[i32], tolerance: Tolerance) -> Result<f64, Difference> {
    let excess = |got: f64, want: f64| {
        let excess = (got - want).abs() - tolerance.atol - tolerance.rtol * want.abs();
        if excess.is_nan() { f64::INFINITY } else { excess }
    };
    let wrong = |index: &usize| !tolerance.allows(got[*index], want[*index]);
    let bad: Vec<usize> = (0..want.len()).filter(wrong).collect();
    let worst = bad.iter().max_by(|a, b| excess(got[**a], want[**a]).total_cmp(&excess(got[**b], want[**b])));
    match worst {
        None => {
            Ok(got.iter().zip(want).filter(|(got, want)| got != want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max))
        }
        Some(&index) => Err(Difference {
            count: bad.len(),
            total: want.len(),
            at: unravel(index, shape),
            got: got[index],
            want: want[index],
            first_got: got.iter().take(4).copied().collect(),
            first_want: want.iter().take(4).copied().collect(),
        }),
    }
}

/// The index along each axis.
fn unravel(mut index: usize, shape: &[i32]) -> Vec<usize> {
    let mut at: Vec<usize> = Vec::with_capacity(shape.len());
    for size in shape.iter().rev() {
        at.push(index % *size as usize);
        index /= *size as usize;
    }
    at.reverse();
    at
}

/// `x[:, from..to]` of a matrix.
///
/// # Panics
/// When the bounds do not fit.
pub fn columns(x: &Array, from: i32, to: i32) -> Array {
    ops::slice(x, &[0, from], &[x.shape()[0], to], &[1, 1]).expect("columns within the matrix")
}

#[cfg(test)]
mod tests;
