//! Linear layers, dense or quantised, with an optional low-rank adapter.

use mlx_rs_core::{Array, Result, ops};

use super::quantized::QuantizedMatrix;

/// A frozen weight `[out, in]`.
#[derive(Clone)]
pub enum Matrix {
    /// Floating point.
    Dense(Array),
    /// Packed integers with scales.
    Quantized(QuantizedMatrix),
}

impl Matrix {
    /// `x · Wᵀ`: `[…, in]` to `[…, out]`.
    ///
    /// # Errors
    /// An `x` whose last axis is not `in`.
    pub fn multiply(&self, x: &Array) -> Result<Array> {
        match self {
            Matrix::Dense(weight) => ops::matmul(x, &ops::transpose(weight, None)?),
            Matrix::Quantized(weight) => weight.multiply(x),
        }
    }

    /// The same matrix in floating point.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn dense(&self) -> Result<Array> {
        match self {
            Matrix::Dense(weight) => Ok(weight.clone()),
            Matrix::Quantized(weight) => weight.parts().dequantize(),
        }
    }

    /// Input features.
    pub fn in_features(&self) -> i32 {
        match self {
            Matrix::Dense(weight) => weight.shape()[1],
            Matrix::Quantized(weight) => weight.in_features(),
        }
    }

    /// Output features.
    pub fn out_features(&self) -> i32 {
        match self {
            Matrix::Dense(weight) => weight.shape()[0],
            Matrix::Quantized(weight) => weight.out_features(),
        }
    }
}

/// A low-rank adapter: `a` is `[in, rank]`, `b` is `[rank, out]`, both f32.
#[derive(Clone)]
pub struct LoraPair {
    /// Down projection, `[in, rank]`.
    pub a: Array,
    /// Up projection, `[rank, out]`.
    pub b: Array,
    /// What the product is multiplied by.
    pub scale: f32,
}

impl LoraPair {
    /// `scale · (x·a)·b` in f32, cast to the dtype of `x` after the scaling, as mlx-lm does.
    fn residual(&self, x: &Array) -> Result<Array> {
        let z = ops::matmul(&ops::matmul(x, &self.a)?, &self.b)?;
        (&z * self.scale)?.astype(x.dtype())
    }
}

/// `y = x·Wᵀ + bias + adapter(x)`.
#[derive(Clone)]
pub struct Linear {
    /// The frozen weight.
    pub weight: Matrix,
    /// Additive bias `[out]`.
    pub bias: Option<Array>,
    /// The adapter, when one is attached.
    pub lora: Option<LoraPair>,
}

impl Linear {
    /// A layer without an adapter.
    pub fn new(weight: Matrix, bias: Option<Array>) -> Self {
        Self { weight, bias, lora: None }
    }

    /// `[…, in]` to `[…, out]`.
    ///
    /// # Errors
    /// An `x` whose last axis is not `in`.
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let y = match (&self.weight, &self.bias) {
            // One fused op, in the same order of additions as MLX's own Linear.
            (Matrix::Dense(weight), Some(bias)) => ops::addmm(bias, x, &ops::transpose(weight, None)?, 1.0, 1.0)?,
            (weight, Some(bias)) => ops::add(&weight.multiply(x)?, bias)?,
            (weight, None) => weight.multiply(x)?,
        };
        match &self.lora {
            Some(lora) => ops::add(&y, &lora.residual(x)?),
            None => Ok(y),
        }
    }
}
