use serde_json::json;

use super::*;
use crate::tiny_llama::{model, row};

/// One word per id: `w0`, `w1`, …; `w0` ends a text.
fn tokenizer() -> Tokenizer {
    let vocab: serde_json::Map<String, serde_json::Value> = (0..24).map(|id| (format!("w{id}"), json!(id))).collect();
    let file = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "w0"},
    });
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tokenizer.json"), file.to_string()).unwrap();
    std::fs::write(dir.path().join("tokenizer_config.json"), r#"{"eos_token": "w0"}"#).unwrap();
    Tokenizer::from_dir(dir.path()).unwrap()
}

fn options(max_tokens: usize) -> GenerateOptions {
    GenerateOptions { max_tokens, stop_ids: Vec::new(), sampling: SamplingOptions::default() }
}

fn run(prompt: &[u32], options: &GenerateOptions) -> Result<Generation> {
    generate(&model(), &tokenizer(), prompt, options, |_| ControlFlow::Continue(()))
}

/// The most probable next id after `ids`, without a cache.
fn next(ids: &[u32]) -> u32 {
    let signed: Vec<i32> = ids.iter().map(|id| *id as i32).collect();
    let logits = model().forward(&row(&signed), None).unwrap();
    let best = ops::argmax(&logits, Some(-1), false).unwrap().to_vec::<u32>().unwrap();
    *best.last().unwrap()
}

/// Greedy ids after `prompt` without a cache.
fn expected(prompt: &[u32], count: usize) -> Vec<u32> {
    let mut all = prompt.to_vec();
    for _ in 0..count {
        all.push(next(&all));
    }
    all.split_off(prompt.len())
}

const PROMPT: [u32; 3] = [5, 11, 7];

#[test]
fn greedy_decoding_takes_the_most_probable_token_after_all_before_it() {
    let ids = expected(&PROMPT, 8);
    assert!(!ids.contains(&0), "the tiny model ends too early for this test: {ids:?}");
    let said = run(&PROMPT, &options(8)).unwrap();
    assert_eq!((said.ids, said.finish), (ids, Finish::Length));
}

#[test]
fn a_prompt_longer_than_a_prefill_step_is_fed_in_pieces_to_the_same_end() {
    let prompt: Vec<u32> = (0..PREFILL_STEP as u32 * 2 + 3).map(|at| at * 7 % 24).collect();
    assert_eq!(run(&prompt, &options(1)).unwrap().ids, [next(&prompt)]);
}

#[test]
fn a_stop_id_ends_the_text_and_is_not_part_of_it() {
    let ids = expected(&PROMPT, 8);
    let stop = ids[3];
    let kept = ids.iter().take_while(|id| **id != stop).copied().collect::<Vec<_>>();
    let said = run(&PROMPT, &GenerateOptions { stop_ids: vec![stop], ..options(8) }).unwrap();
    assert_eq!((said.ids, said.finish), (kept, Finish::Stop));
}

#[test]
fn the_caller_can_stop_the_text_after_any_piece() {
    let mut pieces = Vec::new();
    let said = generate(&model(), &tokenizer(), &PROMPT, &options(8), |piece| {
        pieces.push(piece.to_owned());
        if pieces.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!((said.finish, pieces.len()), (Finish::Cancelled, 2));
    assert_eq!(said.text, pieces.concat());
}

#[test]
fn the_streamed_pieces_are_the_text() {
    let mut streamed = String::new();
    let said = generate(&model(), &tokenizer(), &PROMPT, &options(6), |piece| {
        streamed.push_str(piece);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(streamed, said.text);
    assert_eq!(said.text, tokenizer().decode(&said.ids, true).unwrap());
}

#[test]
fn no_tokens_asked_for_are_no_tokens() {
    let said = run(&PROMPT, &options(0)).unwrap();
    assert_eq!((said.ids.len(), said.text.as_str(), said.finish), (0, "", Finish::Length));
}

#[test]
fn an_empty_prompt_and_an_id_outside_the_vocabulary_are_refused() {
    let text = |prompt: &[u32]| run(prompt, &options(1)).expect_err("a refusal").to_string();
    assert_eq!(text(&[]), "generation: the prompt has no tokens");
    assert_eq!(text(&[1, 24]), "generation: prompt has id 24, but the vocabulary has 24");
}

#[test]
fn a_seed_repeats_its_text_and_another_gives_another() {
    let drawn = |seed| {
        let sampling = SamplingOptions { temperature: 1.0, seed, ..SamplingOptions::default() };
        run(&PROMPT, &GenerateOptions { sampling, ..options(12) }).unwrap().ids
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}
