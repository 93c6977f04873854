//! `cblas_sgemm` and `cblas_dgemm`, which a shared library such as libmlx finds ahead of its own BLAS.
//!
//! The semantics are CBLAS's: C = alpha · op(A) · op(B) + beta · C, C is not read when beta is zero, A and B are not read
//! when alpha or K is zero. A wrong argument is named on stderr by its position, and C stays as it was; CBLAS's reference
//! implementation would end the process there.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::threads;

mod arguments;

use arguments::{Arguments, multiply};

#[cfg(test)]
mod tests;

static SGEMM_CALLS: AtomicU64 = AtomicU64::new(0);
static DGEMM_CALLS: AtomicU64 = AtomicU64::new(0);

/// Calls of `cblas_sgemm` that reached this crate, wrong ones included.
pub fn sgemm_calls() -> u64 {
    SGEMM_CALLS.load(Ordering::Relaxed)
}

/// Calls of `cblas_dgemm` that reached this crate, wrong ones included.
pub fn dgemm_calls() -> u64 {
    DGEMM_CALLS.load(Ordering::Relaxed)
}

/// Keeps the linker from dropping the exported functions, which no Rust code calls. Does nothing else.
pub fn keep_linked() {
    #[cfg(export_blas)]
    {
        std::hint::black_box(cblas_sgemm as *const ());
        std::hint::black_box(cblas_dgemm as *const ());
    }
}

/// The BLAS in force, for a version line: `mlx-cpu-kernels (gemm, avx2+fma, 2 threads)`, or the one that this build left
/// its place to.
pub fn blas_name() -> &'static str {
    keep_linked();
    if cfg!(export_blas) { own_name(threads::threads()) } else { env!("MLX_CPU_KERNELS_OTHER_BLAS") }
}

/// One string per number of threads ever asked about; they live as long as the process.
fn own_name(threads: usize) -> &'static str {
    static NAMES: Mutex<Vec<(usize, &'static str)>> = Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, name)) = names.iter().find(|(known, _)| *known == threads) {
        return name;
    }
    let unit = if threads == 1 { "thread" } else { "threads" };
    let name = format!("mlx-cpu-kernels (gemm, {}, {threads} {unit})", product_isa());
    let name: &'static str = Box::leak(name.into_boxed_str());
    names.push((threads, name));
    name
}

/// The instruction set that the `gemm` crate picks, by its own rule.
fn product_isa() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            "avx512"
        } else if is_x86_feature_detected!("fma") {
            "avx2+fma"
        } else {
            "portable"
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        if cfg!(target_arch = "aarch64") { "neon" } else { "portable" }
    }
}

/// Defines the product of one element type: under a name of our own, always, and under CBLAS's name when exported.
macro_rules! product {
    ($own:ident, $cblas:ident, $type:ty, $calls:ident) => {
        /// C = alpha · op(A) · op(B) + beta · C with the arguments of CBLAS: op(A) \[m, k\], op(B) \[k, n\], C \[m, n\].
        /// Returns 0, or the position of the first wrong argument, counted from 1, and then leaves C as it was. A null
        /// pointer counts as wrong when it would be used.
        ///
        /// # Safety
        /// A, B and C are valid for the elements that the sizes and leading dimensions span, C for writing and, when
        /// `beta` is not zero, for reading; C overlaps neither A nor B.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $own(
            layout: c_int,
            transpose_a: c_int,
            transpose_b: c_int,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: $type,
            a: *const $type,
            lda: c_int,
            b: *const $type,
            ldb: c_int,
            beta: $type,
            c: *mut $type,
            ldc: c_int,
        ) -> c_int {
            let arguments =
                Arguments { layout, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc };
            // SAFETY: the caller's promise is the one that `multiply` needs.
            match unsafe { multiply(&arguments) } {
                Ok(()) => 0,
                Err(position) => position,
            }
        }

        /// CBLAS's product. Counts the call; reports a wrong argument on stderr and leaves C as it was.
        ///
        /// # Safety
        /// A, B and C are valid for the elements that the sizes and leading dimensions span, C for writing and, when
        /// `beta` is not zero, for reading; C overlaps neither A nor B.
        #[cfg(export_blas)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $cblas(
            layout: c_int,
            transpose_a: c_int,
            transpose_b: c_int,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: $type,
            a: *const $type,
            lda: c_int,
            b: *const $type,
            ldb: c_int,
            beta: $type,
            c: *mut $type,
            ldc: c_int,
        ) {
            $calls.fetch_add(1, Ordering::Relaxed);
            let position =
                // SAFETY: the same promise.
                unsafe { $own(layout, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) };
            if position != 0 {
                eprintln!("Parameter {position} to routine {} was incorrect", stringify!($cblas));
            }
        }
    };
}

product!(mlxk_sgemm, cblas_sgemm, f32, SGEMM_CALLS);
product!(mlxk_dgemm, cblas_dgemm, f64, DGEMM_CALLS);
