//! The next token out of logits, on the host.
//!
//! The steps are mlx-lm 0.32.2's, in its order, on 32-bit floats:
//!
//! 1. **repetition penalty** on the logits of the distinct tokens among the last `repetition_context` of the history
//!    (prompt included): a negative logit is multiplied by the penalty, any other divided by it;
//! 2. log-probabilities, `logits − logsumexp(logits)`;
//! 3. at temperature 0: the greatest, the lowest id among equals. Nothing below applies;
//! 4. **top-p** on the probabilities at temperature 1: tokens in descending order are kept while the mass of those
//!    before them is less than `top_p` of the whole; tokens equal to the last kept one stay too. Off at 0 and from 1;
//! 5. **min-p**: tokens below `min_p` times the greatest probability are dropped. Off at 0;
//! 6. **top-k**: the `top_k` most probable of what is left; lower ids first among equals. Off at 0 and from the
//!    vocabulary's size (where mlx-lm refuses);
//! 7. a draw from `softmax(log-probabilities / temperature)` over what is left.
//!
//! Draws come from ChaCha8, whose numbers never change between versions or machines: equal seeds, options and logits
//! give equal tokens. They are not MLX's random numbers, so a seed does not reproduce mlx-lm's choice.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::error::{ModelError, Result};

/// How tokens are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplingOptions {
    /// 0 takes the most probable token; higher is more varied. Default 0.
    pub temperature: f32,
    /// Share of the probability mass to draw from; 0 or 1 is all. Default 0.
    pub top_p: f32,
    /// Number of tokens to draw from; 0 is all. Default 0.
    pub top_k: usize,
    /// Least probability relative to the most probable token; 0 is none. Default 0.
    pub min_p: f32,
    /// Divisor for tokens that occurred lately; 1 is none. Default 1.
    pub repetition_penalty: f32,
    /// How many of the last tokens count as lately. Default 20.
    pub repetition_context: usize,
    /// Seed of the draws. Default 0.
    pub seed: u64,
}

impl Default for SamplingOptions {
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_p: 0.0,
            top_k: 0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            repetition_context: 20,
            seed: 0,
        }
    }
}

impl SamplingOptions {
    /// Checks every option.
    ///
    /// # Errors
    /// Names the option that is out of range or not a number.
    pub fn check(&self) -> Result<()> {
        let within = |name: &str, value: f32, good: bool, wanted: &str| {
            if good { Ok(()) } else { Err(ModelError::sampling(name, value.to_string(), wanted)) }
        };
        let share = |value: f32| (0.0..=1.0).contains(&value);
        let temperature = self.temperature;
        within("temperature", temperature, temperature.is_finite() && temperature >= 0.0, "a number of 0 or more")?;
        within("top_p", self.top_p, share(self.top_p), "a number from 0 to 1")?;
        within("min_p", self.min_p, share(self.min_p), "a number from 0 to 1")?;
        let penalty = self.repetition_penalty;
        within("repetition_penalty", penalty, penalty.is_finite() && penalty > 0.0, "a number above 0")
    }
}

/// Chooses tokens; holds the options and the state of the draws.
#[derive(Debug, Clone)]
pub struct Sampler {
    options: SamplingOptions,
    random: ChaCha8Rng,
}

impl Sampler {
    /// A sampler at the start of its seed's draws.
    ///
    /// # Errors
    /// As [`SamplingOptions::check`].
    pub fn new(options: SamplingOptions) -> Result<Self> {
        options.check()?;
        Ok(Self { options, random: ChaCha8Rng::seed_from_u64(options.seed) })
    }

    /// The options.
    pub fn options(&self) -> &SamplingOptions {
        &self.options
    }

    /// The next token. `logits` has one value for each token of the vocabulary, `history` the ids so far, prompt
    /// included, of which only the penalty takes notice.
    ///
    /// # Errors
    /// No logits, a NaN or +∞ among them, all −∞, or a history id beyond the vocabulary.
    pub fn sample(&mut self, logits: &[f32], history: &[u32]) -> Result<u32> {
        let (scores, greatest) = self.scores(logits, history)?;
        if self.options.temperature == 0.0 {
            return Ok(greatest as u32);
        }
        let candidates = self.filtered(scores, greatest);
        Ok(self.draw(&candidates))
    }

    /// The tokens that a draw may give, the most probable first, with their log-probabilities before temperature.
    ///
    /// # Errors
    /// As [`Sampler::sample`].
    pub fn candidates(&self, logits: &[f32], history: &[u32]) -> Result<Vec<(u32, f32)>> {
        let (mut scores, greatest) = self.scores(logits, history)?;
        if self.options.temperature == 0.0 {
            log_probabilities(&mut scores, greatest);
            return Ok(vec![(greatest as u32, scores[greatest])]);
        }
        Ok(self.filtered(scores, greatest))
    }

    /// The logits after the penalty, and the place of the greatest.
    fn scores(&self, logits: &[f32], history: &[u32]) -> Result<(Vec<f32>, usize)> {
        let mut scores = logits.to_vec();
        self.penalise(&mut scores, history)?;
        let greatest = greatest(&scores)?;
        Ok((scores, greatest))
    }

    fn filtered(&self, mut scores: Vec<f32>, greatest: usize) -> Vec<(u32, f32)> {
        log_probabilities(&mut scores, greatest);
        let mut ranked = rank(&scores);
        top_p(&mut ranked, self.options.top_p);
        min_p(&mut ranked, self.options.min_p);
        if self.options.top_k > 0 {
            ranked.truncate(self.options.top_k);
        }
        ranked
    }

    fn penalise(&self, scores: &mut [f32], history: &[u32]) -> Result<()> {
        let penalty = self.options.repetition_penalty;
        if penalty == 1.0 {
            return Ok(());
        }
        let start = history.len().saturating_sub(self.options.repetition_context);
        let mut recent = history[start..].to_vec();
        recent.sort_unstable();
        recent.dedup();
        for id in recent {
            let size = scores.len();
            let score = scores.get_mut(id as usize).ok_or_else(|| {
                ModelError::sampling("history", format!("token id {id}"), format!("ids below {size}"))
            })?;
            *score = if *score < 0.0 { *score * penalty } else { *score / penalty };
        }
        Ok(())
    }

    fn draw(&mut self, ranked: &[(u32, f32)]) -> u32 {
        let temperature = f64::from(self.options.temperature);
        let top = f64::from(ranked[0].1);
        let weights: Vec<f64> =
            ranked.iter().map(|(_, score)| ((f64::from(*score) - top) / temperature).exp()).collect();
        // 53 random bits: a uniform number in [0, 1).
        let uniform = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut left = uniform * weights.iter().sum::<f64>();
        for ((id, _), weight) in ranked.iter().zip(&weights) {
            left -= weight;
            if left < 0.0 {
                return *id;
            }
        }
        // Rounding may leave a crumb beyond the last weight; it belongs to the most probable token.
        ranked[0].0
    }
}

/// Index of the greatest score, the first among equals.
fn greatest(scores: &[f32]) -> Result<usize> {
    let mut best = None::<usize>;
    for (index, score) in scores.iter().enumerate() {
        if score.is_nan() || *score == f32::INFINITY {
            let got = format!("{score} for token {index}");
            return Err(ModelError::sampling("logits", got, "finite numbers or -inf")
                .with_hint("the model's output is broken: check the weights and the adapter"));
        }
        if best.is_none_or(|best| *score > scores[best]) {
            best = Some(index);
        }
    }
    match best {
        None => Err(ModelError::sampling("logits", "none", "one for each token")),
        Some(best) if scores[best] == f32::NEG_INFINITY => {
            Err(ModelError::sampling("logits", "-inf for every token", "at least one possible token"))
        }
        Some(best) => Ok(best),
    }
}

fn log_probabilities(scores: &mut [f32], greatest: usize) {
    let top = scores[greatest];
    let sum: f64 = scores.iter().map(|score| f64::from(score - top).exp()).sum();
    let normaliser = top + sum.ln() as f32;
    for score in scores {
        *score -= normaliser;
    }
}

/// Possible tokens, the most probable first, lower ids first among equals.
fn rank(scores: &[f32]) -> Vec<(u32, f32)> {
    let possible = scores.iter().zip(0u32..).filter(|(score, _)| **score > f32::NEG_INFINITY);
    let mut ranked: Vec<_> = possible.map(|(score, id)| (id, *score)).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

fn top_p(ranked: &mut Vec<(u32, f32)>, top_p: f32) {
    if !(top_p > 0.0 && top_p < 1.0) {
        return;
    }
    let total: f64 = ranked.iter().map(|(_, score)| f64::from(*score).exp()).sum();
    let mut above = 0.0;
    let mut threshold = f32::INFINITY;
    let mut kept = 0;
    for (_, score) in ranked.iter() {
        if above >= f64::from(top_p) * total && *score < threshold {
            break;
        }
        above += f64::from(*score).exp();
        threshold = *score;
        kept += 1;
    }
    ranked.truncate(kept);
}

fn min_p(ranked: &mut Vec<(u32, f32)>, min_p: f32) {
    if min_p > 0.0 && !ranked.is_empty() {
        let threshold = ranked[0].1 + min_p.ln();
        ranked.retain(|(_, score)| *score >= threshold);
    }
}

#[cfg(test)]
mod tests;
