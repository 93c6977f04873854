//! Element types: [`Dtype`] on MLX's side, [`Element`] on Rust's.

use std::fmt;

use half::{bf16, f16};
use mlx_sys as sys;

/// MLX's element types, named as in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Dtype {
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    Float32,
    Float64,
    Bfloat16,
    Complex64,
}

impl Dtype {
    /// All dtypes, in MLX's own order.
    pub const ALL: [Dtype; 14] = [
        Dtype::Bool,
        Dtype::Uint8,
        Dtype::Uint16,
        Dtype::Uint32,
        Dtype::Uint64,
        Dtype::Int8,
        Dtype::Int16,
        Dtype::Int32,
        Dtype::Int64,
        Dtype::Float16,
        Dtype::Float32,
        Dtype::Float64,
        Dtype::Bfloat16,
        Dtype::Complex64,
    ];

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            Dtype::Bool | Dtype::Uint8 | Dtype::Int8 => 1,
            Dtype::Uint16 | Dtype::Int16 | Dtype::Float16 | Dtype::Bfloat16 => 2,
            Dtype::Uint32 | Dtype::Int32 | Dtype::Float32 => 4,
            Dtype::Uint64 | Dtype::Int64 | Dtype::Float64 | Dtype::Complex64 => 8,
        }
    }

    /// Whether this is a real floating-point type.
    pub fn is_floating(self) -> bool {
        matches!(self, Dtype::Float16 | Dtype::Float32 | Dtype::Float64 | Dtype::Bfloat16)
    }

    /// The name as Python MLX prints it, without the module: `float32`, `bool_`.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::Bool => "bool_",
            Dtype::Uint8 => "uint8",
            Dtype::Uint16 => "uint16",
            Dtype::Uint32 => "uint32",
            Dtype::Uint64 => "uint64",
            Dtype::Int8 => "int8",
            Dtype::Int16 => "int16",
            Dtype::Int32 => "int32",
            Dtype::Int64 => "int64",
            Dtype::Float16 => "float16",
            Dtype::Float32 => "float32",
            Dtype::Float64 => "float64",
            Dtype::Bfloat16 => "bfloat16",
            Dtype::Complex64 => "complex64",
        }
    }

    /// The dtype of that name; `bool` is accepted beside `bool_`.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "bool" {
            return Some(Dtype::Bool);
        }
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    pub(crate) fn raw(self) -> sys::mlx_dtype {
        match self {
            Dtype::Bool => sys::MLX_BOOL,
            Dtype::Uint8 => sys::MLX_UINT8,
            Dtype::Uint16 => sys::MLX_UINT16,
            Dtype::Uint32 => sys::MLX_UINT32,
            Dtype::Uint64 => sys::MLX_UINT64,
            Dtype::Int8 => sys::MLX_INT8,
            Dtype::Int16 => sys::MLX_INT16,
            Dtype::Int32 => sys::MLX_INT32,
            Dtype::Int64 => sys::MLX_INT64,
            Dtype::Float16 => sys::MLX_FLOAT16,
            Dtype::Float32 => sys::MLX_FLOAT32,
            Dtype::Float64 => sys::MLX_FLOAT64,
            Dtype::Bfloat16 => sys::MLX_BFLOAT16,
            Dtype::Complex64 => sys::MLX_COMPLEX64,
        }
    }

    pub(crate) fn from_raw(raw: sys::mlx_dtype) -> Self {
        Self::ALL.into_iter().find(|dtype| dtype.raw() == raw).unwrap_or(Dtype::Float32)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A complex number as MLX stores it: two `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C)]
pub struct Complex64 {
    /// Real part.
    pub re: f32,
    /// Imaginary part.
    pub im: f32,
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type with the same bytes as an MLX dtype. Implemented for the fourteen of them and for nothing else.
pub trait Element: sealed::Sealed + Copy + 'static {
    /// The MLX dtype with these bytes.
    const DTYPE: Dtype;

    /// Reads one element from its bytes.
    ///
    /// # Safety
    /// `bytes` points to at least `Self::DTYPE.size()` readable bytes; alignment is not needed.
    #[doc(hidden)]
    unsafe fn read(bytes: *const u8) -> Self;
}

macro_rules! element {
    ($($rust:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: Dtype = Dtype::$dtype;
            unsafe fn read(bytes: *const u8) -> Self {
                // SAFETY: the caller gives enough bytes, and every bit pattern is a value of this type.
                unsafe { bytes.cast::<Self>().read_unaligned() }
            }
        }
    )*};
}

element! {
    u8 => Uint8, u16 => Uint16, u32 => Uint32, u64 => Uint64,
    i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    f16 => Float16, bf16 => Bfloat16, f32 => Float32, f64 => Float64,
    Complex64 => Complex64,
}

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: Dtype = Dtype::Bool;
    unsafe fn read(bytes: *const u8) -> Self {
        // A byte other than 0 and 1 (possible through `view`) must not become a Rust bool unread.
        // SAFETY: the caller gives at least one byte.
        unsafe { bytes.read() != 0 }
    }
}
