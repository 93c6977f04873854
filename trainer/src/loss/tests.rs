use mlx_rs_core::{Dtype, transforms};

use super::orpo::{log_odds_ratio, log1mexp, loss};
use super::*;
use crate::batch::{HostRow, collate};

fn array(values: &[f32]) -> Array {
    Array::from_slice(values, &[values.len() as i32]).unwrap()
}

fn floats(array: &Array) -> Vec<f32> {
    array.to_vec().unwrap()
}

fn near(got: f32, want: f64, tolerance: f64) {
    assert!((f64::from(got) - want).abs() <= tolerance, "got {got}, wanted {want}");
}

/// ORPO with the likelihood of the responses, from the mean log-probabilities of each pair.
fn response_loss(lw: &[f32], lr: &[f32], lambda: f32) -> f32 {
    let (chosen, rejected) = (array(lw), array(lr));
    let nll_sum = ops::negative(&ops::sum(&chosen, None, false).unwrap()).unwrap();
    let pairs = lw.len() as f64;
    let counts = Denominators { tokens: pairs, pairs };
    loss(&chosen, &rejected, &nll_sum, lambda, counts).unwrap().loss.item::<f32>().unwrap()
}

#[test]
fn orpo_of_given_means_has_its_known_values() {
    let (lw, lr) = ([-0.5, -1.2, -0.8], [-1.5, -1.0, -2.3]);
    near(response_loss(&lw, &lr, 0.1), 0.871_779_712_967_496_8, 2e-7);
    near(response_loss(&lw, &lr, 1.0), 1.217_797_129_674_967_7, 2e-7);
    near(response_loss(&[-0.7], &[-1.9], 0.1), 0.716_406_641_223_255, 2e-7);
    // λ = 0 leaves the likelihood.
    near(response_loss(&lw, &lr, 0.0), 2.5 / 3.0, 1e-7);
}

#[test]
fn equal_means_have_even_odds_and_swapped_sides_the_opposite() {
    let (a, b) = (array(&[-0.5, -1.0]), array(&[-2.0, -1.0]));
    let odds = floats(&log_odds_ratio(&a, &b).unwrap());
    let swapped = floats(&log_odds_ratio(&b, &a).unwrap());
    assert!(odds[0] > 0.0 && odds[1] == 0.0);
    assert_eq!([-odds[0], 0.0], [swapped[0], swapped[1].abs()]);
}

#[test]
fn log1mexp_is_continuous_where_its_branches_meet_and_capped_at_zero() {
    let at = -std::f32::consts::LN_2;
    let values = floats(&log1mexp(&array(&[at - 1e-6, at, at + 1e-6])).unwrap());
    values.iter().for_each(|value| near(*value, f64::from(at), 3e-6));
    assert!(values[0] > values[2], "it falls as x rises");
    // At and above the cap of −2⁻²⁴ the value is ln(2⁻²⁴).
    let capped = floats(&log1mexp(&array(&[0.0, -1e-9, -5.0e-8])).unwrap());
    capped.iter().for_each(|value| near(*value, -24.0 * std::f64::consts::LN_2, 1e-5));
}

#[test]
fn the_gradient_of_log1mexp_is_finite_on_both_branches_and_at_the_cap() {
    let x = array(&[0.0, -1e-6, -0.1, -0.69, -0.7, -5.0, -100.0, -1000.0]);
    let sum = |x: &[Array]| Ok(vec![ops::sum(&log1mexp(&x[0])?, None, false)?]);
    let (_, gradients) = transforms::value_and_grad(sum, &[0], std::slice::from_ref(&x)).unwrap();
    let gradient = floats(&gradients[0]);
    assert!(gradient[0].is_finite());
    for (x, got) in floats(&x).into_iter().zip(gradient).skip(1) {
        // −eˣ/(1 − eˣ) = 1/(1 − e^−x)
        let want = 1.0 / -f64::from(-x).exp_m1();
        // The last digits of e^−100 are lost where f32 has no normal numbers.
        near(got, want, 1e-4 * want.abs() + 1e-37);
    }
}

#[test]
fn the_sft_loss_is_the_weighted_sum_over_the_windows_tokens() {
    let counts = Denominators { tokens: 4.0, pairs: 0.0 };
    let got = sft::loss(&array(&[-1.0, -2.0, -4.0]), &array(&[1.0, 0.5, 0.0]), counts).unwrap();
    assert_eq!(got.item::<f32>().unwrap(), 0.5);
}

#[test]
fn logprobs_of_bfloat16_logits_are_taken_in_float32() {
    let logits = Array::from_slice(&[20.0f32, 19.0, 0.0], &[1, 3]).unwrap().astype(Dtype::Bfloat16).unwrap();
    let got = logprobs::of_logits(&logits, &Array::from_slice(&[1i32], &[1]).unwrap()).unwrap();
    assert_eq!(got.dtype(), Dtype::Float32);
    // In bfloat16 the normaliser 20.3133 would round to 20.25.
    near(got.item::<f32>().unwrap(), -1.313_261_7, 1e-5);
}

#[test]
fn large_logits_neither_overflow_nor_lose_the_difference() {
    let logits = Array::from_slice(&[1000.0f32, 999.0, -1000.0, 1e4, 1e4, 1e4], &[2, 3]).unwrap();
    let got = logprobs::of_logits(&logits, &Array::from_slice(&[0i32, 2], &[2]).unwrap()).unwrap();
    let got = floats(&got);
    near(got[0], -0.313_261_7, 1e-4);
    near(got[1], -(3.0f64.ln()), 1e-3);
}

/// One pair: a prompt of one token, a chosen response of two, a rejected one of one.
fn pair(scope: SftScope) -> crate::batch::Rows {
    let likelihood = if scope == SftScope::Full { vec![0.0, 1.0, 1.0, 1.0] } else { vec![0.0; 4] };
    let chosen = HostRow { ids: &[1, 2, 3, 4], likelihood, response: vec![false, false, true, true] };
    let rejected = HostRow { ids: &[1, 2, 5], likelihood: vec![0.0; 3], response: vec![false, false, true] };
    collate(&[chosen, rejected], 0).unwrap()
}

#[test]
fn the_scope_decides_whether_the_prompt_carries_likelihood() {
    let run = |scope, logp: &[f32], tokens| {
        let method = Method::Orpo { lambda: 0.0, scope };
        method.of_logprobs(&array(logp), &pair(scope), Denominators { tokens, pairs: 1.0 }).unwrap()
    };
    // Prompt token −9, chosen response −1 and −3, rejected response −4.
    let full = run(SftScope::Full, &[-9.0, -1.0, -3.0, -4.0], 3.0);
    near(full.loss.item::<f32>().unwrap(), 13.0 / 3.0, 1e-6);
    let response = run(SftScope::Response, &[-1.0, -3.0, -4.0], 1.0);
    near(response.loss.item::<f32>().unwrap(), 2.0, 1e-6);
}

#[test]
fn the_report_holds_the_means_of_the_pairs() {
    let method = Method::Orpo { lambda: 0.5, scope: SftScope::Response };
    let counts = Denominators { tokens: 1.0, pairs: 1.0 };
    let evaluated = method.of_logprobs(&array(&[-1.0, -3.0, -4.0]), &pair(SftScope::Response), counts).unwrap();
    let report = floats(&evaluated.report.unwrap());
    let complement = |x: f64| (-x.exp()).ln_1p();
    let odds = 2.0 - (complement(-2.0) - complement(-4.0));
    let penalty = (-odds).exp().ln_1p();
    let want = [2.0, -2.0, -4.0, 1.0, -penalty, odds];
    assert_eq!(PREFERENCE_REPORT.len(), want.len());
    report.iter().zip(want).for_each(|(got, want)| near(*got, want, 1e-6));
    near(evaluated.loss.item::<f32>().unwrap(), 2.0 + 0.5 * penalty, 1e-6);
}
