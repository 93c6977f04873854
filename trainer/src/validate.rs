//! Loss on held-out rows: the token-weighted mean over all batches, without gradients.

use std::time::Instant;

use models::Model;

use crate::base::mlx_error;
use crate::error::Result;
use crate::loss::{Denominators, Method};
use crate::metrics::{PreferenceMetrics, ValidRecord};
use crate::report_values::preference_metrics;
use crate::window::Collator;

/// Validates `model` on the first `limit` batches (0 is all) of `batch_size` rows, in the file's order.
///
/// # Errors
/// What MLX reports.
pub fn validate(
    model: &Model,
    collator: &Collator<'_>,
    batch_size: usize,
    limit: usize,
    iteration: u64,
) -> Result<ValidRecord> {
    let start = Instant::now();
    let failed = mlx_error("validate");
    let indices: Vec<usize> = (0..collator.examples.len()).collect();
    let batches: Vec<Vec<usize>> = indices.chunks(batch_size.max(1)).map(<[usize]>::to_vec).collect();
    let chosen = if limit == 0 { &batches[..] } else { &batches[..limit.min(batches.len())] };
    // One set of denominators for all batches makes their losses add up to the mean.
    let denominators: Denominators = collator.denominators(chosen);
    let (mut loss, mut values) = (0.0, Vec::<f32>::new());
    for batch in chosen {
        let rows = collator.rows(batch).map_err(&failed)?;
        let evaluated = collator.method.evaluate(model, &rows, denominators).map_err(&failed)?;
        mlx_rs_core::transforms::eval([&evaluated.loss].into_iter().chain(&evaluated.report)).map_err(&failed)?;
        loss += f64::from(evaluated.loss.item::<f32>().map_err(&failed)?);
        if let Some(report) = evaluated.report {
            let report = report.to_vec::<f32>().map_err(&failed)?;
            values.resize(report.len(), 0.0);
            values.iter_mut().zip(report).for_each(|(sum, value)| *sum += value);
        }
        mlx_rs_core::memory::clear_cache().map_err(&failed)?;
    }
    let preference: Option<PreferenceMetrics> = match collator.method {
        Method::Sft => None,
        Method::Orpo { lambda, .. } => Some(preference_metrics(&values, f64::from(lambda))),
    };
    Ok(ValidRecord { iteration, val_loss: loss, val_time: start.elapsed().as_secs_f64(), preference })
}
