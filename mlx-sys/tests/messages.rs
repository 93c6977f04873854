//! What MLX's error handler is told. The handler is one for the process, so tests that read it take turns.

use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, PoisonError};

static MESSAGE: Mutex<String> = Mutex::new(String::new());
static TURN: Mutex<()> = Mutex::new(());

unsafe extern "C" fn keep_message(message: *const c_char, _data: *mut c_void) {
    // SAFETY: mlx-c passes a string that lives for the call.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    *MESSAGE.lock().unwrap_or_else(PoisonError::into_inner) = text;
}

/// What `call` returns, and the last message while it ran.
pub fn with_message<R>(call: impl FnOnce() -> R) -> (R, String) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    MESSAGE.lock().unwrap_or_else(PoisonError::into_inner).clear();
    // SAFETY: the handler needs no data and lives as long as the process.
    unsafe { mlx_sys::mlx_set_error_handler(Some(keep_message), std::ptr::null_mut(), None) };
    let result = call();
    let message = MESSAGE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (result, message)
}
