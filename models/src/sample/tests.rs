use proptest::prelude::*;

use super::*;

fn sampler(options: SamplingOptions) -> Sampler {
    Sampler::new(options).unwrap()
}

fn hot() -> SamplingOptions {
    SamplingOptions { temperature: 1.0, ..SamplingOptions::default() }
}

fn ids(sampler: &Sampler, logits: &[f32]) -> Vec<u32> {
    sampler.candidates(logits, &[]).unwrap().into_iter().map(|(id, _)| id).collect()
}

/// Logits of those probabilities.
fn logits(probabilities: &[f32]) -> Vec<f32> {
    probabilities.iter().map(|probability| probability.ln()).collect()
}

#[test]
fn at_temperature_zero_the_greatest_logit_wins_and_the_first_among_equals() {
    let mut greedy = sampler(SamplingOptions::default());
    assert_eq!(greedy.sample(&[0.0, 3.0, -1.0, 3.0], &[]).unwrap(), 1);
    assert_eq!(greedy.sample(&[f32::NEG_INFINITY, -5.0], &[]).unwrap(), 1);
}

#[test]
fn top_p_keeps_tokens_until_the_mass_before_them_reaches_it() {
    let values = logits(&[0.1, 0.5, 0.15, 0.25]);
    let with = |top_p| sampler(SamplingOptions { top_p, ..hot() });
    assert_eq!(ids(&with(0.4), &values), [1]);
    assert_eq!(ids(&with(0.6), &values), [1, 3]);
    assert_eq!(ids(&with(0.8), &values), [1, 3, 2]);
    assert_eq!(ids(&with(0.95), &values), [1, 3, 2, 0]);
    assert_eq!(ids(&with(0.0), &values).len(), 4);
    assert_eq!(ids(&with(1.0), &values).len(), 4);
}

#[test]
fn top_p_keeps_every_token_equal_to_the_last_kept_one() {
    let values = logits(&[0.4, 0.2, 0.2, 0.2]);
    assert_eq!(ids(&sampler(SamplingOptions { top_p: 0.5, ..hot() }), &values), [0, 1, 2, 3]);
}

#[test]
fn min_p_drops_tokens_far_below_the_greatest() {
    let values = logits(&[0.5, 0.3, 0.15, 0.05]);
    assert_eq!(ids(&sampler(SamplingOptions { min_p: 0.25, ..hot() }), &values), [0, 1, 2]);
    assert_eq!(ids(&sampler(SamplingOptions { min_p: 1.0, ..hot() }), &values), [0]);
}

#[test]
fn top_k_keeps_that_many_and_the_lower_ids_among_equals() {
    let with = |top_k| sampler(SamplingOptions { top_k, ..hot() });
    assert_eq!(ids(&with(2), &[1.0, 2.0, 1.0, 1.0]), [1, 0]);
    assert_eq!(ids(&with(9), &[1.0, 2.0]).len(), 2);
}

#[test]
fn the_filters_apply_in_the_order_top_p_min_p_top_k() {
    // top_p 0.9 keeps four of five, min_p 0.3 three of those, top_k 2 two of those.
    let values = logits(&[0.4, 0.25, 0.15, 0.12, 0.08]);
    assert_eq!(ids(&sampler(SamplingOptions { top_p: 0.9, ..hot() }), &values).len(), 4);
    assert_eq!(ids(&sampler(SamplingOptions { top_p: 0.9, min_p: 0.35, ..hot() }), &values).len(), 3);
    assert_eq!(ids(&sampler(SamplingOptions { top_p: 0.9, min_p: 0.35, top_k: 2, ..hot() }), &values), [0, 1]);
}

#[test]
fn the_filters_look_at_probabilities_before_temperature() {
    let values = logits(&[0.5, 0.3, 0.2]);
    let warm = SamplingOptions { temperature: 5.0, top_p: 0.4, ..SamplingOptions::default() };
    assert_eq!(ids(&sampler(warm), &values), [0]);
}

#[test]
fn the_penalty_divides_positive_and_multiplies_negative_logits_once_for_each_recent_token() {
    let options = SamplingOptions { repetition_penalty: 2.0, repetition_context: 3, ..hot() };
    let scores = |history: &[u32]| {
        let mut scores = [4.0, -1.0, 2.0, 0.0];
        sampler(options).penalise(&mut scores, history).unwrap();
        scores
    };
    assert_eq!(scores(&[]), [4.0, -1.0, 2.0, 0.0]);
    assert_eq!(scores(&[0, 1, 0]), [2.0, -2.0, 2.0, 0.0]);
    assert_eq!(scores(&[2, 0, 1, 3]), [2.0, -2.0, 2.0, 0.0], "token 2 lies before the last three");
}

#[test]
fn the_penalty_changes_a_greedy_choice() {
    let mut penalised = sampler(SamplingOptions { repetition_penalty: 1.5, ..SamplingOptions::default() });
    assert_eq!(penalised.sample(&[2.0, 1.8], &[]).unwrap(), 0);
    assert_eq!(penalised.sample(&[2.0, 1.8], &[0]).unwrap(), 1);
}

#[test]
fn a_seed_always_gives_the_same_tokens() {
    let values: Vec<f32> = (0..50).map(|index| (index as f32 * 0.7).sin()).collect();
    let draw = |seed| -> Vec<u32> {
        let mut sampler = sampler(SamplingOptions { seed, ..hot() });
        (0..8).map(|_| sampler.sample(&values, &[]).unwrap()).collect()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    // Stated, so that another generator or another use of its numbers does not pass for the same.
    assert_eq!(draw(0), [31, 46, 31, 38, 23, 19, 9, 8]);
}

#[test]
fn draws_follow_the_tempered_probabilities() {
    let mut sampler = sampler(SamplingOptions { temperature: 0.5, seed: 3, ..SamplingOptions::default() });
    let values = logits(&[0.6, 0.3, 0.1]);
    let mut counts = [0u32; 3];
    let draws = 20_000;
    for _ in 0..draws {
        counts[sampler.sample(&values, &[]).unwrap() as usize] += 1;
    }
    // At temperature 1/2 probabilities are squared: 36 : 9 : 1.
    for (count, wanted) in counts.iter().zip([36.0 / 46.0, 9.0 / 46.0, 1.0 / 46.0]) {
        let share = f64::from(*count) / f64::from(draws);
        // Five standard deviations of the worst case.
        assert!((share - wanted).abs() < 5.0 * (0.25 / f64::from(draws)).sqrt(), "{share} for {wanted}");
    }
}

#[test]
fn broken_logits_are_refused_with_their_token() {
    let mut greedy = sampler(SamplingOptions::default());
    let mut complaint = |logits: &[f32]| greedy.sample(logits, &[]).unwrap_err().to_string();
    assert_eq!(complaint(&[1.0, f32::NAN]), "sampling: logits: found NaN for token 1, wanted finite numbers or -inf");
    assert_eq!(complaint(&[f32::INFINITY]), "sampling: logits: found inf for token 0, wanted finite numbers or -inf");
    assert_eq!(complaint(&[]), "sampling: logits: found none, wanted one for each token");
    assert_eq!(
        complaint(&[f32::NEG_INFINITY; 2]),
        "sampling: logits: found -inf for every token, wanted at least one possible token"
    );
    let mut penalised = sampler(SamplingOptions { repetition_penalty: 2.0, ..hot() });
    let error = penalised.sample(&[1.0], &[5]).unwrap_err();
    assert_eq!(error.to_string(), "sampling: history: found token id 5, wanted ids below 1");
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let complaint = |options: SamplingOptions| Sampler::new(options).unwrap_err().to_string();
    let base = SamplingOptions::default();
    let cases = [
        (SamplingOptions { temperature: -1.0, ..base }, "temperature: found -1, wanted a number of 0 or more"),
        (SamplingOptions { temperature: f32::NAN, ..base }, "temperature: found NaN, wanted a number of 0 or more"),
        (SamplingOptions { top_p: 1.5, ..base }, "top_p: found 1.5, wanted a number from 0 to 1"),
        (SamplingOptions { min_p: -0.1, ..base }, "min_p: found -0.1, wanted a number from 0 to 1"),
        (SamplingOptions { repetition_penalty: 0.0, ..base }, "repetition_penalty: found 0, wanted a number above 0"),
    ];
    for (options, wanted) in cases {
        assert_eq!(complaint(options), format!("sampling: {wanted}"));
    }
}

#[derive(serde::Deserialize)]
struct PeerOptions {
    top_p: f32,
    min_p: f32,
    top_k: usize,
    repetition_penalty: f32,
    repetition_context: usize,
}

#[derive(serde::Deserialize)]
struct PeerCase {
    logits: Vec<f32>,
    history: Vec<u32>,
    options: PeerOptions,
    kept: Vec<u32>,
    logprobs: Vec<f32>,
}

#[test]
fn the_filters_leave_the_tokens_that_mlx_lm_leaves() {
    let cases: Vec<PeerCase> = serde_json::from_str(include_str!("../../testdata/sampling.json")).unwrap();
    assert_eq!(cases.len(), 60);
    for (index, case) in cases.iter().enumerate() {
        let PeerOptions { top_p, min_p, top_k, repetition_penalty, repetition_context } = case.options;
        let options = SamplingOptions { top_p, min_p, top_k, repetition_penalty, repetition_context, ..hot() };
        let candidates = sampler(options).candidates(&case.logits, &case.history).unwrap();
        let sorted = |mut scores: Vec<f32>| {
            scores.sort_by(f32::total_cmp);
            scores
        };
        // Among tokens equal to the last of the top k mlx-lm keeps any; their scores must be the same all the same.
        let got = sorted(candidates.iter().map(|candidate| candidate.1).collect());
        let wanted = sorted(case.logprobs.clone());
        assert_eq!(got.len(), wanted.len(), "case {index}");
        for (got, wanted) in got.iter().zip(&wanted) {
            assert!((got - wanted).abs() <= 2e-6 * wanted.abs().max(1.0), "case {index}: {got} for {wanted}");
        }
        let lowest = wanted[0];
        let mut above: Vec<u32> =
            candidates.iter().filter(|(_, score)| *score > lowest + 1e-3).map(|(id, _)| *id).collect();
        above.sort_unstable();
        let kept = case.kept.iter().zip(&case.logprobs);
        let kept: Vec<u32> = kept.filter(|(_, score)| **score > lowest + 1e-3).map(|(id, _)| *id).collect();
        assert_eq!(above, kept, "case {index}");
    }
}

proptest! {
    #[test]
    fn whatever_the_options_the_draw_is_a_candidate_and_the_greatest_always_is(
        values in prop::collection::vec(-30f32..30.0, 1..80),
        temperature in 0.01f32..4.0, top_p in 0f32..1.0, min_p in 0f32..1.0, top_k in 0usize..90, seed: u64,
    ) {
        let options = SamplingOptions { temperature, top_p, min_p, top_k, seed, ..SamplingOptions::default() };
        let mut sampler = sampler(options);
        let candidates = ids(&sampler, &values);
        let greatest = greatest(&values).unwrap() as u32;
        prop_assert_eq!(candidates[0], greatest);
        prop_assert!(top_k == 0 || candidates.len() <= top_k);
        for _ in 0..20 {
            let drawn = sampler.sample(&values, &[]).unwrap();
            prop_assert!(candidates.contains(&drawn), "{} is none of {:?}", drawn, candidates);
        }
    }

    #[test]
    fn a_constant_added_to_all_logits_changes_nothing(
        values in prop::collection::vec((-20i8..20).prop_map(f32::from), 1..40), shift in -8i8..8,
    ) {
        let options = SamplingOptions { top_k: 5, ..hot() };
        let shifted: Vec<f32> = values.iter().map(|value| value + f32::from(shift)).collect();
        prop_assert_eq!(ids(&sampler(options), &values), ids(&sampler(options), &shifted));
    }
}
