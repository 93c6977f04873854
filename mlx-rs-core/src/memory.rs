//! MLX's allocator: what is in use, what is kept for reuse, and the limits. All sizes are bytes, and all counters are
//! those of the whole process.
//!
//! ```standalone_crate
//! use mlx_rs_core::{Dtype, memory, ops};
//!
//! memory::reset_peak_memory()?;
//! let a = ops::arange(0.0, 262_144.0, 1.0, Dtype::Float32)?;
//! a.eval()?;
//! assert!(memory::get_active_memory()? >= 1 << 20);
//! drop(a);
//! assert!(memory::get_peak_memory()? >= 1 << 20);
//! // The freed buffer waits for the next array of its size, until it is given back.
//! memory::clear_cache()?;
//! assert_eq!(memory::get_cache_memory()?, 0);
//!
//! // A limit is set around a piece of work and restored after it.
//! let former = memory::set_cache_limit(64 << 20)?;
//! memory::set_cache_limit(former)?;
//! # Ok::<(), mlx_rs_core::Error>(())
//! ```

use mlx_sys as sys;

use crate::error::Result;
use crate::ffi::check;

macro_rules! reading {
    ($(#[$doc:meta])* $name:ident, $call:ident) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// What MLX reports.
        pub fn $name() -> Result<usize> {
            let mut bytes = 0;
            // SAFETY: writes one size.
            check(stringify!($name), || unsafe { sys::$call(&mut bytes) })?;
            Ok(bytes)
        }
    };
}

macro_rules! limit {
    ($(#[$doc:meta])* $name:ident, $call:ident) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// What MLX reports.
        pub fn $name(limit: usize) -> Result<usize> {
            let mut previous = 0;
            // SAFETY: writes one size.
            check(stringify!($name), || unsafe { sys::$call(&mut previous, limit) })?;
            Ok(previous)
        }
    };
}

reading!(
    /// Bytes held by live arrays.
    get_active_memory,
    mlx_get_active_memory
);
reading!(
    /// Bytes of freed buffers kept for reuse.
    get_cache_memory,
    mlx_get_cache_memory
);
reading!(
    /// The most bytes that were active at once since the start or the last [`reset_peak_memory`].
    get_peak_memory,
    mlx_get_peak_memory
);
reading!(
    /// The limit set by [`set_memory_limit`].
    get_memory_limit,
    mlx_get_memory_limit
);
limit!(
    /// Bounds the cache of freed buffers; returns the former limit.
    set_cache_limit,
    mlx_set_cache_limit
);
limit!(
    /// Above this much active memory, allocations wait for running work; returns the former limit.
    set_memory_limit,
    mlx_set_memory_limit
);
limit!(
    /// How much memory Metal may keep resident; returns the former limit. Without effect elsewhere.
    set_wired_limit,
    mlx_set_wired_limit
);

/// Starts a new peak at the present active memory.
///
/// # Errors
/// What MLX reports.
pub fn reset_peak_memory() -> Result<()> {
    // SAFETY: no arguments.
    check("reset_peak_memory", || unsafe { sys::mlx_reset_peak_memory() })
}

/// Gives the freed buffers back to the system.
///
/// # Errors
/// What MLX reports.
pub fn clear_cache() -> Result<()> {
    // SAFETY: no arguments.
    check("clear_cache", || unsafe { sys::mlx_clear_cache() })
}
