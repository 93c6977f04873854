//! The integration tests of mlx-rs-core, in one binary.

mod ops_parity;
