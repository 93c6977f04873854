/* MLX primitives for the CPU whose kernels are those of the Rust crate mlx-cpu-kernels.
 *
 * Each function builds a node of MLX's graph on a stream of the CPU, with rules for vjp and jvp, and runs nothing.
 * Arrays of numbers are float32; inputs may have any strides. Arguments are checked here, when the node is built: a
 * failure goes to mlx-c's error handler and gives 1, success gives 0. src/engine.rs declares the same for Rust.
 */
#ifndef MLXRS_PRIMITIVES_H
#define MLXRS_PRIMITIVES_H

#include "mlx/c/array.h"
#include "mlx/c/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax of x over its last axis. */
int mlxrs_softmax(mlx_array* res, mlx_array x, mlx_stream s);

/* softmax of scores [..., n * queries, keys] over the last axis with a causal mask: row r belongs to query
 * r % queries, which stands at position r % queries + keys - queries and sees the keys up to there. A query that sees
 * no key gives all of them the same weight, as MLX does. */
int mlxrs_causal_softmax(mlx_array* res, mlx_array scores, int queries, mlx_stream s);

/* logsumexp of x over its last axis, which stays with size 1. */
int mlxrs_logsumexp(mlx_array* res, mlx_array x, mlx_stream s);

/* silu(gate) * up, of one shape. */
int mlxrs_swiglu(mlx_array* res, mlx_array gate, mlx_array up, mlx_stream s);

/* The float32 matrix [..., k] behind affine codes w [..., k * bits / 32] (uint32) with scales and biases
 * [..., k / group], both float32, float16 or bfloat16. */
int mlxrs_dequantize(
    mlx_array* res,
    mlx_array w,
    mlx_array scales,
    mlx_array biases,
    int group,
    int bits,
    mlx_stream s);

#ifdef __cplusplus
}
#endif

#endif
