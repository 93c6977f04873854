//! Reads copy the elements in row-major order, whatever lies in memory.

use half::{bf16, f16};
use mlx_rs_core::{Array, Complex64, Dtype, Element, ErrorKind, Result, ops};

/// `[[0, 1, 2], [3, 4, 5]]`
fn grid() -> Result<Array> {
    Array::from_slice(&[0i32, 1, 2, 3, 4, 5], &[2, 3])
}

#[test]
fn a_transposed_array_is_read_in_its_own_order() -> Result<()> {
    let transposed = ops::transpose(&grid()?, None)?;
    assert_eq!(transposed.shape(), [3, 2]);
    assert_eq!(transposed.to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
    // Read again after evaluation, when the strides are those of a view.
    transposed.eval()?;
    assert_eq!(transposed.to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
    Ok(())
}

#[test]
fn a_broadcast_array_is_read_as_often_as_it_repeats() -> Result<()> {
    let row = Array::from_slice(&[1i32, 2], &[2])?;
    let wide = ops::broadcast_to(&row, &[3, 2])?;
    wide.eval()?;
    assert_eq!(wide.to_vec::<i32>()?, [1, 2, 1, 2, 1, 2]);
    assert_eq!(ops::broadcast_to(&Array::scalar(7u8)?, &[4])?.to_bytes()?, [7; 4]);
    Ok(())
}

#[test]
fn sliced_arrays_are_read_with_their_offset_and_strides() -> Result<()> {
    let grid = grid()?;
    assert_eq!(ops::slice(&grid, &[1, 1], &[2, 3], &[1, 1])?.to_vec::<i32>()?, [4, 5]);
    assert_eq!(ops::slice(&grid, &[0, 0], &[2, 3], &[1, 2])?.to_vec::<i32>()?, [0, 2, 3, 5]);
    // Negative strides walk backwards from the start.
    assert_eq!(ops::slice(&grid, &[1, 2], &[-3, -4], &[-1, -1])?.to_vec::<i32>()?, [5, 4, 3, 2, 1, 0]);
    Ok(())
}

#[test]
fn overlapping_strides_are_read_as_a_window() -> Result<()> {
    let windows = ops::as_strided(&grid()?, Some(&[4, 3]), Some(&[1, 1]), 0)?;
    assert_eq!(windows.to_vec::<i32>()?, [0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5]);
    Ok(())
}

fn round_trip<T: Element + PartialEq + std::fmt::Debug>(values: &[T]) -> Result<()> {
    let array = Array::from_slice(values, &[values.len() as i32])?;
    assert_eq!((array.dtype(), array.nbytes()), (T::DTYPE, values.len() * T::DTYPE.size()));
    assert_eq!(array.to_vec::<T>()?, values);
    let again = Array::from_bytes(&array.to_bytes()?, array.shape(), T::DTYPE)?;
    assert_eq!(again.to_vec::<T>()?, values);
    assert_eq!(Array::scalar(values[0])?.item::<T>()?, values[0]);
    Ok(())
}

#[test]
fn every_dtype_comes_back_bit_for_bit() -> Result<()> {
    round_trip(&[true, false, true])?;
    round_trip(&[0u8, u8::MAX])?;
    round_trip(&[0u16, u16::MAX])?;
    round_trip(&[0u32, u32::MAX])?;
    round_trip(&[0u64, u64::MAX])?;
    round_trip(&[i8::MIN, i8::MAX])?;
    round_trip(&[i16::MIN, i16::MAX])?;
    round_trip(&[i32::MIN, i32::MAX])?;
    round_trip(&[i64::MIN, i64::MAX, (1 << 53) + 1])?;
    round_trip(&[f16::MIN, f16::MAX, f16::MIN_POSITIVE_SUBNORMAL, f16::INFINITY])?;
    round_trip(&[bf16::MIN, bf16::MAX, bf16::MIN_POSITIVE_SUBNORMAL, bf16::NEG_INFINITY])?;
    round_trip(&[f32::MIN, f32::MAX, 1e-45, f32::NEG_INFINITY])?;
    round_trip(&[f64::MIN, f64::MAX, 0.1, 5e-324])?;
    round_trip(&[Complex64 { re: 1.5, im: -2.0 }, Complex64 { re: 0.0, im: f32::INFINITY }])
}

#[test]
fn nan_and_minus_zero_keep_their_bits() -> Result<()> {
    let values = [f32::from_bits(0x7fc0_1234), -0.0];
    let read = Array::from_slice(&values, &[2])?.to_vec::<f32>()?;
    assert_eq!(read.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), [0x7fc0_1234, 0x8000_0000]);
    Ok(())
}

#[test]
fn empty_arrays_have_a_shape_and_no_elements() -> Result<()> {
    let empty = Array::from_slice::<f32>(&[], &[2, 0, 3])?;
    assert_eq!((empty.shape(), empty.size()), ([2, 0, 3].as_slice(), 0));
    assert_eq!(empty.to_vec::<f32>()?, [0.0f32; 0]);
    assert_eq!(ops::sum(&empty, None, false)?.item::<f32>()?, 0.0);
    assert_eq!(empty.item::<f32>().unwrap_err().kind, ErrorKind::Shape);
    Ok(())
}

#[test]
fn a_scalar_has_no_dimensions_and_one_element() -> Result<()> {
    let scalar = Array::scalar(2.5f32)?;
    assert_eq!((scalar.shape(), scalar.ndim(), scalar.size()), ([].as_slice(), 0, 1));
    assert_eq!((scalar.item::<f32>()?, scalar.to_vec::<f32>()?), (2.5, vec![2.5]));
    Ok(())
}

#[test]
fn a_read_as_another_dtype_is_refused_not_reinterpreted() -> Result<()> {
    let error = grid()?.to_vec::<f32>().unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Dtype, "array is int32, asked for float32"));
    assert_eq!(grid()?.item::<i32>().unwrap_err().message, "shape [2, 3] holds 6 elements, wanted 1");
    Ok(())
}

#[test]
fn host_data_that_does_not_fill_the_shape_is_refused() -> Result<()> {
    let message = |shape: &[i32]| Array::from_slice(&[1.0f32, 2.0], shape).unwrap_err().message;
    assert_eq!(message(&[3]), "2 elements do not fill shape [3] (3)");
    assert_eq!(message(&[]), "2 elements do not fill shape [] (1)");
    assert_eq!(message(&[-2]), "shape [-2] has a negative dimension or is too large");
    let error = Array::from_bytes(&[0; 7], &[1], Dtype::Float32).unwrap_err();
    assert_eq!(error.message, "7 bytes are no whole number of float32 elements");
    Ok(())
}

#[test]
fn what_was_read_is_a_copy() -> Result<()> {
    let mut host = vec![1.0f32, 2.0];
    let array = Array::from_slice(&host, &[2])?;
    host[0] = 9.0;
    assert_eq!(array.to_vec::<f32>()?, [1.0, 2.0]);
    let mut read = array.to_vec::<f32>()?;
    read[1] = 9.0;
    drop(host);
    assert_eq!(array.to_vec::<f32>()?, [1.0, 2.0]);
    Ok(())
}

#[test]
fn a_byte_other_than_zero_and_one_reads_as_true() -> Result<()> {
    let odd = ops::view(&Array::from_slice(&[0u8, 1, 2, 255], &[4])?, Dtype::Bool)?;
    assert_eq!(odd.to_vec::<bool>()?, [false, true, true, true]);
    Ok(())
}
