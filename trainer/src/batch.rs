//! From host rows to the first arrays of a step.

use mlx_rs_core::{Array, Error, Result};

/// One row on the host: its tokens, and which of them count.
pub struct HostRow<'a> {
    /// Token ids.
    pub ids: &'a [u32],
    /// Per token, its weight in the likelihood term; token 0 is never predicted and must have 0.
    pub likelihood: Vec<f32>,
    /// Per token, whether it belongs to the response, whose mean log-probability a preference loss takes.
    pub response: Vec<bool>,
}

/// Right-padded rows, and the predictions that count. `M` is their number over all rows, in row order.
#[derive(Clone)]
pub struct Rows {
    /// Token ids, i32 `[B, L]`.
    pub tokens: Array,
    /// Flat indices into `[B, L−1]` of the predicting positions, i32 `[M]`; `None` when that is all of them.
    pub positions: Option<Array>,
    /// The token that each position predicts, i32 `[M]`.
    pub targets: Array,
    /// Weight of each prediction in the likelihood term, f32 `[M]`.
    pub likelihood: Array,
    /// `1 / response length` where a prediction belongs to a row's response, else 0; f32 `[B, M]`.
    pub response_mean: Array,
}

/// Pads `rows` with `pad` to the longest and lists the predictions that count.
///
/// # Errors
/// More places in one array than MLX can index, or what MLX reports.
pub fn collate(rows: &[HostRow<'_>], pad: u32) -> Result<Rows> {
    let length = rows.iter().map(|row| row.ids.len()).max().unwrap_or(0).max(2);
    require_indexable(rows.len(), length)?;
    let mut tokens = vec![pad as i32; rows.len() * length];
    let (mut positions, mut targets, mut likelihood, mut owners) = (vec![], vec![], vec![], vec![]);
    for (owner, row) in rows.iter().enumerate() {
        for (slot, id) in tokens[owner * length..].iter_mut().zip(row.ids) {
            *slot = *id as i32;
        }
        for target in 1..row.ids.len() {
            if row.likelihood[target] == 0.0 && !row.response[target] {
                continue;
            }
            positions.push((owner * (length - 1) + target - 1) as i32);
            targets.push(row.ids[target] as i32);
            likelihood.push(row.likelihood[target]);
            owners.push((owner, row.response[target]));
        }
    }
    require_indexable(rows.len(), targets.len())?;
    let count = targets.len() as i32;
    let all = positions.len() == rows.len() * (length - 1);
    Ok(Rows {
        tokens: Array::from_slice(&tokens, &[rows.len() as i32, length as i32])?,
        positions: if all { None } else { Some(Array::from_slice(&positions, &[count])?) },
        targets: Array::from_slice(&targets, &[count])?,
        likelihood: Array::from_slice(&likelihood, &[count])?,
        response_mean: Array::from_slice(&response_means(rows, &owners), &[rows.len() as i32, count])?,
    })
}

/// MLX indexes with i32: a larger batch would wrap around to wrong rows.
fn require_indexable(rows: usize, width: usize) -> Result<()> {
    match rows.checked_mul(width) {
        Some(places) if i32::try_from(places).is_ok() => Ok(()),
        _ => Err(Error::argument(
            "collate",
            format!("{rows} rows of {width} in one batch, wanted at most {} places", i32::MAX),
        )),
    }
}

fn response_means(rows: &[HostRow<'_>], owners: &[(usize, bool)]) -> Vec<f32> {
    let mut weights = vec![0.0; rows.len() * owners.len()];
    for (index, row) in rows.iter().enumerate() {
        let count = row.response.iter().skip(1).filter(|response| **response).count();
        for (slot, (owner, response)) in weights[index * owners.len()..].iter_mut().zip(owners) {
            if *owner == index && *response {
                *slot = 1.0 / count as f32;
            }
        }
    }
    weights
}

#[cfg(test)]
mod tests;
