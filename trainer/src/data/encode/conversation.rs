//! A conversation → ids, with the trained turns found in them.

use std::ops::Range;

use serde_json::Value;

use super::{RowEncoder, Sequence, common_prefix, failure};
use crate::config::value::TrainOn;
use crate::data::encoder::MarkedText;
use crate::data::jsonl::RowPlace;
use crate::data::row::Message;
use crate::error::{Detail, Result, TrainError};

/// A conversation on its way.
struct Conversation<'a> {
    messages: &'a [Message],
    tools: Option<&'a Value>,
    place: &'a RowPlace,
}

impl RowEncoder<'_> {
    /// Per turn whether it is trained: by its own flag, else by `train_on`.
    pub(super) fn trained_turns(&self, messages: &[Message]) -> Vec<bool> {
        let last = messages.iter().rposition(Message::is_assistant);
        let by_option = |index: usize, message: &Message| match self.options.train_on {
            TrainOn::AllAssistant => message.is_assistant(),
            TrainOn::Last => Some(index) == last,
            TrainOn::All => true,
        };
        messages
            .iter()
            .enumerate()
            .map(|(i, message)| message.trainable.unwrap_or_else(|| by_option(i, message)))
            .collect()
    }

    /// Renders and encodes `messages`; the turns with a true flag in `trained` are the targets.
    pub(super) fn conversation(
        &self,
        messages: &[Message],
        tools: Option<&Value>,
        trained: &[bool],
        place: &RowPlace,
    ) -> Result<Sequence> {
        if !self.encoder.has_template() {
            let detail =
                Detail::new(place.place(), "", "messages, and a model without a chat template", "a chat template");
            return Err(TrainError::data(detail.hint(
                "use a chat model, put chat_template.jinja beside the model, or give prompt and completion as strings",
            )));
        }
        let chat = Conversation { messages, tools, place };
        let marked =
            self.encoder.render_assistant_spans(messages, tools).map_err(|error| failure("render", place, error))?;
        let text = match &marked {
            Some((text, _)) => text.clone(),
            None => self.render(&chat, messages.len(), false)?,
        };
        let ids = self.encode_render(&text, place)?;
        let mut sequence = Sequence { mask: vec![false; ids.len()], ids, unclear_turns: 0 };
        if trained.iter().all(|trained| *trained) {
            sequence.mask.fill(true);
        } else {
            self.mark_turns(&mut sequence, &chat, marked.as_ref(), trained)?;
        }
        if trained.last() == Some(&true) && self.options.append_eos && !self.is_ended(&text, place)? {
            sequence.ids.push(self.eos(place)?);
            sequence.mask.push(true);
        }
        Ok(sequence)
    }

    fn mark_turns(
        &self,
        sequence: &mut Sequence,
        chat: &Conversation<'_>,
        marked: Option<&MarkedText>,
        trained: &[bool],
    ) -> Result<()> {
        let by_template = match marked {
            Some(marked) => self.marked_spans(sequence, chat, marked)?,
            None => vec![None; trained.len()],
        };
        for (index, by_template) in by_template.into_iter().enumerate().filter(|(index, _)| trained[*index]) {
            let mut span = match by_template {
                Some(span) => span,
                None => self.turn_span(&sequence.ids, chat, index)?,
            };
            if span.is_empty() {
                sequence.unclear_turns += 1;
                continue;
            }
            // Without its end token the model would not learn to stop.
            if sequence.ids.get(span.end).is_some_and(|id| self.encoder.is_end(*id)) {
                span.end += 1;
            }
            sequence.mask[span].fill(true);
        }
        Ok(())
    }

    /// Per turn the tokens that the template marks as the assistant's; none at all when its marks and the assistant's
    /// turns differ in number.
    fn marked_spans(
        &self,
        sequence: &Sequence,
        chat: &Conversation<'_>,
        (text, spans): &MarkedText,
    ) -> Result<Vec<Option<Range<usize>>>> {
        let mut found = vec![None; chat.messages.len()];
        let assistants = chat.messages.iter().enumerate().filter(|(_, message)| message.is_assistant());
        let assistants: Vec<usize> = assistants.map(|(index, _)| index).collect();
        if assistants.len() != spans.len() {
            return Ok(found);
        }
        for (index, span) in assistants.into_iter().zip(spans) {
            let token_at = |byte: usize| -> Result<usize> {
                let head = text.get(..byte).unwrap_or(text);
                Ok(common_prefix(&sequence.ids, &self.encode_render(head, chat.place)?))
            };
            found[index] = Some(token_at(span.start)?..token_at(span.end)?);
        }
        Ok(found)
    }

    /// The tokens of turn `index`: from where the assistant would begin to speak to the end of the turn.
    fn turn_span(&self, ids: &[u32], chat: &Conversation<'_>, index: usize) -> Result<Range<usize>> {
        let start = match index {
            0 => 0,
            _ => {
                let prompt = self.render(chat, index, chat.messages[index].is_assistant())?;
                common_prefix(ids, &self.encode_render(&prompt, chat.place)?)
            }
        };
        let end = if index + 1 == chat.messages.len() {
            ids.len()
        } else {
            let head = self.render(chat, index + 1, false)?;
            common_prefix(ids, &self.encode_render(&head, chat.place)?)
        };
        Ok(start..end)
    }

    /// The render of the first `count` turns.
    fn render(&self, chat: &Conversation<'_>, count: usize, add_generation_prompt: bool) -> Result<String> {
        self.encoder
            .render(&chat.messages[..count], chat.tools, add_generation_prompt)
            .map_err(|error| failure("render", chat.place, error))
    }

    /// Ids of a render, which has written its own special tokens; a begin token that it wrote twice stays once.
    fn encode_render(&self, text: &str, place: &RowPlace) -> Result<Vec<u32>> {
        let mut ids = self.encode(text, place)?;
        if let (Some(bos), [first, second, ..]) = (self.encoder.bos(), ids.as_slice())
            && *first == bos
            && *second == bos
        {
            ids.remove(0);
        }
        Ok(ids)
    }

    /// Whether the render ends with an end token; white space after it does not count.
    fn is_ended(&self, text: &str, place: &RowPlace) -> Result<bool> {
        let ids = self.encode(text.trim_end(), place)?;
        Ok(ids.last().is_some_and(|last| self.encoder.is_end(*last)))
    }
}
