//! The ORPO formula alone: our f32 loss, the plain f64 reference beside it, and the numpy values of the golden.

use mlx_rs_core::{Array, ops, transforms};
use serde_json::Value;
use trainer::batch::{HostRow, Rows, collate};
use trainer::loss::orpo::{log_odds_ratio, log1mexp, loss};
use trainer::loss::{Denominators, Method, SftScope, logprobs};
use workspace_tests::golden::{Golden, host};

use super::orpo::SCOPES;
use super::orpo_reference::{self, Row};

/// The greatest mean log-probability that the odds are computed from; the golden's own bound is `1 − eˣ ≥ 1e-7`.
const CEILING: f64 = -(f32::EPSILON as f64) / 2.0;

fn golden() -> Golden {
    Golden::open("orpo_formula")
}

fn numbers(value: &Value) -> Vec<f64> {
    match value.as_array() {
        Some(values) => values.iter().map(|value| value.as_f64().unwrap()).collect(),
        None => vec![value.as_f64().unwrap()],
    }
}

fn f32s(values: &[f64]) -> Array {
    let narrow: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    Array::from_slice(&narrow, &[narrow.len() as i32]).unwrap()
}

fn near(label: &str, got: &[f64], want: &[f64], rtol: f64, atol: f64) {
    assert_eq!(got.len(), want.len(), "{label}");
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= atol + rtol * want.abs(), "{label}: got {got:?}, wanted {want:?}");
    }
}

/// The rows of one side for the reference.
fn reference_rows(golden: &Golden, side: &str) -> Vec<Row> {
    let tensor = golden.tensor(&format!("{side}.logits"));
    let (width, vocabulary) = (tensor.shape()[1] as usize, tensor.shape()[2] as usize);
    let logits = host(tensor);
    let targets = golden.ids(&format!("{side}.targets"));
    let (prompts, lengths) = (golden.ints(&format!("{side}.prompt_lengths")), golden.ints(&format!("{side}.lengths")));
    targets
        .iter()
        .enumerate()
        .map(|(row, targets)| Row {
            logits: logits[row * width * vocabulary..][..width * vocabulary]
                .chunks(vocabulary)
                .map(<[f64]>::to_vec)
                .collect(),
            targets: targets.iter().map(|target| *target as usize).collect(),
            prompt: prompts[row] as usize,
            length: lengths[row] as usize,
        })
        .collect()
}

/// The rows of both sides through the trainer's own collation; the token before the first target is never used.
fn our_rows(sides: &[Row], pairs: usize, scope: SftScope) -> Rows {
    let ids: Vec<Vec<u32>> = sides
        .iter()
        .map(|row| std::iter::once(0).chain(row.targets.iter().map(|id| *id as u32)).take(row.length).collect())
        .collect();
    let rows: Vec<HostRow<'_>> = sides
        .iter()
        .zip(&ids)
        .enumerate()
        .map(|(index, (row, ids))| {
            let counts = scope == SftScope::Full && index < pairs;
            HostRow {
                ids,
                likelihood: (0..row.length).map(|token| f32::from(u8::from(counts && token > 0))).collect(),
                response: (0..row.length).map(|token| token >= row.prompt).collect(),
            }
        })
        .collect();
    collate(&rows, 0).unwrap()
}

/// Our loss as a function of the logits `[2·pairs, T, V]`.
fn our_loss(logits: &Array, rows: &Rows, method: Method, denominators: Denominators) -> mlx_rs_core::Result<Array> {
    let vocabulary = logits.shape()[2];
    let mut flat = logits.reshape(&[-1, vocabulary])?;
    if let Some(positions) = &rows.positions {
        flat = ops::take(&flat, positions, Some(0))?;
    }
    Ok(method.of_logprobs(&logprobs::of_logits(&flat, &rows.targets)?, rows, denominators)?.loss)
}

struct Case {
    chosen: Vec<Row>,
    rejected: Vec<Row>,
    logits: Array,
    lambda: f64,
}

fn random_case(golden: &Golden) -> Case {
    let sides = [golden.tensor("chosen.logits").clone(), golden.tensor("rejected.logits").clone()];
    Case {
        chosen: reference_rows(golden, "chosen"),
        rejected: reference_rows(golden, "rejected"),
        logits: ops::concatenate(&sides, 0).unwrap(),
        lambda: golden.meta()["random"]["lam"].as_f64().unwrap(),
    }
}

impl Case {
    fn gradient(&self, scope: SftScope) -> (f64, Array) {
        let pairs = self.chosen.len();
        let rows = our_rows(&[self.chosen.as_slice(), &self.rejected].concat(), pairs, scope);
        let tokens = match scope {
            SftScope::Full => self.chosen.iter().map(|row| row.length - 1).sum(),
            SftScope::Response => pairs,
        };
        let denominators = Denominators { tokens: tokens as f64, pairs: pairs as f64 };
        let method = Method::Orpo { lambda: self.lambda as f32, scope };
        let of = |logits: &[Array]| Ok(vec![our_loss(&logits[0], &rows, method, denominators)?]);
        let (values, gradients) = transforms::value_and_grad(of, &[0], std::slice::from_ref(&self.logits)).unwrap();
        (host(&values[0])[0], gradients[0].clone())
    }
}

#[test]
fn the_f64_reference_is_the_numpy_formula() {
    let golden = golden();
    let case = random_case(&golden);
    for (scope, name) in SCOPES {
        let got = orpo_reference::orpo(&case.chosen, &case.rejected, case.lambda, scope);
        let want = &golden.meta()["random"][name];
        for (part, got) in [("lw", &got.chosen), ("lr", &got.rejected), ("log_odds", &got.log_odds)] {
            near(&format!("{name} {part}"), got, &numbers(&want[part]), 1e-12, 1e-12);
        }
        for (part, got) in [("odds_loss", got.odds), ("nll", got.nll), ("loss", got.loss)] {
            near(&format!("{name} {part}"), &[got], &numbers(&want[part]), 1e-12, 0.0);
        }
    }
}

#[test]
fn loss_and_gradient_in_the_logits_are_the_references() {
    let golden = golden();
    let case = random_case(&golden);
    for (scope, name) in SCOPES {
        let (loss, gradient) = case.gradient(scope);
        let want = golden.meta()["random"][name]["loss"].as_f64().unwrap();
        near(&format!("{name} loss"), &[loss], &[want], 1e-6, 0.0);
        let halves = ops::split(&gradient, 2, 0).unwrap();
        golden.assert_close(&format!("{name}.grad_chosen"), &halves[0]);
        golden.assert_close(&format!("{name}.grad_rejected"), &halves[1]);
    }
}

#[test]
fn the_gradient_is_the_slope_of_the_f64_reference_in_random_directions() {
    const STEP: f64 = 1e-4;
    let case = random_case(&golden());
    for (scope, name) in SCOPES {
        let gradient = host(&case.gradient(scope).1);
        for seed in 0..4 {
            let direction = direction(gradient.len(), seed);
            let moved = |by: f64| {
                let mut at = direction.iter().map(|part| part * by);
                let [mut chosen, mut rejected] = [case.chosen.clone(), case.rejected.clone()];
                for row in chosen.iter_mut().chain(&mut rejected) {
                    row.logits.iter_mut().flatten().zip(&mut at).for_each(|(logit, part)| *logit += part);
                }
                orpo_reference::orpo(&chosen, &rejected, case.lambda, scope).loss
            };
            let slope = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let along: f64 = gradient.iter().zip(&direction).map(|(gradient, part)| gradient * part).sum();
            assert!(slope.abs() > 1e-3, "{name} {seed}: the direction says nothing, slope {slope}");
            near(&format!("{name} direction {seed}"), &[along], &[slope], 1e-5, 1e-6);
        }
    }
}

/// Numbers in ±1 from a linear congruential generator (Knuth's MMIX constants).
fn direction(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Every edge of the golden: the usual range, ties, both ends of log1mexp.
#[test]
fn the_edges_of_the_formula_are_exact_to_rounding() {
    let golden = golden();
    let edges = golden.meta()["edges"].as_array().unwrap();
    assert_eq!(edges.len(), 24);
    let floor = golden.meta()["floor"].as_f64().unwrap();
    let mut floored = 0;
    for edge in edges {
        let (lw, lr) = (numbers(&edge["lw"]), numbers(&edge["lr"]));
        let lambda = edge["lam"].as_f64().unwrap();
        // The golden floors 1 − eˣ at 1e-7; ours caps x at −2⁻²⁴ instead, so beyond the floor the values are our own.
        let certain = lw.iter().chain(&lr).any(|x| -x.exp_m1() < floor);
        floored += usize::from(certain);
        let capped = |values: &[f64]| values.iter().map(|value| value.min(CEILING)).collect::<Vec<f64>>();
        let nll = -lw.iter().sum::<f64>() / lw.len() as f64;
        let reference = orpo_reference::from_means(capped(&lw), capped(&lr), nll, lambda);
        let label = format!("lw {lw:?} lr {lr:?} λ {lambda}");
        if !certain {
            near(&label, &reference.log_odds, &numbers(&edge["log_odds"]), 1e-9, 0.0);
            near(&label, &[reference.loss], &numbers(&edge["loss"]), 1e-9, 0.0);
        }
        check_edge(&label, &lw, &lr, lambda, &reference, certain);
    }
    assert_eq!(floored, 6, "λ of 0.1 and 1 for -1e-8, and for 0 on either side");
}

fn check_edge(label: &str, lw: &[f64], lr: &[f64], lambda: f64, want: &orpo_reference::Terms, certain: bool) {
    let (chosen, rejected) = (f32s(lw), f32s(lr));
    // Where x is capped, the difference lw − lr still takes x itself, which the reference's capped means do not.
    let atol = if certain { 1e-6 } else { 2e-7 };
    for (side, values, array) in [("chosen", &want.chosen, &chosen), ("rejected", &want.rejected, &rejected)] {
        let logs: Vec<f64> = values.iter().map(|value| orpo_reference::log1mexp(*value)).collect();
        near(&format!("{label} log1mexp {side}"), &host(&log1mexp(array).unwrap()), &logs, 2e-6, 1e-37);
    }
    near(&format!("{label} odds"), &host(&log_odds_ratio(&chosen, &rejected).unwrap()), &want.log_odds, 2e-6, atol);
    let nll_sum = ops::negative(&ops::sum(&chosen, None, false).unwrap()).unwrap();
    let pairs = lw.len() as f64;
    let counts = Denominators { tokens: pairs, pairs };
    let terms = loss(&chosen, &rejected, &nll_sum, lambda as f32, counts).unwrap();
    near(&format!("{label} loss"), &host(&terms.loss), &[want.loss], 2e-6, 1e-7);
}

#[test]
fn log1mexp_keeps_its_digits_at_both_ends() {
    // By series: ln(1 − e^x) ≈ ln(−x) + x/2 near 0, and ≈ −e^x far from it.
    let x = [-1e-6, -1e-4, -1e-2, -std::f64::consts::LN_2, -1.0, -10.0, -30.0, -87.0];
    let want = [-13.815511057964, -9.210390372434, -4.610166019325, -std::f64::consts::LN_2];
    let got = host(&log1mexp(&f32s(&x)).unwrap());
    near("near", &got[..4], &want, 1e-6, 0.0);
    for (x, got) in x.iter().zip(&got).skip(5) {
        near("far", &[*got], &[-x.exp()], 1e-4, 0.0);
    }
}

#[test]
fn a_certain_response_gives_a_finite_loss_and_a_finite_gradient() {
    let pairs = [(0.0f32, -1.0f32), (-1.0, 0.0), (0.0, 0.0), (-1e-9, -2.0), (-200.0, -0.5), (-0.5, -200.0)];
    for (w, r) in pairs {
        let means = [Array::from_slice(&[w], &[1]).unwrap(), Array::from_slice(&[r], &[1]).unwrap()];
        let of = |means: &[Array]| {
            let nll = ops::negative(&ops::sum(&means[0], None, false)?)?;
            let counts = Denominators { tokens: 1.0, pairs: 1.0 };
            Ok(vec![loss(&means[0], &means[1], &nll, 0.1, counts)?.loss])
        };
        let (values, gradients) = transforms::value_and_grad(of, &[0, 1], &means).unwrap();
        let all: Vec<f64> = values.iter().chain(&gradients).flat_map(host).collect();
        assert!(all.iter().all(|value| value.is_finite()), "lw {w} lr {r}: {all:?}");
        // More likelihood of the chosen response never raises the loss.
        assert!(all[1] <= 0.0 && all[2] >= 0.0, "lw {w} lr {r}: {all:?}");
    }
}
