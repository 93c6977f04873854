//! Low-rank adapters (Hu et al. 2021): which linears get one, how they start, how they reach a model and a file.
//!
//! `W` stays frozen; a target computes `x·Wᵀ + scale·(x·A)·B` with `A` `[in, rank]` drawn from `U(±1/√in)` and `B`
//! `[rank, out]` zero. Names, shapes and the meaning of `scale` are mlx-lm's, so the files load there.

use std::collections::BTreeMap;
use std::path::Path;

use mlx_rs_core::{Array, Dtype, io, ops, random};

use crate::error::{ModelError, Result};
use crate::model::Model;
use crate::nn::{Linear, LoraPair};
use crate::weights::check_finite;

/// What to adapt and how.
#[derive(Debug, Clone, PartialEq)]
pub struct LoraSpec {
    /// Rank of every pair.
    pub rank: i32,
    /// What the product is multiplied by (`alpha / rank` in other tools' terms).
    pub scale: f32,
    /// Ends of the paths to adapt, in whole components: `q_proj`, `self_attn.q_proj`, …
    pub targets: Vec<String>,
    /// How many of the last layers; -1 is all.
    pub num_layers: i32,
}

/// One adapted linear.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Path of the linear in the weight file.
    pub path: String,
    /// Input features.
    pub in_features: i32,
    /// Output features.
    pub out_features: i32,
    /// Rank of its pair.
    pub rank: i32,
    /// What its product is multiplied by.
    pub scale: f32,
}

/// An adapter as a value: its targets sorted by path, and its parameters — all A in that order, then all B.
#[derive(Clone)]
pub struct Adapter {
    targets: Vec<Target>,
    parameters: Vec<Array>,
}

impl Adapter {
    /// A fresh adapter for `model`: A drawn as mlx-lm draws it from `seed` (bit for bit for Llama), B zero.
    ///
    /// # Errors
    /// No linear matches, a target name that matches none, more layers than the model has, a rank below 1 or above both
    /// sizes of a linear.
    pub fn new(model: &Model, spec: &LoraSpec, seed: u64) -> Result<Self> {
        let mut chosen = choose(model, spec)?;
        let mut chain = KeyChain::new(seed)?;
        let mut pairs = Vec::with_capacity(chosen.len());
        for target in draw_order(&mut chosen) {
            // mlx-lm builds a throw-away linear before each A: one draw of the chain.
            chain.next()?;
            let bound = (1.0 / f64::from(target.in_features).sqrt()) as f32;
            let shape = [target.in_features, target.rank];
            let a = random::uniform(-bound, bound, &shape, Dtype::Float32, Some(&chain.next()?))?;
            let b = ops::zeros(&[target.rank, target.out_features], Dtype::Float32)?;
            pairs.push((target, a, b));
        }
        Self::from_pairs(pairs)
    }

    fn from_pairs(mut pairs: Vec<(Target, Array, Array)>) -> Result<Self> {
        pairs.sort_by(|left, right| left.0.path.cmp(&right.0.path));
        let mut targets = Vec::with_capacity(pairs.len());
        let (mut parameters, mut ups) = (Vec::with_capacity(2 * pairs.len()), Vec::with_capacity(pairs.len()));
        for (target, a, b) in pairs {
            targets.push(target);
            parameters.push(a);
            ups.push(b);
        }
        parameters.append(&mut ups);
        mlx_rs_core::transforms::eval(&parameters)?;
        Ok(Self { targets, parameters })
    }

    /// The adapted linears, sorted by path.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// All A in target order, then all B; f32.
    pub fn parameters(&self) -> &[Array] {
        &self.parameters
    }

    /// The name of each parameter in the file, in the order of [`Adapter::parameters`].
    pub fn parameter_names(&self) -> Vec<String> {
        let named = |suffix: &'static str| self.targets.iter().map(move |target| format!("{}.{suffix}", target.path));
        named("lora_a").chain(named("lora_b")).collect()
    }

    /// The same adapter with other values.
    ///
    /// # Errors
    /// Another number of parameters or other shapes.
    pub fn with_parameters(&self, parameters: Vec<Array>) -> Result<Self> {
        let fits = parameters.len() == self.parameters.len()
            && parameters.iter().zip(&self.parameters).all(|(new, old)| new.shape() == old.shape());
        if !fits {
            return Err(ModelError::adapter("the new parameters do not have the shapes of the adapter's"));
        }
        Ok(Self { targets: self.targets.clone(), parameters })
    }

    /// Number of trainable values.
    pub fn parameter_count(&self) -> usize {
        self.parameters.iter().map(Array::size).sum()
    }

    /// A copy of `model` that computes with `parameters` (traced or not) in this adapter's slots.
    ///
    /// # Errors
    /// A target that the model lacks.
    pub fn install(&self, model: &Model, parameters: &[Array]) -> Result<Model> {
        let count = self.targets.len();
        if parameters.len() != 2 * count {
            return Err(ModelError::adapter(format!("{} parameters for {count} targets", parameters.len())));
        }
        let mut model = model.clone();
        {
            let mut slots: BTreeMap<String, &mut Linear> = model.linears_mut().into_iter().collect();
            for (index, target) in self.targets.iter().enumerate() {
                let slot = slots.get_mut(&target.path).ok_or_else(|| missing_target(&target.path))?;
                slot.lora = Some(LoraPair {
                    a: parameters[index].clone(),
                    b: parameters[count + index].clone(),
                    scale: target.scale,
                });
            }
        }
        Ok(model)
    }

    /// A copy of `model` with this adapter in force.
    ///
    /// # Errors
    /// A target that the model lacks.
    pub fn apply(&self, model: &Model) -> Result<Model> {
        self.install(model, &self.parameters)
    }

    /// The tensors of an adapter file: `<path>.lora_a`, `<path>.lora_b`.
    pub fn tensors(&self) -> BTreeMap<String, Array> {
        self.parameter_names().into_iter().zip(self.parameters.iter().cloned()).collect()
    }

    /// Reads an adapter file for `model`; every tensor must belong to a pair that fits.
    ///
    /// # Errors
    /// A half pair, a foreign name, a shape that does not fit, a value that is not finite; the error names the tensor.
    pub fn load(model: &Model, file: &Path, scale: f32) -> Result<Self> {
        let (mut tensors, _) = io::load_safetensors(file)?;
        check_finite(&tensors, file)?;
        let slots: BTreeMap<String, &Linear> = model.linears().into_iter().collect();
        let mut pairs = Vec::new();
        let paths: Vec<String> =
            tensors.keys().filter_map(|name| name.strip_suffix(".lora_a").map(str::to_owned)).collect();
        for path in paths {
            let linear = slots.get(&path).ok_or_else(|| missing_target(&path))?;
            let a = tensors.remove(&format!("{path}.lora_a")).ok_or_else(|| missing_target(&path))?;
            let b = tensors
                .remove(&format!("{path}.lora_b"))
                .ok_or_else(|| ModelError::adapter(format!("`{path}` has lora_a but no lora_b")))?;
            let target = fitted(&path, linear, &a, &b, scale)?;
            pairs.push((target, a.astype(Dtype::Float32)?, b.astype(Dtype::Float32)?));
        }
        if let Some(name) = tensors.keys().next() {
            return Err(ModelError::adapter(format!("tensor `{name}` belongs to no lora_a/lora_b pair")));
        }
        if pairs.is_empty() {
            return Err(ModelError::adapter(format!("{} holds no lora_a/lora_b pair", file.display())));
        }
        Self::from_pairs(pairs)
    }
}

fn missing_target(path: &str) -> ModelError {
    ModelError::adapter(format!("the model has no linear `{path}`: was the adapter made for another base?"))
}

/// Checks a loaded pair against its linear.
fn fitted(path: &str, linear: &Linear, a: &Array, b: &Array, scale: f32) -> Result<Target> {
    let (in_features, out_features) = (linear.weight.in_features(), linear.weight.out_features());
    let rank = a.shape().get(1).copied().unwrap_or(0);
    if a.shape() != [in_features, rank] || b.shape() != [rank, out_features] || rank < 1 {
        return Err(ModelError::adapter(format!(
            "`{path}`: lora_a is {:?} and lora_b {:?}, wanted [{in_features}, r] and [r, {out_features}]: \
             was the adapter made for another base?",
            a.shape(),
            b.shape()
        )));
    }
    Ok(Target { path: path.to_owned(), in_features, out_features, rank, scale })
}

/// A chosen linear with its layer, in definition order.
struct Chosen {
    layer: usize,
    target: Target,
}

fn choose(model: &Model, spec: &LoraSpec) -> Result<Vec<Chosen>> {
    let total = model.num_layers();
    if spec.rank < 1 {
        return Err(ModelError::adapter(format!("rank is {}, wanted at least 1", spec.rank)));
    }
    let adapted = match usize::try_from(spec.num_layers) {
        Ok(count) if count == 0 || count > total => {
            return Err(ModelError::adapter(format!(
                "num_layers is {count}, but the model has {total} layers (-1 adapts all)"
            )));
        }
        Ok(count) => count,
        Err(_) => total,
    };
    let mut unmatched: Vec<&String> = spec.targets.iter().collect();
    let mut chosen = Vec::new();
    let mut known = Vec::new();
    for (path, linear) in model.linears() {
        let name = path.rsplit('.').next().unwrap_or_default().to_owned();
        let matched = spec.targets.iter().any(|target| is_target(&path, target));
        unmatched.retain(|target| !is_target(&path, target));
        if !known.contains(&name) {
            known.push(name);
        }
        let layer = layer_index(&path);
        if matched && layer >= total - adapted {
            let (in_features, out_features) = (linear.weight.in_features(), linear.weight.out_features());
            // No update has a higher rank, and sizes beyond memory would end the process inside MLX.
            if spec.rank > in_features.max(out_features) {
                let limit = format!("[{in_features}, {out_features}], the sizes of `{path}`");
                return Err(ModelError::adapter(format!(
                    "rank is {}, wanted at most the greater of {limit}",
                    spec.rank
                )));
            }
            let target = Target { path, in_features, out_features, rank: spec.rank, scale: spec.scale };
            chosen.push(Chosen { layer, target });
        }
    }
    if let Some(target) = unmatched.first() {
        let known = known.join(", ");
        return Err(ModelError::adapter(format!("target `{target}` matches no linear of the model (it has: {known})")));
    }
    if chosen.is_empty() {
        return Err(ModelError::adapter("no targets are given"));
    }
    Ok(chosen)
}

/// Whether the last components of `path` are those of `target`: `…self_attn.q_proj` for `q_proj`.
pub fn is_target(path: &str, target: &str) -> bool {
    path.strip_suffix(target).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn layer_index(path: &str) -> usize {
    let mut parts = path.split('.');
    parts.find(|part| *part == "layers");
    parts.next().and_then(|index| index.parse().ok()).unwrap_or(0)
}

/// mlx-lm walks the layers upwards, and inside a layer from the last defined module to the first.
fn draw_order(chosen: &mut Vec<Chosen>) -> Vec<Target> {
    chosen.reverse();
    chosen.sort_by_key(|chosen| chosen.layer);
    chosen.drain(..).map(|chosen| chosen.target).collect()
}

/// MLX's global generator as a value: each draw splits the state and uses the second half.
struct KeyChain(Array);

impl KeyChain {
    fn new(seed: u64) -> Result<Self> {
        Ok(Self(random::key(seed)?))
    }

    fn next(&mut self) -> Result<Array> {
        let keys = random::split(&self.0, 2)?; // [2, 2]
        let half = |row: i32| -> mlx_rs_core::Result<Array> {
            ops::slice(&keys, &[row, 0], &[row + 1, 2], &[1, 1])?.reshape(&[2])
        };
        self.0 = half(0)?;
        Ok(half(1)?)
    }
}

#[cfg(test)]
mod tests;
