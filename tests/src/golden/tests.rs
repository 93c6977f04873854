use super::*;

const TOLERANCE: Tolerance = Tolerance { rtol: 0.1, atol: 0.5 };

fn refusal(got: &[f64], want: &[f64], shape: &[i32]) -> String {
    compare(got, want, shape, TOLERANCE).expect_err("these differ").to_string()
}

#[test]
fn a_value_at_the_bound_passes_and_the_worst_difference_is_returned() {
    // 0.5 + 0.1·20 = 2.5
    let worst = compare(&[22.5, 1.0], &[20.0, 1.25], &[2], TOLERANCE).map_err(|error| error.to_string());
    assert_eq!(worst, Ok(2.5));
    assert!(compare(&[22.6, 1.0], &[20.0, 1.25], &[2], TOLERANCE).is_err());
}

#[test]
fn the_failure_says_how_many_where_and_by_how_much() {
    let text = refusal(&[0.0, 9.0, 0.0, 5.0], &[0.0, 1.0, 0.0, 1.0], &[2, 2]);
    assert_eq!(
        text,
        "2 of 4 values differ; the worst at [0, 1]: got 9, wanted 1, difference 8e0\n  \
         got    [0.0, 9.0, 0.0, 5.0] …\n  wanted [0.0, 1.0, 0.0, 1.0] …"
    );
}

#[test]
fn a_nan_never_passes_and_is_the_worst_of_all() {
    assert!(refusal(&[f64::NAN, 99.0], &[0.0, 0.0], &[2]).contains("the worst at [0]: got NaN"));
    assert!(refusal(&[1.0], &[f64::NAN], &[1]).contains("wanted NaN"));
    assert!(refusal(&[f64::INFINITY], &[1.0], &[1]).contains("got inf"));
    assert_eq!(
        compare(&[f64::INFINITY], &[f64::INFINITY], &[1], TOLERANCE).map_err(|error| error.to_string()),
        Ok(0.0)
    );
}

#[test]
fn exact_means_exact() {
    assert!(compare(&[1.0 + f64::EPSILON], &[1.0], &[1], Tolerance::EXACT).is_err());
    assert!(compare(&[1.0], &[1.0], &[1], Tolerance::EXACT).is_ok());
}

#[test]
#[should_panic(expected = "shapes differ")]
fn the_same_values_in_another_shape_fail() {
    let flat = Array::from_slice(&[1.0f32, 2.0], &[2]).unwrap();
    let row = Array::from_slice(&[1.0f32, 2.0], &[1, 2]).unwrap();
    assert_close("flat", &flat, &row, Tolerance::EXACT);
}
