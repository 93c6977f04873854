use super::*;

fn ints(array: &Array) -> Vec<i32> {
    array.to_vec().unwrap()
}

fn floats(array: &Array) -> Vec<f32> {
    array.to_vec().unwrap()
}

fn row<'a>(ids: &'a [u32], likelihood: &[f32], response: &[bool]) -> HostRow<'a> {
    HostRow { ids, likelihood: likelihood.to_vec(), response: response.to_vec() }
}

#[test]
fn rows_of_one_length_that_count_everywhere_need_no_positions() {
    let rows =
        collate(&[row(&[5, 6, 7], &[0.0, 1.0, 1.0], &[false; 3]), row(&[8, 9, 10], &[0.0, 1.0, 1.0], &[false; 3])], 0)
            .unwrap();
    assert!(rows.positions.is_none());
    assert_eq!((rows.tokens.shape(), ints(&rows.tokens)), (&[2, 3][..], vec![5, 6, 7, 8, 9, 10]));
    assert_eq!(ints(&rows.targets), [6, 7, 9, 10]);
    assert_eq!(floats(&rows.likelihood), [1.0; 4]);
    assert_eq!((rows.response_mean.shape(), floats(&rows.response_mean)), (&[2, 4][..], vec![0.0; 8]));
}

#[test]
fn padding_is_never_a_target() {
    let rows =
        collate(&[row(&[5, 6, 7, 8], &[0.0, 0.0, 1.0, 1.0], &[false; 4]), row(&[9, 10], &[0.0, 1.0], &[false; 2])], 99)
            .unwrap();
    assert_eq!(ints(&rows.tokens), [5, 6, 7, 8, 9, 10, 99, 99]);
    // Position p of row r is 3r + p; it predicts token p + 1.
    assert_eq!(ints(rows.positions.as_ref().unwrap()), [1, 2, 3]);
    assert_eq!(ints(&rows.targets), [7, 8, 10]);
}

#[test]
fn a_pad_id_that_occurs_in_the_text_still_counts_there() {
    let rows = collate(&[row(&[1, 0, 0], &[0.0, 1.0, 1.0], &[false; 3]), row(&[1], &[0.0], &[false])], 0).unwrap();
    assert_eq!(ints(rows.positions.as_ref().unwrap()), [0, 1]);
    assert_eq!(ints(&rows.targets), [0, 0]);
}

#[test]
fn a_response_mean_weighs_each_token_of_its_own_row_alike() {
    let rows = collate(
        &[
            row(&[1, 2, 3, 4], &[0.0, 1.0, 1.0, 1.0], &[false, false, true, true]),
            row(&[1, 2, 5], &[0.0; 3], &[false, false, true]),
        ],
        0,
    )
    .unwrap();
    assert_eq!(ints(&rows.targets), [2, 3, 4, 5], "the second row's prompt carries nothing");
    assert_eq!(floats(&rows.likelihood), [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(floats(&rows.response_mean), [0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn a_response_from_the_first_token_on_starts_with_the_second() {
    let rows = collate(&[row(&[1, 2, 3], &[0.0; 3], &[true; 3])], 0).unwrap();
    assert_eq!(ints(&rows.targets), [2, 3]);
    assert_eq!(floats(&rows.response_mean), [0.5, 0.5], "token 0 is never predicted and not counted");
}

#[test]
fn weights_between_zero_and_one_are_kept() {
    let rows = collate(&[row(&[1, 2, 3], &[0.0, 0.25, 1.0], &[false; 3])], 0).unwrap();
    assert_eq!(floats(&rows.likelihood), [0.25, 1.0]);
}

#[test]
fn a_batch_beyond_the_index_of_mlx_is_refused() {
    assert!(require_indexable(1, i32::MAX as usize).is_ok());
    let error = require_indexable(1 << 20, 1 << 11).unwrap_err();
    assert_eq!(error.message, "1048576 rows of 2048 in one batch, wanted at most 2147483647 places");
    assert!(require_indexable(usize::MAX, 2).is_err());
}
