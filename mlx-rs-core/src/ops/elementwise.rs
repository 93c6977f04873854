//! Element by element: one array in ([`exp`], [`sigmoid`]), or two that broadcast ([`add`], [`power`]).
//!
//! ```
//! use mlx_rs_core::{Array, ops};
//! let a = Array::from_slice(&[1.0f32, 4.0], &[2])?;
//! let b = Array::from_slice(&[10.0f32, 20.0], &[2, 1])?;
//! assert_eq!(ops::sqrt(&a)?.to_vec::<f32>()?, [1.0, 2.0]);
//! assert_eq!(ops::add(&a, &b)?.to_vec::<f32>()?, [11.0, 14.0, 21.0, 24.0]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use super::call::{list, op};
use crate::array::Array;
use crate::element::Dtype;
use crate::error::{Error, ErrorKind, Result};

macro_rules! unary {
    ($($(#[$doc:meta])+ $name:ident => $function:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// The shape stays.
        ///
        /// # Errors
        /// A dtype that MLX does not take here.
        pub fn $name(a: &Array) -> Result<Array> {
            op!(stringify!($name), $function(a))
        }
    )*};
}

macro_rules! binary {
    ($($(#[$doc:meta])+ $name:ident => $function:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// The result has the broadcast shape and the promoted dtype of both.
        ///
        /// # Errors
        /// Shapes that do not broadcast, or a dtype that MLX does not take here.
        pub fn $name(a: &Array, b: &Array) -> Result<Array> {
            op!(stringify!($name), $function(a, b))
        }
    )*};
}

// --- Arithmetic -----------------------------------------------------------------------------------------------------

unary! {
    /// Absolute value; the modulus of a complex number.
    abs => mlx_abs;
    /// `-a`.
    negative => mlx_negative;
    /// `+a`: the same values.
    positive => mlx_positive;
    /// -1, 0 or 1 by sign.
    sign => mlx_sign;
    /// `a * a`.
    square => mlx_square;
    /// Square root.
    sqrt => mlx_sqrt;
    /// `1 / sqrt(a)`.
    rsqrt => mlx_rsqrt;
    /// `1 / a`.
    reciprocal => mlx_reciprocal;
    /// The next whole number downwards.
    floor => mlx_floor;
    /// The next whole number upwards.
    ceil => mlx_ceil;
    /// The whole part.
    trunc => mlx_trunc;
}

binary! {
    /// `a + b`.
    add => mlx_add;
    /// `a - b`.
    subtract => mlx_subtract;
    /// `a * b`.
    multiply => mlx_multiply;
    /// `a / b`; whole numbers divide to a float.
    divide => mlx_divide;
    /// `a / b`, rounded down.
    floor_divide => mlx_floor_divide;
    /// What [`floor_divide`] leaves; it has the sign of `b`.
    remainder => mlx_remainder;
    /// `a` to the power `b`.
    power => mlx_power;
    /// The greater of both; NaN if either is.
    maximum => mlx_maximum;
    /// The smaller of both; NaN if either is.
    minimum => mlx_minimum;
    /// `log(exp(a) + exp(b))` without overflow.
    logaddexp => mlx_logaddexp;
    /// The angle of the point (`b`, `a`) in radians.
    arctan2 => mlx_arctan2;
}

/// Quotient and remainder ([`floor_divide`], [`remainder`]) at once.
///
/// # Errors
/// Shapes that do not broadcast, or complex values.
pub fn divmod(a: &Array, b: &Array) -> Result<(Array, Array)> {
    let parts = list!("divmod", mlx_divmod(a, b))?;
    match <[Array; 2]>::try_from(parts) {
        Ok([quotient, rest]) => Ok((quotient, rest)),
        Err(parts) => Err(Error::new(ErrorKind::Mlx, "divmod", format!("gave {} arrays, wanted 2", parts.len()))),
    }
}

/// Rounds to `decimals` places (half to even); negative places round tens, hundreds, ….
///
/// # Errors
/// What MLX reports.
pub fn round(a: &Array, decimals: i32) -> Result<Array> {
    op!("round", mlx_round(a, decimals))
}

/// Limits values to `min..=max`; either may be left out, both broadcast against `a`.
///
/// # Errors
/// Neither bound given, or shapes that do not broadcast.
pub fn clip(a: &Array, min: Option<&Array>, max: Option<&Array>) -> Result<Array> {
    op!("clip", mlx_clip(a, min, max))
}

/// Replaces NaN by `nan` and the infinities by `posinf` and `neginf` (by default the dtype's largest and smallest).
///
/// # Errors
/// What MLX reports.
pub fn nan_to_num(a: &Array, nan: f32, posinf: Option<f32>, neginf: Option<f32>) -> Result<Array> {
    op!("nan_to_num", mlx_nan_to_num(a, nan, posinf, neginf))
}

// --- Exponentials, trigonometry, special functions ------------------------------------------------------------------

unary! {
    /// `e` to the power `a`.
    exp => mlx_exp;
    /// `exp(a) - 1`, exact near zero.
    expm1 => mlx_expm1;
    /// Natural logarithm.
    log => mlx_log;
    /// Logarithm to base 2.
    log2 => mlx_log2;
    /// Logarithm to base 10.
    log10 => mlx_log10;
    /// `log(1 + a)`, exact near zero.
    log1p => mlx_log1p;
    /// `1 / (1 + exp(-a))`.
    sigmoid => mlx_sigmoid;
    /// Gauss's error function.
    erf => mlx_erf;
    /// The inverse of [`erf`].
    erfinv => mlx_erfinv;
    /// Sine of radians.
    sin => mlx_sin;
    /// Cosine of radians.
    cos => mlx_cos;
    /// Tangent of radians.
    tan => mlx_tan;
    /// Inverse sine, in radians.
    arcsin => mlx_arcsin;
    /// Inverse cosine, in radians.
    arccos => mlx_arccos;
    /// Inverse tangent, in radians.
    arctan => mlx_arctan;
    /// Hyperbolic sine.
    sinh => mlx_sinh;
    /// Hyperbolic cosine.
    cosh => mlx_cosh;
    /// Hyperbolic tangent.
    tanh => mlx_tanh;
    /// Inverse hyperbolic sine.
    arcsinh => mlx_arcsinh;
    /// Inverse hyperbolic cosine.
    arccosh => mlx_arccosh;
    /// Inverse hyperbolic tangent.
    arctanh => mlx_arctanh;
    /// Radians to degrees.
    degrees => mlx_degrees;
    /// Degrees to radians.
    radians => mlx_radians;
}

// --- Complex numbers and bits ---------------------------------------------------------------------------------------

unary! {
    /// Complex conjugate.
    conjugate => mlx_conjugate;
    /// Real part, float32 for complex64.
    real => mlx_real;
    /// Imaginary part, float32 for complex64.
    imag => mlx_imag;
    /// Every bit turned.
    bitwise_invert => mlx_bitwise_invert;
}

binary! {
    /// Bits that are set in both.
    bitwise_and => mlx_bitwise_and;
    /// Bits that are set in either.
    bitwise_or => mlx_bitwise_or;
    /// Bits that are set in exactly one. For bools take [`logical_xor`](super::logical_xor): MLX 0.32.2 on the CPU gives
    /// wrong ones here when it writes the result over an input that nothing else refers to.
    bitwise_xor => mlx_bitwise_xor;
    /// `a` with its bits moved up by `b`.
    left_shift => mlx_left_shift;
    /// `a` with its bits moved down by `b`.
    right_shift => mlx_right_shift;
}

// --- Dtypes, copies, the graph --------------------------------------------------------------------------------------

/// The same values as `dtype`.
///
/// # Errors
/// What MLX reports.
pub fn astype(a: &Array, dtype: Dtype) -> Result<Array> {
    op!("astype", mlx_astype(a, dtype))
}

/// The same bytes read as `dtype`; the last axis grows or shrinks when the widths differ.
///
/// # Errors
/// A last axis that does not divide, or a scalar with another width.
pub fn view(a: &Array, dtype: Dtype) -> Result<Array> {
    op!("view", mlx_view(a, dtype))
}

/// The values in row-major order without gaps; with `allow_col_major`, column-major ones stay as they are.
///
/// # Errors
/// What MLX reports.
pub fn contiguous(a: &Array, allow_col_major: bool) -> Result<Array> {
    op!("contiguous", mlx_contiguous(a, allow_col_major))
}

unary! {
    /// The same values, through which no gradient flows.
    stop_gradient => mlx_stop_gradient;
    /// A copy of the values.
    copy => mlx_copy;
}

/// Floats as 8-bit E4M3 floats, in uint8.
///
/// # Errors
/// A dtype that is not floating.
pub fn to_fp8(x: &Array) -> Result<Array> {
    op!("to_fp8", mlx_to_fp8(x))
}

/// 8-bit E4M3 floats (uint8, see [`to_fp8`]) as `dtype`.
///
/// # Errors
/// An input other than uint8.
pub fn from_fp8(x: &Array, dtype: Dtype) -> Result<Array> {
    if x.dtype() != Dtype::Uint8 {
        return Err(Error::new(ErrorKind::Dtype, "from_fp8", format!("array is {}, wanted uint8", x.dtype())));
    }
    op!("from_fp8", mlx_from_fp8(x, dtype))
}

/// The `inputs` again, computed only after the `dependencies`.
///
/// # Errors
/// What MLX reports.
pub fn depends(inputs: &[Array], dependencies: &[Array]) -> Result<Vec<Array>> {
    if inputs.is_empty() {
        // C reads the first one.
        return Ok(Vec::new());
    }
    let (inputs, dependencies) = (super::call::vector(inputs)?, super::call::vector(dependencies)?);
    crate::ffi::list_op("depends", |out, _stream| {
        // SAFETY: the slot and both vectors live through the call.
        unsafe { mlx_sys::mlx_depends(out, inputs.raw(), dependencies.raw()) }
    })
}
