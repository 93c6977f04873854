//! The element types of GGUF tensors and how many bytes a block of each takes.

use std::fmt;

/// Element type of a tensor in a GGUF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GgmlType {
    /// 32-bit floats.
    F32,
    /// 16-bit IEEE floats.
    F16,
    /// bfloat16.
    Bf16,
    /// 32 signed 4-bit values with one f16 scale.
    Q4_0,
    /// 32 unsigned 4-bit values with an f16 scale and an f16 minimum.
    Q4_1,
    /// 32 signed 8-bit values with one f16 scale.
    Q8_0,
    /// A type that this crate can measure but not read: its name, block length and bytes per block.
    Other(&'static str, u64, u64),
    /// A type number that is not known here.
    Unknown(u32),
}

/// Types that can be bounds-checked although they cannot be read: number, name, block length, block bytes.
const MEASURED: &[(u32, &str, u64, u64)] = &[
    (6, "Q5_0", 32, 22),
    (7, "Q5_1", 32, 24),
    (9, "Q8_1", 32, 36),
    (10, "Q2_K", 256, 84),
    (11, "Q3_K", 256, 110),
    (12, "Q4_K", 256, 144),
    (13, "Q5_K", 256, 176),
    (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292),
    (20, "IQ4_NL", 32, 18),
    (23, "IQ4_XS", 256, 136),
    (24, "I8", 1, 1),
    (25, "I16", 1, 2),
    (26, "I32", 1, 4),
    (27, "I64", 1, 8),
    (28, "F64", 1, 8),
];

impl GgmlType {
    /// The readable types, as an error message lists them.
    pub const READABLE: &'static str = "F32, F16, BF16, Q4_0, Q4_1 or Q8_0";

    /// The type of a type number in the file.
    pub fn from_id(id: u32) -> Self {
        match id {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            8 => Self::Q8_0,
            30 => Self::Bf16,
            other => MEASURED
                .iter()
                .find(|entry| entry.0 == other)
                .map_or(Self::Unknown(other), |&(_, name, length, bytes)| Self::Other(name, length, bytes)),
        }
    }

    /// Elements per block and bytes per block, where known.
    pub fn block(self) -> Option<(u64, u64)> {
        match self {
            Self::F32 => Some((1, 4)),
            Self::F16 | Self::Bf16 => Some((1, 2)),
            Self::Q4_0 => Some((32, 18)),
            Self::Q4_1 => Some((32, 20)),
            Self::Q8_0 => Some((32, 34)),
            Self::Other(_, length, bytes) => Some((length, bytes)),
            Self::Unknown(_) => None,
        }
    }

    /// Bits and group size of the MLX affine form, for the quantised types that have one.
    pub fn affine(self) -> Option<(u32, usize)> {
        match self {
            Self::Q4_0 | Self::Q4_1 => Some((4, 32)),
            Self::Q8_0 => Some((8, 32)),
            _ => None,
        }
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F32 => f.write_str("F32"),
            Self::F16 => f.write_str("F16"),
            Self::Bf16 => f.write_str("BF16"),
            Self::Q4_0 => f.write_str("Q4_0"),
            Self::Q4_1 => f.write_str("Q4_1"),
            Self::Q8_0 => f.write_str("Q8_0"),
            Self::Other(name, ..) => f.write_str(name),
            Self::Unknown(id) => write!(f, "type number {id}"),
        }
    }
}
