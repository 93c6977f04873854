//! The arguments of a row, fetched by the type that a function wants.

use mlx_rs_core::{Array, Dtype, fft};

/// One argument of the C function.
#[derive(Debug)]
pub enum Value {
    Array(Array),
    Arrays(Vec<Array>),
    Ints(Vec<i32>),
    /// As i64 and, where it fits, as the one entry of a list of i32.
    Int([i64; 1], Option<[i32; 1]>),
    Float(f64),
    Bool(bool),
    Text(String),
    Dtype(Dtype),
    Absent,
}

/// The arguments in the order of the C function.
pub struct Args(pub Vec<Value>);

impl Args {
    /// Argument `index` as whatever the caller takes.
    pub fn get<'a, T: FromValue<'a>>(&'a self, index: usize) -> T {
        let value = self.0.get(index).unwrap_or_else(|| panic!("there is no argument {index}"));
        T::from_value(value).unwrap_or_else(|| panic!("argument {index} is {value:?}, the function wants another"))
    }

    /// `N` arguments from `index` on, as one entry per axis.
    pub fn axes<const N: usize>(&self, index: usize) -> [i32; N] {
        std::array::from_fn(|axis| self.get(index + axis))
    }
}

/// A Rust type that an argument can be fetched as.
pub trait FromValue<'a>: Sized {
    fn from_value(value: &'a Value) -> Option<Self>;
}

macro_rules! from_value {
    ($($kind:ty: $pattern:pat => $result:expr;)*) => {$(
        impl<'a> FromValue<'a> for $kind {
            fn from_value(value: &'a Value) -> Option<Self> {
                match value {
                    $pattern => $result,
                    _ => None,
                }
            }
        }
    )*};
}

from_value! {
    &'a Array: Value::Array(array) => Some(array);
    &'a [Array]: Value::Arrays(arrays) => Some(arrays);
    i32: Value::Int(_, small) => small.map(|[value]| value);
    u64: Value::Int([value], _) => u64::try_from(*value).ok();
    usize: Value::Int([value], _) => usize::try_from(*value).ok();
    f64: Value::Float(value) => Some(*value);
    f32: Value::Float(value) => Some(*value as f32);
    bool: Value::Bool(value) => Some(*value);
    &'a str: Value::Text(text) => Some(text);
    Dtype: Value::Dtype(dtype) => Some(*dtype);
    Vec<i64>: Value::Ints(values) => Some(values.iter().map(|&value| i64::from(value)).collect());
    fft::Norm: Value::Text(name) => match name.as_str() {
        "backward" => Some(fft::Norm::Backward),
        "ortho" => Some(fft::Norm::Ortho),
        "forward" => Some(fft::Norm::Forward),
        _ => None,
    };
}

impl<'a> FromValue<'a> for &'a [i32] {
    /// A list, or a single int as a list of one.
    fn from_value(value: &'a Value) -> Option<Self> {
        match value {
            Value::Ints(values) => Some(values),
            Value::Int(_, small) => small.as_ref().map(|one| &one[..]),
            _ => None,
        }
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Option<T> {
    fn from_value(value: &'a Value) -> Option<Self> {
        match value {
            Value::Absent => Some(None),
            present => T::from_value(present).map(Some),
        }
    }
}
