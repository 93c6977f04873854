//! New arrays, other shapes, parts of arrays, and writing into them.

use mlx_rs_core::{Array, Result, ops};

use super::{Entry, entries, outputs};
use crate::ops_parity::args::Args;

pub const ENTRIES: &[&[Entry]] = &[CREATED, SHAPED, CUT, INDEXED, SCATTERED, SINGLE];

const CREATED: &[Entry] = entries! {
    "arange" => ops::arange(0 1 2 3);
    "bartlett" => ops::bartlett(0);
    "blackman" => ops::blackman(0);
    "diag" => ops::diag(0 1);
    "eye" => ops::eye(0 1 2 3);
    "full" => ops::full(0 1 2);
    "full_like" => ops::full_like(0 1 2);
    "hamming" => ops::hamming(0);
    "hanning" => ops::hanning(0);
    "identity" => ops::identity(0 1);
    "linspace" => ops::linspace(0 1 2 (true) 3);
    "linspace_endpoint" => ops::linspace(0 1 2 3 4);
    "meshgrid" => ops::meshgrid(0 1 2);
    "ones" => ops::ones(0 1);
    "ones_like" => ops::ones_like(0);
    "ones_like_dtype" => ops::ones_like_dtype(0 1);
    "tri" => ops::tri(0 1 2 3);
    "tril" => ops::tril(0 1);
    "triu" => ops::triu(0 1);
    "zeros" => ops::zeros(0 1);
    "zeros_like" => ops::zeros_like(0);
    "zeros_like_dtype" => ops::zeros_like_dtype(0 1);
};

const SHAPED: &[Entry] = entries! {
    "atleast_1d" => ops::atleast_1d(0);
    "atleast_2d" => ops::atleast_2d(0);
    "atleast_3d" => ops::atleast_3d(0);
    "broadcast_to" => ops::broadcast_to(0 1);
    "expand_dims" => ops::expand_dims(0 1);
    "expand_dims_axes" => ops::expand_dims(0 1);
    "flatten" => ops::flatten(0 1 2);
    "flip" => ops::flip(0 None);
    "flip_axis" => ops::flip(0 1);
    "flip_axes" => ops::flip(0 1);
    "moveaxis" => ops::moveaxis(0 1 2);
    "pad" => ops::pad_axes(0 1 2 3 4 5);
    "pad_symmetric" => ops::pad_symmetric(0 1 2 3);
    "repeat" => ops::repeat(0 1 None);
    "repeat_axis" => ops::repeat(0 1 2);
    "reshape" => ops::reshape(0 1);
    "roll" => ops::roll(0 1 None);
    "roll_axis" => ops::roll(0 1 2);
    "roll_axes" => ops::roll(0 1 2);
    "squeeze" => ops::squeeze(0 None);
    "squeeze_axis" => ops::squeeze(0 1);
    "squeeze_axes" => ops::squeeze(0 1);
    "swapaxes" => ops::swapaxes(0 1 2);
    "tile" => ops::tile(0 1);
    "transpose" => ops::transpose(0 None);
    "transpose_axes" => ops::transpose(0 1);
    "unflatten" => ops::unflatten(0 1 2);
};

const CUT: &[Entry] = &[
    ("broadcast_arrays", |args| ops::broadcast_arrays(arrays(args))),
    ("concatenate", |args| outputs(ops::concatenate_flat(arrays(args)))),
    ("concatenate_axis", |args| outputs(ops::concatenate(arrays(args), args.get(1)))),
    ("stack", |args| outputs(ops::stack(arrays(args), 0))),
    ("stack_axis", |args| outputs(ops::stack(arrays(args), args.get(1)))),
    ("split", |args| ops::split(args.get(0), args.get(1), args.get(2))),
    ("split_sections", |args| ops::split_at(args.get(0), args.get(1), args.get(2))),
    ("unstack", |args| ops::unstack(args.get(0), 0)),
    ("unstack_axis", |args| ops::unstack(args.get(0), args.get(1))),
];

fn arrays(args: &Args) -> &[Array] {
    args.get(0)
}

const INDEXED: &[Entry] = entries! {
    "as_strided" => self::as_strided(0 1 2 3);
    "diagonal" => ops::diagonal(0 1 2 3);
    "gather" => ops::gather(0 1 2 3);
    "slice" => ops::slice(0 1 2 3);
    "slice_dynamic" => ops::slice_dynamic(0 1 2 3);
    "take" => ops::take(0 1 None);
    "take_axis" => ops::take(0 1 2);
    "take_along_axis" => ops::take_along_axis(0 1 2);
    "trace" => ops::trace(0 (0) (0) (1) None);
    "trace_axes" => ops::trace(0 1 2 3 4);
};

fn as_strided(a: &Array, shape: &[i32], strides: Vec<i64>, offset: usize) -> Result<Array> {
    ops::as_strided(a, Some(shape), Some(&strides), offset)
}

const SCATTERED: &[Entry] = entries! {
    "masked_scatter" => ops::masked_scatter(0 1 2);
    "put_along_axis" => ops::put_along_axis(0 1 2 3);
    "scatter" => ops::scatter(0 1 2 3);
    "scatter_add" => ops::scatter_add(0 1 2 3);
    "scatter_add_axis" => ops::scatter_add_axis(0 1 2 3);
    "scatter_max" => ops::scatter_max(0 1 2 3);
    "scatter_min" => ops::scatter_min(0 1 2 3);
    "scatter_prod" => ops::scatter_prod(0 1 2 3);
    "slice_update" => ops::slice_update(0 1 2 3 4);
    "slice_update_add" => ops::slice_update_add(0 1 2 3 4);
    "slice_update_dynamic" => ops::slice_update_dynamic(0 1 2 3);
    "slice_update_max" => ops::slice_update_max(0 1 2 3 4);
    "slice_update_min" => ops::slice_update_min(0 1 2 3 4);
    "slice_update_prod" => ops::slice_update_prod(0 1 2 3 4);
};

/// The forms with one index array instead of a list.
const SINGLE: &[Entry] = &[
    ("gather_single", gather_single),
    ("scatter_single", |args| scatter_single(args, ops::scatter)),
    ("scatter_add_single", |args| scatter_single(args, ops::scatter_add)),
    ("scatter_max_single", |args| scatter_single(args, ops::scatter_max)),
    ("scatter_min_single", |args| scatter_single(args, ops::scatter_min)),
    ("scatter_prod_single", |args| scatter_single(args, ops::scatter_prod)),
];

fn gather_single(args: &Args) -> Result<Vec<Array>> {
    let indices: &Array = args.get(1);
    outputs(ops::gather(args.get(0), std::slice::from_ref(indices), args.get(2), args.get(3)))
}

type Scatter = fn(&Array, &[Array], &Array, &[i32]) -> Result<Array>;

fn scatter_single(args: &Args, scatter: Scatter) -> Result<Vec<Array>> {
    let indices: &Array = args.get(1);
    outputs(scatter(args.get(0), std::slice::from_ref(indices), args.get(2), args.get(3)))
}
