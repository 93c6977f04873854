//! Affine dequantisation of packed weights: w = scale · q + bias.
//!
//! A row of `cols` codes of 2, 3, 4, 5, 6 or 8 bits is a little-endian bit stream, low bits first, in `cols · bits / 32`
//! u32 words; 3, 5 and 6 bit codes cross word borders. Each group of 32, 64 or 128 codes has a scale and a bias. The
//! product is rounded before the sum, as MLX does in f32, so the result is MLX's to the last bit.

use std::ffi::c_void;
use std::ops::Range;

use half::{bf16, f16};

use crate::isa::{self, Kernel};
use crate::threads::{Shared, for_each_span};

/// Codes unpacked together: with 32 of them, codes of any width fill whole words.
const STEP: usize = 32;
/// Elements that are worth a task of their own.
const GRAIN: usize = 1 << 15;

/// Scales and biases are f32.
pub const MLXK_F32: i32 = 0;
/// Scales and biases are IEEE half precision.
pub const MLXK_F16: i32 = 1;
/// Scales and biases are bfloat16.
pub const MLXK_BF16: i32 = 2;

/// `bits` is not 2, 3, 4, 5, 6 or 8.
pub const MLXK_BAD_BITS: i32 = 1;
/// `group` is not 32, 64 or 128.
pub const MLXK_BAD_GROUP: i32 = 2;
/// `cols` is not a multiple of `group`.
pub const MLXK_BAD_COLS: i32 = 3;
/// `scale_type` is not one of the three.
pub const MLXK_BAD_SCALE_TYPE: i32 = 4;
/// A pointer is null although there is something to do.
pub const MLXK_NULL: i32 = 5;

/// Writes the weights \[rows, cols\] in f32. `packed` is \[rows, cols · bits / 32\] u32; `scales` and `biases` are
/// \[rows, cols / group\] of the type that `scale_type` names. Returns 0, or the code of the wrong argument and then
/// writes nothing.
///
/// # Safety
/// The pointers are valid for those shapes and aligned to their element; `out` overlaps no other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mlxk_dequantize_f32(
    rows: usize,
    cols: usize,
    bits: u32,
    group: usize,
    packed: *const u32,
    scale_type: i32,
    scales: *const c_void,
    biases: *const c_void,
    out: *mut f32,
) -> i32 {
    if !matches!(bits, 2 | 3 | 4 | 5 | 6 | 8) {
        return MLXK_BAD_BITS;
    }
    if !matches!(group, 32 | 64 | 128) {
        return MLXK_BAD_GROUP;
    }
    if !cols.is_multiple_of(group) {
        return MLXK_BAD_COLS;
    }
    if !matches!(scale_type, MLXK_F32 | MLXK_F16 | MLXK_BF16) {
        return MLXK_BAD_SCALE_TYPE;
    }
    if rows == 0 || cols == 0 {
        return 0;
    }
    if packed.is_null() || scales.is_null() || biases.is_null() || out.is_null() {
        return MLXK_NULL;
    }
    let weights = Weights { cols, group, packed, scales, biases, out };
    // SAFETY: the caller's promise about the shapes; the type is checked above.
    unsafe {
        match scale_type {
            MLXK_F16 => weights.expand::<f16>(rows, bits),
            MLXK_BF16 => weights.expand::<bf16>(rows, bits),
            _ => weights.expand::<f32>(rows, bits),
        }
    }
    0
}

/// The type of scales and biases.
trait Scale: Copy + Send + Sync {
    fn widen(self) -> f32;
}

impl Scale for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

impl Scale for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }
}

impl Scale for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

struct Weights {
    cols: usize,
    group: usize,
    packed: *const u32,
    scales: *const c_void,
    biases: *const c_void,
    out: *mut f32,
}

impl Weights {
    /// # Safety
    /// As for [`mlxk_dequantize_f32`], with scales of type `S` and arguments that passed its checks.
    unsafe fn expand<S: Scale>(self, rows: usize, bits: u32) {
        match bits {
            2 => self.expand_bits::<S, 2>(rows),
            3 => self.expand_bits::<S, 3>(rows),
            4 => self.expand_bits::<S, 4>(rows),
            5 => self.expand_bits::<S, 5>(rows),
            6 => self.expand_bits::<S, 6>(rows),
            _ => self.expand_bits::<S, 8>(rows),
        }
    }

    fn expand_bits<S: Scale, const BITS: usize>(self, rows: usize) {
        let packed = Shared::input(self.packed);
        let scales = Shared::input(self.scales.cast::<S>());
        let biases = Shared::input(self.biases.cast::<S>());
        let out = Shared::output(self.out);
        let (cols, group) = (self.cols, self.group);
        for_each_span(rows, GRAIN.div_ceil(cols), |rows| {
            isa::run(Rows::<S, BITS> {
                rows,
                cols,
                group,
                packed: packed.get(),
                scales: scales.get(),
                biases: biases.get(),
                out: out.get(),
            });
        });
    }
}

struct Rows<S, const BITS: usize> {
    rows: Range<usize>,
    cols: usize,
    group: usize,
    packed: *const u32,
    scales: *const S,
    biases: *const S,
    out: *mut f32,
}

impl<S: Scale, const BITS: usize> Kernel for Rows<S, BITS> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let words = self.cols / STEP * BITS;
        let groups = self.cols / self.group;
        for r in self.rows {
            // SAFETY: row r lies inside each buffer, and only this task writes it.
            let (packed, scales, biases, out) = unsafe {
                (
                    std::slice::from_raw_parts(self.packed.add(r * words), words),
                    std::slice::from_raw_parts(self.scales.add(r * groups), groups),
                    std::slice::from_raw_parts(self.biases.add(r * groups), groups),
                    std::slice::from_raw_parts_mut(self.out.add(r * self.cols), self.cols),
                )
            };
            let group_words = self.group / STEP * BITS;
            let parts = packed.chunks_exact(group_words).zip(out.chunks_exact_mut(self.group));
            for ((packed, out), (scale, bias)) in parts.zip(scales.iter().zip(biases)) {
                let (scale, bias) = (scale.widen(), bias.widen());
                for (packed, out) in packed.chunks_exact(BITS).zip(out.chunks_exact_mut(STEP)) {
                    expand_step::<BITS>(packed, scale, bias, out);
                }
            }
        }
    }
}

/// Expands BITS words to 32 weights. Four codes always fit one word: each quad is first shifted to the bottom of a word of
/// its own, after which every width unpacks by the same shifts in each quad.
#[inline(always)]
fn expand_step<const BITS: usize>(packed: &[u32], scale: f32, bias: f32, out: &mut [f32]) {
    let mask = (1u32 << BITS) - 1;
    let mut quads = [0u32; STEP / 4];
    for (i, quad) in quads.iter_mut().enumerate() {
        let (word, shift) = (i * 4 * BITS / 32, i * 4 * BITS % 32);
        *quad = packed[word] >> shift;
        if shift + 4 * BITS > 32 {
            *quad |= packed[word + 1] << (32 - shift);
        }
    }
    for (quad, weights) in quads.iter().zip(out.chunks_exact_mut(4)) {
        for (i, weight) in weights.iter_mut().enumerate() {
            let code = (quad >> (i * BITS)) & mask;
            // Codes are small: a signed conversion is exact and one instruction.
            *weight = code as i32 as f32 * scale + bias;
        }
    }
}

#[cfg(test)]
mod tests;
