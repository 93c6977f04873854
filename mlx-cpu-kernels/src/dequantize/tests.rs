use std::ffi::c_void;

use half::{bf16, f16};

use super::*;
use crate::tests::{noise, with_each_isa};

/// Packs codes as a little-endian bit stream, a bit at a time.
fn pack(codes: &[u32], bits: usize) -> Vec<u32> {
    let mut words = vec![0u32; codes.len() * bits / 32];
    for (i, code) in codes.iter().enumerate() {
        for bit in 0..bits {
            let at = i * bits + bit;
            words[at / 32] |= ((code >> bit) & 1) << (at % 32);
        }
    }
    words
}

struct Shape {
    rows: usize,
    cols: usize,
    bits: u32,
    group: usize,
}

fn expand<S>(shape: &Shape, packed: &[u32], scale_type: i32, scales: &[S], biases: &[S]) -> (i32, Vec<f32>) {
    let mut out = vec![7.0; shape.rows * shape.cols];
    let pointer = |parts: &[S]| parts.as_ptr().cast::<c_void>();
    // SAFETY: the tests size the buffers by the shape.
    let status = unsafe {
        mlxk_dequantize_f32(
            shape.rows,
            shape.cols,
            shape.bits,
            shape.group,
            packed.as_ptr(),
            scale_type,
            pointer(scales),
            pointer(biases),
            out.as_mut_ptr(),
        )
    };
    (status, out)
}

#[test]
fn every_width_group_and_scale_type_gives_scale_times_code_plus_bias() {
    with_each_isa(|isa| {
        for bits in [2u32, 3, 4, 5, 6, 8] {
            for group in [32, 64, 128] {
                let shape = Shape { rows: 7, cols: 3 * group, bits, group };
                let len = shape.rows * shape.cols;
                let codes: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761) >> (32 - bits)).collect();
                let packed = pack(&codes, bits as usize);
                let (scales, biases) = (noise(len / group, 1), noise(len / group, 2));
                let wanted = |scale: &dyn Fn(f32) -> f32| -> Vec<f32> {
                    let weight = |i: usize| codes[i] as f32 * scale(scales[i / group]) + scale(biases[i / group]);
                    (0..len).map(weight).collect()
                };
                let what = format!("{isa:?} {bits} bits, groups of {group}");

                let got = expand(&shape, &packed, MLXK_F32, &scales, &biases);
                assert!(got == (0, wanted(&|v| v)), "f32 {what}");

                let narrow = |values: &[f32]| values.iter().map(|v| f16::from_f32(*v)).collect::<Vec<_>>();
                let got = expand(&shape, &packed, MLXK_F16, &narrow(&scales), &narrow(&biases));
                assert!(got == (0, wanted(&|v| f16::from_f32(v).to_f32())), "f16 {what}");

                let narrow = |values: &[f32]| values.iter().map(|v| bf16::from_f32(*v)).collect::<Vec<_>>();
                let got = expand(&shape, &packed, MLXK_BF16, &narrow(&scales), &narrow(&biases));
                assert!(got == (0, wanted(&|v| bf16::from_f32(v).to_f32())), "bf16 {what}");
            }
        }
    });
}

#[test]
fn a_known_word_unpacks_low_bits_first_with_a_negative_scale() {
    let shape = Shape { rows: 1, cols: 32, bits: 4, group: 32 };
    let (status, out) = expand(&shape, &[0x7654_3210, 0xfedc_ba98, 0, 0xf], MLXK_F32, &[-1.0f32], &[15.0]);
    assert_eq!(status, 0);
    let mut wanted: Vec<f32> = (0..16).map(|q| 15.0 - q as f32).collect();
    wanted.extend([15.0; 16]);
    wanted[24] = 0.0;
    assert_eq!(out, wanted);
}

#[test]
fn scales_that_are_infinite_or_nan_reach_the_weights_of_their_group_only() {
    let shape = Shape { rows: 1, cols: 96, bits: 8, group: 32 };
    let packed = [0x0101_0101; 24];
    let (status, out) = expand(&shape, &packed, MLXK_F32, &[f32::INFINITY, f32::NAN, 2.0], &[0.0; 3]);
    assert_eq!(status, 0);
    assert!(out[..32].iter().all(|w| *w == f32::INFINITY));
    assert!(out[32..64].iter().all(|w| w.is_nan()));
    assert!(out[64..].iter().all(|w| *w == 2.0));
}

#[test]
fn each_wrong_argument_has_its_code_and_writes_nothing() {
    let status = |rows, cols, bits, group, scale_type| {
        let (packed, parts) = ([0u32; 8], [1f32; 2]);
        let mut out = [7f32; 64];
        let scales = parts.as_ptr().cast();
        // SAFETY: the buffers hold 64 codes of 4 bits in groups of 32; other arguments are refused before use.
        let status = unsafe {
            mlxk_dequantize_f32(rows, cols, bits, group, packed.as_ptr(), scale_type, scales, scales, out.as_mut_ptr())
        };
        (status, out == [7.0; 64])
    };
    assert_eq!(status(1, 64, 4, 32, MLXK_F32), (0, false));
    assert_eq!(status(1, 64, 7, 32, MLXK_F32), (MLXK_BAD_BITS, true));
    assert_eq!(status(1, 64, 4, 16, MLXK_F32), (MLXK_BAD_GROUP, true));
    assert_eq!(status(1, 33, 4, 32, MLXK_F32), (MLXK_BAD_COLS, true));
    assert_eq!(status(1, 64, 4, 32, 3), (MLXK_BAD_SCALE_TYPE, true));
    assert_eq!(status(0, 64, 4, 32, MLXK_F32), (0, true));
    let null = std::ptr::null();
    // SAFETY: null pointers are what is tested; an empty shape needs none.
    unsafe {
        let out = std::ptr::null_mut();
        assert_eq!(mlxk_dequantize_f32(1, 32, 4, 32, std::ptr::null(), MLXK_F32, null, null, out), MLXK_NULL);
        assert_eq!(mlxk_dequantize_f32(1, 0, 4, 32, std::ptr::null(), MLXK_F32, null, null, out), 0);
    }
}
