//! Elementwise ops, comparisons, dtypes and copies.

use mlx_rs_core::ops;

use super::{Entry, entries, same_name};

pub const ENTRIES: &[&[Entry]] = &[UNARY, BINARY, OTHERS];

const UNARY: &[Entry] = same_name! { "" ops (0):
    abs negative positive sign square sqrt rsqrt reciprocal floor ceil trunc exp expm1 log log2 log10 log1p sigmoid erf
    erfinv sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians conjugate real imag
    bitwise_invert stop_gradient copy to_fp8 logical_not isfinite isinf isnan isneginf isposinf
};

const BINARY: &[Entry] = same_name! { "" ops (0 1):
    add subtract multiply divide floor_divide remainder power maximum minimum logaddexp arctan2 divmod bitwise_and
    bitwise_or bitwise_xor left_shift right_shift equal not_equal less less_equal greater greater_equal logical_and
    logical_or logical_xor
};

const OTHERS: &[Entry] = entries! {
    "allclose" => ops::allclose(0 1 2 3 4);
    "array_equal" => ops::array_equal(0 1 2);
    "astype" => ops::astype(0 1);
    "clip" => ops::clip(0 1 2);
    "contiguous" => ops::contiguous(0 1);
    "depends" => ops::depends(0 1);
    "from_fp8" => ops::from_fp8(0 1);
    "isclose" => ops::isclose(0 1 2 3 4);
    "nan_to_num" => ops::nan_to_num(0 1 2 3);
    "round" => ops::round(0 1);
    "view" => ops::view(0 1);
    "where" => ops::where_(0 1 2);
};
