//! Adam (Kingma and Ba 2015) and AdamW with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2).
//!
//! Moments are f32. Per step `t`, with `ĉ₁ = 1 − β₁ᵗ` and `ĉ₂ = 1 − β₂ᵗ` (1 when bias correction is off, as in MLX's
//! own default):
//!
//! ```text
//! m ← β₁·m + (1 − β₁)·g        v ← β₂·v + (1 − β₂)·g²
//! p ← p·(1 − lr·wd)            p ← p − lr/ĉ₁ · m / (sqrt(v)/sqrt(ĉ₂) + ε)
//! ```

use mlx_rs_core::{Array, Dtype, Result, ops};

/// Constants of the update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamConfig {
    /// Decay of the first and of the second moment.
    pub betas: (f64, f64),
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled decay per unit of learning rate; 0 is Adam.
    pub weight_decay: f64,
    /// Whether the moments are divided by `1 − βᵗ`.
    pub bias_correction: bool,
}

/// The optimizer's state as a value: an update gives the next state, and the old one stays valid until it is dropped.
#[derive(Clone)]
pub struct Adam {
    config: AdamConfig,
    step: u64,
    first: Vec<Array>,
    second: Vec<Array>,
}

impl Adam {
    /// Zero moments for parameters of these shapes.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn new(config: AdamConfig, parameters: &[Array]) -> Result<Self> {
        let zeros = || parameters.iter().map(|p| ops::zeros(p.shape(), Dtype::Float32)).collect::<Result<Vec<_>>>();
        Ok(Self { config, step: 0, first: zeros()?, second: zeros()? })
    }

    /// The same constants with the state of an earlier run.
    pub fn resumed(&self, step: u64, first: Vec<Array>, second: Vec<Array>) -> Self {
        Self { config: self.config, step, first, second }
    }

    /// Steps taken.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// First and second moments, in parameter order.
    pub fn moments(&self) -> (&[Array], &[Array]) {
        (&self.first, &self.second)
    }

    /// The arrays to evaluate with the parameters.
    pub fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.first.iter().chain(&self.second)
    }

    /// The state and the parameters after one step with `gradients` and `learning_rate`.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn update(&self, parameters: &[Array], gradients: &[Array], learning_rate: f64) -> Result<(Self, Vec<Array>)> {
        let mut next = Self { config: self.config, step: self.step + 1, first: Vec::new(), second: Vec::new() };
        let mut updated = Vec::with_capacity(parameters.len());
        for (index, (parameter, gradient)) in parameters.iter().zip(gradients).enumerate() {
            let gradient = gradient.astype(Dtype::Float32)?;
            let (m, v) = self.moments_after(index, &gradient)?;
            updated.push(next.moved(parameter, &m, &v, learning_rate)?);
            next.first.push(m);
            next.second.push(v);
        }
        Ok((next, updated))
    }

    fn moments_after(&self, index: usize, gradient: &Array) -> Result<(Array, Array)> {
        let (b1, b2) = self.config.betas;
        let m = (&self.first[index] * b1)? + (gradient * (1.0 - b1))?;
        let v = (&self.second[index] * b2)? + (&ops::square(gradient)? * (1.0 - b2))?;
        Ok((m?, v?))
    }

    /// `p` after decay and step; `self.step` is the step being taken.
    fn moved(&self, parameter: &Array, m: &Array, v: &Array, learning_rate: f64) -> Result<Array> {
        let AdamConfig { betas: (b1, b2), eps, weight_decay, bias_correction } = self.config;
        let decayed =
            if weight_decay > 0.0 { (parameter * (1.0 - learning_rate * weight_decay))? } else { parameter.clone() };
        let (c1, c2) = if bias_correction {
            let t = i32::try_from(self.step).unwrap_or(i32::MAX);
            (1.0 - b1.powi(t), 1.0 - b2.powi(t))
        } else {
            (1.0, 1.0)
        };
        let root = (&ops::sqrt(v)? * c2.sqrt().recip())?;
        let denominator = (&root + eps)?;
        let numerator = (m * (learning_rate / c1))?;
        &decayed - (&numerator / &denominator)
    }
}

#[cfg(test)]
mod tests;
