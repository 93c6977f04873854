//! Arithmetic operators. Each gives a `Result<Array>` and takes an array, a `Result` of one, or a number on the right;
//! a `Result` on the left needs an array on the right (Rust's coherence rules allow no more; elsewhere put a `?`).
//!
//! A number is weak, as in Python: it is first rounded to the array's dtype when that is floating, so `bf16 * 0.1`
//! stays bf16. With an integer array, a whole number keeps the dtype and a fraction gives float32.
//!
//! ```
//! use mlx_rs_core::Array;
//! let a = Array::from_slice(&[1.0f32, 2.0], &[2])?;
//! let b = Array::from_slice(&[10.0f32, 20.0], &[2])?;
//! let c = (&a * 2.0 + &b - (&a / &b)?)?;
//! assert_eq!(c.to_vec::<f32>()?, [11.9, 23.9]);
//! assert_eq!((-&a)?.to_vec::<f32>()?, [-1.0, -2.0]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::array::Array;
use crate::element::Dtype;
use crate::error::Result;
use crate::ops;

/// What may stand beside an array in an operator.
pub trait IntoOperand {
    /// The operand as an array that does not raise the dtype of `other` more than Python would.
    ///
    /// # Errors
    /// The error that the operand already carries.
    fn into_operand(self, other: &Array) -> Result<Array>;
}

impl IntoOperand for &Array {
    fn into_operand(self, _other: &Array) -> Result<Array> {
        Ok(self.clone())
    }
}

impl IntoOperand for Array {
    fn into_operand(self, _other: &Array) -> Result<Array> {
        Ok(self)
    }
}

impl IntoOperand for Result<Array> {
    fn into_operand(self, _other: &Array) -> Result<Array> {
        self
    }
}

impl IntoOperand for f64 {
    fn into_operand(self, other: &Array) -> Result<Array> {
        let dtype = match other.dtype() {
            dtype if dtype.is_floating() => dtype,
            Dtype::Complex64 => Dtype::Complex64,
            _ => Dtype::Float32,
        };
        // By way of f32, as Python's weak scalars go.
        if dtype == Dtype::Float64 { Array::scalar(self) } else { Array::scalar(self as f32)?.astype(dtype) }
    }
}

impl IntoOperand for f32 {
    fn into_operand(self, other: &Array) -> Result<Array> {
        f64::from(self).into_operand(other)
    }
}

impl IntoOperand for i32 {
    fn into_operand(self, other: &Array) -> Result<Array> {
        match other.dtype() {
            Dtype::Bool => Array::scalar(self),
            dtype => Array::scalar(self)?.astype(dtype),
        }
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $op:path) => {
        impl<R: IntoOperand> $trait<R> for &Array {
            type Output = Result<Array>;
            fn $method(self, right: R) -> Result<Array> {
                $op(self, &right.into_operand(self)?)
            }
        }
        impl<R: IntoOperand> $trait<R> for Array {
            type Output = Result<Array>;
            fn $method(self, right: R) -> Result<Array> {
                $op(&self, &right.into_operand(&self)?)
            }
        }
        impl $trait<&Array> for Result<Array> {
            type Output = Result<Array>;
            fn $method(self, right: &Array) -> Result<Array> {
                $op(&self?, right)
            }
        }
        impl $trait<Array> for Result<Array> {
            type Output = Result<Array>;
            fn $method(self, right: Array) -> Result<Array> {
                $op(&self?, &right)
            }
        }
    };
}

operator!(Add, add, ops::add);
operator!(Sub, sub, ops::subtract);
operator!(Mul, mul, ops::multiply);
operator!(Div, div, ops::divide);

impl Neg for &Array {
    type Output = Result<Array>;
    fn neg(self) -> Result<Array> {
        ops::negative(self)
    }
}

impl Neg for Array {
    type Output = Result<Array>;
    fn neg(self) -> Result<Array> {
        ops::negative(&self)
    }
}
