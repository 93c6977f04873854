//! A preference row → two encoded rows with the same prompt.

use super::encode::{Example, RowEncoder, Sequence, common_prefix};
use super::jsonl::RowPlace;
use super::report::{DropReason, Notes, Outcome};
use super::row::{Content, Row};
use crate::error::{Detail, Result, TrainError};

/// A better and a worse response to one prompt, each with its prompt. Only the responses are targets.
#[derive(Debug, Clone, PartialEq)]
pub struct PreferenceExample {
    /// The better one.
    pub chosen: Example,
    /// The worse one.
    pub rejected: Example,
}

impl RowEncoder<'_> {
    /// The pair of a preference row. A row that is too long loses the start of its prompt, but for the begin token, on
    /// both sides alike; a response that is too long on its own loses its end.
    ///
    /// # Errors
    /// A row of another shape, messages without a chat template, a template or tokenizer that refuses the row.
    pub fn pair(&self, row: &Row, place: &RowPlace) -> Result<Outcome<PreferenceExample>> {
        let Row::Preference { prompt, chosen, rejected, tools } = row else {
            let detail = Detail::new(place.place(), "", row.describe(), "chosen and rejected");
            return Err(TrainError::data(detail.hint("train on it with method.name = \"sft\"")));
        };
        if chosen.is_blank() || rejected.is_blank() {
            return Ok(Outcome::Dropped(DropReason::EmptyResponse));
        }
        if chosen.trimmed() == rejected.trimmed() {
            return Ok(Outcome::Dropped(DropReason::EqualResponses));
        }
        let encode = |response: &Content| self.response(prompt.as_ref(), response, tools.as_ref(), place);
        let (mut chosen, mut rejected) = (encode(chosen)?, encode(rejected)?);
        if prompt.is_none() {
            unmask_shared(&mut chosen, &mut rejected);
        }
        if !chosen.is_trained() || !rejected.is_trained() {
            return Ok(Outcome::Dropped(DropReason::NoTargets));
        }
        let notes = self.truncate_pair(&mut chosen, &mut rejected);
        let (chosen, rejected) = (chosen.into_example(place), rejected.into_example(place));
        if chosen.ids == rejected.ids {
            return Ok(Outcome::Dropped(DropReason::EqualResponses));
        }
        let lost = |example: &Example| example.trained_tokens() == 0;
        if lost(&chosen) || lost(&rejected) {
            return Ok(Outcome::Dropped(DropReason::ResponseCutAway));
        }
        Ok(Outcome::Kept(PreferenceExample { chosen, rejected }, notes))
    }

    fn truncate_pair(&self, chosen: &mut Sequence, rejected: &mut Sequence) -> Notes {
        let limit = self.options.max_seq_length;
        let unclear_turns = chosen.unclear_turns + rejected.unclear_turns;
        let excess = chosen.ids.len().max(rejected.ids.len()).saturating_sub(limit);
        // One cut for both, so that they keep the same prompt.
        let has_bos = |sequence: &Sequence| sequence.ids.first().copied() == self.encoder.bos();
        let kept = usize::from(self.encoder.bos().is_some() && has_bos(chosen) && has_bos(rejected));
        let removable = chosen.prompt_len().min(rejected.prompt_len()).saturating_sub(kept);
        let cut = excess.min(removable);
        let mut response_truncated = false;
        for sequence in [chosen, rejected] {
            sequence.ids.drain(kept..kept + cut);
            sequence.mask.drain(kept..kept + cut);
            response_truncated |= sequence.ids.len() > limit;
            sequence.ids.truncate(limit);
            sequence.mask.truncate(limit);
        }
        Notes { truncated: excess > 0, response_truncated, unclear_turns }
    }
}

/// Texts without a prompt: what both begin with is the prompt.
fn unmask_shared(chosen: &mut Sequence, rejected: &mut Sequence) {
    let shared = common_prefix(&chosen.ids, &rejected.ids);
    chosen.mask[..shared].fill(false);
    rejected.mask[..shared].fill(false);
}

impl Row {
    fn describe(&self) -> &'static str {
        match self {
            Self::Messages { .. } => "a row of messages",
            Self::Completion { .. } => "a row of prompt and completion",
            Self::Text(_) => "a row of text",
            Self::Preference { .. } => "a preference row",
        }
    }
}

impl Content {
    /// The content without white space around its texts, for comparing.
    fn trimmed(&self) -> Content {
        match self {
            Self::Text(text) => Self::Text(text.trim().to_owned()),
            Self::Messages(messages) => {
                let mut messages = messages.clone();
                for message in &mut messages {
                    if let Some(text) = message.content.as_str() {
                        message.content = text.trim().into();
                    }
                }
                Self::Messages(messages)
            }
        }
    }
}

#[cfg(test)]
mod tests;
