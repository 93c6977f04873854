"""The table of parity rows: arguments checked against the C signature, results taken from Python MLX.

Used by make_ops.py; not run on its own.
"""

import math

import mlx.core as mx
import numpy as np

import signatures

EXACT = (0.0, 0.0)
# Tolerances (rtol, atol) by the least exact dtype of a row. Python and Rust run the same libmlx, so what is left is another
# machine's libm and, for products, another BLAS.
BY_DTYPE = {
    mx.float64: (1e-12, 1e-14),
    mx.float32: (2e-6, 1e-6),
    mx.complex64: (2e-6, 1e-6),
    mx.float16: (2e-3, 1e-3),
    mx.bfloat16: (1e-2, 1e-2),
}
PRODUCT = (1e-5, 1e-5)
SOLVED = (1e-4, 1e-4)


class View:
    """A strided view of a stored array: `transpose` with axes, or every second element of the last axis."""

    def __init__(self, array, transpose=None, step=None):
        self.array, self.transpose, self.step = array, transpose, step

    def apply(self):
        array = mx.array(self.array)
        if self.transpose is not None:
            return mx.transpose(array, self.transpose)
        return array[..., :: self.step]

    def as_json(self):
        if self.transpose is not None:
            return {"transpose": self.transpose}
        return {"step": self.step}


def dtype_name(dtype):
    return str(dtype).removeprefix("mlx.core.").rstrip("_")


def number(value):
    """A float as JSON can hold it: infinities are the strings "inf" and "-inf"."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(value)


class Table:
    def __init__(self):
        self.rows = []
        self.arrays = {}
        self.signatures = signatures.read_list()
        self.no_error = {}
        self.unsupported = {}
        self.uncovered = {}
        self._inputs = {}
        self._names = set()

    def case(self, op, case, args, function, tol=None):
        """A row whose result is `function(*args)`, args in the order of the C function."""
        encoded = self._begin(op, case, args)
        results = function(*[_value(arg) for arg in args])
        results = list(results) if isinstance(results, (list, tuple)) else [results]
        mx.eval(results)
        keys = [f"{op}.{case}.{i}" for i in range(len(results))]
        for key, result in zip(keys, results):
            self.arrays[key] = mx.contiguous(result)
        rtol, atol = tol or _loosest(results)
        self.rows.append(
            {
                "op": op,
                "case": case,
                "args": encoded,
                "outputs": keys,
                "dtypes": [dtype_name(result.dtype) for result in results],
                "rtol": rtol,
                "atol": atol,
            }
        )

    def bad(self, op, case, args, function):
        """A row that must fail; `at` says whether the call itself raises or only the evaluation."""
        message = failure(function, [_value(arg) for arg in args])
        if message is None:
            raise SystemExit(f"{op} {case}: Python MLX does not raise")
        encoded = self._begin(op, case, args)
        self.rows.append({"op": op, "case": case, "args": encoded, "error": True, **message})

    def bad_in_c(self, op, case, args, message):
        """A row that must fail in a way that Python cannot ask for; the message is the C++ function's own."""

        def refuse(*_):
            raise ValueError(message)

        self.bad(op, case, args, refuse)

    def try_case(self, op, case, args, function, tol=None):
        """A row of results, or a row of failure when Python MLX refuses; returns whether it gave results."""
        if failure(function, [_value(arg) for arg in args]) is None:
            self.case(op, case, args, function, tol)
            return True
        self.bad(op, case, args, function)
        return False

    def never_fails(self, ops, reason):
        for op in ops.split():
            self.no_error[op] = reason

    def _begin(self, op, case, args):
        kinds = self.signatures[op]
        if len(kinds) != len(args):
            raise SystemExit(f"{op} {case}: {len(args)} arguments, the C function takes {kinds}")
        if (op, case) in self._names:
            raise SystemExit(f"{op} {case}: there is such a row already")
        self._names.add((op, case))
        return [self._encode(f"{op} {case}", kind, arg) for kind, arg in zip(kinds, args)]

    def _encode(self, where, kind, arg):
        if arg is None and kind.endswith("?"):
            return None
        base = kind.rstrip("?")
        if base == "array" and isinstance(arg, View):
            return {"array": self._store(arg.array), "view": arg.as_json()}
        if base == "array" and isinstance(arg, (mx.array, np.ndarray)):
            return {"array": self._store(arg)}
        if base == "arrays" and isinstance(arg, list):
            return {"arrays": [self._store(item) for item in arg]}
        if base == "ints" and isinstance(arg, list):
            return {"ints": arg}
        if base == "int" and type(arg) is int:
            return {"int": arg}
        if base == "float" and type(arg) in (int, float):
            return {"float": number(arg)}
        if base == "bool" and type(arg) is bool:
            return {"bool": arg}
        if base in ("str", "norm") and isinstance(arg, str):
            return {"str": arg}
        if base == "dtype" and isinstance(arg, mx.Dtype):
            return {"dtype": dtype_name(arg)}
        raise SystemExit(f"{where}: {arg!r} is no {kind}")

    def _store(self, array):
        array = mx.contiguous(mx.array(array))
        mx.eval(array)
        raw = array.view(mx.uint8) if array.ndim else array.reshape(1).view(mx.uint8)
        identity = (array.dtype, array.shape, bytes(memoryview(raw)))
        if identity not in self._inputs:
            key = f"in.{len(self._inputs)}"
            self._inputs[identity] = key
            self.arrays[key] = array
        return self._inputs[identity]


def _value(arg):
    if isinstance(arg, View):
        return arg.apply()
    if isinstance(arg, np.ndarray):
        return mx.array(arg)
    if isinstance(arg, list) and arg and isinstance(arg[0], (mx.array, np.ndarray)):
        return [mx.array(item) for item in arg]
    return arg


def failure(function, args):
    """{"message", "at"} of the exception that a call or its evaluation raises, or None."""
    try:
        results = function(*args)
    except (ValueError, RuntimeError, IndexError) as error:
        return {"message": str(error), "at": "call"}
    try:
        mx.eval(results)
    except (ValueError, RuntimeError) as error:
        return {"message": str(error), "at": "eval"}
    return None


def _loosest(results):
    pairs = [BY_DTYPE.get(result.dtype, EXACT) for result in results]
    return max(pairs)


class Inputs:
    """Seeded small inputs of any dtype."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def real(self, shape, low=-2.0, high=2.0, dtype=mx.float32):
        return mx.array(self.rng.uniform(low, high, shape).astype(np.float32)).astype(dtype)

    def integer(self, shape, low=-9, high=10, dtype=mx.int32):
        return mx.array(self.rng.integers(low, high, shape).astype(np.int64), dtype)

    def boolean(self, shape):
        return mx.array(self.rng.integers(0, 2, shape).astype(bool))

    def complex(self, shape, high=1.5):
        parts = self.rng.uniform(-high, high, (2, *shape)).astype(np.float32)
        return mx.array((parts[0] + 1j * parts[1]).astype(np.complex64))
