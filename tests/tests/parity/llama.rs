//! The llama goldens: forward, SFT loss, LoRA gradients, AdamW curves.

use mlx_rs_core::{Array, Dtype, ops};
use models::Model;
use models::lora::Adapter;
use trainer::batch::{HostRow, Rows, collate};
use trainer::gradients::window_gradients;
use trainer::loss::{Denominators, Method, logprobs};
use trainer::optimizer::Adam;
use trainer::step::{StepContext, TrainState, take_step};
use workspace_tests::golden::{Golden, columns, host};

/// Which targets carry the loss.
#[derive(Clone, Copy, PartialEq)]
enum Supervised {
    /// The response.
    Response,
    /// Everything after the first token.
    Whole,
}

/// The golden's rows as our trainer makes them. With `first_pad`, a short row is followed by one pad token that counts,
/// which is what mlx-lm's mask amounts to.
fn rows(golden: &Golden, supervised: Supervised, first_pad: bool) -> (Rows, Denominators) {
    let (batch, lengths) = (golden.ids("batch"), golden.ints("lengths"));
    let prompts = golden.ints("prompt_lengths");
    let mut count = 0;
    let host: Vec<HostRow<'_>> = batch
        .iter()
        .zip(lengths.iter().zip(prompts))
        .map(|(ids, (length, prompt))| {
            let length = (*length as usize + usize::from(first_pad)).min(ids.len());
            let first = if supervised == Supervised::Whole { 1 } else { prompt as usize };
            let counts = |index: usize| index >= first;
            count += (0..length).filter(|index| counts(*index)).count();
            HostRow {
                ids: &ids[..length],
                likelihood: (0..length).map(|index| f32::from(u8::from(counts(index)))).collect(),
                response: vec![false; length],
            }
        })
        .collect();
    (collate(&host, 0).unwrap(), Denominators { tokens: count as f64, pairs: 0.0 })
}

fn sft_loss(model: &Model, (rows, denominators): &(Rows, Denominators)) -> Array {
    Method::Sft.evaluate(model, rows, *denominators).unwrap().loss
}

fn named(adapter: &Adapter, arrays: Vec<Array>) -> Vec<(String, Array)> {
    adapter.parameter_names().into_iter().zip(arrays).collect()
}

fn inputs(golden: &Golden) -> Array {
    let batch = golden.tensor("batch");
    columns(batch, 0, batch.shape()[1] - 1)
}

fn check_forward(golden: &Golden) {
    let model = golden.model();
    golden.assert_close("logits", &model.forward(&inputs(golden), None).unwrap());
    let lora = golden.start_adapter(&model).apply(&model).unwrap();
    golden.assert_close("logits_lora", &lora.forward(&inputs(golden), None).unwrap());
    let prompt = golden.tensor("prompt");
    golden.assert_close("logits_prompt", &model.forward(prompt, None).unwrap());
    let chunks = golden.meta()["chunks"].as_array().unwrap().iter().map(|width| width.as_i64().unwrap() as i32);
    golden.assert_close("logits_chunked", &through_cache(&model, prompt, chunks));
    let one_by_one = std::iter::repeat_n(1, prompt.shape()[1] as usize);
    golden.assert_close("logits_cached", &through_cache(&model, prompt, one_by_one));
}

fn through_cache(model: &Model, prompt: &Array, widths: impl Iterator<Item = i32>) -> Array {
    let mut cache = model.new_cache();
    let mut at = 0;
    let parts: Vec<Array> = widths
        .map(|width| {
            at += width;
            model.forward(&columns(prompt, at - width, at), Some(&mut cache)).unwrap()
        })
        .collect();
    assert_eq!(at, prompt.shape()[1]);
    assert!(cache.iter().all(|layer| layer.offset() == at));
    ops::concatenate(&parts, 1).unwrap()
}

fn check_draws(golden: &Golden) {
    let model = golden.model();
    let adapter = golden.fresh_adapter(&model);
    golden.assert_group_close("lora_init", &named(&adapter, adapter.parameters().to_vec()));
    // The recorded order has every target of ours and no other.
    let mut drawn: Vec<&str> =
        golden.meta()["lora_init"]["draws"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    drawn.sort_unstable();
    assert!(adapter.targets().iter().map(|target| target.path.as_str()).eq(drawn));
}

fn check_logprobs(golden: &Golden) {
    let model = golden.model();
    let batch = golden.ids("batch");
    let likelihood = |width: usize| (0..width).map(|index| f32::from(u8::from(index > 0))).collect();
    let rows: Vec<HostRow<'_>> = batch
        .iter()
        .map(|ids| HostRow { ids, likelihood: likelihood(ids.len()), response: vec![false; ids.len()] })
        .collect();
    let rows = collate(&rows, 0).unwrap();
    assert!(rows.positions.is_none(), "every position counts here");
    let got = logprobs::target_logprobs(&model, &rows).unwrap();
    golden.assert_close("token_logprobs", &got.reshape(golden.tensor("token_logprobs").shape()).unwrap());
}

/// Ours counts no padding; mlx-lm counts the first pad token of a short row, and gives that loss.
fn check_loss(golden: &Golden) {
    let model = golden.model();
    let model = golden.start_adapter(&model).apply(&model).unwrap();
    for (supervised, name) in [(Supervised::Response, ""), (Supervised::Whole, "_whole")] {
        let (loss, count) = (format!("loss{name}"), format!("count{name}"));
        let right = rows(golden, supervised, false);
        assert_eq!(right.1.tokens, golden.scalar(&count));
        golden.assert_close(&loss, &sft_loss(&model, &right));
        let with_pad = rows(golden, supervised, true);
        assert_eq!(with_pad.1.tokens, golden.scalar(&format!("{count}_mlx_lm")));
        assert_eq!(with_pad.1.tokens, right.1.tokens + 1.0);
        let theirs = sft_loss(&model, &with_pad);
        golden.assert_close(&format!("{loss}_mlx_lm"), &theirs);
        let apart = (host(&theirs)[0] - golden.scalar(&loss)).abs();
        assert!(apart > 1e-3, "the pad token moves the loss by {apart} only");
    }
}

fn check_gradients(golden: &Golden) {
    let model = golden.model();
    let adapter = golden.start_adapter(&model);
    let (rows, denominators) = rows(golden, Supervised::Response, false);
    let window = std::iter::once(Ok(rows));
    let got = window_gradients(&model, &adapter, adapter.parameters(), Method::Sft, window, denominators).unwrap();
    golden.assert_close("loss", &got.loss);
    golden.assert_group_close("grads", &named(&adapter, got.gradients));
}

fn check_curve(golden: &Golden, kind: &str, bias_correction: bool) {
    let model = golden.model();
    let adapter = golden.start_adapter(&model);
    let (rows, denominators) = rows(golden, Supervised::Response, false);
    let context = StepContext { model: &model, adapter: &adapter, method: Method::Sft, max_grad_norm: 0.0 };
    let optimizer = Adam::new(golden.adam(bias_correction), adapter.parameters()).unwrap();
    let mut state = TrainState { parameters: adapter.parameters().to_vec(), optimizer };
    let want = format!("losses_{kind}");
    let losses: Vec<f32> = (0..golden.tensor(&want).size())
        .map(|_| {
            let window = std::iter::once(Ok(rows.clone()));
            let report = take_step(&context, &mut state, window, denominators, golden.learning_rate()).unwrap();
            assert!(report.applied);
            report.loss
        })
        .collect();
    golden.assert_close(&want, &Array::from_slice(&losses, &[losses.len() as i32]).unwrap());
    golden.assert_group_close(&format!("final_{kind}"), &named(&adapter, state.parameters));
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
            fn logits_are_mlx_lms_without_cache_token_by_token_in_chunks_and_with_lora() {
                check_forward(&golden());
            }

            #[test]
            fn a_fresh_adapter_is_bit_for_bit_mlx_lms() {
                check_draws(&golden());
            }

            #[test]
            fn token_logprobs_are_mlx_lms() {
                check_logprobs(&golden());
            }

            #[test]
            fn the_sft_loss_counts_no_padding_and_mlx_lms_one_pad_token() {
                check_loss(&golden());
            }

            #[test]
            fn every_lora_gradient_is_mlx_lms() {
                check_gradients(&golden());
            }

            #[test]
            fn ten_adamw_steps_follow_mlx_lm_without_bias_correction() {
                check_curve(&golden(), "plain", false);
            }

            #[test]
            fn ten_adamw_steps_follow_mlx_lm_with_bias_correction() {
                check_curve(&golden(), "corrected", true);
            }
        })*
    };
}

goldens!(llama3_rope, llama_4bit, llama_bias, llama_linear_rope, llama_tied, llama_untied);

#[test]
fn a_dense_copy_of_a_quantised_model_gives_the_same_logits() {
    let golden = Golden::open("llama_4bit");
    let dense = golden.model().dense().unwrap();
    golden.assert_close("logits", &dense.forward(&inputs(&golden), None).unwrap());
}

#[test]
fn a_model_in_bfloat16_computes_in_bfloat16_and_stays_near() {
    let golden = Golden::open("llama_tied");
    let compute = models::weights::Compute::Cast(Dtype::Bfloat16);
    let model = Model::load_directory(golden.folder(), compute).unwrap();
    let logits = model.forward(&inputs(&golden), None).unwrap();
    assert_eq!(logits.dtype(), Dtype::Bfloat16);
    let tolerance = workspace_tests::golden::Tolerance { rtol: 0.02, atol: 0.15 };
    workspace_tests::golden::assert_close("llama_tied/logits in bfloat16", &logits, golden.tensor("logits"), tolerance);
}
