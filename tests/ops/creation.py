"""Rows of the operations that make arrays out of numbers, and of those on triangles and diagonals.

Used by make_ops.py; not run on its own.
"""

import mlx.core as mx

from table import View


def add(table, inputs):
    _ranges(table)
    _filled(table, inputs)
    _triangles(table, inputs)
    _diagonals(table, inputs)
    _counted(table, inputs)


def _ranges(table):
    def arange(start, stop, step, dtype):
        return mx.arange(start, stop, step, dtype)

    table.case("arange", "i32", [0.0, 5.0, 1.0, mx.int32], arange)
    table.case("arange", "f32_fraction", [-1.0, 1.0, 0.25, mx.float32], arange)
    table.case("arange", "descending", [5.0, 0.0, -2.0, mx.int32], arange)
    table.case("arange", "bf16", [0.0, 2.0, 0.5, mx.bfloat16], arange)
    table.bad("arange", "bool", [0.0, 2.0, 1.0, mx.bool_], arange)
    for op in ("bartlett", "blackman", "hamming", "hanning"):
        for size in (1, 6, 7):
            table.case(op, f"of_{size}", [size], getattr(mx, op))
        table.never_fails(op, "a size below 1 gives an empty array")

    def linspace(start, stop, num, dtype):
        return mx.linspace(start, stop, num, dtype=dtype)

    def linspace_endpoint(start, stop, num, endpoint, dtype):
        return mx.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)

    table.case("linspace", "f32", [0.0, 1.0, 5, mx.float32], linspace)
    table.case("linspace", "i32", [0.0, 9.0, 4, mx.int32], linspace)
    table.case("linspace", "one", [2.0, 9.0, 1, mx.float32], linspace)
    table.bad("linspace", "negative", [0.0, 1.0, -1, mx.float32], linspace)
    table.case("linspace_endpoint", "without", [0.0, 1.0, 4, False, mx.float32], linspace_endpoint)
    table.case("linspace_endpoint", "with", [-1.0, 1.0, 4, True, mx.float16], linspace_endpoint)
    table.bad("linspace_endpoint", "negative", [0.0, 1.0, -1, False, mx.float32], linspace_endpoint)


def _filled(table, inputs):
    table.case("full", "f32", [[2, 3], mx.array(1.5), mx.float32], mx.full)
    table.case("full", "broadcast_row", [[2, 3], inputs.real((3,)), mx.float32], mx.full)
    # Python's `full` keeps the dtype of an array it is given; the C function converts.
    table.case("full", "i32_from_float", [[2], mx.array(2.75), mx.int32], lambda *args: mx.full(*args).astype(args[2]))
    table.case("full", "scalar", [[], mx.array(True), mx.bool_], mx.full)
    table.bad("full", "negative", [[-1], mx.array(1.0), mx.float32], mx.full)
    table.bad("full", "shapes", [[2, 3], inputs.real((4,)), mx.float32], mx.full)
    a = inputs.integer((2, 3))
    table.case("full_like", "f32", [a, mx.array(1.5), mx.float32], mx.full_like)
    table.case("full_like", "transposed", [View(a, transpose=[1, 0]), inputs.real((2,)), mx.float16], mx.full_like)
    table.bad("full_like", "shapes", [a, inputs.real((4,)), mx.float32], mx.full_like)
    for op in ("ones", "zeros"):
        function, like = getattr(mx, op), getattr(mx, f"{op}_like")
        for dtype in (mx.float32, mx.bfloat16, mx.int32, mx.bool_, mx.complex64):
            table.case(op, str(dtype).split(".")[-1], [[2, 2], dtype], function)
        table.bad(op, "negative", [[2, -2], mx.float32], function)
        table.case(f"{op}_like", "i32", [a], like)
        table.case(f"{op}_like", "bf16_transposed", [View(inputs.real((2, 3), dtype=mx.bfloat16), transpose=[1, 0])], like)
        table.case(f"{op}_like_dtype", "f16", [a, mx.float16], lambda x, dtype, f=like: f(x, dtype=dtype))
        for name in (f"{op}_like", f"{op}_like_dtype"):
            table.never_fails(name, "any array has a shape and a dtype to copy")
    table.case("eye", "square", [3, 3, 0, mx.float32], mx.eye)
    table.case("eye", "wide_above", [2, 4, 1, mx.int32], mx.eye)
    table.case("eye", "tall_below", [4, 2, -1, mx.bfloat16], mx.eye)
    table.bad("eye", "negative", [-1, 2, 0, mx.float32], mx.eye)
    table.case("identity", "f32", [3, mx.float32], mx.identity)
    table.case("identity", "bool", [2, mx.bool_], mx.identity)
    table.bad("identity", "negative", [-2, mx.float32], mx.identity)


def _triangles(table, inputs):
    table.case("tri", "square", [3, 3, 0, mx.float32], mx.tri)
    table.case("tri", "wide_above", [2, 4, 1, mx.int32], mx.tri)
    table.case("tri", "bool_below", [3, 3, -1, mx.bool_], mx.tri)
    table.never_fails("tri", "a negative size is taken for an empty one")
    for op in ("tril", "triu"):
        function = getattr(mx, op)
        for k in (0, 1, -1):
            table.case(op, f"k{k}", [inputs.real((3, 4)), k], function)
        table.case(op, "batch_transposed", [View(inputs.integer((3, 2, 3)), transpose=[1, 2, 0]), 0], function)
        table.case(op, "bool", [inputs.boolean((3, 3)), 0], function)
        table.bad(op, "one_axis", [inputs.real((3,)), 0], function)


def _diagonals(table, inputs):
    row, square = inputs.real((3,)), inputs.real((3, 4))
    for k in (0, 1, -2):
        table.case("diag", f"of_row_k{k}", [row, k], mx.diag)
        table.case("diag", f"of_matrix_k{k}", [square, k], mx.diag)
    table.case("diag", "i32", [inputs.integer((2,)), 0], mx.diag)
    table.bad("diag", "three_axes", [inputs.real((2, 2, 2)), 0], mx.diag)
    cube = inputs.real((2, 3, 4))
    table.case("diagonal", "main", [square, 0, 0, 1], mx.diagonal)
    table.case("diagonal", "above", [square, 1, 0, 1], mx.diagonal)
    table.case("diagonal", "batch", [cube, -1, 1, 2], mx.diagonal)
    table.case("diagonal", "axes_swapped", [cube, 0, -1, 0], mx.diagonal)
    table.bad("diagonal", "axis", [square, 0, 0, 2], mx.diagonal)
    table.bad("diagonal", "axis_twice", [square, 0, 1, 1], mx.diagonal)
    table.case("trace", "f32", [square], mx.trace)
    table.case("trace", "i32", [inputs.integer((3, 3))], mx.trace)
    table.case("trace", "batch", [cube], mx.trace)
    table.bad("trace", "one_axis", [row], mx.trace)

    def trace_axes(a, offset, axis1, axis2, dtype):
        return mx.trace(a, offset, axis1, axis2, dtype=dtype)

    table.case("trace_axes", "above", [square, 1, 0, 1, mx.float32], trace_axes)
    table.case("trace_axes", "batch_i32", [inputs.integer((2, 3, 3)), 0, 1, 2, mx.int32], trace_axes)
    table.case("trace_axes", "widened", [inputs.real((3, 3), dtype=mx.bfloat16), 0, 0, 1, mx.float32], trace_axes)
    table.bad("trace_axes", "axis_twice", [square, 0, 1, 1, mx.float32], trace_axes)


def _counted(table, inputs):
    def number_of_elements(a, axes, inverted, dtype):
        count = 1
        for axis in axes:
            count *= a.shape[axis]
        return mx.array(1 / count if inverted else count, dtype)

    cube = inputs.real((2, 3, 4))
    table.case("number_of_elements", "i32", [cube, [0, 2], False, mx.int32], number_of_elements)
    table.case("number_of_elements", "inverted", [cube, [-1], True, mx.float32], number_of_elements)
    table.case("number_of_elements", "none", [cube, [], False, mx.int32], number_of_elements)
    table.never_fails("number_of_elements", "an axis is taken modulo the rank (of which there must be some)")

    def meshgrid(arrays, sparse, indexing):
        return mx.meshgrid(*arrays, sparse=sparse, indexing=indexing)

    pair = [inputs.real((3,)), inputs.real((2,))]
    table.case("meshgrid", "xy", [pair, False, "xy"], meshgrid)
    table.case("meshgrid", "ij", [pair, False, "ij"], meshgrid)
    table.case("meshgrid", "sparse", [[*pair, inputs.real((2,))], True, "xy"], meshgrid)
    table.bad("meshgrid", "indexing", [pair, False, "ab"], meshgrid)
