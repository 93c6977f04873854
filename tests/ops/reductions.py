"""Rows of reductions, cumulative operations, sorting and softmax, each in its forms (all, one axis, several axes).

Used by make_ops.py; not run on its own.
"""

import mlx.core as mx
import numpy as np

from table import View

EMPTY_FAILS = ("max", "min", "argmax", "argmin")


def add(table, inputs):
    for op in "sum prod max min mean logsumexp".split():
        _reduction(table, inputs, op, [])
    for op in ("var", "std"):
        _reduction(table, inputs, op, [0])
        _spread(table, inputs, op)
    for op in ("all", "any", "count_nonzero", "median"):
        _reduction(table, inputs, op, [])
    for op in ("argmax", "argmin"):
        _arg_reduction(table, inputs, op)
    for op in "cumsum cumprod cummax cummin logcumsumexp".split():
        _cumulative(table, inputs, op)
    _sorting(table, inputs)
    _softmax(table, inputs)


def _call(op, tail):
    """op(a, axis, keepdims, *tail) with `axis` None for all; count_nonzero takes its axis by name only."""

    def whole(a, keepdims, *rest):
        return getattr(mx, op)(a, axis=None, keepdims=keepdims, **dict(zip(tail, rest)))

    def along(a, axis, keepdims, *rest):
        return getattr(mx, op)(a, axis=axis, keepdims=keepdims, **dict(zip(tail, rest)))

    return whole, along


def _reduction(table, inputs, op, rest):
    whole, along = _call(op, ["ddof"] if rest else [])
    a = inputs.real((2, 3, 4), 0.5, 1.5) if op == "prod" else inputs.real((2, 3, 4))
    if op in ("all", "any", "count_nonzero"):
        a = inputs.integer((2, 3, 4), 0, 2).astype(mx.float32)
    kinds = {
        "f32": a,
        "f16": a[0].astype(mx.float16),
        "bf16": a[0].astype(mx.bfloat16),
        "i32": inputs.integer((3, 4), -3, 4),
        "bool": inputs.boolean((3, 4)),
        "u8": inputs.integer((3, 4), 0, 5, mx.uint8),
        "c64": inputs.complex((3, 4)),
    }
    for name, value in kinds.items():
        ok = table.try_case(op, name, [value, False, *rest], whole)
        if ok:
            table.case(f"{op}_axis", name, [value, -1, False, *rest], along)
    table.case(op, "keepdims", [a, True, *rest], whole)
    turned = View(a, transpose=[2, 0, 1])
    table.case(f"{op}_axis", "transposed_keepdims", [turned, 0, True, *rest], along)
    table.case(f"{op}_axis", "stepped", [View(a, step=2), 1, False, *rest], along)
    table.case(f"{op}_axes", "f32", [a, [0, 2], False, *rest], along)
    table.case(f"{op}_axes", "transposed_keepdims", [turned, [-1, 0], True, *rest], along)
    table.case(f"{op}_axes", "i32", [kinds["i32"], [1], False, *rest], along)
    table.bad(f"{op}_axis", "axis", [a, 3, False, *rest], along)
    table.bad(f"{op}_axes", "axis", [a, [0, -4], False, *rest], along)
    if op != "median":
        table.bad(f"{op}_axes", "axis_twice", [a, [1, 1], False, *rest], along)
    if op in EMPTY_FAILS:
        table.bad(op, "empty", [mx.zeros((0, 2)), False], whole)
    elif op not in table.no_error and not any(row["op"] == op and row.get("error") for row in table.rows):
        table.never_fails(op, "it reduces every axis, whatever the shape and dtype")


def _spread(table, inputs, op):
    whole, along = _call(op, ["ddof"])
    a = inputs.real((3, 4))
    table.case(op, "ddof", [a, False, 1], whole)
    table.case(f"{op}_axis", "ddof", [a, 0, True, 1], along)
    table.case(f"{op}_axes", "ddof", [a, [0, 1], False, 2], along)


def _arg_reduction(table, inputs, op):
    whole, along = _call(op, [])
    a = inputs.real((3, 4))
    for name, value in {
        "f32": a,
        "ties": mx.array([[1.0, 3.0, 3.0], [1.0, 1.0, 0.0]]),
        "i32": inputs.integer((3, 4)),
        "bf16": a.astype(mx.bfloat16),
        "bool": inputs.boolean((3, 4)),
        "transposed": View(a, transpose=[1, 0]),
    }.items():
        table.case(op, name, [value, False], whole)
        table.case(f"{op}_axis", name, [value, 1, False], along)
    table.case(op, "keepdims", [a, True], whole)
    table.case(f"{op}_axis", "keepdims", [a, 0, True], along)
    table.bad(f"{op}_axis", "axis", [a, 2, False], along)
    table.bad(op, "empty", [mx.zeros((0, 2)), False], whole)


def _cumulative(table, inputs, op):
    typed = op in ("cumsum", "cumprod")

    def whole(a, reverse, inclusive, *dtype):
        extra = {"dtype": dtype[0]} if dtype else {}
        return getattr(mx, op)(a, reverse=reverse, inclusive=inclusive, **extra)

    def along(a, axis, reverse, inclusive, *dtype):
        extra = {"dtype": dtype[0]} if dtype else {}
        return getattr(mx, op)(a, axis=axis, reverse=reverse, inclusive=inclusive, **extra)

    rest = [None] if typed else []
    a = inputs.real((3, 4), 0.5, 1.5)
    for name, value in {
        "f32": a,
        "transposed": View(a, transpose=[1, 0]),
        "i32": inputs.integer((3, 4), 1, 4),
        "bf16": a.astype(mx.bfloat16),
        "f16": a.astype(mx.float16),
        "bool": inputs.boolean((3, 4)),
    }.items():
        if table.try_case(op, name, [value, False, True, *rest], whole):
            table.case(f"{op}_axis", name, [value, 1, False, True, *rest], along)
    table.case(op, "reverse", [a, True, True, *rest], whole)
    table.case(op, "exclusive", [a, False, False, *rest], whole)
    table.case(f"{op}_axis", "reverse_exclusive", [a, 0, True, False, *rest], along)
    if typed:
        table.case(op, "dtype", [mx.array([True, True, False]), False, True, mx.float32], whole)
        table.case(f"{op}_axis", "dtype", [inputs.integer((2, 3), 1, 4), -1, False, True, mx.int64], along)
    table.bad(f"{op}_axis", "axis", [a, 2, False, True, *rest], along)
    table.never_fails(op, "it runs over the flattened array, whatever the shape and dtype")


def _sorting(table, inputs):
    a = inputs.real((3, 5))
    ties = mx.array([[3, 1, 3, 2], [0, 0, -1, 5]])
    for op in ("sort", "argsort"):
        function = getattr(mx, op)
        for name, value in {
            "f32": a,
            "transposed": View(a, transpose=[1, 0]),
            "i32_ties": ties,
            "bf16": a.astype(mx.bfloat16),
            "nan_last": mx.array(np.array([2.0, np.nan, 1.0, -np.inf], np.float32)),
        }.items():
            table.case(op, name, [value], lambda x, f=function: f(x, axis=None))
            table.case(f"{op}_axis", name, [value, -1], lambda x, axis, f=function: f(x, axis=axis))
        table.case(f"{op}_axis", "first", [a, 0], lambda x, axis, f=function: f(x, axis=axis))
        table.bad(f"{op}_axis", "axis", [a, 2], lambda x, axis, f=function: f(x, axis=axis))
        table.never_fails(op, "it sorts the flattened array, whatever the shape and dtype")
    for op in ("partition", "argpartition"):
        function = getattr(mx, op)
        for name, value in {"f32": a, "transposed": View(a, transpose=[1, 0]), "i32": inputs.integer((3, 4))}.items():
            table.case(op, name, [value, 2], lambda x, kth, f=function: f(x, kth, axis=None))
            table.case(f"{op}_axis", name, [value, 1, -1], lambda x, kth, axis, f=function: f(x, kth, axis=axis))
        table.bad(op, "kth", [a, 15], lambda x, kth, f=function: f(x, kth, axis=None))
        table.bad(f"{op}_axis", "kth", [a, 5, 1], lambda x, kth, axis, f=function: f(x, kth, axis=axis))
        table.bad(f"{op}_axis", "axis", [a, 0, 2], lambda x, kth, axis, f=function: f(x, kth, axis=axis))
    for name, value in {"f32": a, "i32": inputs.integer((3, 4)), "bf16": a.astype(mx.bfloat16)}.items():
        table.case("topk", name, [value, 2], lambda x, k: mx.topk(x, k, axis=None))
        table.case("topk_axis", name, [value, 2, 1], lambda x, k, axis: mx.topk(x, k, axis=axis))
    table.bad("topk", "k", [a, 16], lambda x, k: mx.topk(x, k, axis=None))
    table.bad("topk_axis", "k", [a, 6, 1], lambda x, k, axis: mx.topk(x, k, axis=axis))
    table.bad("topk_axis", "axis", [a, 1, 2], lambda x, k, axis: mx.topk(x, k, axis=axis))
    row = mx.array([-1.0, 0.0, 0.0, 2.0])
    wanted = mx.array([[-2.0, 0.0], [1.0, 3.0]])
    table.case("searchsorted", "left", [row, wanted, "left"], mx.searchsorted)
    table.case("searchsorted", "right", [row, wanted, "right"], mx.searchsorted)
    table.case("searchsorted", "i32", [mx.array([1, 3, 3, 8]), mx.array([3, 9, 0]), "left"], mx.searchsorted)
    table.bad("searchsorted", "side", [row, wanted, "middle"], mx.searchsorted)
    table.bad("searchsorted", "two_axes", [wanted, row, "left"], mx.searchsorted)


def _softmax(table, inputs):
    def whole(x, precise):
        return mx.softmax(x, axis=None, precise=precise)

    def along(x, axis, precise):
        return mx.softmax(x, axis=axis, precise=precise)

    a = inputs.real((2, 3, 4), -4.0, 4.0)
    masked = mx.array(np.array([[1.0, -np.inf, 2.0], [-np.inf, 0.0, 0.0]], np.float32))
    for name, value in {
        "f32": a,
        "transposed": View(a, transpose=[2, 0, 1]),
        "i32": inputs.integer((3, 4)),
        "bf16": a.astype(mx.bfloat16),
        "f16": a.astype(mx.float16),
        "masked": masked,
    }.items():
        table.case("softmax", name, [value, False], whole)
        table.case("softmax_axis", name, [value, -1, False], along)
        table.case("softmax_axes", name, [value, [0, 1], False], along)
    table.case("softmax", "bf16_precise", [a.astype(mx.bfloat16), True], whole)
    table.case("softmax_axis", "bf16_precise", [a.astype(mx.bfloat16), 1, True], along)
    table.case("softmax_axes", "f16_precise", [a.astype(mx.float16), [2], True], along)
    table.bad("softmax_axis", "axis", [a, 3, False], along)
    table.bad("softmax_axes", "axis", [a, [0, 5], False], along)
    table.never_fails("softmax", "it runs over every axis, whatever the shape and dtype")
