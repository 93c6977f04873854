//! Whether two arrays agree, and where they do not.

use mlx_rs_core::{Array, Complex64, Dtype, ops};

/// `None` when `got` has the shape and (within `atol + rtol * |want|`, NaN equal to NaN) the values of `want`;
/// else the first values of both, the worst difference and its place.
pub fn difference(got: &Array, want: &Array, rtol: f64, atol: f64) -> Option<String> {
    if got.shape() != want.shape() {
        return Some(format!("shape {:?}, Python's {:?}", got.shape(), want.shape()));
    }
    // Equal bytes are equal values, also of 64-bit integers that f64 does not hold.
    if got.to_bytes().expect("a value") == want.to_bytes().expect("a value") {
        return None;
    }
    let (found, wanted) = (numbers(got), numbers(want));
    let exact_integers = rtol == 0.0 && atol == 0.0 && !is_inexact(got.dtype());
    let excess = |(&found, &wanted): (&f64, &f64)| {
        // Equal infinities and two NaNs have no difference that could be computed.
        if found == wanted || (found.is_nan() && wanted.is_nan()) {
            return f64::NEG_INFINITY;
        }
        let gap = (found - wanted).abs();
        if gap.is_nan() || wanted.is_infinite() { f64::INFINITY } else { gap - (atol + rtol * wanted.abs()) }
    };
    let (place, worst) = found
        .iter()
        .zip(&wanted)
        .map(excess)
        .enumerate()
        .max_by(|(_, left), (_, right)| left.total_cmp(right))
        .unwrap_or((0, 0.0));
    if worst <= 0.0 && !exact_integers {
        return None;
    }
    let width = found.len() / got.size().max(1);
    Some(format!(
        "worst at element {} (found {}, Python has {}, beyond the tolerance by {worst:e}); first values {:?}, Python's {:?}",
        place / width.max(1),
        found[place],
        wanted[place],
        &found[..found.len().min(8)],
        &wanted[..wanted.len().min(8)],
    ))
}

fn is_inexact(dtype: Dtype) -> bool {
    dtype.is_floating() || dtype == Dtype::Complex64
}

/// All values as f64, complex ones as pairs.
fn numbers(array: &Array) -> Vec<f64> {
    match array.dtype() {
        Dtype::Complex64 => {
            let values = array.to_vec::<Complex64>().expect("a value");
            values.iter().flat_map(|value| [f64::from(value.re), f64::from(value.im)]).collect()
        }
        Dtype::Float64 => array.to_vec().expect("a value"),
        Dtype::Int64 => array.to_vec::<i64>().expect("a value").iter().map(|&value| value as f64).collect(),
        Dtype::Uint64 => array.to_vec::<u64>().expect("a value").iter().map(|&value| value as f64).collect(),
        // Every other dtype fits f32 or f64 exactly; uint32 and int32 need the wider one.
        Dtype::Int32 | Dtype::Uint32 => {
            let wide = ops::astype(array, Dtype::Int64).and_then(|wide| wide.to_vec::<i64>()).expect("a value");
            wide.iter().map(|&value| value as f64).collect()
        }
        _ => {
            let wide = ops::astype(array, Dtype::Float32).and_then(|wide| wide.to_vec::<f32>()).expect("a value");
            wide.iter().map(|&value| f64::from(value)).collect()
        }
    }
}

#[test]
fn a_value_off_by_more_than_the_tolerance_is_named_with_its_place() {
    let want = Array::from_slice(&[1.0f32, 2.0, f32::NAN], &[3]).unwrap();
    let got = Array::from_slice(&[1.0f32, 2.5, f32::NAN], &[3]).unwrap();
    assert_eq!(difference(&got, &want, 0.25, 0.0), None);
    let text = difference(&got, &want, 0.1, 0.0).unwrap();
    assert!(text.starts_with("worst at element 1 (found 2.5, Python has 2, "), "{text}");
    let nan = Array::from_slice(&[f32::NAN, 2.0, f32::NAN], &[3]).unwrap();
    assert!(difference(&nan, &want, 0.1, 1e9).unwrap().starts_with("worst at element 0"));
    let other_shape = Array::from_slice(&[1.0f32], &[1]).unwrap();
    assert_eq!(difference(&other_shape, &want, 1.0, 1.0).unwrap(), "shape [1], Python's [3]");
}

#[test]
fn large_integers_are_compared_exactly() {
    let want = Array::from_slice(&[i64::MAX], &[1]).unwrap();
    let got = Array::from_slice(&[i64::MAX - 1], &[1]).unwrap();
    assert!(difference(&got, &want, 0.0, 0.0).is_some());
}
