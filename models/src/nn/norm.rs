//! Root mean square norm: `x / sqrt(mean(x²) + eps) · weight` (Zhang and Sennrich 2019, eq. 4).

use mlx_rs_core::{Array, Result, fast};

/// A norm over the last axis.
#[derive(Clone)]
pub struct RmsNorm {
    /// Gain `[hidden]`.
    pub weight: Array,
    /// Added to the mean square.
    pub eps: f32,
}

impl RmsNorm {
    /// `[…, hidden]` to the same shape.
    ///
    /// # Errors
    /// An `x` of another width.
    pub fn forward(&self, x: &Array) -> Result<Array> {
        fast::rms_norm(x, Some(&self.weight), self.eps)
    }
}
