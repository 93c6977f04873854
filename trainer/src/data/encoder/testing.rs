//! A tokenizer whose ids are letters, so that tests read as text: special tokens and a few merges have ids of their own.

use super::*;

pub(crate) const BOS: u32 = 0x10_0000;
pub(crate) const END: u32 = BOS + 2;
pub(crate) const EOS: u32 = BOS + 3;

/// Spellings of the ids from [`BOS`] on; the last ones are merges, taken before single letters.
const TOKENS: [&str; 6] = ["<s>", "<start>", "<end>", "</s>", ":w", "yz"];

type Template = fn(&[Message], bool) -> Result<String, EncoderError>;

#[derive(Clone)]
pub(crate) struct LetterEncoder {
    pub template: Option<Template>,
    /// Whether the template marks the assistant's words.
    pub marks: bool,
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    /// Ids at which generation stops besides `eos`.
    pub ends: Vec<u32>,
}

impl LetterEncoder {
    /// A chat model: turns are `<start>role:text<end>` and a line break, the end token is `<end>`.
    pub fn chat() -> Self {
        Self { template: Some(chat), marks: false, bos: None, eos: Some(END), ends: vec![] }
    }

    /// A base model without a template that puts `<s>` before a text and ends it with `</s>`.
    pub fn base() -> Self {
        Self { template: None, marks: false, bos: Some(BOS), eos: Some(EOS), ends: vec![] }
    }

    /// Ids of `text`.
    pub fn ids(&self, text: &str) -> Vec<u32> {
        self.encode(text).unwrap()
    }

    /// `ids` with the trained runs in brackets.
    pub fn marked(&self, ids: &[u32], mask: &[bool]) -> String {
        assert_eq!(ids.len(), mask.len());
        let mut text = String::new();
        for (index, (id, trained)) in ids.iter().zip(mask).enumerate() {
            let before = index > 0 && mask[index - 1];
            text.push_str(match (before, trained) {
                (false, true) => "[",
                (true, false) => "]",
                _ => "",
            });
            text.push_str(&self.decode(&[*id]).unwrap());
        }
        if mask.last() == Some(&true) { text + "]" } else { text }
    }
}

pub(crate) fn chat(messages: &[Message], prompt: bool) -> Result<String, EncoderError> {
    let turns: String =
        messages.iter().map(|m| format!("<start>{}:{}<end>\n", m.role, m.content.as_str().unwrap_or("-"))).collect();
    Ok(if prompt { turns + "<start>assistant:" } else { turns })
}

impl TextEncoder for LetterEncoder {
    fn encode(&self, text: &str) -> Result<Vec<u32>, EncoderError> {
        let mut rest = text;
        let mut ids = Vec::new();
        while let Some(letter) = rest.chars().next() {
            match TOKENS.iter().enumerate().find(|(_, token)| rest.starts_with(**token)) {
                Some((index, token)) => {
                    ids.push(BOS + index as u32);
                    rest = &rest[token.len()..];
                }
                None => {
                    ids.push(letter as u32);
                    rest = &rest[letter.len_utf8()..];
                }
            }
        }
        Ok(ids)
    }

    fn decode(&self, ids: &[u32]) -> Result<String, EncoderError> {
        let spell = |id: &u32| match id.checked_sub(BOS) {
            Some(index) => TOKENS.get(index as usize).map(|token| (*token).to_owned()),
            None => char::from_u32(*id).map(String::from),
        };
        ids.iter().map(|id| spell(id).ok_or_else(|| format!("unknown id {id}").into())).collect()
    }

    fn render(
        &self,
        messages: &[Message],
        _tools: Option<&Value>,
        add_generation_prompt: bool,
    ) -> Result<String, EncoderError> {
        self.template.ok_or("no template")?(messages, add_generation_prompt)
    }

    fn render_assistant_spans(
        &self,
        messages: &[Message],
        tools: Option<&Value>,
    ) -> Result<Option<MarkedText>, EncoderError> {
        if !self.marks {
            return Ok(None);
        }
        let text = self.render(messages, tools, false)?;
        let opening = "<start>assistant:";
        let starts = text.match_indices(opening).map(|(at, _)| at + opening.len());
        let spans = starts.map(|start| start..start + text[start..].find("<end>").unwrap()).collect();
        Ok(Some((text, spans)))
    }

    fn bos(&self) -> Option<u32> {
        self.bos
    }

    fn eos(&self) -> Option<u32> {
        self.eos
    }

    fn is_end(&self, id: u32) -> bool {
        self.eos == Some(id) || self.ends.contains(&id)
    }

    fn has_template(&self) -> bool {
        self.template.is_some()
    }
}
