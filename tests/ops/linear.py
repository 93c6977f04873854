"""Rows of products, convolutions, quantised products and number formats.

Used by make_ops.py; not run on its own.
"""

import mlx.core as mx
import numpy as np

from table import EXACT, PRODUCT, View, failure

# Half-precision products accumulate in their own order, a few units in the last place apart.
HALF_PRODUCT = (2e-2, 2e-2)
F16_PRODUCT = (4e-3, 4e-3)


def add(table, inputs):
    _products(table, inputs)
    _contractions(table, inputs)
    _gathered(table, inputs)
    _convolutions(table, inputs)
    _transposed_convolutions(table, inputs)
    _quantised(table, inputs)
    _fp8(table, inputs)
    _hadamard_and_diff(table, inputs)


def _products(table, inputs):
    a, b = inputs.real((3, 4)), inputs.real((4, 2))
    table.case("matmul", "f32", [a, b], mx.matmul, PRODUCT)
    table.case("matmul", "left_transposed", [View(inputs.real((4, 3)), transpose=[1, 0]), b], mx.matmul, PRODUCT)
    table.case("matmul", "right_transposed", [a, View(inputs.real((2, 4)), transpose=[1, 0])], mx.matmul, PRODUCT)
    table.case("matmul", "stepped", [View(inputs.real((3, 8)), step=2), b], mx.matmul, PRODUCT)
    table.case("matmul", "batch_broadcast", [inputs.real((2, 1, 3, 4)), inputs.real((3, 4, 2))], mx.matmul, PRODUCT)
    table.case("matmul", "row_times_matrix", [inputs.real((4,)), b], mx.matmul, PRODUCT)
    table.case("matmul", "matrix_times_row", [a, inputs.real((4,))], mx.matmul, PRODUCT)
    table.case("matmul", "dot", [inputs.real((4,)), inputs.real((4,))], mx.matmul, PRODUCT)
    table.case("matmul", "f16", [a.astype(mx.float16), b.astype(mx.float16)], mx.matmul, F16_PRODUCT)
    table.case("matmul", "bf16", [a.astype(mx.bfloat16), b.astype(mx.bfloat16)], mx.matmul, HALF_PRODUCT)
    table.case("matmul", "bf16_f32", [a.astype(mx.bfloat16), b], mx.matmul, PRODUCT)
    table.case("matmul", "c64", [inputs.complex((2, 3)), inputs.complex((3, 2))], mx.matmul, PRODUCT)
    table.bad("matmul", "shapes", [a, inputs.real((3, 2))], mx.matmul)
    table.bad("matmul", "integers", [inputs.integer((2, 2)), inputs.integer((2, 2))], mx.matmul)
    table.bad("matmul", "scalar", [inputs.real(()), a], mx.matmul)
    c = inputs.real((3, 2))
    table.case("addmm", "f32", [c, a, b, 1.0, 1.0], mx.addmm, PRODUCT)
    table.case("addmm", "scaled", [c, a, b, 0.5, -2.0], mx.addmm, PRODUCT)
    table.case("addmm", "broadcast", [inputs.real((2,)), a, b, 1.0, 1.0], mx.addmm, PRODUCT)
    table.case("addmm", "bf16", [x.astype(mx.bfloat16) for x in (c, a, b)] + [1.0, 1.0], mx.addmm, HALF_PRODUCT)
    table.bad("addmm", "shapes", [c, a, inputs.real((3, 2)), 1.0, 1.0], mx.addmm)
    table.bad("addmm", "added_shape", [inputs.real((5,)), a, b, 1.0, 1.0], mx.addmm)


def _contractions(table, inputs):
    a, b = inputs.real((3, 4)), inputs.real((2, 4))
    table.case("inner", "f32", [a, b], mx.inner, PRODUCT)
    table.case("inner", "transposed", [View(inputs.real((4, 3)), transpose=[1, 0]), b], mx.inner, PRODUCT)
    table.bad("inner", "shapes", [a, inputs.real((3,))], mx.inner)
    table.case("outer", "f32", [a, inputs.real((2,))], mx.outer, PRODUCT)
    table.case("outer", "i32", [inputs.integer((3,)), inputs.integer((2,))], mx.outer)
    table.never_fails("outer", "both sides are flattened")
    table.case("kron", "f32", [inputs.real((2, 2)), inputs.real((1, 3))], mx.kron, PRODUCT)
    table.case("kron", "ranks_differ", [inputs.real((2,)), inputs.integer((2, 2))], mx.kron, PRODUCT)
    table.bad("kron", "empty", [mx.zeros((0,)), inputs.real((2,))], mx.kron)

    def vecdot(x, y, axis):
        return mx.vecdot(x, y, axis=axis)

    table.case("vecdot", "last", [a, inputs.real((3, 4)), -1], vecdot, PRODUCT)
    table.case("vecdot", "first_broadcast", [a, inputs.real((3, 1)), 0], vecdot, PRODUCT)
    table.case("vecdot", "c64_conjugates", [inputs.complex((2, 3)), inputs.complex((2, 3)), -1], vecdot, PRODUCT)
    table.bad("vecdot", "shapes", [a, inputs.real((3, 3)), -1], vecdot)
    table.bad("vecdot", "axis", [a, a, 2], vecdot)
    left, right = inputs.real((2, 3, 4)), inputs.real((4, 3, 2))

    def tensordot(x, y, axes_x, axes_y):
        return mx.tensordot(x, y, [axes_x, axes_y])

    table.case("tensordot", "two", [left, right, [1, 2], [1, 0]], tensordot, PRODUCT)
    table.case("tensordot", "transposed", [View(left, transpose=[2, 0, 1]), right, [0], [0]], tensordot, PRODUCT)
    table.bad("tensordot", "shapes", [left, right, [0], [0]], tensordot)
    table.bad("tensordot", "count", [left, right, [1, 2], [1]], tensordot)
    table.case("tensordot_axis", "one", [left, right, 1], mx.tensordot, PRODUCT)
    table.case("tensordot_axis", "outer", [inputs.real((2,)), inputs.real((3,)), 0], mx.tensordot, PRODUCT)
    table.bad("tensordot_axis", "shapes", [left, right, 2], mx.tensordot)

    def einsum(subscripts, operands):
        return mx.einsum(subscripts, *operands)

    table.case("einsum", "matmul", ["ij,jk->ik", [a, inputs.real((4, 2))]], einsum, PRODUCT)
    table.case("einsum", "implicit", ["ij,kj", [a, b]], einsum, PRODUCT)
    table.case("einsum", "trace", ["ii", [inputs.real((3, 3))]], einsum, PRODUCT)
    table.case("einsum", "batch", ["bij,bjk->bki", [left, inputs.real((2, 4, 2))]], einsum, PRODUCT)
    table.case("einsum", "three", ["ij,jk,kl->il", [a, inputs.real((4, 2)), inputs.real((2, 3))]], einsum, PRODUCT)
    table.bad("einsum", "shapes", ["ij,jk->ik", [a, b]], einsum)
    table.bad("einsum", "operands", ["ij,jk->ik", [a]], einsum)


def _gathered(table, inputs):
    a, b = inputs.real((3, 2, 4)), inputs.real((2, 4, 3))
    left, right = mx.array([2, 0, 1], mx.uint32), mx.array([1, 0, 1], mx.uint32)

    def gather_mm(x, y, lhs, rhs, ordered):
        return mx.gather_mm(x, y, lhs, rhs, sorted_indices=ordered)

    table.case("gather_mm", "both", [a, b, left, right, False], gather_mm, PRODUCT)
    table.case("gather_mm", "right_only", [a, b, None, right, False], gather_mm, PRODUCT)
    table.case("gather_mm", "sorted", [a, b, None, mx.array([0, 0, 1], mx.uint32), True], gather_mm, PRODUCT)
    table.bad("gather_mm", "shapes", [a, inputs.real((2, 3, 3)), left, right, False], gather_mm)
    table.bad("gather_mm", "float_indices", [a, b, inputs.real((3,)), right, False], gather_mm)
    segments = mx.array([[0, 2], [2, 5]], mx.uint32)
    table.case("segmented_mm", "f32", [inputs.real((3, 5)), inputs.real((5, 2)), segments], mx.segmented_mm, PRODUCT)
    triples = mx.array([[0, 2, 3]], mx.uint32)
    table.bad("segmented_mm", "segments", [inputs.real((3, 5)), inputs.real((5, 2)), triples], mx.segmented_mm)
    table.bad("segmented_mm", "batch", [inputs.real((1, 3, 5)), inputs.real((5, 2)), segments], mx.segmented_mm)
    x, y = inputs.real((64, 32)), inputs.real((32, 32))
    out, lhs, rhs = (mx.array(rows) for rows in ([[True], [False]], [[True], [True]], [[False]]))
    table.case("block_masked_mm", "out", [x, y, 32, out, None, None], mx.block_masked_mm, PRODUCT)
    table.case("block_masked_mm", "operands", [x, y, 32, None, lhs, rhs], mx.block_masked_mm, PRODUCT)
    table.bad("block_masked_mm", "block_size", [x, y, 33, out, None, None], mx.block_masked_mm)
    table.bad("block_masked_mm", "mask_shape", [x, y, 32, mx.array([[True]] * 5), None, None], mx.block_masked_mm)


def _convolutions(table, inputs):
    line, line_kernel = inputs.real((2, 7, 4)), inputs.real((3, 2, 2))
    table.case("conv1d", "plain", [line, inputs.real((3, 2, 4)), 1, 0, 1, 1], mx.conv1d, PRODUCT)
    table.case("conv1d", "strided_padded", [line, inputs.real((3, 2, 4)), 2, 1, 1, 1], mx.conv1d, PRODUCT)
    table.case("conv1d", "dilated", [line, inputs.real((3, 2, 4)), 1, 0, 3, 1], mx.conv1d, PRODUCT)
    table.case("conv1d", "groups", [line, inputs.real((4, 3, 2)), 1, 1, 1, 2], mx.conv1d, PRODUCT)
    turned = View(inputs.real((2, 4, 7)), transpose=[0, 2, 1])
    table.case("conv1d", "transposed", [turned, inputs.real((3, 2, 4)), 1, 0, 1, 1], mx.conv1d, PRODUCT)
    table.bad("conv1d", "channels", [line, line_kernel, 1, 0, 1, 1], mx.conv1d)
    plane, plane_kernel = inputs.real((1, 5, 6, 2)), inputs.real((3, 2, 3, 2))

    def conv2d(x, w, s0, s1, p0, p1, d0, d1, groups):
        return mx.conv2d(x, w, (s0, s1), (p0, p1), (d0, d1), groups)

    table.case("conv2d", "plain", [plane, plane_kernel, 1, 1, 0, 0, 1, 1, 1], conv2d, PRODUCT)
    table.case("conv2d", "uneven", [plane, plane_kernel, 2, 1, 1, 2, 1, 2, 1], conv2d, PRODUCT)
    table.case("conv2d", "depthwise", [plane, inputs.real((2, 3, 3, 1)), 1, 1, 1, 1, 1, 1, 2], conv2d, PRODUCT)
    table.bad("conv2d", "channels", [plane, inputs.real((3, 2, 3, 3)), 1, 1, 0, 0, 1, 1, 1], conv2d)
    table.bad("conv2d", "rank", [line, plane_kernel, 1, 1, 0, 0, 1, 1, 1], conv2d)
    solid, solid_kernel = inputs.real((1, 3, 4, 3, 2)), inputs.real((2, 2, 2, 2, 2))

    def conv3d(x, w, s0, s1, s2, p0, p1, p2, d0, d1, d2, groups):
        return mx.conv3d(x, w, (s0, s1, s2), (p0, p1, p2), (d0, d1, d2), groups)

    table.case("conv3d", "plain", [solid, solid_kernel, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1], conv3d, PRODUCT)
    table.case("conv3d", "uneven", [solid, solid_kernel, 1, 2, 1, 1, 0, 1, 1, 1, 2, 1], conv3d, PRODUCT)
    table.bad("conv3d", "channels", [solid, inputs.real((2, 2, 2, 2, 3)), 1, 1, 1, 0, 0, 0, 1, 1, 1, 1], conv3d)

    def conv_general(x, w, stride, low, high, kernel_dilation, input_dilation, groups, flip):
        return mx.conv_general(x, w, stride, (low, high), kernel_dilation, input_dilation, groups, flip)

    table.case(
        "conv_general", "line", [line, inputs.real((3, 2, 4)), [2], [1], [2], [1], [1], 1, False], conv_general, PRODUCT
    )
    table.case(
        "conv_general",
        "plane_flipped",
        [plane, plane_kernel, [1, 2], [1, 0], [0, 1], [1, 1], [2, 1], 1, True],
        conv_general,
        PRODUCT,
    )
    table.bad("conv_general", "channels", [line, line_kernel, [1], [0], [0], [1], [1], 1, False], conv_general)


def _transposed_convolutions(table, inputs):
    line, kernel = inputs.real((2, 4, 3)), inputs.real((2, 3, 3))
    table.case("conv_transpose1d", "plain", [line, kernel, 1, 0, 1, 0, 1], mx.conv_transpose1d, PRODUCT)
    table.case("conv_transpose1d", "strided", [line, kernel, 2, 1, 1, 1, 1], mx.conv_transpose1d, PRODUCT)
    table.bad("conv_transpose1d", "channels", [line, inputs.real((2, 3, 2)), 1, 0, 1, 0, 1], mx.conv_transpose1d)
    plane, square = inputs.real((1, 3, 4, 2)), inputs.real((3, 2, 3, 2))

    def two(x, w, s0, s1, p0, p1, d0, d1, o0, o1, groups):
        return mx.conv_transpose2d(x, w, (s0, s1), (p0, p1), (d0, d1), (o0, o1), groups)

    table.case("conv_transpose2d", "plain", [plane, square, 1, 1, 0, 0, 1, 1, 0, 0, 1], two, PRODUCT)
    table.case("conv_transpose2d", "uneven", [plane, square, 2, 1, 0, 1, 1, 1, 1, 0, 1], two, PRODUCT)
    table.bad("conv_transpose2d", "channels", [plane, inputs.real((3, 2, 3, 3)), 1, 1, 0, 0, 1, 1, 0, 0, 1], two)
    solid, cube = inputs.real((1, 2, 3, 2, 2)), inputs.real((2, 2, 2, 2, 2))

    def three(x, w, s0, s1, s2, p0, p1, p2, d0, d1, d2, o0, o1, o2, groups):
        return mx.conv_transpose3d(x, w, (s0, s1, s2), (p0, p1, p2), (d0, d1, d2), (o0, o1, o2), groups)

    rest = [1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1]
    table.case("conv_transpose3d", "plain", [solid, cube, *rest], three, PRODUCT)
    table.case("conv_transpose3d", "strided", [solid, cube, 2, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 1], three, PRODUCT)
    table.bad("conv_transpose3d", "channels", [solid, inputs.real((2, 2, 2, 2, 3)), *rest], three)


def _quantised(table, inputs):
    w, x = inputs.real((4, 64)), inputs.real((3, 64))

    def quantize(weight, group_size, bits, mode, global_scale):
        return mx.quantize(weight, group_size, bits, mode, global_scale=global_scale)

    def dequantize(codes, scales, biases, group_size, bits, mode, global_scale, dtype):
        return mx.dequantize(codes, scales, biases, group_size, bits, mode, global_scale, dtype)

    def matmul(a, codes, scales, biases, transpose, group_size, bits, mode):
        return mx.quantized_matmul(a, codes, scales, biases, transpose, group_size, bits, mode)

    for bits, group in ((4, 64), (4, 32), (8, 64), (2, 32), (3, 32), (6, 64)):
        name = f"bits{bits}_group{group}"
        table.case("quantize", name, [w, group, bits, "affine", None], quantize)
        parts = mx.quantize(w, group, bits)
        table.case("dequantize", name, [*parts, group, bits, "affine", None, None], dequantize)
        table.case("quantized_matmul", name, [x, *parts, True, group, bits, "affine"], matmul, PRODUCT)
    parts = mx.quantize(w, 64, 4)
    ramp = mx.arange(64, dtype=mx.float32).reshape(1, 64)
    table.case("quantize", "ramp", [ramp, 64, 4, "affine", None], quantize)
    table.case("quantize", "defaults_bf16", [w.astype(mx.bfloat16), None, None, "affine", None], quantize)
    table.case("dequantize", "defaults", [*parts, None, None, "affine", None, None], dequantize)
    table.case("dequantize", "dtype", [*parts, 64, 4, "affine", None, mx.float16], dequantize)
    plain = [inputs.real((3, 4)), *parts, False, 64, 4, "affine"]
    table.case("quantized_matmul", "not_transposed", plain, matmul, PRODUCT)
    half = [part if part.dtype == mx.uint32 else part.astype(mx.bfloat16) for part in parts]
    table.case(
        "quantized_matmul", "bf16", [x.astype(mx.bfloat16), *half, True, 64, 4, "affine"], matmul, (5e-2, 0.25)
    )
    table.bad("quantize", "group", [inputs.real((2, 40)), 64, 4, "affine", None], quantize)
    table.bad("quantize", "bits", [w, 64, 7, "affine", None], quantize)
    table.bad("quantize", "mode", [w, 64, 4, "somehow", None], quantize)
    table.bad("dequantize", "scales", [parts[0], parts[1][:2], parts[2], 64, 4, "affine", None, None], dequantize)
    table.bad("dequantize", "no_biases", [parts[0], parts[1], None, 64, 4, "affine", None, None], dequantize)
    table.bad("quantized_matmul", "shapes", [inputs.real((3, 32)), *parts, True, 64, 4, "affine"], matmul)
    _other_modes(table, inputs, quantize, dequantize, matmul)
    _gathered_quantised(table, inputs)
    _quantised_both(table, inputs)


def _other_modes(table, inputs, quantize, dequantize, matmul):
    w, x = inputs.real((4, 64)), inputs.real((3, 64))
    for mode, group, bits in (("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)):
        table.case("quantize", mode, [w, group, bits, mode, None], quantize)
        codes, scales = mx.quantize(w, group, bits, mode)
        table.case("dequantize", mode, [codes, scales, None, group, bits, mode, None, None], dequantize)
        table.case("quantized_matmul", mode, [x, codes, scales, None, True, group, bits, mode], matmul, PRODUCT)


def _gathered_quantised(table, inputs):
    w, x = inputs.real((2, 4, 64)), inputs.real((3, 2, 64))
    parts = list(mx.quantize(w, 32, 4))
    left, right = mx.array([2, 0, 1], mx.uint32), mx.array([1, 0, 1], mx.uint32)

    def gather_qmm(a, codes, scales, biases, lhs, rhs, transpose, group_size, bits, mode, ordered):
        return mx.gather_qmm(
            a, codes, scales, biases, lhs, rhs, transpose, group_size, bits, mode, sorted_indices=ordered
        )

    rest = [True, 32, 4, "affine", False]
    table.case("gather_qmm", "both", [x, *parts, left, right, *rest], gather_qmm, PRODUCT)
    table.case("gather_qmm", "right_only", [x, *parts, None, right, *rest], gather_qmm, PRODUCT)
    table.bad("gather_qmm", "shapes", [inputs.real((3, 2, 32)), *parts, left, right, *rest], gather_qmm)


def _quantised_both(table, inputs):
    """The products that quantise their left side too: recorded when the CPU has them, else named as unsupported."""
    x, w = inputs.real((2, 64)), inputs.real((4, 64))

    def qqmm(a, codes, scales, group_size, bits, mode, scale_x, scale_w):
        return mx.qqmm(a, codes, scales, group_size, bits, mode, scale_x, scale_w)

    def gather_qqmm(a, codes, scales, lhs, rhs, group_size, bits, mode, scale_x, scale_w, ordered):
        return mx.gather_qqmm(
            a, codes, scales, lhs, rhs, group_size, bits, mode, scale_x, scale_w, sorted_indices=ordered
        )

    codes, scales = mx.quantize(w, 32, 8, "mxfp8")
    args = [x, codes, scales, 32, 8, "mxfp8", None, None]
    refused = failure(qqmm, args)
    if refused is None:
        table.case("qqmm", "mxfp8", args, qqmm, PRODUCT)
    else:
        table.unsupported["qqmm"] = refused["message"]
    codes, scales = mx.quantize(inputs.real((2, 4, 64)), 32, 8, "mxfp8")
    right = mx.array([1, 0], mx.uint32)
    args = [inputs.real((2, 3, 64)), codes, scales, None, right, 32, 8, "mxfp8", None, None, False]
    refused = failure(gather_qqmm, args)
    if refused is None:
        table.case("gather_qqmm", "mxfp8", args, gather_qqmm, PRODUCT)
    else:
        table.unsupported["gather_qqmm"] = refused["message"]


def _fp8(table, inputs):
    values = mx.array(np.array([0.0, 0.1, -0.3, 1.0, 17.0, -448.0, 1000.0], np.float32))
    table.case("to_fp8", "f32", [values], mx.to_fp8, EXACT)
    table.case("to_fp8", "bf16", [values.astype(mx.bfloat16)], mx.to_fp8, EXACT)
    table.bad("to_fp8", "integers", [inputs.integer((3,))], mx.to_fp8)
    codes = mx.to_fp8(values)
    table.case("from_fp8", "f32", [codes, mx.float32], mx.from_fp8, EXACT)
    table.case("from_fp8", "bf16", [codes, mx.bfloat16], mx.from_fp8, EXACT)
    table.bad("from_fp8", "dtype", [values, mx.float32], mx.from_fp8)


def _hadamard_and_diff(table, inputs):
    table.case("hadamard_transform", "of_8", [inputs.real((2, 8)), None], mx.hadamard_transform, PRODUCT)
    table.case("hadamard_transform", "of_12_scaled", [inputs.real((12,)), 0.5], mx.hadamard_transform, PRODUCT)
    table.bad("hadamard_transform", "size", [inputs.real((2, 7)), None], mx.hadamard_transform)
    table.case("diff", "once", [inputs.real((2, 4)), 1, -1], mx.diff)
    table.case("diff", "twice_transposed", [View(inputs.real((2, 4)), transpose=[1, 0]), 2, 0], mx.diff)
    table.case("diff", "i32", [inputs.integer((5,)), 1, 0], mx.diff)
    table.bad("diff", "axis", [inputs.real((2, 4)), 1, 2], mx.diff)
    table.bad("diff", "negative", [inputs.real((2, 4)), -1, 0], mx.diff)
