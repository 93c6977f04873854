//! The binding's tests.

use std::ffi::CStr;

#[test]
fn the_linked_mlx_is_the_pinned_one() {
    let mut text = unsafe { mlx_sys::mlx_string_new() };
    let status = unsafe { mlx_sys::mlx_version(&mut text) };
    assert_eq!(status, 0);
    let version = unsafe { CStr::from_ptr(mlx_sys::mlx_string_data(text)) };
    assert_eq!(version.to_str(), Ok(mlx_sys::runtime::MLX_VERSION));
    unsafe { mlx_sys::mlx_string_free(text) };
}
