//! A row → token ids and a loss mask.
//!
//! A conversation is rendered once, as a whole, without a generation prompt. Where a turn begins and ends is found by
//! the longest common token prefix of the whole and of the render up to there, so that tokens which merge across the
//! boundary, and templates whose prompt is no prefix of the whole, put the boundary early and never late.

mod conversation;

use serde_json::Value;

use super::encoder::{EncoderError, TextEncoder};
use super::jsonl::RowPlace;
use super::report::{DropReason, Notes, Outcome};
use super::row::{Content, Message, Row};
use crate::config::schema::DataTable;
use crate::config::value::{ChatTemplateUse, Format, TrainOn};
use crate::error::{Detail, Result, TrainError};

/// One encoded row.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Token ids; at least two.
    pub ids: Vec<u32>,
    /// Per token whether it is a target. Token 0 never is, because nothing predicts it.
    pub mask: Vec<bool>,
    /// Index of the first target.
    pub prompt_len: usize,
    /// Where the row stands.
    pub origin: RowPlace,
}

impl Example {
    /// Number of targets.
    pub fn trained_tokens(&self) -> usize {
        self.mask.iter().filter(|trained| **trained).count()
    }
}

/// How rows are encoded; from the `[data]` table.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodeOptions {
    /// Shape of the rows.
    pub format: Format,
    /// Longest row in tokens.
    pub max_seq_length: usize,
    /// Which turns are trained.
    pub train_on: TrainOn,
    /// Whether a row is ended with the end token.
    pub append_eos: bool,
    /// Whether plain prompts and responses go through the chat template.
    pub chat_template: ChatTemplateUse,
}

impl From<&DataTable> for EncodeOptions {
    fn from(table: &DataTable) -> Self {
        Self {
            format: table.format,
            max_seq_length: usize::try_from(table.max_seq_length).unwrap_or(usize::MAX),
            train_on: table.train_on,
            append_eos: table.append_eos,
            chat_template: table.chat_template,
        }
    }
}

/// Token ids with their mask, before truncation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sequence {
    pub ids: Vec<u32>,
    pub mask: Vec<bool>,
    /// Turns that should be trained and whose place could not be found.
    pub unclear_turns: usize,
}

impl Sequence {
    /// Index of the first target, or the length.
    pub fn prompt_len(&self) -> usize {
        self.mask.iter().position(|trained| *trained).unwrap_or(self.mask.len())
    }

    pub fn is_trained(&self) -> bool {
        self.mask.contains(&true)
    }

    /// The example, with token 0 no target.
    pub fn into_example(mut self, origin: &RowPlace) -> Example {
        if let Some(first) = self.mask.first_mut() {
            *first = false;
        }
        Example { prompt_len: self.prompt_len(), ids: self.ids, mask: self.mask, origin: origin.clone() }
    }
}

/// Encodes rows one at a time.
#[derive(Clone, Copy)]
pub struct RowEncoder<'a> {
    pub(super) encoder: &'a dyn TextEncoder,
    pub(super) options: &'a EncodeOptions,
}

impl<'a> RowEncoder<'a> {
    /// An encoder of rows by `options`.
    pub fn new(encoder: &'a dyn TextEncoder, options: &'a EncodeOptions) -> Self {
        Self { encoder, options }
    }

    /// The example of a conversation, a completion or a text; too long a row loses its end.
    ///
    /// # Errors
    /// A preference row, messages without a chat template, a template or tokenizer that refuses the row.
    pub fn example(&self, row: &Row, place: &RowPlace) -> Result<Outcome<Example>> {
        let mut sequence = match row {
            Row::Text(text) => self.plain("", text, place)?,
            Row::Messages { messages, tools } => {
                let trained = self.trained_turns(messages);
                self.conversation(messages, tools.as_ref(), &trained, place)?
            }
            Row::Completion { prompt, completion, tools } => {
                if completion.is_blank() {
                    return Ok(Outcome::Dropped(DropReason::EmptyResponse));
                }
                self.response(Some(prompt), completion, tools.as_ref(), place)?
            }
            Row::Preference { .. } => {
                let wanted = "messages, prompt and completion, or text";
                let detail = Detail::new(place.place(), "", "a preference row", wanted);
                return Err(TrainError::data(detail.hint("train on it with method.name = \"orpo\"")));
            }
        };
        if self.options.train_on == TrainOn::All && matches!(row, Row::Completion { .. }) {
            sequence.mask.fill(true);
        }
        self.finish(sequence, place)
    }

    fn finish(&self, mut sequence: Sequence, place: &RowPlace) -> Result<Outcome<Example>> {
        if sequence.ids.len() < 2 {
            return Ok(Outcome::Dropped(DropReason::TooShort));
        }
        if !sequence.mask[1..].contains(&true) {
            return Ok(Outcome::Dropped(DropReason::NoTargets));
        }
        let truncated = sequence.ids.len() > self.options.max_seq_length;
        sequence.ids.truncate(self.options.max_seq_length);
        sequence.mask.truncate(self.options.max_seq_length);
        if !sequence.mask[1..].contains(&true) {
            return Ok(Outcome::Dropped(DropReason::ResponseCutAway));
        }
        let notes = Notes { truncated, response_truncated: truncated, unclear_turns: sequence.unclear_turns };
        Ok(Outcome::Kept(sequence.into_example(place), notes))
    }

    /// A prompt and its response, of which the response is trained: by the chat template when there are messages or a
    /// template, else joined as they are.
    pub(super) fn response(
        &self,
        prompt: Option<&Content>,
        response: &Content,
        tools: Option<&Value>,
        place: &RowPlace,
    ) -> Result<Sequence> {
        let prompt = match (prompt, response) {
            (None, Content::Text(text)) => return self.plain("", text, place),
            (Some(Content::Text(prompt)), Content::Text(text)) if !self.templates_text() => {
                return self.plain(prompt, text, place);
            }
            (prompt, _) => prompt.map(|prompt| prompt.turns("user")).unwrap_or_default(),
        };
        let response = response.turns("assistant");
        let mut trained = vec![false; prompt.len()];
        trained.extend(response.iter().map(|message| message.trainable.unwrap_or(message.is_assistant())));
        self.conversation(&[prompt, response].concat(), tools, &trained, place)
    }

    fn templates_text(&self) -> bool {
        self.options.chat_template == ChatTemplateUse::Auto && self.encoder.has_template()
    }

    /// Texts joined as they are, with the begin token that the tokenizer puts there; what follows the prompt is
    /// trained.
    pub(super) fn plain(&self, prompt: &str, response: &str, place: &RowPlace) -> Result<Sequence> {
        let mut ids = self.with_bos(self.encode(&format!("{prompt}{response}"), place)?);
        let boundary = match prompt {
            "" => 0,
            prompt => common_prefix(&ids, &self.with_bos(self.encode(prompt, place)?)),
        };
        let ended = ids.last().is_some_and(|last| self.encoder.is_end(*last));
        if self.options.append_eos && !ended {
            ids.push(self.eos(place)?);
        }
        let mask = (0..ids.len()).map(|index| index >= boundary).collect();
        Ok(Sequence { ids, mask, unclear_turns: 0 })
    }

    fn with_bos(&self, mut ids: Vec<u32>) -> Vec<u32> {
        if let Some(bos) = self.encoder.bos().filter(|bos| ids.first() != Some(bos)) {
            ids.insert(0, bos);
        }
        ids
    }

    pub(super) fn encode(&self, text: &str, place: &RowPlace) -> Result<Vec<u32>> {
        self.encoder.encode(text).map_err(|error| failure("encode", place, error))
    }

    pub(super) fn eos(&self, place: &RowPlace) -> Result<u32> {
        self.encoder.eos().ok_or_else(|| {
            let detail = Detail::new(place.place(), "", "a tokenizer without an end token", "one to end the row with");
            TrainError::data(detail.hint("set data.append_eos = false, and end the rows in the file"))
        })
    }
}

pub(super) fn failure(action: &str, place: &RowPlace, error: EncoderError) -> TrainError {
    TrainError::model(format!("{action} {place}"), error)
}

/// Length of the longest common prefix.
pub(super) fn common_prefix(left: &[u32], right: &[u32]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

impl Content {
    /// The turns; a text is one turn of `role`.
    pub(super) fn turns(&self, role: &str) -> Vec<Message> {
        match self {
            Self::Text(text) => vec![Message::new(role, text.as_str())],
            Self::Messages(messages) => messages.clone(),
        }
    }

    /// Whether there is nothing to say in it.
    pub(super) fn is_blank(&self) -> bool {
        let blank = |text: &str| text.trim().is_empty();
        match self {
            Self::Text(text) => blank(text),
            Self::Messages(messages) => {
                messages.iter().all(|message| message.extra.is_empty() && message.content.as_str().is_some_and(blank))
            }
        }
    }
}

#[cfg(test)]
mod tests;
