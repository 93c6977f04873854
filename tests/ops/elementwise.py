"""Rows of the elementwise operations: one operand, two operands, selections.

Used by make_ops.py; not run on its own.
"""

import mlx.core as mx
import numpy as np

from table import View

# Operations on floats (integers become float32), with the domain of the inputs.
FLOAT_UNARY = {
    "arccos": (-0.95, 0.95),
    "arccosh": (1.05, 4.0),
    "arcsin": (-0.95, 0.95),
    "arcsinh": (-3.0, 3.0),
    "arctan": (-3.0, 3.0),
    "arctanh": (-0.9, 0.9),
    "cos": (-4.0, 4.0),
    "cosh": (-2.0, 2.0),
    "degrees": (-4.0, 4.0),
    "erf": (-2.0, 2.0),
    "erfinv": (-0.9, 0.9),
    "exp": (-3.0, 2.0),
    "expm1": (-1.0, 1.0),
    "log": (0.1, 5.0),
    "log10": (0.1, 5.0),
    "log1p": (-0.5, 3.0),
    "log2": (0.1, 5.0),
    "radians": (-180.0, 180.0),
    "reciprocal": (0.2, 3.0),
    "rsqrt": (0.2, 3.0),
    "sigmoid": (-4.0, 4.0),
    "sin": (-4.0, 4.0),
    "sinh": (-2.0, 2.0),
    "sqrt": (0.0, 4.0),
    "tan": (-1.2, 1.2),
    "tanh": (-3.0, 3.0),
}
# Operations on any dtype.
ANY_UNARY = (
    "abs ceil conjugate floor imag isfinite isinf isnan isneginf isposinf logical_not negative positive real sign "
    "square stop_gradient trunc"
).split()

ARITHMETIC = "add divide divmod floor_divide maximum minimum multiply remainder subtract".split()
COMPARISON = "equal greater greater_equal less less_equal not_equal".split()
LOGICAL = "logical_and logical_or logical_xor".split()
BITWISE = "bitwise_and bitwise_or bitwise_xor".split()


def add(table, inputs):
    _unary(table, inputs)
    _rounding(table, inputs)
    _binary(table, inputs)
    _bitwise(table, inputs)
    _closeness(table, inputs)
    _selection(table, inputs)


def _specials():
    return mx.array(np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan], np.float32))


def _unary(table, inputs):
    for op, (low, high) in FLOAT_UNARY.items():
        function = getattr(mx, op)
        ints = mx.array([1, 2, 3] if low > 0 else [0, 1, 0])
        ok = [
            table.try_case(op, "f32", [inputs.real((2, 3), low, high)], function),
            table.try_case(op, "f32_transposed", [View(inputs.real((3, 4), low, high), transpose=[1, 0])], function),
            table.try_case(op, "f32_stepped", [View(inputs.real((2, 6), low, high), step=2)], function),
            table.try_case(op, "f32_scalar", [inputs.real((), low, high)], function),
            table.try_case(op, "f32_specials", [_specials()], function),
            table.try_case(op, "f16", [inputs.real((5,), low, high, mx.float16)], function),
            table.try_case(op, "bf16", [inputs.real((5,), low, high, mx.bfloat16)], function),
            table.try_case(op, "i32", [ints], function),
            table.try_case(op, "c64", [inputs.complex((4,))], function),
        ]
        if all(ok):
            table.never_fails(op, "elementwise on every shape and dtype")
    for op in ANY_UNARY:
        function = getattr(mx, op)
        ok = [
            table.try_case(op, "f32", [inputs.real((2, 3))], function),
            table.try_case(op, "f32_transposed", [View(inputs.real((3, 4)), transpose=[1, 0])], function),
            table.try_case(op, "f32_specials", [_specials()], function),
            table.try_case(op, "f16", [inputs.real((5,), dtype=mx.float16)], function),
            table.try_case(op, "bf16", [inputs.real((5,), dtype=mx.bfloat16)], function),
            table.try_case(op, "i32", [inputs.integer((5,))], function),
            table.try_case(op, "u8", [inputs.integer((5,), 0, 200, mx.uint8)], function),
            table.try_case(op, "bool", [inputs.boolean((6,))], function),
            table.try_case(op, "c64", [inputs.complex((4,))], function),
        ]
        if all(ok):
            table.never_fails(op, "elementwise on every shape and dtype")


def _rounding(table, inputs):
    halves = mx.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.14159])
    table.case("round", "f32", [halves, 0], mx.round)
    table.case("round", "f32_two_decimals", [inputs.real((2, 3)), 2], mx.round)
    table.case("round", "bf16", [inputs.real((4,), dtype=mx.bfloat16), 1], mx.round)
    table.case("round", "i32_tens", [inputs.integer((4,), -99, 99), -1], mx.round)
    table.case("round", "c64", [inputs.complex((3,)), 1], mx.round)
    table.never_fails("round", "elementwise on every shape and dtype")


def _binary(table, inputs):
    for op in ARITHMETIC + COMPARISON + LOGICAL + ["logaddexp", "arctan2", "power"]:
        function = getattr(mx, op)
        low = 0.3 if op in ("power", "divide", "divmod", "floor_divide", "remainder") else -2.0
        a, b = inputs.real((2, 3), low), inputs.real((2, 3), low)
        table.case(op, "f32", [a, b], function)
        table.case(op, "f32_broadcast", [inputs.real((3, 1), low), inputs.real((1, 4), low)], function)
        table.case(op, "f32_scalar", [a, inputs.real((), low)], function)
        turned = View(inputs.real((3, 2), low), transpose=[1, 0])
        table.case(op, "f32_transposed", [turned, b], function)
        table.case(op, "f32_stepped", [a, View(inputs.real((2, 6), low), step=2)], function)
        table.try_case(op, "i32", [inputs.integer((5,), 1, 5), inputs.integer((5,), 1, 4)], function)
        table.try_case(op, "i32_f32", [inputs.integer((3,), 1, 5), inputs.real((3,), low)], function)
        table.try_case(op, "f16", [a.astype(mx.float16), b.astype(mx.float16)], function)
        table.try_case(op, "bf16", [a.astype(mx.bfloat16), b.astype(mx.bfloat16)], function)
        table.try_case(op, "bf16_f32", [a.astype(mx.bfloat16), b], function)
        table.try_case(op, "u8_i8", [mx.array([1, 2, 7], mx.uint8), mx.array([3, -2, 5], mx.int8)], function)
        table.try_case(op, "bool", [inputs.boolean((4,)), mx.array([True, True, True, True])], function)
        table.try_case(op, "c64", [inputs.complex((3,)), inputs.complex((3,))], function)
        table.bad(op, "shapes", [inputs.real((3,)), inputs.real((4,))], function)


def _bitwise(table, inputs):
    for op in BITWISE + ["left_shift", "right_shift"]:
        function = getattr(mx, op)
        high = 6 if op.endswith("shift") else 100
        table.case(op, "i32", [inputs.integer((4,), 0, 99), inputs.integer((4,), 0, high)], function)
        table.case(op, "u8", [inputs.integer((4,), 0, 99, mx.uint8), inputs.integer((4,), 0, 6, mx.uint8)], function)
        table.case(op, "i64_broadcast", [inputs.integer((3, 1), 0, 99, mx.int64), mx.array([1, 2], mx.int64)], function)
        if not op.endswith("shift"):
            table.case(op, "bool", [inputs.boolean((6,)), inputs.boolean((6,))], function)
        table.bad(op, "float", [inputs.real((3,)), inputs.real((3,))], function)
        table.bad(op, "shapes", [mx.array([1, 2, 3]), mx.array([1, 2])], function)
    table.case("bitwise_invert", "i32", [inputs.integer((4,))], mx.bitwise_invert)
    table.case("bitwise_invert", "u8", [inputs.integer((4,), 0, 200, mx.uint8)], mx.bitwise_invert)
    table.case("bitwise_invert", "bool", [inputs.boolean((4,))], mx.bitwise_invert)
    table.bad("bitwise_invert", "float", [inputs.real((3,))], mx.bitwise_invert)


def _closeness(table, inputs):
    a = mx.array(np.array([1.0, 2.0, np.nan, np.inf, -np.inf], np.float32))
    b = mx.array(np.array([1.0 + 1e-6, 2.1, np.nan, np.inf, np.inf], np.float32))

    def close(x, y, rtol, atol, equal_nan):
        return mx.isclose(x, y, rtol, atol, equal_nan=equal_nan)

    def all_close(x, y, rtol, atol, equal_nan):
        return mx.allclose(x, y, rtol, atol, equal_nan=equal_nan)

    for op, function in (("isclose", close), ("allclose", all_close)):
        table.case(op, "f32", [a, b, 1e-5, 1e-8, False], function)
        table.case(op, "equal_nan", [a[:3], b[:3], 1e-5, 1e-8, True], function)
        table.case(op, "loose", [a[:2], b[:2], 0.1, 0.0, False], function)
        table.case(op, "i32", [mx.array([1, 2]), mx.array([1, 2]), 0.0, 0.0, False], function)
        table.case(op, "broadcast", [inputs.real((2, 1)), inputs.real((1, 3)), 0.5, 0.5, False], function)
        table.bad(op, "shapes", [inputs.real((3,)), inputs.real((4,)), 1e-5, 1e-8, False], function)

    def array_equal(x, y, equal_nan):
        return mx.array_equal(x, y, equal_nan=equal_nan)

    table.case("array_equal", "f32", [a, a, False], array_equal)
    table.case("array_equal", "equal_nan", [a, a, True], array_equal)
    table.case("array_equal", "shapes_differ", [a[:2], b, False], array_equal)
    table.case("array_equal", "i32_f32", [mx.array([1, 2]), mx.array([1.0, 2.0]), False], array_equal)
    table.never_fails("array_equal", "unequal shapes are an answer, not an error")


def _selection(table, inputs):
    a, b = inputs.real((2, 3)), inputs.real((2, 3))
    table.case("where", "f32", [inputs.boolean((2, 3)), a, b], mx.where)
    table.case("where", "broadcast", [inputs.boolean((2, 1)), a, inputs.real(())], mx.where)
    table.case("where", "promotes", [inputs.boolean((3,)), mx.array([1, 2, 3]), inputs.real((3,))], mx.where)
    table.case("where", "i32_condition", [mx.array([0, 2, 0]), mx.array([1, 2, 3]), mx.array([4, 5, 6])], mx.where)
    table.case("where", "transposed", [View(inputs.boolean((3, 2)), transpose=[1, 0]), a, b], mx.where)
    table.bad("where", "shapes", [inputs.boolean((2,)), a, b], mx.where)
    table.case("clip", "both", [a, mx.array(-0.5), mx.array(0.5)], mx.clip)
    table.case("clip", "low", [a, mx.array(-0.5), None], mx.clip)
    table.case("clip", "high_broadcast", [a, None, inputs.real((3,))], mx.clip)
    table.case("clip", "i32", [inputs.integer((5,)), mx.array(-2), mx.array(3)], mx.clip)
    table.case("clip", "bf16", [a.astype(mx.bfloat16), mx.array(-0.5, mx.bfloat16), None], mx.clip)
    table.bad("clip", "no_bounds", [a, None, None], mx.clip)
    table.bad("clip", "shapes", [a, inputs.real((4,)), None], mx.clip)
    specials = _specials()

    def replace(x, nan, posinf, neginf):
        return mx.nan_to_num(x, nan, posinf=posinf, neginf=neginf)

    table.case("nan_to_num", "defaults", [specials, 0.0, None, None], replace)
    table.case("nan_to_num", "given", [specials, 7.0, 8.0, -9.0], replace)
    table.case("nan_to_num", "bf16", [specials.astype(mx.bfloat16), 1.0, None, None], replace)
    table.case("nan_to_num", "i32", [inputs.integer((3,)), 0.0, None, None], replace)
    table.never_fails("nan_to_num", "elementwise on every shape and dtype")
