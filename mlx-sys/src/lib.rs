//! Raw bindings of mlx-c, and the MLX they run on.
//!
//! Every function of mlx-c's headers is here under its C name (`mlx_array_new`, `mlx_matmul`, …), with C's rules: handles
//! are freed by hand, a status other than 0 is an error whose text went to the error handler, and the default handler
//! ends the process. `mlx-rs-core` is the safe side of it. `tests/surface.txt` lists the whole surface.
//!
//! # Where the native parts come from
//!
//! Nothing native is part of this repository. The build script fetches released parts, pinned by hash in `vendor/`, into
//! a cache that all builds of a user share:
//!
//! | part | from | used for |
//! |---|---|---|
//! | MLX | its released wheel for the backend, through pip | headers, `libmlx` and what that loads |
//! | mlx-c | the crate that packages its sources, through cargo | compiled into a static library, kept in the cache |
//! | libclang | an installed one, else its released wheel | reading mlx-c's headers |
//!
//! The libraries are laid out in `<target>/<profile>/mlx-runtime/`, where programs find them whether cargo starts them
//! or a user does. On Linux, MLX's own single-precision and double-precision matrix products are replaced by those of
//! `mlx-cpu-kernels`: that crate's `cblas_sgemm` and `cblas_dgemm` are linked into every program and found first.
//!
//! # Variables that the build reads
//!
//! | variable | value | default |
//! |---|---|---|
//! | `MLX_BACKEND` | `cpu`, `cuda12`, `cuda13` or `metal` | `metal` on Apple silicon, else `cpu` |
//! | `MLX_PREFIX` | an installed MLX, with `include/` and `lib/` | the released wheel |
//! | `MLX_SOURCE` | a checkout of MLX, built with cmake (`MLX_SOURCE_DEPS`: what it would fetch) | the released wheel |
//! | `MLX_C_SOURCE` | a folder of mlx-c's sources | the pinned crate |
//! | `MLX_BLAS` | `builtin`, `wheel` or a shared library | `builtin` on Linux |
//! | `LIBCLANG_PATH` | libclang or its folder | an installed one, else the wheel |
//! | `MLX_RS_CACHE` | the cache folder | `mlx-rs` in the user's cache folder |
//!
//! `docs/NATIVE.md` has the rest: offline builds, CUDA, what to do when a step fails.
//!
//! # Packages with programs
//!
//! cargo does not hand link arguments from one package to another. A package with a binary, test or example depends on
//! this one directly and has a build script that repeats them:
//!
//! ```no_run
//! for arg in std::env::var("DEP_MLX_LINK_ARGS").unwrap_or_default().split_terminator('\t') {
//!     println!("cargo::rustc-link-arg={arg}");
//! }
//! ```

pub mod engine;
pub mod runtime;

// Named, so that its kernels are linked, which the primitives call, and its `cblas_*` functions (where it exports them)
// are in every program and stand before those that libmlx brings.
use mlx_cpu_kernels as _;

mod bindings {
    #![allow(non_camel_case_types, non_upper_case_globals, non_snake_case, missing_docs)]
    #![allow(clippy::all, clippy::undocumented_unsafe_blocks, rustdoc::all)]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use bindings::*;
pub use engine::*;
