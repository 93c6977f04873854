//! How an op becomes a C call: `op!("sum", mlx_sum_axes(a, [axes], keepdims))`.
//!
//! The macros put the result slot in front and the stream behind, turn each argument into its C form by its type, and
//! turn `[slice]` into a pointer and a length.

use std::ffi::{CStr, c_char};

use mlx_sys as sys;

use crate::array::{Array, element_count};
use crate::element::Dtype;
use crate::error::{Error, Result};
use crate::ffi::{self, ArrayVector};

/// A Rust argument and what C takes in its place.
pub(crate) trait Arg {
    type C;
    fn c(self) -> Self::C;
}

macro_rules! same_in_c {
    ($($kind:ty),*) => {$(
        impl Arg for $kind {
            type C = $kind;
            fn c(self) -> $kind {
                self
            }
        }
    )*};
}

same_in_c!(bool, i32, u64, usize, f32, f64, sys::mlx_fft_norm, *const i32);

impl Arg for &Array {
    type C = sys::mlx_array;
    fn c(self) -> sys::mlx_array {
        self.raw()
    }
}

impl Arg for Option<&Array> {
    type C = sys::mlx_array;
    fn c(self) -> sys::mlx_array {
        ffi::optional(self)
    }
}

impl Arg for Dtype {
    type C = sys::mlx_dtype;
    fn c(self) -> sys::mlx_dtype {
        self.raw()
    }
}

impl Arg for Option<Dtype> {
    type C = sys::mlx_optional_dtype;
    fn c(self) -> sys::mlx_optional_dtype {
        ffi::optional_dtype(self)
    }
}

impl Arg for Option<i32> {
    type C = sys::mlx_optional_int;
    fn c(self) -> sys::mlx_optional_int {
        ffi::optional_int(self)
    }
}

impl Arg for Option<f32> {
    type C = sys::mlx_optional_float;
    fn c(self) -> sys::mlx_optional_float {
        ffi::optional_float(self)
    }
}

impl Arg for &CStr {
    type C = *const c_char;
    fn c(self) -> *const c_char {
        self.as_ptr()
    }
}

impl Arg for &ArrayVector {
    type C = sys::mlx_vector_array;
    fn c(self) -> sys::mlx_vector_array {
        self.raw()
    }
}

/// `splice!(function (done) (tail) arguments)`: moves one argument after the other, in its C form, into `done`.
macro_rules! splice {
    ($function:ident ($($done:tt)*) ($($tail:tt)*)) => { mlx_sys::$function($($done)* $($tail)*) };
    ($function:ident ($($done:tt)*) ($($tail:tt)*) [$slice:expr] $(, $($rest:tt)*)?) => {
        $crate::ops::call::splice!(
            $function ($($done)* $slice.as_ptr(), $slice.len(),) ($($tail)*) $($($rest)*)?
        )
    };
    ($function:ident ($($done:tt)*) ($($tail:tt)*) $value:expr $(, $($rest:tt)*)?) => {
        $crate::ops::call::splice!(
            $function ($($done)* $crate::ops::call::Arg::c($value),) ($($tail)*) $($($rest)*)?
        )
    };
}
pub(crate) use splice;

/// One array out, on the current stream.
macro_rules! op {
    ($name:expr, $function:ident($($args:tt)*)) => {
        $crate::ffi::array_op($name, |out, stream| {
            // SAFETY: the slot and the stream live through the call; every handle, slice and text among the
            // arguments is borrowed from a live owner; C keeps none of the pointers.
            unsafe { $crate::ops::call::splice!($function (out,) (stream) $($args)*) }
        })
        .and_then($crate::ops::call::unless_empty)
    };
}
pub(crate) use op;

/// Two arrays out, on the current stream.
macro_rules! pair {
    ($name:expr, $function:ident($($args:tt)*)) => {
        $crate::ffi::pair_op($name, |first, second, stream| {
            // SAFETY: as in `op!`, with two slots.
            unsafe { $crate::ops::call::splice!($function (first, second,) (stream) $($args)*) }
        })
        .and_then(|(first, second)| {
            Ok(($crate::ops::call::unless_empty(first)?, $crate::ops::call::unless_empty(second)?))
        })
    };
}
pub(crate) use pair;

/// A list of arrays out, on the current stream.
macro_rules! list {
    ($name:expr, $function:ident($($args:tt)*)) => {
        $crate::ffi::list_op($name, |out, stream| {
            // SAFETY: as in `op!`, with a vector as the slot.
            unsafe { $crate::ops::call::splice!($function (out,) (stream) $($args)*) }
        })
        .and_then($crate::ops::call::list_unless_empty)
    };
}
pub(crate) use list;

/// A result without elements is made without the op: MLX 0.32.2 ends the process (a division by zero) when it runs
/// `sort`, `cumsum`, `inv` and others on empty arrays, though it builds them with the right shape and dtype.
pub(crate) fn unless_empty(result: Array) -> Result<Array> {
    if result.size() != 0 {
        return Ok(result);
    }
    let (shape, dtype) = (result.shape(), result.dtype());
    ffi::array_op("zeros", |out, stream| {
        // SAFETY: as in `op!`.
        unsafe { sys::mlx_zeros(out, shape.as_ptr(), shape.len(), dtype.raw(), stream) }
    })
}

/// [`unless_empty`] for each of a list.
pub(crate) fn list_unless_empty(results: Vec<Array>) -> Result<Vec<Array>> {
    results.into_iter().map(unless_empty).collect()
}

/// A C vector with a new reference to each array, owned or borrowed.
pub(crate) fn vector<A: std::borrow::Borrow<Array>>(arrays: &[A]) -> Result<ArrayVector> {
    let references: Vec<Array> = arrays.iter().map(|array| array.borrow().clone()).collect();
    ArrayVector::from_slice(&references)
}

/// Refuses a shape with a negative dimension or more elements than memory can count: C would wrap or take it.
pub(crate) fn check_shape(op: &'static str, shape: &[i32]) -> Result<()> {
    element_count(op, shape).map(|_| ())
}

/// Refuses values below `least`, which C would divide by or loop over.
pub(crate) fn at_least(op: &'static str, what: &str, values: &[i32], least: i32) -> Result<()> {
    match values.iter().find(|&&value| value < least) {
        None => Ok(()),
        Some(value) => Err(Error::argument(op, format!("{what} is {value}, wanted at least {least}"))),
    }
}

/// Refuses a given value below 1, by which C would divide.
pub(crate) fn positive(op: &'static str, what: &str, value: Option<i32>) -> Result<()> {
    at_least(op, what, value.as_slice(), 1)
}

/// Refuses lists of different lengths, which C would read past the shorter one.
pub(crate) fn same_length(op: &'static str, what: &str, left: usize, right: usize) -> Result<()> {
    if left == right {
        return Ok(());
    }
    Err(Error::argument(op, format!("{what}: found {left} and {right} entries, wanted the same number")))
}
