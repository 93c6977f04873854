//! Raw bindings of [mlx-c](runtime::MLX_C_VERSION), and the MLX that they run on.

pub mod runtime;

// Named, so that its `cblas_*` functions are linked into every program and stand before those that libmlx brings.
#[cfg(mlx_blas_builtin)]
use mlx_cpu_kernels as _;

mod bindings {
    #![allow(non_camel_case_types, non_upper_case_globals, non_snake_case, missing_docs)]
    #![allow(clippy::all, rustdoc::all)]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use bindings::*;
