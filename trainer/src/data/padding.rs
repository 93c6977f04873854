//! Rows of different lengths → one rectangle of ids, on the host.

use super::encode::Example;

/// mlx-lm pads to a multiple of this, so that few shapes are compiled.
pub const WIDTH_MULTIPLE: usize = 32;

/// Right-padded rows, row-major.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaddedBatch {
    /// Token ids `[rows, width]`.
    pub ids: Vec<u32>,
    /// Whether each token is a target `[rows, width]`; false on padding.
    pub mask: Vec<bool>,
    /// Length of each row without padding `[rows]`.
    pub lengths: Vec<usize>,
    /// Length with padding.
    pub width: usize,
}

/// The common width of rows of these lengths: of a single row its own length, of several mlx-lm's
/// `min(1 + 32·ceil(longest / 32), max_seq_length)`.
pub fn padded_width(lengths: &[usize], max_seq_length: usize) -> usize {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    if lengths.len() < 2 {
        return longest;
    }
    // Rows are truncated before, but a width below the longest would cut them without a word.
    (1 + longest.div_ceil(WIDTH_MULTIPLE) * WIDTH_MULTIPLE).min(max_seq_length).max(longest)
}

/// Pads `rows` on the right with `pad`.
pub fn pad_rows(rows: &[&Example], pad: u32, max_seq_length: usize) -> PaddedBatch {
    let lengths: Vec<usize> = rows.iter().map(|row| row.ids.len()).collect();
    let width = padded_width(&lengths, max_seq_length);
    let mut batch = PaddedBatch { ids: Vec::new(), mask: Vec::new(), lengths, width };
    for (index, row) in rows.iter().enumerate() {
        batch.ids.extend(&row.ids);
        batch.ids.resize((index + 1) * width, pad);
        batch.mask.extend(&row.mask);
        batch.mask.resize((index + 1) * width, false);
    }
    batch
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::data::jsonl::RowPlace;

    fn row(ids: &[u32]) -> Example {
        let origin = RowPlace { path: Arc::from(Path::new("d")), line: 1, index: None };
        Example { ids: ids.to_vec(), mask: (0..ids.len()).map(|at| at > 0).collect(), prompt_len: 1, origin }
    }

    #[test]
    fn a_single_row_is_not_padded() {
        let batch = pad_rows(&[&row(&[5, 6, 7])], 0, 2048);
        assert_eq!((batch.width, batch.ids), (3, vec![5, 6, 7]));
    }

    #[test]
    fn the_width_is_that_of_mlx_lm() {
        assert_eq!(padded_width(&[3, 9], 2048), 33);
        assert_eq!(padded_width(&[32, 9], 2048), 33);
        assert_eq!(padded_width(&[33, 9], 2048), 65);
        assert_eq!(padded_width(&[33, 9], 40), 40);
        assert_eq!(padded_width(&[], 40), 0);
    }

    #[test]
    fn padding_stands_right_and_is_no_target() {
        let batch = pad_rows(&[&row(&[5, 6, 7]), &row(&[8])], 9, 4);
        assert_eq!(batch.ids, [5, 6, 7, 9, 8, 9, 9, 9]);
        assert_eq!(batch.mask, [false, true, true, false, false, false, false, false]);
        assert_eq!(batch.lengths, [3, 1]);
    }
}
