//! Instruction sets: detection, override, and running one generic body compiled for each of them.
//!
//! A kernel is a value that implements `Kernel` with an `#[inline(always)]` body in plain Rust. `run` inlines that
//! body into a function with the wanted target features, where LLVM vectorises it for those features.

use std::sync::atomic::{AtomicU8, Ordering};

/// The environment variable that lowers the instruction set.
pub const ISA_VARIABLE: &str = "MLX_RS_CPU_ISA";

/// An instruction set that the kernels are compiled for, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Isa {
    /// What the target always has: SSE2 on x86-64, NEON on aarch64.
    Portable = 1,
    /// AVX2 and FMA.
    Avx2 = 2,
    /// AVX-512 F, BW, CD, DQ and VL, besides AVX2 and FMA.
    Avx512 = 3,
}

impl Isa {
    /// The name that `MLX_RS_CPU_ISA` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::Portable, Self::Avx2, Self::Avx512].into_iter().find(|isa| *isa as u8 == code)
    }
}

/// Code of the instruction set in force; 0 until the first use.
static CURRENT: AtomicU8 = AtomicU8::new(0);

/// The strongest instruction set that this processor and system support.
#[cfg(target_arch = "x86_64")]
pub fn detected() -> Isa {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Isa::Avx512,
        (true, false) => Isa::Avx2,
        (false, _) => Isa::Portable,
    }
}

/// The strongest instruction set that this processor and system support.
#[cfg(not(target_arch = "x86_64"))]
pub fn detected() -> Isa {
    Isa::Portable
}

/// The instruction set in force.
pub fn current() -> Isa {
    if let Some(isa) = Isa::from_code(CURRENT.load(Ordering::Relaxed)) {
        return isa;
    }
    set(from_environment().ok().flatten().unwrap_or_else(detected))
}

/// Puts `wanted` in force, or the strongest supported one when the processor lacks it, and returns what is now in force.
pub fn set(wanted: Isa) -> Isa {
    let isa = wanted.min(detected());
    CURRENT.store(isa as u8, Ordering::Relaxed);
    isa
}

/// The value of `MLX_RS_CPU_ISA`, `None` when unset or empty. A set that the processor lacks is no error: the strongest
/// supported one runs.
///
/// # Errors
/// The value is not the name of an instruction set.
pub fn from_environment() -> Result<Option<Isa>, String> {
    let Some(value) = std::env::var_os(ISA_VARIABLE) else {
        return Ok(None);
    };
    parse_isa(&value.to_string_lossy())
}

pub(crate) fn parse_isa(value: &str) -> Result<Option<Isa>, String> {
    match value.trim() {
        "" => Ok(None),
        "avx512" => Ok(Some(Isa::Avx512)),
        "avx2" => Ok(Some(Isa::Avx2)),
        "portable" => Ok(Some(Isa::Portable)),
        _ => Err(format!("{ISA_VARIABLE} is `{value}`, wanted `avx512`, `avx2` or `portable`")),
    }
}

/// Work with one body for all instruction sets.
pub(crate) trait Kernel {
    /// Must be `#[inline(always)]`, as must everything it calls in its loops. `FMA` says whether a fused multiply-add is
    /// an instruction here (otherwise it would be a slow library call).
    fn run<const FMA: bool>(self);
}

/// Runs `kernel` with the instruction set in force.
pub(crate) fn run<K: Kernel>(kernel: K) {
    match current() {
        // SAFETY: `set` stores nothing above what `detected` found.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { run_avx512(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { run_avx2(kernel) },
        _ => kernel.run::<{ cfg!(target_arch = "aarch64") }>(),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
fn run_avx512<K: Kernel>(kernel: K) {
    kernel.run::<true>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<K: Kernel>(kernel: K) {
    kernel.run::<true>();
}
