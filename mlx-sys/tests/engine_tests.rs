//! The CPU primitives below their Rust wrapper: what the C++ side checks itself, and half-precision scales.

use std::ffi::c_int;

use mlx_sys::{mlx_array, mlx_stream};

use crate::messages::with_message;

/// An array that is freed with this value.
struct Owned(mlx_array);

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: this value owns the handle.
        unsafe { mlx_sys::mlx_array_free(self.0) };
    }
}

fn array<T>(values: &[T], shape: &[i32], dtype: mlx_sys::mlx_dtype) -> Owned {
    let count: i32 = shape.iter().product();
    assert_eq!(values.len(), count as usize);
    // SAFETY: the shape fits the values, whose type is that of `dtype` at each call; MLX copies them.
    Owned(unsafe { mlx_sys::mlx_array_new_data(values.as_ptr().cast(), shape.as_ptr(), shape.len() as i32, dtype) })
}

fn floats(values: &[f32], shape: &[i32]) -> Owned {
    array(values, shape, mlx_sys::MLX_FLOAT32)
}

/// What `build` makes on the CPU, or its message.
fn built(build: impl FnOnce(*mut mlx_array, mlx_stream) -> c_int) -> Result<Vec<f32>, String> {
    // SAFETY: the handles live from their making to their freeing; the result is read at its own size after eval.
    unsafe {
        let stream = mlx_sys::mlx_default_cpu_stream_new();
        let mut out = Owned(mlx_sys::mlx_array_new());
        let (status, message) = with_message(|| build(&mut out.0, stream));
        mlx_sys::mlx_stream_free(stream);
        if status != 0 {
            return Err(message);
        }
        assert_eq!(mlx_sys::mlx_array_eval(out.0), 0);
        let size = mlx_sys::mlx_array_size(out.0);
        if size == 0 {
            return Ok(Vec::new());
        }
        Ok(std::slice::from_raw_parts(mlx_sys::mlx_array_data_float32(out.0), size).to_vec())
    }
}

fn assert_refused(result: Result<Vec<f32>, String>, wanted: &str) {
    let message = result.expect_err("refused");
    assert!(message.starts_with(wanted), "got: {message}");
}

#[test]
fn each_primitive_computes() {
    let x = floats(&[0.0, 0.0, 0.0, 2.0_f32.ln()], &[2, 2]);
    // SAFETY: as `built` says, here and in all tests below.
    let weights = built(|out, s| unsafe { mlx_sys::mlxrs_softmax(out, x.0, s) }).expect("built");
    assert_eq!(weights[..2], [0.5, 0.5]);
    assert!((weights[2] - 1.0 / 3.0).abs() < 1e-6 && (weights[3] - 2.0 / 3.0).abs() < 1e-6);
    // SAFETY: as above.
    let weights = built(|out, s| unsafe { mlx_sys::mlxrs_causal_softmax(out, x.0, 2, s) }).expect("built");
    assert_eq!(weights[..2], [1.0, 0.0]);
    // SAFETY: as above.
    let sums = built(|out, s| unsafe { mlx_sys::mlxrs_logsumexp(out, x.0, s) }).expect("built");
    assert!((sums[0] - 2.0_f32.ln()).abs() < 1e-6 && (sums[1] - 3.0_f32.ln()).abs() < 1e-6, "{sums:?}");
    // SAFETY: as above.
    let y = built(|out, s| unsafe { mlx_sys::mlxrs_swiglu(out, x.0, x.0, s) }).expect("built");
    assert_eq!(y[..3], [0.0; 3]);
}

#[test]
fn empty_arrays_run_no_kernel() {
    let x = floats(&[], &[3, 0]);
    // SAFETY: as above.
    assert_eq!(built(|out, s| unsafe { mlx_sys::mlxrs_softmax(out, x.0, s) }), Ok(vec![]));
    // SAFETY: as above.
    assert_eq!(built(|out, s| unsafe { mlx_sys::mlxrs_swiglu(out, x.0, x.0, s) }), Ok(vec![]));
    // SAFETY: as above.
    let sums = built(|out, s| unsafe { mlx_sys::mlxrs_logsumexp(out, x.0, s) });
    assert_eq!(sums, Ok(vec![f32::NEG_INFINITY; 3]));
}

#[test]
fn scales_of_half_precision_give_unrounded_weights() {
    // Codes 0, 1, 2, … of 8 bits, and a scale whose products with them no half-precision number holds.
    let codes: Vec<u32> = (0..8).map(|i| 0x0302_0100 + i * 0x0404_0404).collect();
    let w = array(&codes, &[1, 8], mlx_sys::MLX_UINT32);
    // 1.0009766 in half precision (bits 0x3c01), 1.0078125 in bfloat16 (bits 0x3f81); a bias of 0.
    let cases = [(mlx_sys::MLX_FLOAT16, 0x3c01_u16, 1.000_976_6_f32), (mlx_sys::MLX_BFLOAT16, 0x3f81, 1.007_812_5)];
    for (dtype, bits, scale) in cases {
        let (scales, biases) = (array(&[bits], &[1, 1], dtype), array(&[0_u16], &[1, 1], dtype));
        // SAFETY: as above.
        let out = built(|out, s| unsafe { mlx_sys::mlxrs_dequantize(out, w.0, scales.0, biases.0, 32, 8, s) });
        let wanted: Vec<f32> = (0..32).map(|code| code as f32 * scale).collect();
        assert_eq!(out, Ok(wanted));
    }
}

#[test]
fn what_does_not_fit_is_refused_when_the_node_is_built() {
    let (x, y, scalar) = (floats(&[0.0; 6], &[2, 3]), floats(&[0.0; 6], &[3, 2]), floats(&[0.0], &[]));
    let codes = array(&[0_u32; 8], &[1, 8], mlx_sys::MLX_UINT32);
    let scales = floats(&[1.0; 2], &[1, 2]);
    // SAFETY: as above, for all of these.
    unsafe {
        let wanted = "[softmax] x is of uint32, wanted float32";
        assert_refused(built(|out, s| mlx_sys::mlxrs_softmax(out, codes.0, s)), wanted);
        let wanted = "[logsumexp] found a scalar, wanted at least one axis";
        assert_refused(built(|out, s| mlx_sys::mlxrs_logsumexp(out, scalar.0, s)), wanted);
        let wanted = "[causal_softmax] scores have shape (2,3), wanted rows in multiples of 4 queries";
        assert_refused(built(|out, s| mlx_sys::mlxrs_causal_softmax(out, x.0, 4, s)), wanted);
        let wanted = "[swiglu] gate has shape (2,3) and up (3,2), wanted the same";
        assert_refused(built(|out, s| mlx_sys::mlxrs_swiglu(out, x.0, y.0, s)), wanted);
        let dequantize =
            |group, bits| built(|out, s| mlx_sys::mlxrs_dequantize(out, codes.0, scales.0, scales.0, group, bits, s));
        assert_eq!(dequantize(32, 4).map(|weights| weights.len()), Ok(64));
        assert_refused(dequantize(32, 7), "[dequantize] bits is 7, wanted 2, 3, 4, 5, 6 or 8");
        assert_refused(dequantize(16, 4), "[dequantize] group is 16, wanted 32, 64 or 128");
        assert_refused(dequantize(64, 4), "[dequantize] w has shape (1,8), scales (1,2)");
        let empty = mlx_array { ctx: std::ptr::null_mut() };
        assert_refused(built(|out, s| mlx_sys::mlxrs_softmax(out, empty, s)), "expected a non-empty mlx_array");
    }
}
