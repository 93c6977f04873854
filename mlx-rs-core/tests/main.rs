//! The integration tests of mlx-rs-core, in one binary.

mod cpu_engine;
mod ffi;
mod io;
mod kernels;
mod memory;
mod ops_parity;
mod threads;
mod transforms;
