//! Decoding one id at a time.

use super::Tokenizer;
use crate::error::Result;

/// Tokens after which held-back text is given out although it ends in U+FFFD: so many bytes that never become a character
/// are no text, and a reader should not wait for them.
const MAX_HELD: usize = 128;

/// Gives out the text of a growing list of ids, never half a character.
///
/// Text that ends in U+FFFD is held back: a byte-fallback decoder gives one for every byte of a run that is not whole
/// yet, so only the next tokens tell. The pieces put together are what [`Tokenizer::decode`] makes of all ids at once: each piece is decoded with the
/// tokens before it in view, so a decoder that treats the first token apart (its leading space) is not fooled.
#[derive(Debug)]
pub struct DecodeStream<'t> {
    tokenizer: &'t Tokenizer,
    skip_special: bool,
    /// The window: the ids of the last piece, for the left context of the next one, and those not given out yet.
    ids: Vec<u32>,
    /// Ids before this one are given out.
    given: usize,
    /// Text of `ids[..given]`.
    before: String,
}

impl<'t> DecodeStream<'t> {
    pub(super) fn new(tokenizer: &'t Tokenizer, skip_special: bool) -> Self {
        Self { tokenizer, skip_special, ids: Vec::new(), given: 0, before: String::new() }
    }

    /// Takes the next id and returns the text that is whole by now, often of one token, sometimes none.
    pub fn push(&mut self, id: u32) -> Result<Option<String>> {
        self.ids.push(id);
        self.take(false)
    }

    /// The rest, with U+FFFD for a character that was never finished. The stream is empty afterwards.
    pub fn finish(&mut self) -> Result<Option<String>> {
        let rest = self.take(true);
        self.ids.clear();
        self.given = 0;
        self.before.clear();
        rest
    }

    fn take(&mut self, all: bool) -> Result<Option<String>> {
        let text = self.window()?;
        let whole = all || !text.ends_with('\u{FFFD}') || self.ids.len() - self.given > MAX_HELD;
        let Some(new) = text.get(self.before.len()..).filter(|new| whole && !new.is_empty()) else { return Ok(None) };
        let new = new.to_owned();
        // Only the window is needed from here on; a long generation must not grow it.
        self.ids.drain(..self.given);
        self.given = self.ids.len();
        self.before = self.window()?;
        Ok(Some(new))
    }

    fn window(&self) -> Result<String> {
        self.tokenizer.decode(&self.ids, self.skip_special)
    }
}
