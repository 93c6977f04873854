//! Tensor bytes → host numbers. Quantised blocks become the parts of MLX's affine form without any loss.

use half::{bf16, f16};

use super::header::{GgufFile, TensorInfo, tensor_data};
use super::permute::unpermute_rows;
use super::types::GgmlType;
use crate::error::{ModelError, Result};

/// A tensor in host memory.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    /// The name it has in its file.
    pub name: String,
    /// Row-major shape of the matrix that it stands for, `[out, in]`, also when it is packed.
    pub shape: Vec<usize>,
    /// Its numbers.
    pub data: TensorData,
}

/// The numbers of a tensor, as dense floats or in MLX's affine form.
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 16-bit IEEE floats.
    F16(Vec<f16>),
    /// bfloat16.
    Bf16(Vec<bf16>),
    /// Quantised groups.
    Affine(AffineParts),
}

/// MLX's affine quantisation: `w = scale · q + bias` over groups along the last axis.
#[derive(Debug, Clone, PartialEq)]
pub struct AffineParts {
    /// Packed values, `[out, in · bits / 32]`, the first value in the lowest bits.
    pub weight: Vec<u32>,
    /// One scale a group, `[out, in / group_size]`.
    pub scales: Vec<f16>,
    /// One bias a group, `[out, in / group_size]`.
    pub biases: Vec<f16>,
    /// Bits per value, 4 or 8.
    pub bits: u32,
    /// Values per group, 32.
    pub group_size: usize,
}

impl AffineParts {
    /// The values that the parts stand for, in row-major order, computed in f32.
    pub fn dequantize(&self) -> Vec<f32> {
        let per_word = 32 / self.bits as usize;
        let mask = (1u32 << self.bits) - 1;
        let words_per_group = self.group_size / per_word;
        let mut values = Vec::with_capacity(self.weight.len() * per_word);
        for (group, words) in self.weight.chunks_exact(words_per_group).enumerate() {
            let (scale, bias) = (self.scales[group].to_f32(), self.biases[group].to_f32());
            for word in words {
                values.extend((0..per_word).map(|at| scale * ((word >> (at as u32 * self.bits)) & mask) as f32 + bias));
            }
        }
        values
    }
}

impl GgufFile {
    /// Reads one tensor by its llama.cpp name.
    ///
    /// # Errors
    /// No such tensor, a type that cannot be read, or a file that has shrunk since it was opened.
    pub fn read_tensor(&self, name: &str) -> Result<HostTensor> {
        let info = self.tensor(name).ok_or_else(|| {
            ModelError::tensor(
                self.path(),
                name,
                format!("no such tensor among {}", self.tensors().len()),
                "the tensor",
            )
        })?;
        if matches!(info.kind, GgmlType::Other(..) | GgmlType::Unknown(_)) {
            return Err(ModelError::tensor(self.path(), name, info.kind.to_string(), GgmlType::READABLE)
                .with_hint("use a file quantised as Q8_0, Q4_1 or Q4_0, or an unquantised one"));
        }
        let bytes = tensor_data(self, info)?;
        Ok(HostTensor { name: info.name.clone(), shape: info.shape.clone(), data: convert(info, &bytes) })
    }
}

impl HostTensor {
    /// Undoes llama.cpp's reordering of query and key rows; `heads` is the number of heads in the rows.
    ///
    /// # Errors
    /// When the rows do not divide into `heads` heads of even size.
    pub fn unpermute(self, heads: usize, path: &std::path::Path) -> Result<Self> {
        let Self { name, shape, data } = self;
        let rows = shape.first().copied().unwrap_or(0);
        let fail = || {
            let wanted = format!("rows that divide into {heads} heads of an even size");
            ModelError::tensor(path, name.as_str(), format!("{rows} rows"), wanted)
        };
        let data = match data {
            TensorData::F32(values) => TensorData::F32(unpermute_rows(&values, rows, heads).ok_or_else(fail)?),
            TensorData::F16(values) => TensorData::F16(unpermute_rows(&values, rows, heads).ok_or_else(fail)?),
            TensorData::Bf16(values) => TensorData::Bf16(unpermute_rows(&values, rows, heads).ok_or_else(fail)?),
            TensorData::Affine(parts) => TensorData::Affine(AffineParts {
                weight: unpermute_rows(&parts.weight, rows, heads).ok_or_else(fail)?,
                scales: unpermute_rows(&parts.scales, rows, heads).ok_or_else(fail)?,
                biases: unpermute_rows(&parts.biases, rows, heads).ok_or_else(fail)?,
                ..parts
            }),
        };
        Ok(Self { name, shape, data })
    }
}

fn convert(info: &TensorInfo, bytes: &[u8]) -> TensorData {
    match info.kind {
        GgmlType::F16 => TensorData::F16(words(bytes).map(|word| f16::from_bits(u16::from_le_bytes(word))).collect()),
        GgmlType::Bf16 => {
            TensorData::Bf16(words(bytes).map(|word| bf16::from_bits(u16::from_le_bytes(word))).collect())
        }
        GgmlType::Q4_0 => TensorData::Affine(four_bits(bytes, 18, |scale, _| f16::from_f32(-8.0 * scale.to_f32()))),
        GgmlType::Q4_1 => TensorData::Affine(four_bits(bytes, 20, |_, block| {
            f16::from_bits(u16::from_le_bytes([block[2], block[3]]))
        })),
        GgmlType::Q8_0 => TensorData::Affine(eight_bits(bytes)),
        // The caller has let only readable types through; F32 is the last of them.
        GgmlType::F32 | GgmlType::Other(..) | GgmlType::Unknown(_) => {
            TensorData::F32(words(bytes).map(f32::from_le_bytes).collect())
        }
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// Blocks of `block_bytes` whose last 16 bytes hold 32 nibbles: value `j` in the low half of byte `j`, value `16 + j`
/// in its high half. The head holds the f16 scale, from which (and from the block) `bias` takes the bias.
fn four_bits(bytes: &[u8], block_bytes: usize, bias: impl Fn(f16, &[u8]) -> f16) -> AffineParts {
    let blocks = bytes.len() / block_bytes;
    let mut parts = empty_parts(4, blocks);
    for block in bytes.chunks_exact(block_bytes) {
        let scale = f16::from_bits(u16::from_le_bytes([block[0], block[1]]));
        parts.scales.push(scale);
        parts.biases.push(bias(scale, block));
        let nibbles = &block[block_bytes - 16..];
        let pack = |bytes: &[u8], shift: u32| {
            bytes
                .iter()
                .enumerate()
                .fold(0u32, |word, (at, byte)| word | (u32::from(*byte >> shift) & 0xF) << (4 * at as u32))
        };
        parts.weight.extend([
            pack(&nibbles[..8], 0),
            pack(&nibbles[8..], 0),
            pack(&nibbles[..8], 4),
            pack(&nibbles[8..], 4),
        ]);
    }
    parts
}

/// Blocks of an f16 scale and 32 signed bytes; stored unsigned with 128 added, which the bias takes off again.
fn eight_bits(bytes: &[u8]) -> AffineParts {
    let mut parts = empty_parts(8, bytes.len() / 34);
    for block in bytes.chunks_exact(34) {
        let scale = f16::from_bits(u16::from_le_bytes([block[0], block[1]]));
        parts.scales.push(scale);
        parts.biases.push(f16::from_f32(-128.0 * scale.to_f32()));
        parts.weight.extend(words::<4>(&block[2..]).map(|word| u32::from_le_bytes(word) ^ 0x8080_8080));
    }
    parts
}

fn empty_parts(bits: u32, blocks: usize) -> AffineParts {
    AffineParts {
        weight: Vec::with_capacity(blocks * bits as usize),
        scales: Vec::with_capacity(blocks),
        biases: Vec::with_capacity(blocks),
        bits,
        group_size: 32,
    }
}
