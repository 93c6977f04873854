//! The end of a run: what changed, in answers and in numbers.

use std::ops::ControlFlow;

use models::Model;
use models::generate::GenerateOptions;
use models::sample::SamplingOptions;

use crate::base::{ModelText, for_decoding};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::metrics::ValidRecord;

/// Greedy answers to the summary's prompts.
///
/// # Errors
/// What generation reports.
pub fn answers(
    model: &Model,
    text: &ModelText,
    prompts: &[String],
    max_tokens: usize,
    interrupt: &Interrupt,
) -> Result<Vec<String>> {
    if prompts.is_empty() {
        return Ok(Vec::new());
    }
    let model = for_decoding(model)?;
    let options = GenerateOptions { max_tokens, stop_ids: Vec::new(), sampling: SamplingOptions::default() };
    let mut answers = Vec::with_capacity(prompts.len());
    for prompt in prompts {
        let ids = text.prompt(None, prompt, true)?;
        let go_on = |_: &str| if interrupt.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        answers.push(text.answer(&model, &ids, &options, go_on)?.text);
    }
    Ok(answers)
}

/// Before and after, as text for people.
pub fn describe(
    prompts: &[String],
    before: &[String],
    after: &[String],
    valid: Option<(&ValidRecord, &ValidRecord)>,
) -> String {
    let mut text = String::new();
    for ((prompt, before), after) in prompts.iter().zip(before).zip(after) {
        text.push_str(&format!("\n> {prompt}\n  before: {}\n  after:  {}\n", indented(before), indented(after)));
    }
    if let Some((before, after)) = valid {
        text.push_str(&format!("\nHeld-out rows{:14}before     after\n", ""));
        text.push_str(&numbers("loss", before.val_loss, after.val_loss));
        if let (Some(before), Some(after)) = (&before.preference, &after.preference) {
            text.push_str(&numbers("accuracy", before.rewards_accuracies, after.rewards_accuracies));
            text.push_str(&numbers("log p chosen", before.logps_chosen, after.logps_chosen));
            text.push_str(&numbers("log p rejected", before.logps_rejected, after.logps_rejected));
            text.push_str(&numbers("log odds ratio", before.log_odds_chosen, after.log_odds_chosen));
        }
    }
    text
}

fn numbers(name: &str, before: f64, after: f64) -> String {
    format!("  {name:22}{before:>9.3} {after:>9.3}\n")
}

fn indented(answer: &str) -> String {
    answer.trim().replace('\n', "\n          ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::PreferenceMetrics;

    fn valid(val_loss: f64, preference: Option<PreferenceMetrics>) -> ValidRecord {
        ValidRecord { iteration: 0, val_loss, val_time: 1.0, preference }
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_to_compare_is_no_text() {
        assert_eq!(describe(&[], &[], &[], None), "");
    }

    #[test]
    fn answers_stand_below_each_other_with_their_lines_in_step() {
        let text = describe(&texts(&["Why?"]), &texts(&[" one\ntwo "]), &texts(&["three"]), None);
        assert_eq!(text, "\n> Why?\n  before: one\n          two\n  after:  three\n");
    }

    #[test]
    fn numbers_of_a_preference_run_stand_in_two_columns() {
        let metrics = |accuracy| {
            Some(PreferenceMetrics { rewards_accuracies: accuracy, logps_chosen: -1.25, ..Default::default() })
        };
        let (before, after) = (valid(3.5, metrics(0.5)), valid(2.0, metrics(1.0)));
        assert_eq!(
            describe(&[], &[], &[], Some((&before, &after))),
            "\nHeld-out rows              before     after\n\
             \x20 loss                      3.500     2.000\n\
             \x20 accuracy                  0.500     1.000\n\
             \x20 log p chosen             -1.250    -1.250\n\
             \x20 log p rejected            0.000     0.000\n\
             \x20 log odds ratio            0.000     0.000\n"
        );
    }
}
