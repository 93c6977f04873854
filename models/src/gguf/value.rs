//! Metadata values.

/// One metadata value. Integers of all widths are widened, floats keep their own precision.
#[derive(Debug, Clone, PartialEq)]
pub enum MetaValue {
    /// u8, u16, u32 and u64.
    Uint(u64),
    /// i8, i16, i32 and i64.
    Int(i64),
    /// f32.
    F32(f32),
    /// f64.
    F64(f64),
    /// A boolean.
    Bool(bool),
    /// UTF-8 text.
    Str(String),
    /// An array of one kind of value.
    Array(MetaArray),
}

/// An array in the metadata.
#[derive(Debug, Clone, PartialEq)]
pub enum MetaArray {
    /// u8, u16, u32 and u64.
    Uint(Vec<u64>),
    /// i8, i16, i32 and i64.
    Int(Vec<i64>),
    /// f32.
    F32(Vec<f32>),
    /// f64.
    F64(Vec<f64>),
    /// Booleans.
    Bool(Vec<bool>),
    /// UTF-8 texts.
    Str(Vec<String>),
    /// Arrays of arrays.
    Nested(Vec<MetaArray>),
}

impl MetaArray {
    /// Number of items.
    pub fn len(&self) -> usize {
        match self {
            Self::Uint(items) => items.len(),
            Self::Int(items) => items.len(),
            Self::F32(items) => items.len(),
            Self::F64(items) => items.len(),
            Self::Bool(items) => items.len(),
            Self::Str(items) => items.len(),
            Self::Nested(items) => items.len(),
        }
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl MetaValue {
    /// A short description for the `found` part of an error.
    pub fn describe(&self) -> String {
        match self {
            Self::Uint(value) => format!("the integer {value}"),
            Self::Int(value) => format!("the integer {value}"),
            Self::F32(value) => format!("the number {value}"),
            Self::F64(value) => format!("the number {value}"),
            Self::Bool(value) => format!("the boolean {value}"),
            Self::Str(value) => format!("the string \"{}\"", value.chars().take(60).collect::<String>()),
            Self::Array(array) => format!("an array of {} items", array.len()),
        }
    }
}
