//! Loss and gradients of one accumulation window.

use mlx_rs_core::{Array, Error, Result, ops, transforms};
use models::Model;
use models::lora::Adapter;

use crate::batch::Rows;
use crate::loss::{Denominators, Method};

/// Lazy results of a window: to be evaluated together with the optimizer's.
pub struct WindowGradients {
    /// Scalar loss of the window.
    pub loss: Array,
    /// The method's report, when it has one.
    pub report: Option<Array>,
    /// One per parameter.
    pub gradients: Vec<Array>,
}

/// Differentiates the window's loss by `parameters`, the trainable arrays of `adapter`.
///
/// All but the last micro-batch are evaluated before the next is built, so the peak does not grow with their number.
/// Loss and gradients are evaluated together: a loss evaluated first would keep every activation alive.
///
/// # Errors
/// What MLX reports.
pub fn window_gradients(
    model: &Model,
    adapter: &Adapter,
    parameters: &[Array],
    method: Method,
    window: impl Iterator<Item = Result<Rows>>,
    denominators: Denominators,
) -> Result<WindowGradients> {
    let mut total: Option<WindowGradients> = None;
    for rows in window {
        let rows = rows?;
        if let Some(total) = &total {
            transforms::eval(total.gradients.iter().chain(&total.report).chain([&total.loss]))?;
        }
        let micro = micro_gradients(model, adapter, parameters, method, &rows, denominators)?;
        total = Some(match total {
            None => micro,
            Some(sum) => add(&sum, &micro)?,
        });
    }
    total.ok_or_else(|| Error::argument("window_gradients", "the window has no batch"))
}

fn micro_gradients(
    model: &Model,
    adapter: &Adapter,
    parameters: &[Array],
    method: Method,
    rows: &Rows,
    denominators: Denominators,
) -> Result<WindowGradients> {
    let loss = |parameters: &[Array]| {
        let model = adapter
            .install(model, parameters)
            .map_err(|error| Error::closure("window_gradients", error.to_string()))?;
        let evaluated = method.evaluate(&model, rows, denominators)?;
        Ok(std::iter::once(evaluated.loss).chain(evaluated.report).collect())
    };
    let argnums: Vec<i32> = (0..parameters.len() as i32).collect();
    let (values, gradients) = transforms::value_and_grad(loss, &argnums, parameters)?;
    let mut values = values.into_iter();
    let loss = values.next().ok_or_else(|| Error::closure("window_gradients", "the loss returned nothing"))?;
    Ok(WindowGradients { loss, report: values.next(), gradients })
}

fn add(left: &WindowGradients, right: &WindowGradients) -> Result<WindowGradients> {
    let report = match (&left.report, &right.report) {
        (Some(left), Some(right)) => Some(ops::add(left, right)?),
        _ => None,
    };
    let gradients = left
        .gradients
        .iter()
        .zip(&right.gradients)
        .map(|(left, right)| ops::add(left, right))
        .collect::<Result<_>>()?;
    Ok(WindowGradients { loss: ops::add(&left.loss, &right.loss)?, report, gradients })
}
