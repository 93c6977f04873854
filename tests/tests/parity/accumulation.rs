//! Micro-batches of one window against one big batch.

use mlx_rs_core::Result;
use models::Model;
use models::lora::Adapter;
use trainer::batch::{HostRow, Rows, collate};
use trainer::gradients::{WindowGradients, window_gradients};
use trainer::loss::{Denominators, Method, SftScope};
use workspace_tests::golden::{Golden, Tolerance, assert_close, host};

use super::orpo::{self, Pair, SCOPES};

const CLOSE: Tolerance = Tolerance { rtol: 1e-6, atol: 1e-6 };

/// Model, adapter and four pairs of different lengths: the golden's two, and the same with the sides exchanged.
fn setting() -> (Model, Adapter, Vec<Pair>) {
    let golden = Golden::open("orpo_tied");
    let model = golden.model();
    let adapter = golden.start_adapter(&model);
    let mut pairs = orpo::pairs(&golden);
    let swap = |pair: &Pair| Pair { chosen: pair.rejected.clone(), rejected: pair.chosen.clone(), ..*pair };
    let swapped: Vec<Pair> = pairs.iter().map(swap).collect();
    pairs.extend(swapped);
    (model, adapter, pairs)
}

fn assert_same(label: &str, adapter: &Adapter, big: &WindowGradients, small: &WindowGradients) {
    assert_close(&format!("{label} loss"), &small.loss, &big.loss, CLOSE);
    for ((name, small), big) in adapter.parameter_names().iter().zip(&small.gradients).zip(&big.gradients) {
        assert!(host(big).iter().any(|value| value.abs() > 1e-4), "{name} has no gradient to compare");
        assert_close(&format!("{label} {name}"), small, big, CLOSE);
    }
}

fn sft_rows(rows: &[(&[u32], usize)]) -> Result<Rows> {
    let host: Vec<HostRow<'_>> = rows
        .iter()
        .map(|(ids, prompt)| HostRow {
            ids,
            likelihood: (0..ids.len()).map(|token| f32::from(u8::from(token >= *prompt))).collect(),
            response: vec![false; ids.len()],
        })
        .collect();
    collate(&host, 0)
}

#[test]
fn sft_micro_batches_of_any_sizes_equal_one_big_batch() {
    let (model, adapter, pairs) = setting();
    let rows: Vec<(&[u32], usize)> = pairs.iter().map(|pair| (pair.chosen.as_slice(), pair.prompt)).collect();
    let tokens = rows.iter().map(|(ids, prompt)| ids.len() - prompt).sum::<usize>() as f64;
    let counts = Denominators { tokens, pairs: 0.0 };
    let run = |sizes: &[usize]| {
        let mut rest = rows.as_slice();
        let window = sizes.iter().map(|size| {
            let (now, later) = rest.split_at(*size);
            rest = later;
            sft_rows(now)
        });
        window_gradients(&model, &adapter, adapter.parameters(), Method::Sft, window, counts).unwrap()
    };
    let big = run(&[4]);
    for sizes in [&[1, 1, 1, 1][..], &[3, 1], &[1, 2, 1]] {
        assert_same(&format!("sft {sizes:?}"), &adapter, &big, &run(sizes));
    }
}

#[test]
fn orpo_micro_batches_of_any_sizes_equal_one_big_batch() {
    let (model, adapter, pairs) = setting();
    for (scope, name) in SCOPES {
        let counts = orpo::denominators(&pairs, scope);
        let run = |sizes: &[usize]| {
            let mut rest = pairs.as_slice();
            let window = sizes.iter().map(|size| {
                let (now, later) = rest.split_at(*size);
                rest = later;
                Ok(orpo::batch(now, scope))
            });
            let method = Method::Orpo { lambda: 0.1, scope };
            window_gradients(&model, &adapter, adapter.parameters(), method, window, counts).unwrap()
        };
        let big = run(&[4]);
        for sizes in [&[1, 1, 1, 1][..], &[3, 1], &[1, 2, 1]] {
            let small = run(sizes);
            assert_same(&format!("orpo {name} {sizes:?}"), &adapter, &big, &small);
            let (big, small) = (big.report.as_ref().unwrap(), small.report.as_ref().unwrap());
            assert_close(&format!("orpo {name} {sizes:?} report"), small, big, CLOSE);
        }
    }
}

#[test]
fn a_window_without_a_batch_is_an_error() {
    let (model, adapter, _) = setting();
    let method = Method::Orpo { lambda: 0.1, scope: SftScope::Full };
    let empty = std::iter::empty();
    let error = window_gradients(&model, &adapter, adapter.parameters(), method, empty, Denominators::default());
    assert!(error.err().unwrap().to_string().contains("the window has no batch"));
}
