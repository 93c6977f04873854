//! CPU kernels behind a C ABI, in pure Rust. This crate knows nothing of MLX.
//!
//! | module | exports |
//! |---|---|
//! | [`blas`] | `cblas_sgemm`, `cblas_dgemm`: complete CBLAS semantics, fast where the MLX wheel's reference BLAS is not |
//! | [`rows`] | softmax, logsumexp, exp, sigmoid, SiLU and SwiGLU, forward and backward, f32 |
//! | [`dequantize`] | affine 2, 3, 4, 5, 6 and 8 bit weights to f32 |
//! | [`threads`] | the private thread pool and its size |
//! | [`isa`] | the instruction set in force |
//!
//! # Taking the place of another BLAS
//!
//! A shared library that calls `cblas_sgemm` looks the symbol up by name, and a definition in the executable comes
//! first. Linking this crate is therefore enough, given that the linker keeps the two functions: call [`keep_linked`]
//! from the crate that loads the shared library. [`sgemm_calls`] shows whether the calls arrive. Building with
//! `MLX_BLAS` set to anything but `builtin` leaves the symbols out; so does macOS, where Accelerate serves.
//!
//! # The C ABI of the kernels
//!
//! Every kernel is an `unsafe extern "C"` function named `mlxk_…`. Sizes are `size_t` counts of elements, matrices are
//! dense and row-major, pointers need the alignment of their element only. A size of zero is valid and then no pointer
//! is read. An output may be the very same buffer as an input (not a shifted part of it) where the function says so.
//!
//! # Guarantees
//!
//! - Results do not depend on the number of threads.
//! - Instruction sets are chosen at run time: AVX-512, AVX2 with FMA, or portable code (NEON on aarch64).
//!   `MLX_RS_CPU_ISA=avx512|avx2|portable` lowers the choice for this crate's own kernels; the matrix products of the
//!   `gemm` crate choose for themselves.
//! - `MLX_RS_CPU_THREADS` sets the number of threads, [`set_threads`] changes it.
//! - NaN and infinities follow IEEE arithmetic on the kernel's formula. Softmax weights under e⁻⁸⁰ and subnormal results
//!   of the row kernels become zero, since subnormal operands slow later multiplications down several times.

pub mod blas;
pub mod dequantize;
mod gemm;
mod gemv;
pub mod isa;
pub mod rows;
pub mod threads;

pub use blas::{blas_name, dgemm_calls, keep_linked, sgemm_calls};
pub use isa::Isa;
pub use threads::set_threads;

/// Checks `MLX_RS_CPU_THREADS` and `MLX_RS_CPU_ISA`. The kernels ignore a value that they cannot use, because a BLAS
/// has nobody to report it to; a program calls this at its start to report it.
///
/// # Errors
/// A sentence that names the variable, its value and what is wanted.
pub fn check_environment() -> Result<(), String> {
    threads::from_environment()?;
    isa::from_environment()?;
    Ok(())
}

#[cfg(test)]
mod tests;
