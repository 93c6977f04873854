//! The ORPO goldens: terms, LoRA gradients, AdamW curves, and a finite-difference check of the gradients.

use mlx_rs_core::{Array, Dtype, ops, random};
use models::Model;
use models::lora::Adapter;
use trainer::batch::{HostRow, Rows, collate};
use trainer::gradients::{WindowGradients, window_gradients};
use trainer::loss::orpo::log_odds_ratio;
use trainer::loss::{Denominators, Method, SftScope, logprobs};
use trainer::optimizer::Adam;
use trainer::step::{StepContext, TrainState, take_step};
use workspace_tests::golden::{Golden, host};

use super::orpo_reference::{self, Row};

/// A preference pair without padding.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) chosen: Vec<u32>,
    pub(super) rejected: Vec<u32>,
    pub(super) prompt: usize,
}

pub(super) const SCOPES: [(SftScope, &str); 2] = [(SftScope::Response, "response"), (SftScope::Full, "full")];

pub(super) fn pairs(golden: &Golden) -> Vec<Pair> {
    let cut = |side: &str| -> Vec<Vec<u32>> {
        let rows = golden.ids(side).into_iter().zip(golden.ints(&format!("{side}_lengths")));
        rows.map(|(ids, length)| ids[..length as usize].to_vec()).collect()
    };
    let rows = cut("chosen").into_iter().zip(cut("rejected")).zip(golden.ints("prompt_lengths"));
    rows.map(|((chosen, rejected), prompt)| Pair { chosen, rejected, prompt: prompt as usize }).collect()
}

/// Chosen rows, then rejected ones, as the trainer lays a batch of pairs out.
pub(super) fn batch(pairs: &[Pair], scope: SftScope) -> Rows {
    let row = |ids, prompt, likelihood| host_row(ids, prompt, likelihood);
    let likelihood = f32::from(u8::from(scope == SftScope::Full));
    let chosen = pairs.iter().map(|pair| row(&pair.chosen, pair.prompt, likelihood));
    let rejected = pairs.iter().map(|pair| row(&pair.rejected, pair.prompt, 0.0));
    collate(&chosen.chain(rejected).collect::<Vec<_>>(), 0).unwrap()
}

fn host_row(ids: &[u32], prompt: usize, likelihood: f32) -> HostRow<'_> {
    HostRow {
        ids,
        likelihood: (0..ids.len()).map(|index| if index == 0 { 0.0 } else { likelihood }).collect(),
        response: (0..ids.len()).map(|index| index >= prompt).collect(),
    }
}

pub(super) fn denominators(pairs: &[Pair], scope: SftScope) -> Denominators {
    let tokens = match scope {
        SftScope::Full => pairs.iter().map(|pair| pair.chosen.len() - 1).sum(),
        SftScope::Response => pairs.len(),
    };
    Denominators { tokens: tokens as f64, pairs: pairs.len() as f64 }
}

fn method(golden: &Golden, scope: SftScope) -> Method {
    Method::Orpo { lambda: golden.meta()["lambda"].as_f64().unwrap() as f32, scope }
}

fn gradients(golden: &Golden, model: &Model, adapter: &Adapter, scope: SftScope) -> WindowGradients {
    let pairs = pairs(golden);
    let window = std::iter::once(Ok(batch(&pairs, scope)));
    let counts = denominators(&pairs, scope);
    window_gradients(model, adapter, adapter.parameters(), method(golden, scope), window, counts).unwrap()
}

fn named(adapter: &Adapter, arrays: Vec<Array>) -> Vec<(String, Array)> {
    adapter.parameter_names().into_iter().zip(arrays).collect()
}

fn check_terms(golden: &Golden) {
    let base = golden.model();
    let model = golden.start_adapter(&base).apply(&base).unwrap();
    let pairs = pairs(golden);
    for (scope, name) in SCOPES {
        let rows = batch(&pairs, scope);
        let logp = logprobs::target_logprobs(&model, &rows).unwrap();
        let halves = ops::split(&logprobs::response_means(&logp, &rows).unwrap(), 2, 0).unwrap();
        golden.assert_close("lw", &halves[0]);
        golden.assert_close("lr", &halves[1]);
        golden.assert_close("log_odds", &log_odds_ratio(&halves[0], &halves[1]).unwrap());
        let evaluated = method(golden, scope).evaluate(&model, &rows, denominators(&pairs, scope)).unwrap();
        golden.assert_close(&format!("{name}_loss"), &evaluated.loss);
        check_report(golden, name, &evaluated.report.unwrap());
    }
}

/// The report's six values against means over the golden's pairs.
fn check_report(golden: &Golden, scope: &str, report: &Array) {
    let (lw, lr) = (host(golden.tensor("lw")), host(golden.tensor("lr")));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let accurate: Vec<f64> = lw.iter().zip(&lr).map(|(w, r)| f64::from(u8::from(w > r))).collect();
    let nll = golden.scalar(&format!("{scope}_nll"));
    let lambda = golden.meta()["lambda"].as_f64().unwrap();
    let odds = (golden.scalar(&format!("{scope}_loss")) - nll) / lambda;
    let want = [nll, mean(&lw), mean(&lr), mean(&accurate), -odds, mean(&host(golden.tensor("log_odds")))];
    for (got, want) in host(report).into_iter().zip(want) {
        // The odds term is a difference of two recorded losses divided by λ = 0.1, so it has a tenth of their digits.
        assert!((got - want).abs() < 2e-5, "{scope}: report {:?}, wanted {want}", host(report));
    }
}

/// The MLX loss, and the f64 one on the logits of the same model.
fn check_against_f64(golden: &Golden) {
    let base = golden.model();
    let model = golden.start_adapter(&base).apply(&base).unwrap();
    let pairs = pairs(golden);
    let row = |ids: &[u32], prompt: usize| {
        let signed: Vec<i32> = ids[..ids.len() - 1].iter().map(|id| *id as i32).collect();
        let logits = model.forward(&Array::from_slice(&signed, &[1, signed.len() as i32]).unwrap(), None).unwrap();
        let vocabulary = logits.shape()[2] as usize;
        Row {
            logits: host(&logits).chunks(vocabulary).map(<[f64]>::to_vec).collect(),
            targets: ids[1..].iter().map(|id| *id as usize).collect(),
            prompt,
            length: ids.len(),
        }
    };
    let chosen: Vec<Row> = pairs.iter().map(|pair| row(&pair.chosen, pair.prompt)).collect();
    let rejected: Vec<Row> = pairs.iter().map(|pair| row(&pair.rejected, pair.prompt)).collect();
    for (scope, name) in SCOPES {
        let want = orpo_reference::orpo(&chosen, &rejected, golden.meta()["lambda"].as_f64().unwrap(), scope).loss;
        let evaluated = method(golden, scope).evaluate(&model, &batch(&pairs, scope), denominators(&pairs, scope));
        let got = host(&evaluated.unwrap().loss)[0];
        println!("parity f64 reference {name} worst {:.2e}", (got - want).abs());
        assert!((got - want).abs() < 2e-6 * want, "{name}: got {got}, the f64 reference gives {want}");
    }
}

fn check_gradients(golden: &Golden) {
    let model = golden.model();
    let adapter = golden.start_adapter(&model);
    for (scope, name) in SCOPES {
        let got = gradients(golden, &model, &adapter, scope);
        golden.assert_close(&format!("{name}_loss"), &got.loss);
        golden.assert_group_close(&format!("{name}_grads"), &named(&adapter, got.gradients));
    }
}

fn check_curves(golden: &Golden) {
    let model = golden.model();
    let adapter = golden.start_adapter(&model);
    let pairs = pairs(golden);
    assert_eq!(golden.meta()["optimizer"]["bias_correction"], true);
    for (scope, name) in SCOPES {
        let context =
            StepContext { model: &model, adapter: &adapter, method: method(golden, scope), max_grad_norm: 0.0 };
        let optimizer = Adam::new(golden.adam(true), adapter.parameters()).unwrap();
        let mut state = TrainState { parameters: adapter.parameters().to_vec(), optimizer };
        let rows = batch(&pairs, scope);
        let losses: Vec<f32> = (0..golden.tensor(&format!("{name}_losses")).size())
            .map(|_| {
                let window = std::iter::once(Ok(rows.clone()));
                let counts = denominators(&pairs, scope);
                take_step(&context, &mut state, window, counts, golden.learning_rate()).unwrap().loss
            })
            .collect();
        let losses = Array::from_slice(&losses, &[losses.len() as i32]).unwrap();
        golden.assert_close(&format!("{name}_losses"), &losses);
        golden.assert_group_close(&format!("{name}_final"), &named(&adapter, state.parameters));
    }
}

macro_rules! goldens {
    ($($name:ident),* $(,)?) => {
        pub(super) const TESTED: &[&str] = &[$(stringify!($name)),*];

        $(mod $name {
            use super::*;

            fn golden() -> Golden {
                Golden::open(stringify!($name))
            }

            #[test]
            fn means_odds_and_losses_of_both_scopes_are_the_goldens() {
                check_terms(&golden());
            }

            #[test]
            fn the_loss_is_the_plain_f64_formula_on_the_same_logits() {
                check_against_f64(&golden());
            }

            #[test]
            fn every_lora_gradient_of_both_scopes_is_the_goldens() {
                check_gradients(&golden());
            }

            #[test]
            fn ten_adamw_steps_of_both_scopes_follow_the_golden() {
                check_curves(&golden());
            }
        })*
    };
}

goldens!(orpo_4bit, orpo_tied);

/// Length of the steps of the difference quotient: the third derivative and the rounding of an f32 loss weigh about the
/// same there.
const STEP: f64 = 0.02;

#[test]
fn orpo_gradients_are_the_slopes_of_the_loss_in_a_random_direction_of_each_tensor() {
    let golden = Golden::open("orpo_tied");
    let model = golden.model();
    let adapter = golden.start_adapter(&model);
    let pairs = pairs(&golden);
    for (scope, name) in SCOPES {
        let rows = batch(&pairs, scope);
        let got = gradients(&golden, &model, &adapter, scope);
        let loss_at = |parameters: &[Array]| {
            let model = adapter.install(&model, parameters).unwrap();
            host(&method(&golden, scope).evaluate(&model, &rows, denominators(&pairs, scope)).unwrap().loss)[0]
        };
        let mut telling = 0;
        for (index, gradient) in got.gradients.iter().enumerate() {
            let direction = unit_direction(gradient.shape(), index as u64);
            let moved = |by: f64| {
                let mut parameters = adapter.parameters().to_vec();
                parameters[index] = (&parameters[index] + (&direction * by).unwrap()).unwrap();
                loss_at(&parameters)
            };
            let slope = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let along = dot(gradient, &direction);
            let allowed = 1e-4 + 2e-3 * dot(gradient, gradient).sqrt();
            let parameter = &adapter.parameter_names()[index];
            assert!((slope - along).abs() < allowed, "{name} {parameter}: slope {slope}, gradient {along} ± {allowed}");
            telling += usize::from(along.abs() > 5.0 * allowed);
        }
        // A slope within the allowance would pass with a gradient of zero.
        println!("{name}: {telling} of {} directions are telling", got.gradients.len());
        assert!(2 * telling > got.gradients.len(), "{name}: only {telling} directions show a slope");
    }
}

fn unit_direction(shape: &[i32], seed: u64) -> Array {
    let noise = random::normal(shape, Dtype::Float32, 0.0, 1.0, Some(&random::key(seed).unwrap())).unwrap();
    (&noise / dot(&noise, &noise).sqrt()).unwrap()
}

fn dot(left: &Array, right: &Array) -> f64 {
    host(left).iter().zip(host(right)).map(|(left, right)| left * right).sum()
}
