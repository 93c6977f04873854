//! Frozen quantised weights, and the two ways of multiplying by them.
//!
//! On a GPU, MLX's `quantized_matmul` serves. Its CPU version is scalar and single-threaded, so there a layer's weight
//! is dequantised and multiplied by the BLAS. The product has a gradient rule of its own which dequantises again:
//! nothing dense is kept between forward and backward.

use std::rc::Rc;

use mlx_rs_core::transforms::CustomVjp;
use mlx_rs_core::{Array, Device, Dtype, Result, Stream, cpu_engine, ops};

/// The arrays of a quantised weight: `weight` is `[out, in·bits/32]` u32, `scales` and `biases` are `[out, in/group]`.
#[derive(Clone)]
pub struct QuantizedParts {
    /// Packed integers, lowest bits first.
    pub weight: Array,
    /// One per group.
    pub scales: Array,
    /// One per group; modes other than `affine` have none.
    pub biases: Option<Array>,
    /// Columns per group.
    pub group_size: i32,
    /// Bits per value.
    pub bits: i32,
    /// MLX's name of the mode.
    pub mode: &'static str,
}

impl QuantizedParts {
    /// The dense matrix `[out, in]`, or the rows of it that these parts were cut to.
    ///
    /// # Errors
    /// Parts that do not fit one another.
    pub fn dequantize(&self) -> Result<Array> {
        let (biases, mode) = (self.biases.as_ref(), self.mode);
        cpu_engine::dequantize(&self.weight, &self.scales, biases, self.group_size, self.bits, mode)
    }

    fn quantized_matmul(&self, x: &Array) -> Result<Array> {
        ops::quantized_matmul(
            x,
            &self.weight,
            &self.scales,
            self.biases.as_ref(),
            true,
            Some(self.group_size),
            Some(self.bits),
            self.mode,
        )
    }
}

/// A frozen quantised weight `[out, in]`.
#[derive(Clone)]
pub struct QuantizedMatrix {
    parts: Rc<QuantizedParts>,
    dense_product: Rc<CustomVjp>,
}

impl QuantizedMatrix {
    /// Wraps the parts.
    ///
    /// # Errors
    /// What MLX reports.
    pub fn new(parts: QuantizedParts) -> Result<Self> {
        let parts = Rc::new(parts);
        let (forward, backward) = (Rc::clone(&parts), Rc::clone(&parts));
        let dense_product = CustomVjp::new(
            move |x: &[Array]| {
                let weight = dense_as(&forward, x[0].dtype())?;
                Ok(vec![ops::matmul(&x[0], &ops::transpose(&weight, None)?)?])
            },
            move |x: &[Array], cotangents: &[Array], _: &[Array]| {
                let weight = dense_as(&backward, x[0].dtype())?;
                Ok(vec![ops::matmul(&cotangents[0], &weight)?])
            },
        )?;
        Ok(Self { parts, dense_product: Rc::new(dense_product) })
    }

    /// The arrays.
    pub fn parts(&self) -> &QuantizedParts {
        &self.parts
    }

    /// Input features.
    pub fn in_features(&self) -> i32 {
        self.parts.scales.shape()[1] * self.parts.group_size
    }

    /// Output features.
    pub fn out_features(&self) -> i32 {
        self.parts.scales.shape()[0]
    }

    /// `x · Wᵀ`: `[…, in]` to `[…, out]`.
    ///
    /// # Errors
    /// An `x` whose last axis is not `in`.
    pub fn multiply(&self, x: &Array) -> Result<Array> {
        if Stream::current()?.device()? == Device::Cpu {
            let mut outputs = self.dense_product.call(std::slice::from_ref(x))?;
            return Ok(outputs.swap_remove(0));
        }
        self.parts.quantized_matmul(x)
    }
}

/// The dense weight in the dtype of the activations.
fn dense_as(parts: &QuantizedParts, dtype: Dtype) -> Result<Array> {
    let dense = parts.dequantize()?;
    if dense.dtype() == dtype { Ok(dense) } else { dense.astype(dtype) }
}
