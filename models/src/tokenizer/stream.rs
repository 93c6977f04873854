//! Decoding one id at a time.

use super::Tokenizer;
use crate::error::Result;

/// Tokens after which held-back text is given out even though it ends in U+FFFD: no character of UTF-8 is longer than
/// four bytes, so after that many tokens more the bytes are simply not UTF-8.
const MAX_HELD: usize = 8;

/// Gives out the text of a growing list of ids, never half a character.
///
/// The pieces put together are what [`Tokenizer::decode`] makes of all ids at once: each piece is decoded with the
/// tokens before it in view, so a decoder that treats the first token apart (its leading space) is not fooled.
#[derive(Debug)]
pub struct DecodeStream<'t> {
    tokenizer: &'t Tokenizer,
    skip_special: bool,
    ids: Vec<u32>,
    /// Where the window starts that gives the next piece its left context.
    context: usize,
    /// Ids before this one are given out.
    given: usize,
    /// Text of `ids[context..given]`.
    before: String,
}

impl<'t> DecodeStream<'t> {
    pub(super) fn new(tokenizer: &'t Tokenizer, skip_special: bool) -> Self {
        Self { tokenizer, skip_special, ids: Vec::new(), context: 0, given: 0, before: String::new() }
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
        (self.context, self.given) = (0, 0);
        self.before.clear();
        rest
    }

    fn take(&mut self, all: bool) -> Result<Option<String>> {
        let text = self.tokenizer.decode(&self.ids[self.context..], self.skip_special)?;
        let held = self.ids.len() - self.given;
        let whole = all || !text.ends_with('\u{FFFD}') || held > MAX_HELD;
        let Some(new) = text.get(self.before.len()..).filter(|new| whole && !new.is_empty()) else { return Ok(None) };
        let new = new.to_owned();
        self.context = self.given;
        self.given = self.ids.len();
        self.before = self.tokenizer.decode(&self.ids[self.context..], self.skip_special)?;
        // Only the window is needed from here on; a long generation must not grow it.
        self.ids.drain(..self.context);
        self.given -= self.context;
        self.context = 0;
        Ok(Some(new))
    }
}
