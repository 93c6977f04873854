use std::collections::BTreeMap;
use std::path::Path;

use mlx_rs_core::{Dtype, ops, random};
use models::config::ModelConfig;
use models::lora::LoraSpec;
use models::weights::{Compute, Weights};
use serde_json::json;

use super::*;
use crate::batch::{HostRow, collate};
use crate::optimizer::AdamConfig;

/// A one-layer llama with seeded weights.
fn model() -> Model {
    let fields = json!({
        "model_type": "llama", "hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 16,
        "num_attention_heads": 2, "vocab_size": 12, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
    });
    let config = ModelConfig::from_json(Path::new("config.json"), fields.as_object().unwrap().clone()).unwrap();
    let mut tensors = BTreeMap::new();
    let names = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"];
    let names = names.iter().chain(&["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]);
    let mut shapes: Vec<(String, Vec<i32>)> =
        names.map(|name| (format!("model.layers.0.{name}.weight"), vec![16, 16])).collect();
    shapes.push(("model.embed_tokens.weight".to_owned(), vec![12, 16]));
    for (seed, (name, shape)) in shapes.into_iter().enumerate() {
        let key = random::key(seed as u64).unwrap();
        tensors.insert(name, random::normal(&shape, Dtype::Float32, 0.0, 0.4, Some(&key)).unwrap());
    }
    for name in ["model.norm", "model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm"] {
        tensors.insert(format!("{name}.weight"), ops::ones(&[16], Dtype::Float32).unwrap());
    }
    let weights = Weights::new(tensors, Path::new("tiny"), &config, Compute::AsStored).unwrap();
    Model::build(config, weights).unwrap()
}

fn adapter(model: &Model) -> Adapter {
    let targets = vec!["q_proj".to_owned(), "down_proj".to_owned()];
    Adapter::new(model, &LoraSpec { rank: 2, scale: 2.0, targets, num_layers: -1 }, 0).unwrap()
}

fn state(parameters: &[Array]) -> TrainState {
    let config = AdamConfig { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0, bias_correction: true };
    TrainState { parameters: parameters.to_vec(), optimizer: Adam::new(config, parameters).unwrap() }
}

/// One row whose last three tokens count, with this weight each.
fn rows(weight: f32) -> Rows {
    let likelihood = vec![0.0, 0.0, weight, weight, weight];
    collate(&[HostRow { ids: &[3, 1, 4, 1, 5], likelihood, response: vec![false; 5] }], 0).unwrap()
}

const COUNTS: Denominators = Denominators { tokens: 3.0, pairs: 0.0 };

fn step(model: &Model, adapter: &Adapter, state: &mut TrainState, rows: Rows, max_grad_norm: f32) -> StepReport {
    let context = StepContext { model, adapter, method: Method::Sft, max_grad_norm };
    take_step(&context, state, std::iter::once(Ok(rows)), COUNTS, 0.01).unwrap()
}

fn values(arrays: &[Array]) -> Vec<Vec<f32>> {
    arrays.iter().map(|array| array.to_vec().unwrap()).collect()
}

#[test]
fn steps_lower_the_loss_and_report_it_as_it_was_before_the_update() {
    let (model, adapter) = (model(), adapter(&model()));
    let mut state = state(adapter.parameters());
    let reports: Vec<StepReport> = (0..8).map(|_| step(&model, &adapter, &mut state, rows(1.0), 0.0)).collect();
    let first = Method::Sft.evaluate(&model, &rows(1.0), COUNTS).unwrap().loss.item::<f32>().unwrap();
    assert!((reports[0].loss - first).abs() < 1e-5, "B is zero, so the first loss is the base model's");
    assert!(reports.windows(2).all(|pair| pair[1].loss < pair[0].loss), "{reports:?}");
    assert!(reports.iter().all(|report| report.applied && report.grad_norm > 0.0 && report.values.is_empty()));
    assert_eq!(state.optimizer.step(), 8);
    assert_ne!(values(&state.parameters), values(adapter.parameters()));
}

#[test]
fn a_loss_that_is_not_finite_changes_nothing_and_the_next_step_goes_on() {
    let (model, adapter) = (model(), adapter(&model()));
    let mut state = state(adapter.parameters());
    step(&model, &adapter, &mut state, rows(1.0), 1.0);
    let (parameters, moments) = (values(&state.parameters), values(state.optimizer.moments().0));
    for weight in [f32::NAN, f32::INFINITY] {
        let report = step(&model, &adapter, &mut state, rows(weight), 1.0);
        assert!(!report.applied && !report.loss.is_finite());
        assert_eq!(values(&state.parameters), parameters);
        assert_eq!((values(state.optimizer.moments().0), state.optimizer.step()), (moments.clone(), 1));
    }
    assert!(step(&model, &adapter, &mut state, rows(1.0), 1.0).applied);
    assert_eq!(state.optimizer.step(), 2);
}

#[test]
fn a_gradient_that_is_not_finite_under_a_finite_loss_changes_nothing_either() {
    let (model, adapter) = (model(), adapter(&model()));
    let mut state = state(adapter.parameters());
    // The loss stays below the largest f32, its gradient's square does not.
    let report = step(&model, &adapter, &mut state, rows(1e30), 1.0);
    assert!(report.loss.is_finite() && !report.grad_norm.is_finite() && !report.applied, "{report:?}");
    assert_eq!(values(&state.parameters), values(adapter.parameters()));
}

#[test]
fn the_reported_norm_is_the_one_before_clipping_and_clipping_shortens_the_moments() {
    let (model, adapter) = (model(), adapter(&model()));
    let (mut free, mut held) = (state(adapter.parameters()), state(adapter.parameters()));
    let open = step(&model, &adapter, &mut free, rows(1.0), 0.0);
    let limit = open.grad_norm / 4.0;
    let clipped = step(&model, &adapter, &mut held, rows(1.0), limit);
    assert_eq!(open.grad_norm, clipped.grad_norm);
    for (free, held) in
        values(free.optimizer.moments().0).concat().iter().zip(values(held.optimizer.moments().0).concat())
    {
        assert!((free / 4.0 - held).abs() <= 1e-6 * free.abs() + 1e-12, "{free} became {held}");
    }
}

#[test]
fn the_base_model_is_untouched_by_training() {
    let (model, adapter) = (model(), adapter(&model()));
    let tokens = Array::from_slice(&[3i32, 1, 4], &[1, 3]).unwrap();
    let before = model.forward(&tokens, None).unwrap().to_vec::<f32>().unwrap();
    let mut state = state(adapter.parameters());
    (0..3).for_each(|_| drop(step(&model, &adapter, &mut state, rows(1.0), 0.0)));
    assert_eq!(model.forward(&tokens, None).unwrap().to_vec::<f32>().unwrap(), before);
    let trained = adapter.install(&model, &state.parameters).unwrap();
    assert_ne!(trained.forward(&tokens, None).unwrap().to_vec::<f32>().unwrap(), before);
}

#[test]
fn an_error_while_making_a_batch_reaches_the_caller_and_changes_nothing() {
    let (model, adapter) = (model(), adapter(&model()));
    let mut state = state(adapter.parameters());
    let context = StepContext { model: &model, adapter: &adapter, method: Method::Sft, max_grad_norm: 0.0 };
    let broken = [Ok(rows(1.0)), Err(mlx_rs_core::Error::argument("collate", "no row"))];
    let error = take_step(&context, &mut state, broken.into_iter(), COUNTS, 0.01).unwrap_err();
    assert!(error.to_string().contains("no row"), "{error}");
    assert_eq!(values(&state.parameters), values(adapter.parameters()));
}
