//! Products, quantised products, convolutions.

use mlx_rs_core::ops::{self, ConvGeneral};
use mlx_rs_core::{Array, Result};

use super::{Entry, entries, outputs};
use crate::ops_parity::args::Args;

pub const ENTRIES: &[&[Entry]] = &[PRODUCTS, QUANTISED, CONVOLUTIONS];

const PRODUCTS: &[Entry] = entries! {
    "addmm" => ops::addmm(0 1 2 3 4);
    "block_masked_mm" => ops::block_masked_mm(0 1 2 3 4 5);
    "einsum" => self::einsum(0 1);
    "gather_mm" => ops::gather_mm(0 1 2 3 4);
    "hadamard_transform" => ops::hadamard_transform(0 1);
    "inner" => ops::inner(0 1);
    "kron" => ops::kron(0 1);
    "matmul" => ops::matmul(0 1);
    "outer" => ops::outer(0 1);
    "segmented_mm" => ops::segmented_mm(0 1 2);
    "tensordot" => ops::tensordot_axes(0 1 2 3);
    "tensordot_axis" => ops::tensordot(0 1 2);
    "vecdot" => ops::vecdot(0 1 2);
};

fn einsum(subscripts: &str, operands: &[Array]) -> Result<Array> {
    ops::einsum(subscripts, operands)
}

const QUANTISED: &[Entry] = &[
    ("dequantize", dequantize),
    ("gather_qmm", gather_qmm),
    ("gather_qqmm", gather_qqmm),
    ("qqmm", qqmm),
    ("quantize", quantize),
    ("quantized_matmul", quantized_matmul),
];

fn quantize(args: &Args) -> Result<Vec<Array>> {
    match args.get::<Option<&Array>>(4) {
        None => ops::quantize(args.get(0), args.get(1), args.get(2), args.get(3)),
        Some(scale) => ops::quantize_scaled(args.get(0), args.get(1), args.get(2), args.get(3), scale),
    }
}

fn dequantize(x: &Args) -> Result<Vec<Array>> {
    let (w, scales, biases): (&Array, &Array, Option<&Array>) = (x.get(0), x.get(1), x.get(2));
    outputs(match x.get::<Option<&Array>>(6) {
        None => ops::dequantize(w, scales, biases, x.get(3), x.get(4), x.get(5), x.get(7)),
        scale => ops::dequantize_scaled(w, scales, biases, x.get(3), x.get(4), x.get(5), scale, x.get(7)),
    })
}

fn quantized_matmul(x: &Args) -> Result<Vec<Array>> {
    outputs(ops::quantized_matmul(x.get(0), x.get(1), x.get(2), x.get(3), x.get(4), x.get(5), x.get(6), x.get(7)))
}

fn gather_qmm(x: &Args) -> Result<Vec<Array>> {
    outputs(ops::gather_qmm(
        x.get(0),
        x.get(1),
        x.get(2),
        x.get(3),
        x.get(4),
        x.get(5),
        x.get(6),
        x.get(7),
        x.get(8),
        x.get(9),
        x.get(10),
    ))
}

fn qqmm(x: &Args) -> Result<Vec<Array>> {
    outputs(ops::qqmm(x.get(0), x.get(1), x.get(2), x.get(3), x.get(4), x.get(5), x.get(6), x.get(7)))
}

fn gather_qqmm(x: &Args) -> Result<Vec<Array>> {
    outputs(ops::gather_qqmm(
        x.get(0),
        x.get(1),
        x.get(2),
        x.get(3),
        x.get(4),
        x.get(5),
        x.get(6),
        x.get(7),
        x.get(8),
        x.get(9),
        x.get(10),
    ))
}

const CONVOLUTIONS: &[Entry] = &[
    ("conv1d", |x| outputs(ops::conv1d(x.get(0), x.get(1), x.get(2), x.get(3), x.get(4), x.get(5)))),
    ("conv2d", |x| outputs(ops::conv2d(x.get(0), x.get(1), x.axes(2), x.axes(4), x.axes(6), x.get(8)))),
    ("conv3d", |x| outputs(ops::conv3d(x.get(0), x.get(1), x.axes(2), x.axes(5), x.axes(8), x.get(11)))),
    ("conv_general", conv_general),
    ("conv_transpose1d", |x| {
        outputs(ops::conv_transpose1d(x.get(0), x.get(1), x.get(2), x.get(3), x.get(4), x.get(5), x.get(6)))
    }),
    ("conv_transpose2d", |x| {
        let [stride, padding, dilation, output_padding] = [x.axes(2), x.axes(4), x.axes(6), x.axes(8)];
        outputs(ops::conv_transpose2d(x.get(0), x.get(1), stride, padding, dilation, output_padding, x.get(10)))
    }),
    ("conv_transpose3d", |x| {
        let [stride, padding, dilation, output_padding] = [x.axes(2), x.axes(5), x.axes(8), x.axes(11)];
        outputs(ops::conv_transpose3d(x.get(0), x.get(1), stride, padding, dilation, output_padding, x.get(14)))
    }),
];

fn conv_general(x: &Args) -> Result<Vec<Array>> {
    let settings = ConvGeneral {
        stride: x.get(2),
        padding_lo: x.get(3),
        padding_hi: x.get(4),
        kernel_dilation: x.get(5),
        input_dilation: x.get(6),
        groups: x.get(7),
        flip: x.get(8),
    };
    outputs(ops::conv_general(x.get(0), x.get(1), &settings))
}
