//! What the data stage needs of a tokenizer and its chat template.

use std::error::Error;
use std::ops::Range;

use serde_json::Value;

use super::row::Message;

/// An error of the tokenizer or the template; the caller adds the row.
pub type EncoderError = Box<dyn Error + Send + Sync>;

/// A rendered conversation, and the byte ranges in it that are the assistant's words.
pub type MarkedText = (String, Vec<Range<usize>>);

/// A tokenizer with its special ids and, perhaps, a chat template.
pub trait TextEncoder {
    /// Token ids of `text`, without special tokens around it; special tokens that the text spells out become their ids.
    ///
    /// # Errors
    /// A text that the tokenizer refuses.
    fn encode(&self, text: &str) -> Result<Vec<u32>, EncoderError>;

    /// The text of `ids`, special tokens spelled out.
    ///
    /// # Errors
    /// Ids that the tokenizer does not know.
    fn decode(&self, ids: &[u32]) -> Result<String, EncoderError>;

    /// The conversation by the chat template; `add_generation_prompt` opens the assistant's next turn.
    ///
    /// # Errors
    /// No template, or one that refuses the conversation.
    fn render(
        &self,
        messages: &[Message],
        tools: Option<&Value>,
        add_generation_prompt: bool,
    ) -> Result<String, EncoderError>;

    /// The conversation with the template's own marks of the assistant's words, in ascending order; `None` when the
    /// template has no marks.
    ///
    /// # Errors
    /// As [`TextEncoder::render`].
    fn render_assistant_spans(
        &self,
        messages: &[Message],
        tools: Option<&Value>,
    ) -> Result<Option<MarkedText>, EncoderError>;

    /// The id that the tokenizer itself puts before a plain text, if it puts one there.
    fn bos(&self) -> Option<u32>;

    /// The id that ends a text.
    fn eos(&self) -> Option<u32>;

    /// Whether generation stops at `id`; a model can have more such ids than `eos`.
    fn is_end(&self, id: u32) -> bool {
        self.eos() == Some(id)
    }

    /// Whether there is a chat template.
    fn has_template(&self) -> bool;
}

#[cfg(test)]
pub(crate) mod testing;
