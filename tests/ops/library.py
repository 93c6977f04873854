"""Rows of the random, linalg, fft and fast groups.

Used by make_ops.py; not run on its own.
"""

import mlx.core as mx
import numpy as np

from table import EXACT, PRODUCT, SOLVED, View

HALF = (2e-2, 2e-2)


def add(table, inputs):
    _keys(table)
    _uniform(table, inputs)
    _normal(table, inputs)
    _choices(table, inputs)
    _factors(table, inputs)
    _eigen(table, inputs)
    _solving(table, inputs)
    _norms(table, inputs)
    _fft_one(table, inputs)
    _fft_many(table, inputs)
    _fast_norms(table, inputs)
    _fast_rope(table, inputs)
    _fast_attention(table, inputs)
    kernel = "an object with a configuration, not an array operation; tested in mlx-rs-core"
    table.uncovered["fast_metal_kernel_*"] = kernel
    table.uncovered["fast_cuda_kernel_*"] = kernel


def _keys(table):
    table.case("random_key", "zero", [0], mx.random.key, EXACT)
    table.case("random_key", "wide", [2**40 + 3], mx.random.key, EXACT)
    table.never_fails("random_key", "every seed is a key")
    key = mx.random.key(1)

    def split(k):
        halves = mx.random.split(k)
        return [halves[0], halves[1]]

    table.case("random_split", "two", [key], split, EXACT)
    table.bad("random_split", "key_dtype", [mx.array([1, 2])], split)
    table.case("random_split_num", "five", [key, 5], mx.random.split, EXACT)
    table.bad("random_split_num", "key_shape", [mx.array([1, 2, 3], mx.uint32), 2], mx.random.split)
    # Python has no `bits`; a split into n keys is the same as n pairs of four-byte bits.
    table.case("random_bits", "four_bytes", [[3, 2], 4, key], lambda shape, width, k: mx.random.split(k, shape[0]), EXACT)
    table.bad_in_c("random_bits", "width", [[2], 3, key], "[bits] Bit width must be in {1, 2, 4} but got 3.")
    table.uncovered["random_seed"] = "sets global state and gives no array; tested in mlx-rs-core"


def _uniform(table, inputs):
    key = mx.random.key(2)
    zero, one = mx.array(0.0), mx.array(1.0)
    uniform = mx.random.uniform
    table.case("random_uniform", "f32", [zero, one, [2, 3], mx.float32, key], uniform)
    table.case("random_uniform", "range_broadcast", [inputs.real((3,)), mx.array(5.0), [2, 3], mx.float32, key], uniform)
    table.case("random_uniform", "bf16", [zero, one, [4], mx.bfloat16, key], uniform)
    table.case("random_uniform", "f16", [zero, one, [4], mx.float16, key], uniform)
    table.case("random_uniform", "odd_size", [zero, one, [5], mx.float32, key], uniform)
    table.bad("random_uniform", "integer_dtype", [zero, one, [2], mx.int32, key], uniform)
    table.bad("random_uniform", "shapes", [inputs.real((4,)), one, [2, 3], mx.float32, key], uniform)
    randint = mx.random.randint
    table.case("random_randint", "i32", [mx.array(-3), mx.array(9), [2, 3], mx.int32, key], randint)
    table.case("random_randint", "broadcast", [mx.array([0, 10]), mx.array([5, 20]), [3, 2], mx.int32, key], randint)
    table.bad("random_randint", "float_dtype", [mx.array(0), mx.array(5), [2], mx.float32, key], randint)
    table.case("random_bernoulli", "half", [mx.array(0.5), [6], key], mx.random.bernoulli)
    table.case("random_bernoulli", "each", [mx.array([0.1, 0.9, 0.5]), [2, 3], key], mx.random.bernoulli)
    table.bad("random_bernoulli", "integers", [mx.array([1, 2]), [2], key], mx.random.bernoulli)
    table.case("random_gumbel", "f32", [[2, 3], mx.float32, key], mx.random.gumbel, (1e-5, 1e-6))
    table.bad("random_gumbel", "integer_dtype", [[2], mx.int32, key], mx.random.gumbel)
    table.case("random_laplace", "f32", [[2, 3], mx.float32, 0.0, 1.0, key], mx.random.laplace, (1e-5, 1e-6))
    table.case("random_laplace", "moved", [[4], mx.float32, 2.0, 0.5, key], mx.random.laplace, (1e-5, 1e-6))
    table.bad("random_laplace", "integer_dtype", [[2], mx.int32, 0.0, 1.0, key], mx.random.laplace)


def _normal(table, inputs):
    key = mx.random.key(3)
    tol = (1e-5, 1e-6)
    normal = mx.random.normal
    table.case("random_normal", "f32", [[2, 3], mx.float32, 0.0, 1.0, key], normal, tol)
    table.case("random_normal", "moved", [[5], mx.float32, 3.0, 0.5, key], normal, tol)
    table.case("random_normal", "bf16", [[4], mx.bfloat16, 0.0, 1.0, key], normal)
    table.case("random_normal", "c64", [[3], mx.complex64, 0.0, 1.0, key], normal, tol)
    table.bad("random_normal", "integer_dtype", [[2], mx.int32, 0.0, 1.0, key], normal)
    loc, scale = inputs.real((3,)), inputs.real((2, 1), 0.5, 2.0)
    table.case("random_normal_broadcast", "both", [[2, 3], mx.float32, loc, scale, key], normal, tol)
    table.case("random_normal_broadcast", "neither", [[2, 3], mx.float32, None, None, key], normal, tol)
    table.bad("random_normal_broadcast", "shapes", [[2], mx.float32, loc, None, key], normal)
    mean = mx.array([1.0, -1.0])
    cov = mx.array([[2.0, 0.5], [0.5, 1.0]])
    many = mx.random.multivariate_normal
    table.case("random_multivariate_normal", "f32", [mean, cov, [3], mx.float32, key], many, SOLVED)
    table.bad("random_multivariate_normal", "cov_shape", [mean, cov[0], [3], mx.float32, key], many)
    table.bad("random_multivariate_normal", "dtype", [mean, cov, [3], mx.float16, key], many)
    cut = mx.random.truncated_normal
    low, high = mx.array(-1.0), mx.array(1.0)
    table.case("random_truncated_normal", "f32", [low, high, [6], mx.float32, key], cut, tol)
    table.case("random_truncated_normal", "broadcast", [loc, loc + 2, [2, 3], mx.float32, key], cut, tol)
    table.bad("random_truncated_normal", "integer_dtype", [low, high, [2], mx.int32, key], cut)


def _choices(table, inputs):
    key = mx.random.key(4)
    logits = inputs.real((3, 5))

    def categorical(x, axis, k):
        return mx.random.categorical(x, axis, key=k)

    def categorical_shape(x, axis, shape, k):
        return mx.random.categorical(x, axis, shape=shape, key=k)

    def categorical_samples(x, axis, count, k):
        return mx.random.categorical(x, axis, num_samples=count, key=k)

    table.case("random_categorical", "last", [logits, -1, key], categorical)
    table.case("random_categorical", "first", [logits, 0, key], categorical)
    table.bad("random_categorical", "axis", [logits, 2, key], categorical)
    table.case("random_categorical_shape", "more", [logits, -1, [4, 3], key], categorical_shape)
    table.bad("random_categorical_shape", "shapes", [logits, -1, [4, 2], key], categorical_shape)
    table.case("random_categorical_num_samples", "four", [logits, -1, 4, key], categorical_samples)
    table.bad("random_categorical_num_samples", "axis", [logits, 2, 4, key], categorical_samples)
    table.case("random_permutation", "rows", [inputs.real((5, 2)), 0, key], mx.random.permutation, EXACT)
    table.case("random_permutation", "columns", [inputs.integer((2, 5)), 1, key], mx.random.permutation, EXACT)
    table.bad("random_permutation", "axis", [inputs.real((2, 3)), 5, key], mx.random.permutation)

    def arange(count, k):
        return mx.random.permutation(count, key=k)

    table.case("random_permutation_arange", "seven", [7, key], arange, EXACT)
    table.bad("random_permutation_arange", "negative", [-3, key], arange)


def _definite(inputs, size):
    root = inputs.real((size, size))
    return root @ root.T + size * mx.eye(size)


def _factors(table, inputs):
    a = _definite(inputs, 3)
    batch = mx.stack([_definite(inputs, 2), _definite(inputs, 2)])
    for upper in (False, True):
        name = "upper" if upper else "lower"
        table.case("linalg_cholesky", name, [a, upper], mx.linalg.cholesky, SOLVED)
        factor = mx.linalg.cholesky(a, upper)
        table.case("linalg_cholesky_inv", name, [factor, upper], mx.linalg.cholesky_inv, SOLVED)
        table.case("linalg_tri_inv", name, [factor, upper], mx.linalg.tri_inv, SOLVED)
    table.case("linalg_cholesky", "batch", [batch, False], mx.linalg.cholesky, SOLVED)
    square, wide = inputs.real((3, 3)), inputs.real((2, 3))
    for op in ("cholesky", "cholesky_inv", "tri_inv"):
        table.bad(f"linalg_{op}", "not_square", [wide, False], getattr(mx.linalg, op))
        table.bad(f"linalg_{op}", "integers", [inputs.integer((2, 2)), False], getattr(mx.linalg, op))
    table.case("linalg_qr", "tall", [inputs.real((4, 2))], mx.linalg.qr, SOLVED)
    table.case("linalg_qr", "wide_transposed", [View(inputs.real((3, 2)), transpose=[1, 0])], mx.linalg.qr, SOLVED)
    table.bad("linalg_qr", "one_axis", [inputs.real((3,))], mx.linalg.qr)
    table.case("linalg_svd", "tall", [inputs.real((4, 3)), True], mx.linalg.svd, SOLVED)
    table.case("linalg_svd", "values_only", [wide, False], mx.linalg.svd, SOLVED)
    table.bad("linalg_svd", "one_axis", [inputs.real((3,)), True], mx.linalg.svd)
    table.case("linalg_lu", "square", [square], mx.linalg.lu, SOLVED)
    table.case("linalg_lu", "batch", [inputs.real((2, 3, 3))], mx.linalg.lu, SOLVED)
    table.bad("linalg_lu", "one_axis", [inputs.real((3,))], mx.linalg.lu)
    table.case("linalg_lu_factor", "square", [square], mx.linalg.lu_factor, SOLVED)
    table.bad("linalg_lu_factor", "one_axis", [inputs.real((3,))], mx.linalg.lu_factor)


def _eigen(table, inputs):
    root = inputs.real((3, 3))
    even, odd = root + root.T, inputs.real((3, 3))
    for side in ("L", "U"):
        table.case("linalg_eigh", side, [even, side], mx.linalg.eigh, SOLVED)
        table.case("linalg_eigvalsh", side, [even, side], mx.linalg.eigvalsh, SOLVED)
    table.case("linalg_eig", "real_input", [odd], mx.linalg.eig, SOLVED)
    table.case("linalg_eigvals", "real_input", [odd], mx.linalg.eigvals, SOLVED)
    wide = inputs.real((2, 3))
    for op in ("eigh", "eigvalsh"):
        table.bad(f"linalg_{op}", "not_square", [wide, "L"], getattr(mx.linalg, op))
    for op in ("eig", "eigvals"):
        table.bad(f"linalg_{op}", "not_square", [wide], getattr(mx.linalg, op))


def _solving(table, inputs):
    a = inputs.real((3, 3)) + 3 * mx.eye(3)
    right, wide = inputs.real((3, 2)), inputs.real((2, 3))
    table.case("linalg_inv", "f32", [a], mx.linalg.inv, SOLVED)
    table.case("linalg_inv", "batch", [mx.stack([a, a + mx.eye(3)])], mx.linalg.inv, SOLVED)
    table.bad("linalg_inv", "not_square", [wide], mx.linalg.inv)
    table.case("linalg_pinv", "wide", [wide], mx.linalg.pinv, SOLVED)
    table.bad("linalg_pinv", "one_axis", [inputs.real((3,))], mx.linalg.pinv)
    table.case("linalg_det", "f32", [a], mx.linalg.det, SOLVED)
    table.bad("linalg_det", "not_square", [wide], mx.linalg.det)
    table.case("linalg_slogdet", "f32", [a], mx.linalg.slogdet, SOLVED)
    table.bad("linalg_slogdet", "not_square", [wide], mx.linalg.slogdet)
    table.case("linalg_solve", "columns", [a, right], mx.linalg.solve, SOLVED)
    table.case("linalg_solve", "row", [a, inputs.real((3,))], mx.linalg.solve, SOLVED)
    table.bad("linalg_solve", "shapes", [a, wide], mx.linalg.solve)

    def triangular(x, y, upper):
        return mx.linalg.solve_triangular(x, y, upper=upper)

    table.case("linalg_solve_triangular", "lower", [mx.tril(a), right, False], triangular, SOLVED)
    table.case("linalg_solve_triangular", "upper", [mx.triu(a), right, True], triangular, SOLVED)
    table.bad("linalg_solve_triangular", "shapes", [a, wide, False], triangular)
    table.case("linalg_cross", "last", [inputs.real((2, 3)), inputs.real((2, 3)), -1], mx.linalg.cross, PRODUCT)
    table.case("linalg_cross", "first_of_two", [inputs.real((2, 4)), inputs.real((2, 4)), 0], mx.linalg.cross, PRODUCT)
    table.bad("linalg_cross", "length", [inputs.real((4,)), inputs.real((4,)), 0], mx.linalg.cross)


def _norms(table, inputs):
    a = inputs.real((3, 4))

    def norm(x, ord_, axis, keepdims):
        return mx.linalg.norm(x, ord_, axis=axis, keepdims=keepdims)

    def l2(x, axis, keepdims):
        return mx.linalg.norm(x, axis=axis, keepdims=keepdims)

    for name, order in {"one": 1.0, "two": 2.0, "zero": 0.0, "inf": np.inf, "minus_inf": -np.inf, "three": 3.0}.items():
        table.case("linalg_norm", name, [a, float(order), [1], False], norm, PRODUCT)
    table.case("linalg_norm", "matrix_one", [a, 1.0, [0, 1], True], norm, PRODUCT)
    table.case("linalg_norm", "matrix_inf", [a, float(np.inf), [0, 1], False], norm, PRODUCT)
    table.case("linalg_norm", "no_axis", [inputs.real((4,)), 3.0, None, False], norm, PRODUCT)
    table.bad("linalg_norm", "matrix_three", [a, 3.0, [0, 1], False], norm)
    table.bad("linalg_norm", "axis", [a, 2.0, [2], False], norm)
    table.case("linalg_norm_matrix", "frobenius", [a, "fro", [0, 1], False], norm, PRODUCT)
    table.case("linalg_norm_matrix", "nuclear", [a, "nuc", [0, 1], True], norm, SOLVED)
    table.bad("linalg_norm_matrix", "ord", [a, "somehow", [0, 1], False], norm)
    table.bad("linalg_norm_matrix", "one_axis", [a, "fro", [0], False], norm)
    table.case("linalg_norm_l2", "all", [a, None, False], l2, PRODUCT)
    table.case("linalg_norm_l2", "transposed", [View(a, transpose=[1, 0]), [0], True], l2, PRODUCT)
    table.case("linalg_norm_l2", "c64", [inputs.complex((2, 3)), [-1], False], l2, PRODUCT)
    table.bad("linalg_norm_l2", "axis", [a, [2], False], l2)


def _fft_one(table, inputs):
    real, wave = inputs.real((2, 6)), inputs.complex((2, 6))
    turned = View(inputs.real((6, 2)), transpose=[1, 0])
    for op in ("fft", "ifft", "rfft", "irfft"):
        function = getattr(mx.fft, op)
        first = real if op == "rfft" else wave
        table.case(f"fft_{op}", "plain", [first, 6, -1, "backward"], function, PRODUCT)
        table.case(f"fft_{op}", "cut_ortho", [first, 4, 1, "ortho"], function, PRODUCT)
        table.case(f"fft_{op}", "padded_forward", [first, 8, 1, "forward"], function, PRODUCT)
        table.case(f"fft_{op}", "transposed", [turned, 2, 0, "backward"], function, PRODUCT)
        table.bad(f"fft_{op}", "axis", [first, 6, 2, "backward"], function)
        table.bad(f"fft_{op}", "length", [first, -6, 1, "backward"], function)
    table.case("fft_fftfreq", "even", [6, 0.5], mx.fft.fftfreq)
    table.case("fft_fftfreq", "odd", [5, 1.0], mx.fft.fftfreq)
    table.case("fft_rfftfreq", "even", [6, 0.5], mx.fft.rfftfreq)
    table.case("fft_rfftfreq", "odd", [5, 1.0], mx.fft.rfftfreq)
    table.bad("fft_fftfreq", "length", [-1, 1.0], mx.fft.fftfreq)
    table.bad("fft_rfftfreq", "length", [-1, 1.0], mx.fft.rfftfreq)


def _fft_many(table, inputs):
    real, wave = inputs.real((2, 4, 6)), inputs.complex((2, 4, 6))
    for stem in ("fft", "ifft", "rfft", "irfft"):
        first = real if stem == "rfft" else wave
        for suffix in ("2", "n"):
            op = f"fft_{stem}{suffix}"
            function = getattr(mx.fft, f"{stem}{suffix}")
            table.case(op, "plain", [first, [4, 6], [-2, -1], "backward"], function, PRODUCT)
            table.case(op, "sizes_ortho", [first, [3, 8], [1, 2], "ortho"], function, PRODUCT)
            table.bad(op, "axis", [first, [4, 6], [1, 3], "backward"], function)
            table.bad(op, "count", [first, [4], [1, 2], "backward"], function)
        table.case(f"fft_{stem}n", "three", [first, [2, 4, 6], [0, 1, 2], "forward"], function, PRODUCT)
    for op in ("fftshift", "ifftshift"):
        function = getattr(mx.fft, op)
        table.case(f"fft_{op}", "all", [inputs.real((3, 4)), [0, 1]], function, EXACT)
        table.case(f"fft_{op}", "one", [inputs.real((2, 5)), [1]], function, EXACT)
        table.bad(f"fft_{op}", "axis", [inputs.real((2, 5)), [2]], function)


def _fast_norms(table, inputs):
    x, weight, bias = inputs.real((2, 3, 8)), inputs.real((8,)), inputs.real((8,))
    tol = (1e-5, 2e-6)
    table.case("fast_rms_norm", "f32", [x, weight, 1e-5], mx.fast.rms_norm, tol)
    table.case("fast_rms_norm", "no_weight", [x, None, 1e-6], mx.fast.rms_norm, tol)
    turned = View(inputs.real((8, 3)), transpose=[1, 0])
    table.case("fast_rms_norm", "transposed", [turned, weight, 1e-5], mx.fast.rms_norm, tol)
    half = [x.astype(mx.bfloat16), weight.astype(mx.bfloat16)]
    table.case("fast_rms_norm", "bf16", [*half, 1e-5], mx.fast.rms_norm, HALF)
    table.bad("fast_rms_norm", "weight_size", [x, inputs.real((7,)), 1e-5], mx.fast.rms_norm)
    table.bad("fast_rms_norm", "scalar", [inputs.real(()), None, 1e-5], mx.fast.rms_norm)
    table.case("fast_layer_norm", "f32", [x, weight, bias, 1e-5], mx.fast.layer_norm, tol)
    table.case("fast_layer_norm", "plain", [x, None, None, 1e-5], mx.fast.layer_norm, tol)
    table.case("fast_layer_norm", "weight_only_transposed", [turned, weight, None, 1e-5], mx.fast.layer_norm, tol)
    table.case("fast_layer_norm", "bf16", [*half, bias.astype(mx.bfloat16), 1e-5], mx.fast.layer_norm, HALF)
    table.bad("fast_layer_norm", "bias_size", [x, weight, inputs.real((7,)), 1e-5], mx.fast.layer_norm)
    logits = inputs.real((2, 3, 8), -4.0, 4.0)
    targets = mx.array([[0, 7, 3], [2, 2, 5]])
    table.case("fast_cross_entropy", "f32", [logits, targets], mx.fast.cross_entropy, tol)
    table.case("fast_cross_entropy", "bf16", [logits.astype(mx.bfloat16), targets], mx.fast.cross_entropy, HALF)
    table.bad("fast_cross_entropy", "shapes", [logits, targets[0]], mx.fast.cross_entropy)


def _fast_rope(table, inputs):
    x = inputs.real((1, 2, 5, 8))

    def rope(a, dims, traditional, base, scale, offset, freqs):
        return mx.fast.rope(a, dims, traditional=traditional, base=base, scale=scale, offset=offset, freqs=freqs)

    def dynamic(a, dims, traditional, base, scale, offset, freqs):
        return rope(a, dims, traditional, base, scale, offset, freqs)

    freqs = inputs.real((4,), 1.0, 50.0)
    tol = (1e-5, 5e-6)
    table.case("fast_rope", "f32", [x, 8, False, 10000.0, 1.0, 0, None], rope, tol)
    table.case("fast_rope", "traditional", [x, 8, True, 10000.0, 1.0, 0, None], rope, tol)
    table.case("fast_rope", "part_offset_scaled", [x, 4, False, 500.0, 0.25, 7, None], rope, tol)
    table.case("fast_rope", "freqs", [x, 8, False, None, 1.0, 3, freqs], rope, tol)
    turned = View(inputs.real((1, 5, 2, 8)), transpose=[0, 2, 1, 3])
    table.case("fast_rope", "transposed", [turned, 8, False, 10000.0, 1.0, 2, None], rope, tol)
    table.case("fast_rope", "bf16", [x.astype(mx.bfloat16), 8, False, 10000.0, 1.0, 0, None], rope, HALF)
    table.bad("fast_rope", "base_and_freqs", [x, 8, False, 10000.0, 1.0, 0, freqs], rope)
    table.bad("fast_rope", "no_base", [x, 8, False, None, 1.0, 0, None], rope)
    table.bad("fast_rope", "freqs_size", [x, 8, False, None, 1.0, 0, freqs[:3]], rope)
    table.bad("fast_rope", "rank", [inputs.real((8,)), 8, False, 10000.0, 1.0, 0, None], rope)
    table.case("fast_rope_dynamic", "f32", [x, 8, False, 10000.0, 1.0, mx.array(6), None], dynamic, tol)
    rows = inputs.real((2, 2, 3, 8))
    table.case("fast_rope_dynamic", "each_row", [rows, 8, False, 10000.0, 1.0, mx.array([1, 9]), None], dynamic, tol)
    table.bad("fast_rope_dynamic", "offsets", [rows, 8, False, 10000.0, 1.0, mx.array([1, 2, 3]), None], dynamic)


def _fast_attention(table, inputs):
    q, k, v = inputs.real((1, 4, 3, 8)), inputs.real((1, 2, 5, 8)), inputs.real((1, 2, 5, 8))

    def sdpa(queries, keys, values, scale, mode, mask, sinks, force):
        how = mask if mask is not None else (mode or None)
        return mx.fast.scaled_dot_product_attention(
            queries, keys, values, scale=scale, mask=how, sinks=sinks, force_fused=force
        )

    op = "fast_scaled_dot_product_attention"
    scale = 0.35
    table.case(op, "no_mask", [q, k, v, scale, "", None, None, False], sdpa, PRODUCT)
    table.case(op, "causal", [q, k, v, scale, "causal", None, None, False], sdpa, PRODUCT)
    seen = mx.array([[True, False, True, True, False], [True] * 5, [False, True, False, False, True]])
    table.case(op, "bool_mask", [q, k, v, scale, "array", seen, None, False], sdpa, PRODUCT)
    table.case(op, "added_mask", [q, k, v, scale, "array", inputs.real((1, 1, 3, 5)), None, False], sdpa, PRODUCT)
    table.case(op, "sinks", [q, k, v, scale, "causal", None, inputs.real((4,)), False], sdpa, PRODUCT)
    turned = View(inputs.real((1, 3, 4, 8)), transpose=[0, 2, 1, 3])
    table.case(op, "transposed", [turned, k, v, scale, "causal", None, None, False], sdpa, PRODUCT)
    half = [x.astype(mx.bfloat16) for x in (q, k, v)]
    table.case(op, "bf16", [*half, scale, "causal", None, None, False], sdpa, HALF)
    table.bad(op, "head_dim", [q, inputs.real((1, 2, 5, 4)), v, scale, "", None, None, False], sdpa)
    table.bad(op, "heads", [inputs.real((1, 3, 3, 8)), k, v, scale, "", None, None, False], sdpa)
    table.bad(op, "rank", [q[0], k, v, scale, "", None, None, False], sdpa)
    table.bad(op, "mask_shape", [q, k, v, scale, "array", inputs.real((3, 4)), None, False], sdpa)
    table.bad(op, "sinks_shape", [q, k, v, scale, "", None, inputs.real((3,)), False], sdpa)
