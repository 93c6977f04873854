//! The one error type, and the hand-over of messages from C.
//!
//! mlx-c reports a failure twice: a message through a process-wide handler, then a non-zero status. The default
//! handler ends the process, so ours is installed before the first call. It writes a slot of the calling thread;
//! the slot is emptied before each call and taken once after a bad status, so a message never outlives its failure.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::sync::Once;

use mlx_sys as sys;

/// What kind of check failed. Only checks made on the Rust side get a specific kind; MLX's own text is never parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// MLX refused or failed the call; the message is MLX's.
    Mlx,
    /// A shape or a length does not fit.
    Shape,
    /// An array has another dtype than the one asked for.
    Dtype,
    /// An argument is out of its range.
    Argument,
    /// A function handed to a transform failed or returned the wrong number of arrays.
    Closure,
    /// A file could not be read or written.
    Io,
    /// The backend in use cannot do this.
    Unsupported,
}

/// A failed call: what kind, in which operation, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What kind of check failed.
    pub kind: ErrorKind,
    /// The operation, as it is named in MLX's Python API.
    pub op: &'static str,
    /// What was found and what was wanted.
    pub message: String,
}

/// The result of every call that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` in `op`.
    pub fn new(kind: ErrorKind, op: &'static str, message: impl Into<String>) -> Self {
        Self { kind, op, message: message.into() }
    }

    /// A shape or length that does not fit.
    pub fn shape(op: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Shape, op, message)
    }

    /// An argument out of its range.
    pub fn argument(op: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Argument, op, message)
    }

    /// A failure inside a function handed to a transform.
    pub fn closure(op: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Closure, op, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.op, self.message)
    }
}

impl std::error::Error for Error {}

thread_local! {
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

static INSTALL: Once = Once::new();

/// Installs our handler in place of the one that exits the process. Cheap after the first call.
pub(crate) fn install_handler() {
    INSTALL.call_once(|| {
        // SAFETY: `record` never unwinds and needs no data pointer.
        unsafe { sys::mlx_set_error_handler(Some(record), std::ptr::null_mut(), None) }
    });
}

/// Keeps the first message of a failure: later ones come from frames that only pass it on.
unsafe extern "C" fn record(message: *const c_char, _data: *mut c_void) {
    if message.is_null() {
        return;
    }
    // SAFETY: mlx-c passes a NUL-terminated string that lives until this function returns.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    // The thread-local may be gone while the thread ends; the status still reports the failure.
    let _ = MESSAGE.try_with(|slot| {
        if let Ok(mut slot) = slot.try_borrow_mut() {
            slot.get_or_insert(without_location(text));
        }
    });
}

/// mlx-c appends ` at <its source file>:<line>`, a path of the build machine that helps nobody.
fn without_location(mut text: String) -> String {
    if let Some(at) = text.rfind(" at ") {
        let tail = &text[at + 4..];
        let is_location = tail
            .rsplit_once(':')
            .is_some_and(|(file, line)| file.ends_with(".cpp") && line.bytes().all(|b| b.is_ascii_digit()));
        if is_location {
            text.truncate(at);
        }
    }
    text
}

/// Empties the slot, so that a later failure does not report an old message.
pub(crate) fn clear_message() {
    let _ = MESSAGE.try_with(|slot| slot.borrow_mut().take());
}

/// Takes the message of the failure that just happened.
pub(crate) fn take_message(op: &'static str) -> Error {
    let message = MESSAGE.try_with(|slot| slot.borrow_mut().take()).ok().flatten();
    Error::new(ErrorKind::Mlx, op, message.unwrap_or_else(|| "failed without a message".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::{ErrorKind, record, without_location};
    use crate::ffi;

    #[test]
    fn the_build_machines_path_is_cut_from_messages() {
        assert_eq!(without_location("[add] no at /x/mlx/c/ops.cpp:12".into()), "[add] no");
        assert_eq!(without_location("meet at noon".into()), "meet at noon");
    }

    #[test]
    fn a_stale_message_is_never_blamed_for_the_next_failure() {
        // SAFETY: a NUL-terminated text, as mlx-c passes it.
        unsafe { record(c"from an ignored failure".as_ptr(), null_mut()) };
        let error = ffi::check("later", || 1).expect_err("a status of 1 is a failure");
        assert_eq!((error.kind, error.op), (ErrorKind::Mlx, "later"));
        assert_eq!(error.message, "failed without a message");
    }

    #[test]
    fn of_several_messages_of_one_failure_the_first_is_kept_and_taken_once() {
        let fail = || {
            // SAFETY: NUL-terminated texts, as mlx-c passes them.
            unsafe {
                record(c"the cause".as_ptr(), null_mut());
                record(c"a frame that passes it on".as_ptr(), null_mut());
            }
            2
        };
        assert_eq!(ffi::check("first", fail).expect_err("a failure").message, "the cause");
        assert_eq!(ffi::check("second", || 2).expect_err("a failure").message, "failed without a message");
    }
}
