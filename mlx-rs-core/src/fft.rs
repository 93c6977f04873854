//! Discrete Fourier transforms. Sizes default to those of the input, axes to the last ones; [`Norm`] says where the
//! factor goes.
//!
//! ```
//! use mlx_rs_core::{Array, fft};
//! let a = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4])?;
//! let back = fft::irfft(&fft::rfft(&a, None, -1, fft::Norm::Backward)?, None, -1, fft::Norm::Backward)?;
//! assert_eq!(back.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
//! assert_eq!(fft::fftshift(&a, None)?.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0]);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use mlx_sys as sys;

use crate::array::Array;
use crate::error::{Error, Result};
use crate::ops::call::{at_least, op, same_length};

/// Where the factor of a transform of `n` points goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Norm {
    /// `1/n` on the inverse.
    #[default]
    Backward,
    /// `1/sqrt(n)` on both.
    Ortho,
    /// `1/n` on the forward one.
    Forward,
}

impl Norm {
    fn raw(self) -> sys::mlx_fft_norm {
        match self {
            Norm::Backward => sys::MLX_FFT_NORM_BACKWARD,
            Norm::Ortho => sys::MLX_FFT_NORM_ORTHO,
            Norm::Forward => sys::MLX_FFT_NORM_FORWARD,
        }
    }
}

/// Sizes and axes of one call, with Python's defaults filled in.
struct Plan {
    sizes: Vec<i32>,
    axes: Vec<i32>,
}

/// `half` marks the inverses of real transforms, whose last axis holds `n/2 + 1` points of `n`.
fn plan(op: &'static str, a: &Array, sizes: Option<&[i32]>, axes: Option<&[i32]>, half: bool) -> Result<Plan> {
    let axes = match (axes, sizes) {
        (Some(axes), _) => axes.to_vec(),
        (None, None) => (0..).take(a.ndim()).collect(),
        (None, Some(_)) => return Err(Error::argument(op, "sizes are given without their axes")),
    };
    let mut own = axes.iter().map(|&axis| a.dim(axis)).collect::<Result<Vec<i32>>>().map_err(|e| Error { op, ..e })?;
    if let (true, Some(last)) = (half, own.last_mut()) {
        *last = (*last - 1).saturating_mul(2);
    }
    let sizes = sizes.map_or(own, <[i32]>::to_vec);
    same_length(op, "sizes and axes", sizes.len(), axes.len())?;
    if axes.is_empty() {
        // C looks at the last of them.
        return Err(Error::argument(op, "there is no axis to transform"));
    }
    at_least(op, "size", &sizes, 1)?;
    Ok(Plan { sizes, axes })
}

macro_rules! one_axis {
    ($($(#[$doc:meta])+ $name:ident => $function:ident, $half:literal;)*) => {$(
        $(#[$doc])+
        ///
        /// The input is cut or padded with zeros to `n` along `axis`.
        ///
        /// # Errors
        /// An axis out of range, or a size below 1.
        pub fn $name(a: &Array, n: Option<i32>, axis: i32, norm: Norm) -> Result<Array> {
            let sizes = n.map(|n| [n]);
            let plan = plan(stringify!($name), a, sizes.as_ref().map(|n| &n[..]), Some(&[axis]), $half)?;
            op!(stringify!($name), $function(a, plan.sizes[0], axis, norm.raw()))
        }
    )*};
}

macro_rules! two_axes {
    ($($(#[$doc:meta])+ $name:ident => $function:ident, $half:literal;)*) => {$(
        $(#[$doc])+
        ///
        /// `None` for `axes` takes the last two; the input is cut or padded with zeros to `s` along them.
        ///
        /// # Errors
        /// An axis out of range, a size below 1, or lists of different lengths.
        pub fn $name(a: &Array, s: Option<&[i32]>, axes: Option<&[i32]>, norm: Norm) -> Result<Array> {
            let plan = plan(stringify!($name), a, s, Some(axes.unwrap_or(&[-2, -1])), $half)?;
            op!(stringify!($name), $function(a, [plan.sizes], [plan.axes], norm.raw()))
        }
    )*};
}

macro_rules! all_axes {
    ($($(#[$doc:meta])+ $name:ident => $function:ident, $half:literal;)*) => {$(
        $(#[$doc])+
        ///
        /// `None` for `axes` takes all; the input is cut or padded with zeros to `s` along them.
        ///
        /// # Errors
        /// An axis out of range, a size below 1, lists of different lengths, or `s` without `axes`.
        pub fn $name(a: &Array, s: Option<&[i32]>, axes: Option<&[i32]>, norm: Norm) -> Result<Array> {
            let plan = plan(stringify!($name), a, s, axes, $half)?;
            op!(stringify!($name), $function(a, [plan.sizes], [plan.axes], norm.raw()))
        }
    )*};
}

one_axis! {
    /// The transform along one axis, complex64.
    fft => mlx_fft_fft, false;
    /// The inverse transform along one axis, complex64.
    ifft => mlx_fft_ifft, false;
    /// The transform of real values along one axis: the first `n/2 + 1` points, complex64.
    rfft => mlx_fft_rfft, false;
    /// The inverse of [`rfft`], float32.
    irfft => mlx_fft_irfft, true;
}

two_axes! {
    /// The transform along two axes, complex64.
    fft2 => mlx_fft_fft2, false;
    /// The inverse transform along two axes, complex64.
    ifft2 => mlx_fft_ifft2, false;
    /// The transform of real values along two axes; the last one keeps `n/2 + 1` points.
    rfft2 => mlx_fft_rfft2, false;
    /// The inverse of [`rfft2`], float32.
    irfft2 => mlx_fft_irfft2, true;
}

all_axes! {
    /// The transform along several axes, complex64.
    fftn => mlx_fft_fftn, false;
    /// The inverse transform along several axes, complex64.
    ifftn => mlx_fft_ifftn, false;
    /// The transform of real values along several axes; the last one keeps `n/2 + 1` points.
    rfftn => mlx_fft_rfftn, false;
    /// The inverse of [`rfftn`], float32.
    irfftn => mlx_fft_irfftn, true;
}

macro_rules! shift {
    ($($(#[$doc:meta])+ $name:ident => $function:ident;)*) => {$(
        $(#[$doc])+
        ///
        /// # Errors
        /// An axis out of range.
        pub fn $name(a: &Array, axes: Option<&[i32]>) -> Result<Array> {
            let axes = axes.map_or_else(|| (0..).take(a.ndim()).collect(), <[i32]>::to_vec);
            op!(stringify!($name), $function(a, [axes]))
        }
    )*};
}

shift! {
    /// Moves the zero frequency to the middle of `axes`; `None` takes all.
    fftshift => mlx_fft_fftshift;
    /// The inverse of [`fftshift`].
    ifftshift => mlx_fft_ifftshift;
}

/// The frequencies of the `n` points of [`fft()`] for samples `d` apart, float32.
///
/// # Errors
/// A count below 1.
pub fn fftfreq(n: i32, d: f64) -> Result<Array> {
    at_least("fftfreq", "n", &[n], 1)?;
    op!("fftfreq", mlx_fft_fftfreq(n, d))
}

/// The frequencies of the `n/2 + 1` points of [`rfft`] for `n` samples `d` apart, float32.
///
/// # Errors
/// A count below 1.
pub fn rfftfreq(n: i32, d: f64) -> Result<Array> {
    at_least("rfftfreq", "n", &[n], 1)?;
    op!("rfftfreq", mlx_fft_rfftfreq(n, d))
}
