//! Kernels of our own on the GPU: [`MetalKernel`] and [`CudaKernel`].
//!
//! A kernel is made once from a [`KernelSource`] (names and the body of the function; MLX writes the signature) and run
//! many times, each time with a [`KernelCall`] (outputs, grid, template arguments). MLX compiles it at its first use and
//! keeps it by name and source. Inputs are copied into row order first unless told otherwise, so linear indexing is
//! right. Both backends count the grid in threads; CUDA starts whole blocks, so a CUDA kernel checks its bounds.
//!
//! A kernel has no derivative of its own (wrap it in [`CustomVjp`](crate::transforms::CustomVjp)) and cannot be replayed
//! by a shapeless compiled function.
//!
//! ```
//! use mlx_rs_core::kernel::{KernelCall, KernelSource, MetalKernel};
//! use mlx_rs_core::{Array, Dtype, ErrorKind};
//!
//! let source = KernelSource::new("twice", &["x"], &["out"], "uint i = thread_position_in_grid.x; out[i] = x[i] * T(2);");
//! match MetalKernel::new(source, false) {
//!     Ok(twice) => {
//!         let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
//!         let call = KernelCall::new().output(&[2], Dtype::Float32).grid([2, 1, 1]).thread_group([2, 1, 1]);
//!         let out = twice.call(&[x], &call.template_dtype("T", Dtype::Float32))?;
//!         assert_eq!(out[0].to_vec::<f32>()?, [2.0, 4.0]);
//!     }
//!     // Without the backend, take the way that is built of ops.
//!     Err(error) => assert_eq!(error.kind, ErrorKind::Unsupported),
//! }
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

mod call;
mod config;
mod cuda;
mod metal;

#[cfg(test)]
mod tests;

pub use call::KernelCall;
pub use cuda::CudaKernel;
pub use metal::MetalKernel;

use std::ffi::CString;

use crate::device::{self, Device, Stream};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::{self, StringVector};

/// What a kernel is made of: names, and the body of its function.
#[derive(Debug, Clone)]
pub struct KernelSource {
    name: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    body: String,
    header: String,
    ensure_row_contiguous: bool,
}

impl KernelSource {
    /// A kernel called `name`, which reads `inputs` and writes `outputs` under these names. `body` is the inside of the
    /// function; where it mentions `<input>_shape`, `_strides` or `_ndim`, those are passed too.
    pub fn new(name: &str, inputs: &[&str], outputs: &[&str], body: &str) -> Self {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            name: name.to_owned(),
            inputs: owned(inputs),
            outputs: owned(outputs),
            body: body.to_owned(),
            header: String::new(),
            ensure_row_contiguous: true,
        }
    }

    /// Text in front of the function: includes, definitions, other functions.
    pub fn header(mut self, header: &str) -> Self {
        self.header = header.to_owned();
        self
    }

    /// Whether inputs are copied into row order when they are not (default: true).
    pub fn ensure_row_contiguous(mut self, ensure: bool) -> Self {
        self.ensure_row_contiguous = ensure;
        self
    }

    fn to_c(&self, op: &'static str) -> Result<CSource> {
        if self.outputs.is_empty() {
            return Err(Error::argument(op, format!("kernel {:?} has no outputs", self.name)));
        }
        let mut seen = std::collections::BTreeSet::new();
        for name in self.inputs.iter().chain(&self.outputs) {
            require_identifier(op, "argument", name)?;
            if !seen.insert(name) {
                return Err(Error::argument(op, format!("kernel {:?} has two arguments named {name:?}", self.name)));
            }
        }
        require_identifier(op, "kernel", &self.name)?;
        Ok(CSource {
            name: ffi::c_string(op, &self.name)?,
            inputs: StringVector::from_slice(op, &self.inputs)?,
            outputs: StringVector::from_slice(op, &self.outputs)?,
            body: ffi::c_string(op, &self.body)?,
            header: ffi::c_string(op, &self.header)?,
        })
    }
}

/// A [`KernelSource`] as C takes it. MLX copies all of it while it makes the kernel.
struct CSource {
    name: CString,
    inputs: StringVector,
    outputs: StringVector,
    body: CString,
    header: CString,
}

/// Names become parts of the generated source, where a wrong one gives an error that names nothing of the caller's.
fn require_identifier(op: &'static str, what: &str, name: &str) -> Result<()> {
    let mut bytes = name.bytes();
    let starts = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if starts && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Ok(());
    }
    Err(Error::argument(op, format!("{what} name {name:?} is no identifier (letters, digits and `_`)")))
}

/// The current stream, which must be one of a GPU.
fn gpu_stream(op: &'static str) -> Result<Stream> {
    let stream = device::current_stream(op)?;
    match stream.device()? {
        Device::Gpu(_) => Ok(stream),
        Device::Cpu => Err(Error::new(
            ErrorKind::Unsupported,
            op,
            "kernels run on a GPU stream, but the current scope is the cpu; use `with_device(Device::Gpu(0), …)`",
        )),
    }
}

/// Refuses a backend that this build or this machine does not have.
fn require_backend(op: &'static str, backend: &str, available: bool) -> Result<()> {
    if available {
        return Ok(());
    }
    let built = mlx_sys::runtime::BACKEND;
    Err(Error::new(
        ErrorKind::Unsupported,
        op,
        format!("no {backend} here (this program was built for `{built}`); run the op-built way instead"),
    ))
}
