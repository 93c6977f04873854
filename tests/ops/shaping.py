"""Rows of the operations that move, select, join, cut and scatter values.

Used by make_ops.py; not run on its own.
"""

import mlx.core as mx

from table import View


def add(table, inputs):
    _dtypes_and_copies(table, inputs)
    _shapes(table, inputs)
    _axes(table, inputs)
    _join_and_cut(table, inputs)
    _repeat_and_pad(table, inputs)
    _take_and_put(table, inputs)
    _slices(table, inputs)
    _gather(table, inputs)
    _scatter(table, inputs)


def _dtypes_and_copies(table, inputs):
    a = inputs.real((2, 3), -3.0, 3.0)
    for name, dtype in {"f16": mx.float16, "bf16": mx.bfloat16, "i32": mx.int32, "bool": mx.bool_, "c64": mx.complex64}.items():
        table.case("astype", f"f32_to_{name}", [a, dtype], mx.astype)
    table.case("astype", "u8_to_f32", [inputs.integer((3,), 0, 255, mx.uint8), mx.float32], mx.astype)
    table.case("astype", "i64_to_u8_wraps", [mx.array([1, 257, -1], mx.int64), mx.uint8], mx.astype)
    table.case("astype", "transposed", [View(a, transpose=[1, 0]), mx.float16], mx.astype)
    table.never_fails("astype", "every dtype converts to every other")
    table.case("view", "f32_as_i32", [a, mx.int32], mx.view)
    table.case("view", "f32_as_u16", [a, mx.uint16], mx.view)
    table.case("view", "u8_as_u32", [inputs.integer((2, 8), 0, 255, mx.uint8), mx.uint32], mx.view)
    table.bad("view", "does_not_fit", [inputs.integer((3,), 0, 255, mx.uint8), mx.uint32], mx.view)
    for name, value in {"f32": a, "transposed": View(a, transpose=[1, 0]), "stepped": View(inputs.real((2, 6)), step=2)}.items():
        table.case("copy", name, [value], mx.array)
        table.case("contiguous", name, [value, False], mx.contiguous)
        table.case("contiguous", f"{name}_col_major", [value, True], mx.contiguous)
    for op in ("copy", "contiguous"):
        table.never_fails(op, "any array can be copied")
    table.case("depends", "f32", [[a, inputs.real((2,))], [inputs.real((3,))]], mx.depends)
    table.never_fails("depends", "the values pass through")


def _shapes(table, inputs):
    a = inputs.real((2, 3, 4))
    turned = View(a, transpose=[2, 0, 1])
    table.case("reshape", "f32", [a, [6, 4]], mx.reshape)
    table.case("reshape", "inferred", [a, [4, -1]], mx.reshape)
    table.case("reshape", "transposed", [turned, [8, 3]], mx.reshape)
    table.bad("reshape", "size", [a, [5, 5]], mx.reshape)
    table.bad("reshape", "inferred_twice", [a, [-1, -1]], mx.reshape)
    table.case("flatten", "all", [a, 0, -1], mx.flatten)
    table.case("flatten", "some_transposed", [turned, 1, 2], mx.flatten)
    table.bad("flatten", "order", [a, 2, 1], mx.flatten)
    table.case("unflatten", "last", [a, -1, [2, 2]], mx.unflatten)
    table.case("unflatten", "inferred", [turned, 0, [-1, 2]], mx.unflatten)
    table.bad("unflatten", "size", [a, 1, [2, 2]], mx.unflatten)
    table.case("squeeze", "all", [inputs.real((1, 3, 1))], mx.squeeze)
    table.never_fails("squeeze", "it drops the axes of length 1, if any")
    table.case("squeeze_axis", "f32", [inputs.real((1, 3, 1)), -1], lambda x, axis: mx.squeeze(x, axis))
    table.bad("squeeze_axis", "length", [a, 0], lambda x, axis: mx.squeeze(x, axis))
    table.case("squeeze_axes", "f32", [inputs.real((1, 3, 1)), [0, 2]], lambda x, axes: mx.squeeze(x, axes))
    table.bad("squeeze_axes", "length", [a, [0]], lambda x, axes: mx.squeeze(x, axes))
    table.case("expand_dims", "last", [a, -1], mx.expand_dims)
    table.bad("expand_dims", "axis", [a, 5], mx.expand_dims)
    table.case("expand_dims_axes", "two", [turned, [0, 2]], mx.expand_dims)
    table.bad("expand_dims_axes", "axis_twice", [a, [1, 1]], mx.expand_dims)
    for rank in (1, 2, 3):
        op = f"atleast_{rank}d"
        for name, value in {"scalar": inputs.real(()), "row": inputs.real((3,)), "matrix": inputs.real((2, 3))}.items():
            table.case(op, name, [value], getattr(mx, op))
        table.never_fails(op, "any array has or gets that many axes")
    table.case("broadcast_to", "row", [inputs.real((3,)), [2, 3]], mx.broadcast_to)
    table.case("broadcast_to", "transposed", [View(inputs.real((3, 1)), transpose=[1, 0]), [2, 2, 3]], mx.broadcast_to)
    table.bad("broadcast_to", "shapes", [inputs.real((3,)), [2, 4]], mx.broadcast_to)
    many = [inputs.real((3, 1)), inputs.real((2,)), inputs.real(())]
    table.case("broadcast_arrays", "three", [many], lambda arrays: mx.broadcast_arrays(*arrays))
    table.bad("broadcast_arrays", "shapes", [[many[1], inputs.real((3,))]], lambda arrays: mx.broadcast_arrays(*arrays))
    table.case("as_strided", "windows", [inputs.real((6,)), [4, 3], [1, 1], 0], mx.as_strided)
    table.case("as_strided", "offset", [inputs.real((8,)), [2, 2], [4, 1], 1], mx.as_strided)
    table.never_fails("as_strided", "it is not checked; a shape and strides beyond the data are the caller's error")


def _axes(table, inputs):
    a = inputs.real((2, 3, 4))
    turned = View(a, transpose=[2, 0, 1])
    table.case("transpose", "f32", [a], mx.transpose)
    table.case("transpose", "transposed", [turned], mx.transpose)
    table.never_fails("transpose", "it reverses the axes of any array")
    table.case("transpose_axes", "f32", [a, [1, 0, 2]], mx.transpose)
    table.case("transpose_axes", "negative", [turned, [-1, 0, 1]], mx.transpose)
    table.bad("transpose_axes", "count", [a, [0, 1]], mx.transpose)
    table.bad("transpose_axes", "axis_twice", [a, [0, 0, 1]], mx.transpose)
    table.case("swapaxes", "f32", [a, 0, 2], mx.swapaxes)
    table.bad("swapaxes", "axis", [a, 0, 3], mx.swapaxes)
    table.case("moveaxis", "f32", [a, 0, -1], mx.moveaxis)
    table.case("moveaxis", "transposed", [turned, 2, 0], mx.moveaxis)
    table.bad("moveaxis", "axis", [a, 3, 0], mx.moveaxis)
    table.case("flip", "f32", [a], mx.flip)
    table.never_fails("flip", "it reverses every axis of any array")
    table.case("flip_axis", "last", [turned, -1], lambda x, axis: mx.flip(x, axis))
    table.bad("flip_axis", "axis", [a, 3], lambda x, axis: mx.flip(x, axis))
    table.case("flip_axes", "two", [a, [0, 2]], lambda x, axes: mx.flip(x, axes))
    table.bad("flip_axes", "axis", [a, [0, 3]], lambda x, axes: mx.flip(x, axes))
    table.case("roll", "flat", [a, [5]], lambda x, shift: mx.roll(x, shift[0]))
    table.never_fails("roll", "any shift is taken modulo the size")
    table.case("roll_axis", "f32", [a, [1], 1], lambda x, shift, axis: mx.roll(x, shift[0], axis))
    table.case("roll_axis", "negative", [turned, [-2], -1], lambda x, shift, axis: mx.roll(x, shift[0], axis))
    table.bad("roll_axis", "axis", [a, [1], 3], lambda x, shift, axis: mx.roll(x, shift[0], axis))
    pair = lambda x, shift, axes: mx.roll(x, tuple(shift), tuple(axes))  # noqa: E731
    table.case("roll_axes", "two", [a, [1, -1], [0, 2]], pair)
    table.bad("roll_axes", "axis", [a, [1, 2], [0, 3]], pair)


def _join_and_cut(table, inputs):
    a, b = inputs.real((2, 3)), inputs.real((2, 3))
    flat = lambda arrays: mx.concatenate(arrays, axis=None)  # noqa: E731
    table.case("concatenate", "flattens", [[a, b, inputs.real((1, 3))]], flat)
    table.case("concatenate", "promotes", [[a, inputs.integer((1, 3))]], flat)
    table.bad("concatenate", "nothing", [[]], flat)
    along = lambda arrays, axis: mx.concatenate(arrays, axis=axis)  # noqa: E731
    table.case("concatenate_axis", "last", [[a, inputs.real((2, 1))], -1], along)
    table.bad("concatenate_axis", "shapes", [[a, inputs.real((2, 4))], 0], along)
    table.bad("concatenate_axis", "axis", [[a, b], 2], along)
    table.case("stack", "f32", [[a, b]], mx.stack)
    table.bad("stack", "shapes", [[a, inputs.real((2, 4))]], mx.stack)
    table.case("stack_axis", "last", [[a, b], -1], lambda arrays, axis: mx.stack(arrays, axis=axis))
    table.bad("stack_axis", "axis", [[a, b], 3], lambda arrays, axis: mx.stack(arrays, axis=axis))
    wide = inputs.real((2, 6))
    turned = View(wide, transpose=[1, 0])
    table.case("split", "three", [wide, 3, 1], mx.split)
    table.case("split", "transposed", [turned, 2, 0], mx.split)
    table.bad("split", "uneven", [wide, 4, 1], mx.split)
    table.bad("split", "axis", [wide, 2, 2], mx.split)
    table.case("split_sections", "two", [wide, [1, 4], 1], mx.split)
    table.case("split_sections", "transposed", [turned, [2], 0], mx.split)
    table.bad("split_sections", "axis", [wide, [1], 2], mx.split)
    table.case("unstack", "f32", [a], mx.unstack)
    table.bad("unstack", "scalar", [inputs.real(())], mx.unstack)
    table.case("unstack_axis", "transposed", [turned, -1], lambda x, axis: mx.unstack(x, axis=axis))
    table.bad("unstack_axis", "axis", [a, 2], lambda x, axis: mx.unstack(x, axis=axis))


def _repeat_and_pad(table, inputs):
    a = inputs.real((2, 3))
    turned = View(a, transpose=[1, 0])
    table.case("repeat", "flat", [a, 2], lambda x, n: mx.repeat(x, n))
    table.bad("repeat", "negative", [a, -1], lambda x, n: mx.repeat(x, n))
    table.case("repeat_axis", "transposed", [turned, 3, 1], lambda x, n, axis: mx.repeat(x, n, axis=axis))
    table.bad("repeat_axis", "axis", [a, 2, 2], lambda x, n, axis: mx.repeat(x, n, axis=axis))
    table.case("tile", "two", [a, [2, 2]], mx.tile)
    table.case("tile", "more_axes", [turned, [2, 1, 2]], mx.tile)
    table.never_fails("tile", "repetitions and shape extend each other with ones")

    def pad(x, axes, low, high, value, mode):
        widths = [(0, 0)] * x.ndim
        for axis, before, after in zip(axes, low, high):
            widths[axis] = (before, after)
        return mx.pad(x, widths, mode, value)

    zero = mx.array(0.0)
    table.case("pad", "constant", [a, [0, 1], [1, 0], [0, 2], mx.array(7.5), "constant"], pad)
    table.case("pad", "one_axis", [turned, [1], [2], [1], zero, "constant"], pad)
    table.case("pad", "edge", [a, [0, 1], [1, 1], [1, 2], zero, "edge"], pad)
    for mode in ("reflect", "symmetric"):
        table.try_case("pad", mode, [inputs.real((4, 5)), [0, 1], [1, 2], [2, 1], zero, mode], pad)
    table.case("pad", "bf16", [a.astype(mx.bfloat16), [1], [1], [1], mx.array(1.0, mx.bfloat16), "constant"], pad)
    table.bad("pad", "mode", [a, [0], [1], [1], zero, "somehow"], pad)
    table.bad("pad", "negative", [a, [0, 1], [-1, 0], [0, 0], zero, "constant"], pad)

    def pad_symmetric(x, width, value, mode):
        return mx.pad(x, width, mode, value)

    table.case("pad_symmetric", "constant", [a, 1, mx.array(-1.0), "constant"], pad_symmetric)
    table.case("pad_symmetric", "edge", [a, 2, zero, "edge"], pad_symmetric)
    table.bad("pad_symmetric", "mode", [a, 1, zero, "somehow"], pad_symmetric)


def _take_and_put(table, inputs):
    a = inputs.real((3, 4))
    turned = View(a, transpose=[1, 0])
    table.case("take", "flat", [a, mx.array([[0, 5], [11, -1]])], lambda x, at: mx.take(x, at))
    table.bad("take", "empty", [mx.zeros((0,)), mx.array([0])], lambda x, at: mx.take(x, at))
    along = lambda x, at, axis: mx.take(x, at, axis=axis)  # noqa: E731
    table.case("take_axis", "rows", [a, mx.array([2, 0, 2]), 0], along)
    table.case("take_axis", "transposed_u32", [turned, mx.array([[1], [0]], mx.uint32), -1], along)
    table.bad("take_axis", "axis", [a, mx.array([0]), 2], along)
    nearest = lambda x, at, axis: mx.take_along_axis(x, at, axis=axis)  # noqa: E731
    table.case("take_along_axis", "rows", [a, mx.array([[2, 0, 1, 1]]), 0], nearest)
    table.case("take_along_axis", "transposed", [turned, mx.array([[0, 2]] * 4), 1], nearest)
    table.bad("take_along_axis", "rank", [a, mx.array([0]), 0], nearest)
    table.bad("take_along_axis", "axis", [a, mx.array([[0]]), 2], nearest)
    put = lambda x, at, values, axis: mx.put_along_axis(x, at, values, axis=axis)  # noqa: E731
    table.case("put_along_axis", "columns", [a, mx.array([[1], [0], [3]]), inputs.real((3, 1)), 1], put)
    table.case("put_along_axis", "broadcast", [a, mx.array([[1, 2]] * 3), mx.array(9.0), 1], put)
    table.bad("put_along_axis", "rank", [a, mx.array([0]), mx.array(1.0), 0], put)

    def scatter_add_axis(x, at, values, axis):
        rows = mx.broadcast_to(mx.arange(x.shape[0])[:, None], at.shape)
        return x.at[rows, at].add(values)

    at = mx.array([[1, 1], [0, 3], [2, 0]])
    table.case("scatter_add_axis", "columns", [a, at, inputs.real((3, 2)), 1], scatter_add_axis)
    table.bad_in_c(
        "scatter_add_axis",
        "rank",
        [a, mx.array([0]), mx.array(1.0), 1],
        "[scatter_add_axis] Indices of dimension 1 does not match array of dimension 2.",
    )

    def masked_scatter(x, mask, values):
        x = mx.array(x)
        x[mask] = values
        return x

    mask = mx.array([[True, False, True, False], [False] * 4, [True, True, False, False]])
    table.case("masked_scatter", "f32", [a, mask, inputs.real((4,))], masked_scatter)
    table.bad_in_c(
        "masked_scatter",
        "mask_dtype",
        [a, mx.zeros((3, 4)), inputs.real((4,))],
        "[masked_scatter] The mask has to be boolean.",
    )


def _box(start, stop, strides):
    return tuple(slice(*bounds) for bounds in zip(start, stop, strides))


def _slices(table, inputs):
    a, wide = inputs.real((3, 4)), inputs.real((4, 6))
    turned = View(wide, transpose=[1, 0])

    def cut(x, start, stop, strides):
        return x[_box(start, stop, strides)]

    table.case("slice", "box", [a, [1, 0], [3, 3], [1, 1]], cut)
    table.case("slice", "strided_transposed", [turned, [0, 1], [6, 4], [2, 2]], cut)
    table.case("slice", "negative", [a, [-2, 0], [3, -1], [1, 1]], cut)
    count = "Invalid number of indices or strides for array with dimension 2."
    table.bad_in_c("slice", "count", [a, [0], [1], [1]], f"[slice] {count}")
    table.case("slice_dynamic", "both", [wide, mx.array([1, 2]), [0, 1], [2, 3]], mx.slice)
    table.case("slice_dynamic", "one", [turned, mx.array([3]), [0], [2, 4]], mx.slice)
    table.bad("slice_dynamic", "axis", [wide, mx.array([0]), [2], [1, 1]], mx.slice)
    table.bad("slice_dynamic", "size", [wide, mx.array([0]), [0], [9, 9]], mx.slice)
    table.case("slice_update_dynamic", "both", [wide, inputs.real((2, 2)), mx.array([1, 3]), [0, 1]], mx.slice_update)
    table.case("slice_update_dynamic", "one", [a, inputs.real((1, 4)), mx.array([2]), [0]], mx.slice_update)
    table.bad("slice_update_dynamic", "axis", [a, inputs.real((1, 4)), mx.array([2]), [2]], mx.slice_update)

    def replace(x, update, start, stop, strides):
        x = mx.array(x)
        x[_box(start, stop, strides)] = update
        return x

    def modify(method):
        return lambda x, update, *box: getattr(x.at[_box(*box)], method)(update)

    updates = {
        "slice_update": replace,
        "slice_update_add": modify("add"),
        "slice_update_max": modify("maximum"),
        "slice_update_min": modify("minimum"),
        "slice_update_prod": modify("multiply"),
    }
    for op, function in updates.items():
        table.case(op, "box", [a, inputs.real((2, 3)), [1, 0], [3, 3], [1, 1]], function)
        table.case(op, "strided_broadcast", [turned, inputs.real((1, 2)), [0, 1], [6, 4], [2, 2]], function)
        table.case(op, "promotes_to_source", [inputs.integer((3,)), inputs.real((1,), 1.0, 9.0), [1], [2], [1]], function)
        table.bad(op, "shapes", [a, inputs.real((5, 5)), [0, 0], [2, 2], [1, 1]], function)


def _gather(table, inputs):
    a = inputs.real((4, 3))
    rows, columns = mx.array([3, 0, 3]), mx.array([[1], [2]])

    def gather(x, indices, axes, sizes):
        if axes == [0]:
            return x[indices[0]][:, None, : sizes[1]]
        if axes == [0, 1]:
            return x[indices[0], indices[1]][..., None, None]
        raise ValueError("[gather]")

    table.case("gather", "rows", [a, [rows], [0], [1, 3]], gather)
    table.case("gather", "rows_cut", [a, [rows], [0], [1, 2]], gather)
    table.case("gather", "points", [a, [rows, columns], [0, 1], [1, 1]], gather)
    table.case(
        "gather_single", "rows", [a, rows, 0, [1, 3]], lambda x, at, axis, sizes: gather(x, [at], [axis], sizes)
    )

    # Python reaches gather through indexing, which never asks for these.
    ranks = "[gather] Got slice_sizes with size 1 for array with 2 dimensions."
    dtype = "[gather] Got indices with invalid dtype. Indices must be integral."
    axes = "[gather] Axes don't match array dimensions."
    table.bad_in_c("gather", "axis", [a, [rows], [2], [1, 3]], axes)
    table.bad_in_c("gather", "slice_sizes", [a, [rows], [0], [1]], ranks)
    table.bad_in_c("gather", "float_indices", [a, [inputs.real((2,))], [0], [1, 3]], dtype)
    table.bad_in_c("gather_single", "axis", [a, rows, 2, [1, 3]], axes)


def _scatter(table, inputs):
    a = inputs.real((4, 3))
    rows, columns = mx.array([2, 0, 2]), mx.array([1, 1, 0])

    def replace(x, indices, updates, axes):
        x = mx.array(x)
        if len(indices) == 1:
            x[indices[0]] = updates[:, 0]
        else:
            x[indices[0], indices[1]] = updates[:, 0, 0]
        return x

    def modify(method):
        def function(x, indices, updates, axes):
            if len(indices) == 1:
                return getattr(x.at[indices[0]], method)(updates[:, 0])
            return getattr(x.at[indices[0], indices[1]], method)(updates[:, 0, 0])

        return function

    axes = "[scatter] Axes don't match array dimensions."
    ranks = "[scatter] Updates with 2 dimensions does not match the sum of the array (2) and indices (1) dimensions."
    for op, function in {
        "scatter": replace,
        "scatter_add": modify("add"),
        "scatter_max": modify("maximum"),
        "scatter_min": modify("minimum"),
        "scatter_prod": modify("multiply"),
    }.items():
        # A plain scatter of two values to one place has no fixed winner, so its rows are distinct.
        at = mx.array([2, 0, 1]) if op == "scatter" else rows
        single = lambda x, index, updates, axis, f=function: f(x, [index], updates, [axis])  # noqa: E731
        table.case(op, "rows", [a, [at], inputs.real((3, 1, 3)), [0]], function)
        table.case(op, "points", [a, [at, columns], inputs.real((3, 1, 1)), [0, 1]], function)
        table.case(op, "i32", [inputs.integer((4, 3)), [at], inputs.integer((3, 1, 3)), [0]], function)
        table.case(op, "transposed", [View(inputs.real((3, 4)), transpose=[1, 0]), [at], inputs.real((3, 1, 3)), [0]], function)
        table.case(f"{op}_single", "rows", [a, at, inputs.real((3, 1, 3)), 0], single)
        table.bad_in_c(op, "axis", [a, [at], inputs.real((3, 1, 3)), [2]], axes)
        table.bad_in_c(op, "updates", [a, [at], inputs.real((3, 3)), [0]], ranks)
        table.bad_in_c(f"{op}_single", "axis", [a, at, inputs.real((3, 1, 3)), 2], axes)
