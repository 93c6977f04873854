// The kernels of the Rust crate mlx-cpu-kernels that the primitives call; that crate documents them.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
void mlxk_softmax_f32(size_t rows, size_t cols, const float* x, float* y);
void mlxk_causal_softmax_f32(size_t rows, size_t cols, size_t queries, const float* x, float* y);
void mlxk_softmax_backward_f32(size_t rows, size_t cols, const float* y, const float* dy, float* dx);
void mlxk_logsumexp_f32(size_t rows, size_t cols, const float* x, float* y);
void mlxk_logsumexp_backward_f32(
    size_t rows,
    size_t cols,
    const float* x,
    const float* y,
    const float* dy,
    float* dx);
void mlxk_swiglu_f32(size_t len, const float* gate, const float* up, float* y);
void mlxk_swiglu_backward_f32(
    size_t len,
    const float* gate,
    const float* up,
    const float* dy,
    float* d_gate,
    float* d_up);
int32_t mlxk_dequantize_f32(
    size_t rows,
    size_t cols,
    uint32_t bits,
    size_t group,
    const uint32_t* packed,
    int32_t scale_type,
    const void* scales,
    const void* biases,
    float* out);
}
