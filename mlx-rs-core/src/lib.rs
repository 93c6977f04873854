//! A safe wrapper over Apple's [MLX](https://ml-explore.github.io/mlx/), through its C API.
//!
//! # A tour
//!
//! Arrays are lazy and cheap to clone; every op returns a [`Result`]; operators take a `Result` on either side, so a
//! formula needs one `?` at its end.
//!
//! ```
//! use mlx_rs_core::{Array, Device, device, ops, random, transforms};
//!
//! // Host data in, shape given; a read runs the graph.
//! let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
//! let y = (&ops::matmul(&x, &x)? * 0.5 + &x)?;
//! assert_eq!(y.to_vec::<f32>()?, [4.5, 7.0, 10.5, 15.0]);
//!
//! // Explicit keys make random numbers repeatable.
//! let key = random::key(0)?;
//! let w = random::normal(&[2, 2], mlx_rs_core::Dtype::Float32, 0.0, 1.0, Some(&key))?;
//!
//! // Gradients of a scalar with respect to the listed arguments.
//! let loss = |args: &[Array]| {
//!     let error = (ops::matmul(&args[1], &args[0])? - &args[2])?;
//!     Ok(vec![ops::mean(&ops::square(&error)?, None, false)?])
//! };
//! let (values, grads) = transforms::value_and_grad(loss, &[0], &[w.clone(), x.clone(), y])?;
//! transforms::eval(&[values[0].clone(), grads[0].clone()])?;
//! assert_eq!(grads[0].shape(), w.shape());
//!
//! // Where ops run is a scope, not an argument.
//! let total = device::with_device(Device::Cpu, || ops::sum(&x, None, false))?;
//! assert_eq!(total.item::<f32>()?, 10.0);
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```
//!
//! # Rules
//! Arrays and streams stay on their thread. A panic or an error inside a function handed to a transform comes out of
//! the call that ran it. `docs/FFI.md` lists the rules of the boundary, each with its test.

mod array;
pub mod cpu_engine;
pub mod device;
mod element;
mod error;
pub mod fast;
mod ffi;
pub mod fft;
pub mod io;
pub mod kernel;
pub mod linalg;
pub mod memory;
mod operators;
pub mod ops;
pub mod random;
pub mod transforms;

pub use array::Array;
pub use device::{Device, Stream};
pub use element::{Complex64, Dtype, Element};
pub use error::{Error, ErrorKind, Result};
pub use mlx_sys::runtime;
pub use operators::IntoOperand;

/// The version of the MLX library that is loaded.
///
/// # Errors
/// What MLX reports.
pub fn version() -> Result<String> {
    // SAFETY: C writes the string.
    ffi::string_out("version", |out| unsafe { mlx_sys::mlx_version(out) })
}

/// Which BLAS multiplies f32 matrices on the CPU in this program.
pub fn blas_in_force() -> String {
    match runtime::BLAS {
        "builtin" => mlx_cpu_kernels::blas_name().to_owned(),
        other => other.to_owned(),
    }
}
