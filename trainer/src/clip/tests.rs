use super::*;

fn array(values: &[f32]) -> Array {
    Array::from_slice(values, &[values.len() as i32]).unwrap()
}

fn clipped(gradients: &[&[f32]], max_norm: f32) -> (f32, Vec<Vec<f32>>) {
    let gradients: Vec<Array> = gradients.iter().map(|values| array(values)).collect();
    let norm = global_norm(&gradients).unwrap();
    let scaled = clip(gradients, &norm, max_norm).unwrap();
    (norm.item::<f32>().unwrap(), scaled.iter().map(|gradient| gradient.to_vec::<f32>().unwrap()).collect())
}

#[test]
fn the_norm_goes_over_all_gradients_and_all_are_scaled_alike() {
    // sqrt(3² + 4² + 12²) = 13
    let (norm, scaled) = clipped(&[&[3.0, 4.0], &[12.0]], 1.0);
    assert_eq!(norm, 13.0);
    for (got, want) in scaled.concat().into_iter().zip([3.0 / 13.0, 4.0 / 13.0, 12.0 / 13.0]) {
        assert!((got - want).abs() < 1e-6, "got {got}, wanted {want}");
    }
}

#[test]
fn gradients_within_the_norm_keep_every_bit() {
    let (norm, kept) = clipped(&[&[0.3, 0.4]], 0.6);
    assert!((norm - 0.5).abs() < 1e-6);
    assert_eq!(kept, [[0.3, 0.4]]);
    let (_, zero) = clipped(&[&[0.0, 0.0]], 1.0);
    assert_eq!(zero, [[0.0, 0.0]], "no division by a norm of zero");
}

#[test]
fn a_limit_of_zero_turns_clipping_off() {
    assert_eq!(clipped(&[&[300.0, 400.0]], 0.0), (500.0, vec![vec![300.0, 400.0]]));
}

#[test]
fn one_nan_makes_the_norm_nan_so_that_the_step_can_be_skipped() {
    assert!(clipped(&[&[1.0], &[f32::NAN]], 1.0).0.is_nan());
    assert_eq!(clipped(&[&[f32::INFINITY], &[1.0]], 1.0).0, f32::INFINITY);
}

#[test]
fn bfloat16_gradients_are_summed_in_float32() {
    // In bfloat16 the sum of 1000 ones would stop at 256.
    let ones = mlx_rs_core::ops::ones(&[1000], Dtype::Bfloat16).unwrap();
    let norm = global_norm(&[ones]).unwrap();
    assert_eq!((norm.dtype(), norm.item::<f32>().unwrap()), (Dtype::Float32, 1000f32.sqrt()));
}
