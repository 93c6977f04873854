//! Reductions, scans and sorting, each in its forms for all axes, one axis and several.

use mlx_rs_core::ops;

use super::{Entry, entries};

pub const ENTRIES: &[&[Entry]] = &[REDUCTIONS, SPREADS, SCANS, SORTS];

const REDUCTIONS: &[Entry] = entries! {
    "all" => ops::all(0 None 1);
    "all_axis" => ops::all(0 1 2);
    "all_axes" => ops::all(0 1 2);
    "any" => ops::any(0 None 1);
    "any_axis" => ops::any(0 1 2);
    "any_axes" => ops::any(0 1 2);
    "count_nonzero" => ops::count_nonzero(0 None 1);
    "count_nonzero_axis" => ops::count_nonzero(0 1 2);
    "count_nonzero_axes" => ops::count_nonzero(0 1 2);
    "logsumexp" => ops::logsumexp(0 None 1);
    "logsumexp_axis" => ops::logsumexp(0 1 2);
    "logsumexp_axes" => ops::logsumexp(0 1 2);
    "max" => ops::max(0 None 1);
    "max_axis" => ops::max(0 1 2);
    "max_axes" => ops::max(0 1 2);
    "mean" => ops::mean(0 None 1);
    "mean_axis" => ops::mean(0 1 2);
    "mean_axes" => ops::mean(0 1 2);
    "median" => ops::median(0 None 1);
    "median_axis" => ops::median(0 1 2);
    "median_axes" => ops::median(0 1 2);
    "min" => ops::min(0 None 1);
    "min_axis" => ops::min(0 1 2);
    "min_axes" => ops::min(0 1 2);
    "number_of_elements" => ops::number_of_elements(0 1 2 3);
    "prod" => ops::prod(0 None 1);
    "prod_axis" => ops::prod(0 1 2);
    "prod_axes" => ops::prod(0 1 2);
    "softmax" => ops::softmax(0 None 1);
    "softmax_axis" => ops::softmax(0 1 2);
    "softmax_axes" => ops::softmax(0 1 2);
    "sum" => ops::sum(0 None 1);
    "sum_axis" => ops::sum(0 1 2);
    "sum_axes" => ops::sum(0 1 2);
    "argmax" => ops::argmax(0 None 1);
    "argmax_axis" => ops::argmax(0 1 2);
    "argmin" => ops::argmin(0 None 1);
    "argmin_axis" => ops::argmin(0 1 2);
};

const SPREADS: &[Entry] = entries! {
    "std" => ops::std(0 None 1 2);
    "std_axis" => ops::std(0 1 2 3);
    "std_axes" => ops::std(0 1 2 3);
    "var" => ops::var(0 None 1 2);
    "var_axis" => ops::var(0 1 2 3);
    "var_axes" => ops::var(0 1 2 3);
};

const SCANS: &[Entry] = entries! {
    "cummax" => ops::cummax(0 None 1 2);
    "cummax_axis" => ops::cummax(0 1 2 3);
    "cummin" => ops::cummin(0 None 1 2);
    "cummin_axis" => ops::cummin(0 1 2 3);
    "cumprod" => ops::cumprod(0 None 1 2 3);
    "cumprod_axis" => ops::cumprod(0 1 2 3 4);
    "cumsum" => ops::cumsum(0 None 1 2 3);
    "cumsum_axis" => ops::cumsum(0 1 2 3 4);
    "diff" => ops::diff(0 1 2);
    "logcumsumexp" => ops::logcumsumexp(0 None 1 2);
    "logcumsumexp_axis" => ops::logcumsumexp(0 1 2 3);
};

const SORTS: &[Entry] = entries! {
    "argpartition" => ops::argpartition(0 1 None);
    "argpartition_axis" => ops::argpartition(0 1 2);
    "argsort" => ops::argsort(0 None);
    "argsort_axis" => ops::argsort(0 1);
    "partition" => ops::partition(0 1 None);
    "partition_axis" => ops::partition(0 1 2);
    "searchsorted" => ops::searchsorted(0 1 2);
    "sort" => ops::sort(0 None);
    "sort_axis" => ops::sort(0 1);
    "topk" => ops::topk(0 1 None);
    "topk_axis" => ops::topk(0 1 2);
};
