//! Rotary position embeddings (Su et al. 2021), with the scalings of released checkpoints.

use mlx_rs_core::{Array, Dtype, Result, fast, ops};

use crate::config::{ModelConfig, RopeScaling};

/// Rotates pairs of the last axis by angles that grow with the position.
#[derive(Clone)]
pub struct Rope {
    dims: i32,
    traditional: bool,
    base: f64,
    scale: f32,
    // Wavelengths / 2π per pair, f32 [dims/2]; in place of `base` where a scaling bends them.
    freqs: Option<Array>,
    dynamic: Option<Dynamic>,
}

/// A base that grows with the sequence beyond the trained length.
#[derive(Clone)]
struct Dynamic {
    factor: f64,
    trained: f64,
}

impl Rope {
    /// The embedding that `config` describes.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn new(config: &ModelConfig) -> Result<Self> {
        let dims = i32::try_from(config.head_dim).unwrap_or(i32::MAX);
        let base = config.rope.theta;
        let plain = Self { dims, traditional: config.rope.traditional, base, scale: 1.0, freqs: None, dynamic: None };
        Ok(match &config.rope.scaling {
            RopeScaling::None => plain,
            RopeScaling::Linear { factor } => Self { scale: (1.0 / factor) as f32, ..plain },
            RopeScaling::Dynamic { factor } => {
                let trained = config.max_position_embeddings.unwrap_or(0) as f64;
                Self { dynamic: Some(Dynamic { factor: *factor, trained }), ..plain }
            }
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_position_embeddings } => {
                let context = *original_max_position_embeddings as f64;
                let freqs = llama3_freqs(dims, base, *factor, *low_freq_factor, *high_freq_factor, context)?;
                Self { freqs: Some(freqs), ..plain }
            }
            RopeScaling::Factors { factors } => {
                let factors = Array::from_slice(factors, &[dims / 2])?;
                Self { freqs: Some(ops::multiply(&wavelengths(dims, base)?, &factors)?), ..plain }
            }
        })
    }

    /// Rotates `x` `[B, H, L, D]`, whose first position is `offset`.
    ///
    /// # Errors
    /// A head dimension other than the configured one.
    pub fn forward(&self, x: &Array, offset: i32) -> Result<Array> {
        let base = match (&self.freqs, &self.dynamic) {
            (Some(_), _) => None,
            (None, None) => Some(self.base as f32),
            (None, Some(dynamic)) => Some(dynamic.base(self.base, self.dims, x.dim(-2)? + offset) as f32),
        };
        fast::rope(x, self.dims, self.traditional, base, self.scale, offset, self.freqs.as_ref())
    }
}

impl Dynamic {
    fn base(&self, base: f64, dims: i32, length: i32) -> f64 {
        let length = f64::from(length).max(self.trained);
        let dims = f64::from(dims);
        base * (self.factor * length / self.trained - (self.factor - 1.0)).powf(dims / (dims - 2.0))
    }
}

/// `base^(2i/d)` for each pair, f32 `[d/2]`.
fn wavelengths(dims: i32, base: f64) -> Result<Array> {
    let exponent = (&ops::arange(0.0, f64::from(dims), 2.0, Dtype::Int32)? / dims)?;
    ops::power(&Array::scalar(base as f32)?, &exponent)
}

/// Llama 3.1's wavelengths: long ones stretched by `factor`, short ones kept, a ramp between. Computed with MLX ops in
/// mlx-lm's order, because the last bit of a wavelength shows at far positions.
fn llama3_freqs(dims: i32, base: f64, factor: f64, low: f64, high: f64, context: f64) -> Result<Array> {
    let freqs = wavelengths(dims, base)?; // [dims/2]
    let waves = ops::multiply(&Array::scalar(std::f32::consts::TAU)?, &freqs)?;
    let long_from = Array::scalar((context / low) as f32)?;
    let short_to = Array::scalar((context / high) as f32)?;
    let stretched = (&freqs * factor)?;
    let freqs = ops::where_(&ops::greater(&waves, &long_from)?, &stretched, &freqs)?;
    let medium = ops::logical_and(&ops::greater(&waves, &short_to)?, &ops::less(&waves, &long_from)?)?;
    let ratio = ops::divide(&Array::scalar(context as f32)?, &waves)?;
    let smooth = ((&ratio - low)? / (high - low))?;
    let kept = ops::subtract(&Array::scalar(1.0f32)?, &smooth)?;
    let smoothed = (&freqs / ((&kept / factor)? + &smooth))?;
    ops::where_(&medium, &smoothed, &freqs)
}
