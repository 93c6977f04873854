//! Global-norm clipping (Pascanu, Mikolov and Bengio 2013, algorithm 1).

use mlx_rs_core::{Array, Dtype, Result, ops};

/// `sqrt(Σ g²)` over all gradients, f32 scalar.
///
/// # Errors
/// What MLX reports.
pub fn global_norm(gradients: &[Array]) -> Result<Array> {
    let squares: Vec<Array> = gradients
        .iter()
        .map(|gradient| ops::sum(&ops::square(&gradient.astype(Dtype::Float32)?)?, None, false))
        .collect::<Result<_>>()?;
    ops::sqrt(&ops::sum(&ops::stack(&squares, 0)?, None, false)?)
}

/// Scales all gradients by `max_norm / norm` when `norm` is above `max_norm`. A `max_norm` of 0 turns clipping off.
///
/// # Errors
/// What MLX reports.
pub fn clip(gradients: Vec<Array>, norm: &Array, max_norm: f32) -> Result<Vec<Array>> {
    if max_norm <= 0.0 {
        return Ok(gradients);
    }
    let limit = Array::scalar(max_norm)?;
    let one = Array::scalar(1.0f32)?;
    let factor = ops::where_(&ops::greater(norm, &limit)?, &ops::divide(&limit, norm)?, &one)?;
    gradients.iter().map(|gradient| ops::multiply(gradient, &factor)).collect()
}

#[cfg(test)]
mod tests;
