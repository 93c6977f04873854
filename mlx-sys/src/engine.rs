//! MLX primitives of our own for the CPU (`native/`), by the rules of mlx-c's functions: the result slot first, the
//! stream last, 0 or a status and a message to the error handler.
//!
//! Each builds a node of the graph on a stream of the CPU, with its gradient, and runs nothing. Arrays of numbers are
//! float32 and may have any strides. `native/primitives.h` says what each computes.

#![allow(clippy::missing_safety_doc, reason = "one contract for all, stated below")]

use std::ffi::c_int;

use crate::bindings::{mlx_array, mlx_stream};

// The contract: `res` points to a slot that is empty or holds a live array, every array and stream is a live handle.
unsafe extern "C" {
    /// softmax of `x` over its last axis.
    pub fn mlxrs_softmax(res: *mut mlx_array, x: mlx_array, s: mlx_stream) -> c_int;

    /// softmax of `scores` `[…, n·queries, keys]` over the last axis, row r standing for query r mod `queries`, which
    /// sees the first keys − queries + (r mod queries) + 1 keys. A row that sees none weighs all alike.
    pub fn mlxrs_causal_softmax(res: *mut mlx_array, scores: mlx_array, queries: c_int, s: mlx_stream) -> c_int;

    /// logsumexp of `x` over its last axis, which stays with size 1.
    pub fn mlxrs_logsumexp(res: *mut mlx_array, x: mlx_array, s: mlx_stream) -> c_int;

    /// silu(`gate`) · `up`, of one shape.
    pub fn mlxrs_swiglu(res: *mut mlx_array, gate: mlx_array, up: mlx_array, s: mlx_stream) -> c_int;

    /// The float32 weights `[…, k]` behind affine codes `w` `[…, k·bits/32]` (u32) with `scales` and `biases`
    /// `[…, k/group]`, both f32, f16 or bf16; `bits` 2, 3, 4, 5, 6 or 8; `group` 32, 64 or 128.
    pub fn mlxrs_dequantize(
        res: *mut mlx_array,
        w: mlx_array,
        scales: mlx_array,
        biases: mlx_array,
        group: c_int,
        bits: c_int,
        s: mlx_stream,
    ) -> c_int;
}
