//! One optimizer step: window gradients, clipping, update, and the single point where everything is evaluated.

use mlx_rs_core::{Array, Result, memory, transforms};
use models::Model;
use models::lora::Adapter;

use crate::batch::Rows;
use crate::clip;
use crate::gradients::{self, WindowGradients};
use crate::loss::{Denominators, Method};
use crate::optimizer::Adam;

/// What a step changes: the adapter's parameters and the optimizer's state.
#[derive(Clone)]
pub struct TrainState {
    /// In the adapter's order.
    pub parameters: Vec<Array>,
    /// Moments and step count.
    pub optimizer: Adam,
}

/// What does not change between steps.
pub struct StepContext<'a> {
    /// The frozen base.
    pub model: &'a Model,
    /// Targets of the trainable parameters.
    pub adapter: &'a Adapter,
    /// The loss.
    pub method: Method,
    /// Gradients are scaled down to this global norm; 0 is off.
    pub max_grad_norm: f32,
}

/// Host values of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// Loss of the window, before the update.
    pub loss: f32,
    /// Global norm of the gradients before clipping.
    pub grad_norm: f32,
    /// The method's report, as [`crate::loss::PREFERENCE_REPORT`].
    pub values: Vec<f32>,
    /// False when loss or norm was not finite; the state is then what it was.
    pub applied: bool,
}

/// Takes one step. A window whose loss or gradient is not finite changes nothing.
///
/// # Errors
/// What MLX reports.
pub fn take_step(
    context: &StepContext<'_>,
    state: &mut TrainState,
    window: impl Iterator<Item = Result<Rows>>,
    denominators: Denominators,
    learning_rate: f64,
) -> Result<StepReport> {
    let WindowGradients { loss, report, gradients } = gradients::window_gradients(
        context.model,
        context.adapter,
        &state.parameters,
        context.method,
        window,
        denominators,
    )?;
    let norm = clip::global_norm(&gradients)?;
    let clipped = clip::clip(gradients, &norm, context.max_grad_norm)?;
    let (optimizer, parameters) = state.optimizer.update(&state.parameters, &clipped, learning_rate)?;
    drop(clipped);
    // The one evaluation of the step: loss, parameters and moments together, so that no graph outlives it.
    transforms::eval([&loss, &norm].into_iter().chain(&report).chain(&parameters).chain(optimizer.arrays()))?;
    let (loss, grad_norm) = (loss.item::<f32>()?, norm.item::<f32>()?);
    let values = report.map(|report| report.to_vec::<f32>()).transpose()?.unwrap_or_default();
    let applied = loss.is_finite() && grad_norm.is_finite();
    if applied {
        *state = TrainState { parameters, optimizer };
    }
    // Sequence lengths vary, so the buffers of this step rarely fit the next one's.
    memory::clear_cache()?;
    Ok(StepReport { loss, grad_norm, values, applied })
}

#[cfg(test)]
mod tests;
