//! A Rust file behind mlx-c's writer interface. MLX's own writer takes only paths that end as it likes, and loses the
//! reason of a failure (a full disk, say).

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use mlx_sys as sys;

use super::failed;
use crate::error::{self, Error, Result};
use crate::ffi;

struct State {
    file: File,
    /// The first failure; MLX reports only that there was one.
    failure: Option<io::Error>,
}

struct Descriptor {
    state: Mutex<State>,
    label: CString,
}

impl Descriptor {
    /// Runs `body` on the file and keeps the first failure.
    fn run<R>(&self, body: impl FnOnce(&mut File) -> io::Result<R>) -> Option<R> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match body(&mut state.file) {
            Ok(value) => Some(value),
            Err(error) => {
                state.failure.get_or_insert(error);
                None
            }
        }
    }
}

/// Creates `path` and lets `call` write it through MLX.
///
/// An existing file is replaced; after a failure the file is incomplete.
pub(super) fn write_file(op: &'static str, path: &Path, call: impl FnOnce(sys::mlx_io_writer) -> c_int) -> Result<()> {
    let file = File::create(path).map_err(|error| failed(op, path, error))?;
    let label = ffi::c_string(op, &path.to_string_lossy())?;
    let descriptor = Arc::new(Descriptor { state: Mutex::new(State { file, failure: None }), label });
    let writer = Writer::new(op, Arc::clone(&descriptor))?;
    let outcome = ffi::check(op, || call(writer.0));
    drop(writer);
    let failure = descriptor.state.lock().unwrap_or_else(PoisonError::into_inner).failure.take();
    match (failure, outcome) {
        (Some(error), _) => Err(failed(op, path, error)),
        (None, Err(error)) => Err(super::at_path(path, error)),
        (None, Ok(())) => Ok(()),
    }
}

struct Writer(sys::mlx_io_writer);

impl Writer {
    fn new(op: &'static str, descriptor: Arc<Descriptor>) -> Result<Self> {
        error::install_handler();
        error::clear_message();
        let table = sys::mlx_io_vtable {
            is_open: Some(is_open),
            good: Some(good),
            tell: Some(tell),
            seek: Some(seek),
            read: Some(read),
            read_at_offset: Some(read_at_offset),
            write: Some(write),
            label: Some(label),
            free: Some(free),
        };
        let raw = Arc::into_raw(descriptor).cast_mut().cast::<c_void>();
        // SAFETY: the table's functions take this descriptor, and `free` gives its reference back.
        let writer = unsafe { sys::mlx_io_writer_new(raw, table) };
        if writer.ctx.is_null() {
            // SAFETY: C kept nothing of a writer that it could not make.
            drop(unsafe { Arc::from_raw(raw.cast::<Descriptor>()) });
            return Err(Error { op, ..error::take_message(op) });
        }
        Ok(Self(writer))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SAFETY: this value owns the writer.
        unsafe { sys::mlx_io_writer_free(self.0) };
    }
}

/// The descriptor that C hands back.
///
/// # Safety
/// `raw` comes from `Writer::new` and `free` has not seen it yet.
unsafe fn descriptor<'a>(raw: *mut c_void) -> &'a Descriptor {
    // SAFETY: the caller's promise.
    unsafe { &*raw.cast::<Descriptor>() }
}

unsafe extern "C" fn is_open(_raw: *mut c_void) -> bool {
    true
}

unsafe extern "C" fn good(raw: *mut c_void) -> bool {
    // SAFETY: C passes the descriptor of a live writer.
    let state = unsafe { descriptor(raw) }.state.lock().unwrap_or_else(PoisonError::into_inner);
    state.failure.is_none()
}

unsafe extern "C" fn tell(raw: *mut c_void) -> usize {
    // SAFETY: C passes the descriptor of a live writer.
    let at = unsafe { descriptor(raw) }.run(|file| file.stream_position());
    at.and_then(|at| usize::try_from(at).ok()).unwrap_or(0)
}

unsafe extern "C" fn seek(raw: *mut c_void, offset: i64, whence: c_int) -> c_int {
    // The numbers of C's SEEK_SET, SEEK_CUR and SEEK_END.
    let target = match whence {
        0 => SeekFrom::Start(offset.max(0).unsigned_abs()),
        1 => SeekFrom::Current(offset),
        _ => SeekFrom::End(offset),
    };
    // SAFETY: C passes the descriptor of a live writer.
    if unsafe { descriptor(raw) }.run(|file| file.seek(target)).is_some() { 0 } else { -1 }
}

unsafe extern "C" fn read(_raw: *mut c_void, _data: *mut c_char, _len: usize) -> usize {
    0
}

unsafe extern "C" fn read_at_offset(_raw: *mut c_void, _data: *mut c_char, _len: usize, _offset: usize) -> usize {
    0
}

unsafe extern "C" fn write(raw: *mut c_void, data: *const c_char, len: usize) -> usize {
    if len == 0 || data.is_null() {
        return len;
    }
    // SAFETY: C passes `len` readable bytes.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
    // SAFETY: C passes the descriptor of a live writer.
    if unsafe { descriptor(raw) }.run(|file| file.write_all(bytes)).is_some() { len } else { 0 }
}

unsafe extern "C" fn label(raw: *mut c_void) -> *const c_char {
    // SAFETY: C passes the descriptor of a live writer, which owns the text.
    unsafe { descriptor(raw) }.label.as_ptr()
}

unsafe extern "C" fn free(raw: *mut c_void) {
    // SAFETY: C gives back the reference of `Writer::new`, once.
    drop(unsafe { Arc::from_raw(raw.cast::<Descriptor>()) });
}
