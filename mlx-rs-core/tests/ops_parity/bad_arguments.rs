//! What C would crash on, cut short or read past is refused before the call.

use mlx_rs_core::{Array, Device, Dtype, Error, ErrorKind, Result, device, fast, fft, linalg, ops, random};

fn row() -> Array {
    Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[6]).unwrap()
}

fn refused<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("the call went through"),
        Err(error) => error,
    }
}

#[test]
fn a_negative_dimension_is_a_shape_error_of_the_named_op() {
    let error = refused(ops::zeros(&[2, -1], Dtype::Float32));
    assert_eq!((error.kind, error.op), (ErrorKind::Shape, "zeros"));
    assert_eq!(error.to_string(), "zeros: shape [2, -1] has a negative dimension or is too large");
    assert_eq!(refused(random::uniform(0.0, 1.0, &[-3], Dtype::Float32, None)).op, "uniform");
    assert_eq!(refused(ops::broadcast_to(&row(), &[-1, 6])).op, "broadcast_to");
}

#[test]
fn a_shape_whose_product_overflows_is_refused() {
    let error = refused(ops::ones(&[i32::MAX, i32::MAX, i32::MAX], Dtype::Uint8));
    assert_eq!(error.kind, ErrorKind::Shape);
}

#[test]
fn text_with_a_nul_byte_is_refused_instead_of_cut() {
    let error = refused(ops::einsum("i\0->i", &[row()]));
    assert_eq!(error.to_string(), "einsum: text \"i\\0->i\" contains a NUL byte");
}

#[test]
fn dividing_by_zero_inside_c_is_refused() {
    assert_eq!(refused(ops::split(&row(), 0, 0)).to_string(), "split: number of parts is 0, wanted at least 1");
    assert_eq!(refused(ops::slice(&row(), &[0], &[6], &[0])).to_string(), "slice: strides [0] contain a 0");
    assert_eq!(
        refused(ops::arange(0.0, 1.0, 0.0, Dtype::Float32)).to_string(),
        "arange: start 0, stop 1, step 0: wanted finite bounds and a step other than 0"
    );
    let (x, w) = (row().reshape(&[1, 6, 1]).unwrap(), row().reshape(&[1, 6, 1]).unwrap());
    assert_eq!(refused(ops::conv1d(&x, &w, 0, 0, 1, 1)).to_string(), "conv1d: stride is 0, wanted at least 1");
    assert_eq!(refused(ops::conv1d(&x, &w, 1, 0, 1, 0)).to_string(), "conv1d: groups is 0, wanted at least 1");
    let empty = ops::zeros(&[0], Dtype::Float32).unwrap();
    assert_eq!(
        refused(ops::reshape(&empty, &[0, -1])).to_string(),
        "reshape: cannot infer the -1 in [0, -1] beside a 0"
    );
    let scalar = Array::scalar(1.0f32).unwrap();
    assert_eq!(
        refused(ops::number_of_elements(&scalar, &[0], false, Dtype::Int32)).to_string(),
        "number_of_elements: axis 0 of an array of shape []"
    );
}

#[test]
fn lists_of_different_lengths_are_refused() {
    assert_eq!(
        refused(ops::slice(&row(), &[0, 0], &[1], &[1])).to_string(),
        "slice: start and axes: found 2 and 1 entries, wanted the same number"
    );
    let value = Array::scalar(0.0f32).unwrap();
    assert_eq!(
        refused(ops::pad(&row(), &[(1, 1), (1, 1)], &value, "constant")).to_string(),
        "pad: widths and axes: found 2 and 1 entries, wanted the same number"
    );
    let at = Array::scalar(0i32).unwrap();
    assert_eq!(
        refused(ops::gather(&row(), &[at], &[], &[1])).to_string(),
        "gather: indices and axes: found 1 and 0 entries, wanted the same number"
    );
}

#[test]
fn a_strided_view_that_reaches_outside_the_elements_is_refused() {
    let error = refused(ops::as_strided(&row(), Some(&[3, 2]), Some(&[2, 2]), 1));
    assert_eq!(
        error.to_string(),
        "as_strided: shape [3, 2] with strides [2, 2] and offset 1 reaches elements 1 to 7 of 6"
    );
    assert!(refused(ops::as_strided(&row(), Some(&[2]), Some(&[-1]), 0)).message.contains("reaches elements -1 to 0"));
    let backwards = ops::as_strided(&row(), Some(&[3]), Some(&[-2]), 5).unwrap();
    assert_eq!(backwards.to_vec::<f32>().unwrap(), [6.0, 4.0, 2.0]);
    let whole = ops::as_strided(&row(), None, None, 0).unwrap();
    assert_eq!(whole.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn an_empty_list_of_axes_reduces_nothing_and_none_reduces_all() {
    assert_eq!(ops::sum(&row(), Some(&[]), false).unwrap().shape(), [6]);
    assert_eq!(ops::sum(&row(), None, false).unwrap().item::<f32>().unwrap(), 21.0);
}

#[test]
fn an_unknown_triangle_is_refused_before_lapack_sees_it() {
    let square = ops::eye(2, 2, 0, Dtype::Float32).unwrap();
    assert_eq!(refused(linalg::eigh(&square, "X")).to_string(), "eigh: triangle is \"X\", wanted \"L\" or \"U\"");
}

#[test]
fn sizes_of_a_transform_need_their_axes() {
    let a = row().reshape(&[2, 3]).unwrap();
    let error = refused(fft::fftn(&a, Some(&[2, 3]), None, fft::Norm::Backward));
    assert_eq!(error.to_string(), "fftn: sizes are given without their axes");
    assert_eq!(fft::irfft(&a, None, 1, fft::Norm::Backward).unwrap().shape(), [2, 4]);
    assert_eq!(refused(fft::fft(&a, Some(0), 1, fft::Norm::Backward)).to_string(), "fft: size is 0, wanted at least 1");
}

#[test]
fn one_pair_of_widths_pads_every_axis() {
    let a = ops::ones(&[1, 1], Dtype::Int32).unwrap();
    let value = Array::scalar(7i32).unwrap();
    let padded = ops::pad(&a, &[(1, 0)], &value, "constant").unwrap();
    assert_eq!(padded.to_vec::<i32>().unwrap(), [7, 7, 7, 1]);
}

#[test]
fn shapes_broadcast_as_arrays_do() {
    assert_eq!(ops::broadcast_shapes(&[&[3, 1], &[2], &[]]).unwrap(), [3, 2]);
    assert_eq!(ops::broadcast_shapes(&[&[0], &[1]]).unwrap(), [0]);
    assert_eq!(
        refused(ops::broadcast_shapes(&[&[2], &[3]])).to_string(),
        "broadcast_shapes: shapes [[2], [3]] do not broadcast"
    );
}

#[test]
fn empty_arrays_give_empty_results_instead_of_ending_the_process() {
    let none = ops::zeros(&[0], Dtype::Float32).unwrap();
    assert_eq!(ops::sort(&none, Some(0)).unwrap().to_vec::<f32>().unwrap(), [0.0; 0]);
    assert_eq!(ops::argsort(&none, None).unwrap().to_vec::<u32>().unwrap(), [0; 0]);
    assert_eq!(ops::cumsum(&none, Some(0), false, true, None).unwrap().to_vec::<f32>().unwrap(), [0.0; 0]);
    assert_eq!(random::permutation_arange(0, None).unwrap().shape(), [0]);
    let square = ops::zeros(&[0, 0], Dtype::Float32).unwrap();
    on_cpu(|| {
        assert_eq!(linalg::inv(&square)?.to_vec::<f32>()?.len(), 0);
        assert_eq!(linalg::lu(&square)?.len(), 3);
        let (factors, pivots) = linalg::lu_factor(&square)?;
        assert_eq!((factors.to_vec::<f32>()?.len(), pivots.to_vec::<u32>()?.len()), (0, 0));
        Ok(())
    });
    assert!(ops::depends(&[], &[none]).unwrap().is_empty());
}

fn on_cpu(body: impl FnOnce() -> Result<()>) {
    device::with_device(Device::Cpu, body).unwrap();
}

#[test]
fn a_group_size_or_bits_of_zero_is_refused() {
    let w = ops::ones(&[2, 64], Dtype::Float32).unwrap();
    assert_eq!(
        refused(ops::quantize(&w, Some(0), Some(4), "affine")).to_string(),
        "quantize: group size is 0, wanted at least 1"
    );
    let parts = ops::quantize(&w, Some(64), Some(4), "affine").unwrap();
    let product = ops::quantized_matmul(&w, &parts[0], &parts[1], Some(&parts[2]), true, Some(64), Some(0), "affine");
    assert_eq!(refused(product).to_string(), "quantized_matmul: bits is 0, wanted at least 1");
}

#[test]
fn a_convolution_without_channels_and_keys_without_heads_are_refused() {
    let (x, w) = (ops::zeros(&[1, 4, 0], Dtype::Float32).unwrap(), ops::zeros(&[1, 2, 0], Dtype::Float32).unwrap());
    assert_eq!(
        refused(ops::conv1d(&x, &w, 1, 0, 1, 1)).to_string(),
        "conv1d: number of channels is 0, wanted at least 1"
    );
    let (q, k) =
        (ops::zeros(&[1, 2, 3, 4], Dtype::Float32).unwrap(), ops::zeros(&[1, 0, 3, 4], Dtype::Float32).unwrap());
    let attention = fast::scaled_dot_product_attention(&q, &k, &k, 1.0, fast::AttentionMask::None, None);
    assert_eq!(refused(attention).to_string(), "scaled_dot_product_attention: k of shape [1, 0, 3, 4] has no heads");
}

#[test]
fn a_dynamic_update_of_a_higher_rank_is_refused() {
    let update = ops::ones(&[1, 1], Dtype::Float32).unwrap();
    let start = Array::from_slice(&[0i32], &[1]).unwrap();
    assert_eq!(
        refused(ops::slice_update_dynamic(&row(), &update, &start, &[0])).to_string(),
        "slice_update: update of shape [1, 1] for an array of shape [6]"
    );
}
