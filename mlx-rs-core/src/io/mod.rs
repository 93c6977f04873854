//! Arrays in files: safetensors, GGUF and npy.
//!
//! Files are read and written on the CPU, whatever the device scope is. Arrays of a safetensors file are read when they
//! are evaluated, so evaluate them before the file is changed or cut: MLX does not notice a late failed read. The other
//! two formats are read at once. Every error names the file.
//!
//! ```
//! use std::collections::BTreeMap;
//! use mlx_rs_core::{Array, io};
//!
//! let path = std::env::temp_dir().join(format!("mlx-rs-core-doc-{}.safetensors", std::process::id()));
//! let weights = BTreeMap::from([("w".to_owned(), Array::from_slice(&[1.0f32, 2.0], &[2])?)]);
//! io::save_safetensors(&path, &weights, None)?;
//! let (read, metadata) = io::load_safetensors(&path)?;
//! assert_eq!(read["w"].to_vec::<f32>()?, [1.0, 2.0]);
//! assert_eq!(metadata["format"], "mlx");
//! # std::fs::remove_file(&path).ok();
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

mod gguf;
mod gguf_layout;
mod npy;
mod safetensors;
mod writer;

#[cfg(test)]
mod tests;

pub use gguf::{GgufMetadata, load_gguf, save_gguf};
pub use npy::{load, save};
pub use safetensors::{load_safetensors, save_safetensors};

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt::Display;
use std::fs::File;
use std::path::Path;

use crate::array::Array;
use crate::error::{Error, ErrorKind, Result};
use crate::{device, ffi, ops};

/// A failure with `path`, and the reason.
fn failed(op: &'static str, path: &Path, reason: impl Display) -> Error {
    Error::new(ErrorKind::Io, op, format!("{}: {reason}", path.display()))
}

/// Adds `path` to an error of MLX, whose messages do not always have it.
fn at_path(path: &Path, error: Error) -> Error {
    failed(error.op, path, error.message)
}

/// Opens a file for reading; a folder is refused here, because opening one succeeds on Unix.
fn open(op: &'static str, path: &Path) -> Result<(File, u64)> {
    let file = File::open(path).map_err(|error| failed(op, path, error))?;
    let meta = file.metadata().map_err(|error| failed(op, path, error))?;
    if meta.is_dir() {
        return Err(failed(op, path, "is a folder, wanted a file"));
    }
    Ok((file, meta.len()))
}

/// The path as C takes it.
fn c_path(op: &'static str, path: &Path) -> Result<CString> {
    let text = path.to_str().ok_or_else(|| failed(op, path, "the path is not UTF-8, which MLX needs"))?;
    ffi::c_string(op, text)
}

/// Named arrays, dense and without doubled names, as the writers of MLX expect them.
fn dense<'a, K: AsRef<str>>(
    op: &'static str,
    path: &Path,
    arrays: impl IntoIterator<Item = (K, &'a Array)>,
) -> Result<BTreeMap<String, Array>> {
    let mut result = BTreeMap::new();
    for (name, array) in arrays {
        let name = name.as_ref().to_owned();
        let array = ops::contiguous(array, false)?;
        if result.contains_key(&name) {
            return Err(failed(op, path, format!("two arrays are named {name:?}")));
        }
        result.insert(name, array);
    }
    Ok(result)
}

/// Runs `body` with the CPU stream as the stream of its ops.
fn on_cpu<R>(body: impl FnOnce() -> Result<R>) -> Result<R> {
    let stream = device::cpu_stream()?;
    device::with_stream(&stream, body)
}
