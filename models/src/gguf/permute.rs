//! llama.cpp rotates neighbouring pairs of a head's rows, Hugging Face rotates row `i` with row `i + half`. The
//! converter therefore reorders the query and key rows of `llama` models; here that is undone.

/// Rows of a query or key matrix in Hugging Face order.
///
/// `values` holds `rows` rows of equal length, dense or packed (only whole rows move). Within each of `heads` heads of
/// size `d`, row `p·d/2 + i` of the result is row `2·i + p` of the input, for `p` in 0..2.
///
/// `None` when `heads` is zero, the rows do not divide into heads of even size, or the values into rows.
pub fn unpermute_rows<T: Copy>(values: &[T], rows: usize, heads: usize) -> Option<Vec<T>> {
    if rows == 0 || heads == 0 || !rows.is_multiple_of(heads) || !values.len().is_multiple_of(rows) {
        return None;
    }
    let head = rows / heads;
    if !head.is_multiple_of(2) {
        return None;
    }
    let width = values.len() / rows;
    let half = head / 2;
    let mut result = Vec::with_capacity(values.len());
    for row in 0..rows {
        let (block, within) = (row / head, row % head);
        let source = block * head + 2 * (within % half) + within / half;
        result.extend_from_slice(&values[source * width..(source + 1) * width]);
    }
    Some(result)
}
