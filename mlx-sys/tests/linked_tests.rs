//! What runs: the linked MLX, the string formatting that we lend mlx-c, and our matrix product under MLX's.

use std::ffi::{CStr, c_char, c_void};

use mlx_sys::runtime;

use crate::messages::with_message;

#[test]
fn the_linked_mlx_is_the_pinned_one() {
    // SAFETY: the string is a live handle from its making to its freeing, and nothing keeps its text.
    let version = unsafe {
        let mut text = mlx_sys::mlx_string_new();
        assert_eq!(mlx_sys::mlx_version(&mut text), 0);
        let version = CStr::from_ptr(mlx_sys::mlx_string_data(text)).to_string_lossy().into_owned();
        mlx_sys::mlx_string_free(text);
        version
    };
    assert_eq!(version, runtime::MLX_VERSION);
    assert_eq!(version, "0.32.2");
    assert_eq!(runtime::MLX_C_VERSION, "0.7.0");
}

#[test]
fn the_named_folder_holds_the_library() {
    let names = ["libmlx.so", "libmlx.dylib"];
    let folder = std::path::Path::new(runtime::LIB_DIR);
    assert!(names.iter().any(|name| folder.join(name).is_file()), "no libmlx in {}", folder.display());
}

/// A reader that is open and good and has nothing to give.
mod empty_reader {
    use super::{c_char, c_void};

    pub unsafe extern "C" fn is_true(_: *mut c_void) -> bool {
        true
    }
    pub unsafe extern "C" fn tell(_: *mut c_void) -> usize {
        0
    }
    pub unsafe extern "C" fn seek(_: *mut c_void, _: i64, _: i32) -> i32 {
        0
    }
    pub unsafe extern "C" fn read(_: *mut c_void, _: *mut c_char, _: usize) -> usize {
        0
    }
    pub unsafe extern "C" fn read_at(_: *mut c_void, _: *mut c_char, _: usize, _: usize) -> usize {
        0
    }
    pub unsafe extern "C" fn write(_: *mut c_void, _: *const c_char, _: usize) -> usize {
        0
    }
    pub unsafe extern "C" fn label(_: *mut c_void) -> *const c_char {
        c"the empty file".as_ptr()
    }
    pub unsafe extern "C" fn free(_: *mut c_void) {}
}

#[test]
fn an_error_that_mlx_c_formats_has_its_fields_filled_in() {
    let vtable = mlx_sys::mlx_io_vtable {
        is_open: Some(empty_reader::is_true),
        good: Some(empty_reader::is_true),
        tell: Some(empty_reader::tell),
        seek: Some(empty_reader::seek),
        read: Some(empty_reader::read),
        read_at_offset: Some(empty_reader::read_at),
        write: Some(empty_reader::write),
        label: Some(empty_reader::label),
        free: Some(empty_reader::free),
    };
    // SAFETY: the handles live from their making to their freeing; the reader's functions keep no state, so that the
    // null descriptor is never followed.
    let (status, message) = with_message(|| unsafe {
        let reader = mlx_sys::mlx_io_reader_new(std::ptr::null_mut(), vtable);
        let stream = mlx_sys::mlx_default_cpu_stream_new();
        let mut arrays = mlx_sys::mlx_map_string_to_array_new();
        let mut metadata = mlx_sys::mlx_map_string_to_string_new();
        let status = mlx_sys::mlx_load_safetensors_reader(&mut arrays, &mut metadata, reader, stream);
        mlx_sys::mlx_map_string_to_array_free(arrays);
        mlx_sys::mlx_map_string_to_string_free(metadata);
        mlx_sys::mlx_stream_free(stream);
        mlx_sys::mlx_io_reader_free(reader);
        status
    });
    assert_eq!(status, 1);
    let wanted = "[mlx_io_reader] unable to read 8 bytes (read 0 instead) in the empty file";
    assert!(message.contains(wanted), "got: {message}");
}

/// `a @ b` by MLX on the CPU, for row-major `a` (m x k) and `b` (k x n).
fn matmul(a: &[f32], b: &[f32], m: usize, k: usize, n: usize) -> Vec<f32> {
    // SAFETY: the shapes fit the slices (asserted), MLX copies the data, and the result is read (m x n) while alive.
    unsafe {
        assert_eq!((a.len(), b.len()), (m * k, k * n));
        let stream = mlx_sys::mlx_default_cpu_stream_new();
        let (shape_a, shape_b) = ([m as i32, k as i32], [k as i32, n as i32]);
        let left = mlx_sys::mlx_array_new_data(a.as_ptr().cast(), shape_a.as_ptr(), 2, mlx_sys::MLX_FLOAT32);
        let right = mlx_sys::mlx_array_new_data(b.as_ptr().cast(), shape_b.as_ptr(), 2, mlx_sys::MLX_FLOAT32);
        let mut product = mlx_sys::mlx_array_new();
        assert_eq!(mlx_sys::mlx_matmul(&mut product, left, right, stream), 0);
        assert_eq!(mlx_sys::mlx_array_eval(product), 0);
        let values = std::slice::from_raw_parts(mlx_sys::mlx_array_data_float32(product), m * n).to_vec();
        mlx_sys::mlx_array_free(left);
        mlx_sys::mlx_array_free(right);
        mlx_sys::mlx_array_free(product);
        mlx_sys::mlx_stream_free(stream);
        values
    }
}

#[test]
fn a_matrix_product_has_its_exact_values() {
    let product = matmul(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 2, 3, 2);
    assert_eq!(product, [4.0, 5.0, 10.0, 11.0]);
}

#[test]
fn mlx_multiplies_with_the_blas_that_was_chosen() {
    let before = mlx_cpu_kernels::sgemm_calls();
    let ones = vec![1.0_f32; 64 * 64];
    assert_eq!(matmul(&ones, &ones, 64, 64, 64), vec![64.0_f32; 64 * 64]);
    let ours = mlx_cpu_kernels::sgemm_calls() > before;
    assert_eq!(ours, runtime::BLAS == "builtin", "MLX_BLAS={}", runtime::BLAS);
}
