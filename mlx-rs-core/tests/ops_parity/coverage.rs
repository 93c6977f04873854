//! Nothing of the C surface is forgotten: each function is called by the crate or listed with a reason, and each has
//! a row or a reason in the table.

use std::collections::BTreeSet;
use std::path::Path;

use super::dispatch;
use super::table::{Table, workspace};

/// C functions that the crate never calls, and what it calls instead.
const UNCALLED: &[(&str, &str)] = &[
    ("gather_single", "gather with one index array"),
    ("scatter_single", "scatter with one index array"),
    ("scatter_add_single", "scatter_add with one index array"),
    ("scatter_max_single", "scatter_max with one index array"),
    ("scatter_min_single", "scatter_min with one index array"),
    ("scatter_prod_single", "scatter_prod with one index array"),
    ("linspace", "linspace_endpoint with the end point"),
    ("stack", "stack_axis with axis 0"),
    ("unstack", "unstack_axis with axis 0"),
    ("trace", "trace_axes with offset 0, axes 0 and 1, and the dtype of the array"),
];

/// Prefixes of C functions on a stream that are no ops: files, other machines, kernels of one's own.
const ELSEWHERE: &[&str] = &["mlx_load", "mlx_distributed_", "mlx_fast_cuda_kernel_", "mlx_fast_metal_kernel_"];

/// The ops among the bound functions, without `mlx_`: those that take a stream and give arrays, and the two that need
/// no stream.
fn bound_ops() -> BTreeSet<String> {
    let path = workspace().join("mlx-sys/tests/surface.txt");
    let surface = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let functions = surface.lines().filter_map(|line| line.strip_prefix("fn ")?.split_once('('));
    let ops: BTreeSet<String> = functions
        .filter(|(name, parameters)| {
            let is_op = parameters.starts_with("res") && parameters.contains("s: mlx_stream)");
            let streamless = ["mlx_depends", "mlx_random_key", "mlx_random_seed"].contains(name);
            (is_op || streamless) && !ELSEWHERE.iter().any(|prefix| name.starts_with(prefix))
        })
        .map(|(name, _)| name.trim_start_matches("mlx_").to_owned())
        .collect();
    assert!(ops.len() > 300, "only {} ops found in {}", ops.len(), path.display());
    ops
}

/// Every `mlx_…` word in the crate's sources, without `mlx_`.
fn called(folder: &Path, words: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the sources can be listed") {
        let path = entry.expect("the sources can be listed").path();
        if path.is_dir() {
            called(&path, words);
        } else {
            let text = std::fs::read_to_string(&path).expect("the sources can be read");
            let found = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            words.extend(found.filter_map(|word| word.strip_prefix("mlx_")).map(str::to_owned));
        }
    }
}

#[test]
fn every_c_op_is_called_or_listed_with_a_reason() {
    let mut words = BTreeSet::new();
    called(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut words);
    let uncalled: Vec<String> = bound_ops().into_iter().filter(|op| !words.contains(op)).collect();
    let mut listed: Vec<&str> = UNCALLED.iter().map(|(op, _)| *op).collect();
    listed.sort_unstable();
    assert_eq!(uncalled, listed);
}

#[test]
fn every_c_op_has_a_row_or_a_reason_in_the_table() {
    let table = Table::read();
    let with_value: BTreeSet<&str> =
        table.rows.iter().filter(|row| row.expected.is_ok()).map(|row| row.op.as_str()).collect();
    let missing: Vec<String> = bound_ops()
        .into_iter()
        .filter(|op| !with_value.contains(op.as_str()) && !table.left_out.contains_key(op))
        .collect();
    assert!(missing.is_empty(), "without a row: {missing:?}");
}

#[test]
fn every_dispatcher_is_for_a_bound_op_and_every_bound_op_has_one() {
    let ops = bound_ops();
    let dispatchers: BTreeSet<String> = dispatch::all().keys().map(|&op| op.to_owned()).collect();
    let unknown: Vec<&String> = dispatchers.difference(&ops).collect();
    let missing: Vec<&String> = ops.difference(&dispatchers).collect();
    assert!(unknown.is_empty() && missing.is_empty(), "not bound: {unknown:?}; without a dispatcher: {missing:?}");
}
