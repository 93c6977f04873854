//! Text ↔ token ids, from a Hugging Face folder or a GGUF file.

mod folder;
mod stream;

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tokenizers::Tokenizer as Backend;

pub use stream::DecodeStream;

use crate::chat::ChatTemplate;
use crate::error::{ModelError, Result};
use crate::gguf::{GgufFile, read_vocabulary};

/// A tokenizer with its special ids and chat template.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    path: PathBuf,
    backend: Backend,
    bos: Option<u32>,
    eos: Option<u32>,
    ends: Vec<u32>,
    template: Option<ChatTemplate>,
}

impl Tokenizer {
    /// Reads `tokenizer.json`, `tokenizer_config.json`, `generation_config.json`, `config.json` and
    /// `chat_template.jinja` in `dir`; only the first must be there.
    ///
    /// The ids that end a generation are `eos_token_id` of the generation config, else of the model config, and the
    /// tokenizer's own end token. `chat_template.jinja` goes before a template in `tokenizer_config.json`.
    ///
    /// # Errors
    /// A missing or broken `tokenizer.json`, broken JSON beside it, a special token that is not in the vocabulary, a
    /// chat template that does not compile.
    pub fn from_dir(dir: &Path) -> Result<Self> {
        folder::read(dir)
    }

    /// Builds the tokenizer that the metadata of `file` describes.
    ///
    /// # Errors
    /// A vocabulary model other than `gpt2` and `llama`, an unknown pre-tokenizer, missing or inconsistent metadata,
    /// a chat template that does not compile.
    pub fn from_gguf(file: &GgufFile) -> Result<Self> {
        let vocabulary = read_vocabulary(file)?;
        let text = |id: Option<u32>| id.and_then(|id| vocabulary.backend.id_to_token(id)).unwrap_or_default();
        let (bos, eos) = (text(vocabulary.bos), text(vocabulary.eos));
        let template = vocabulary.template.as_deref();
        let template = template.map(|source| ChatTemplate::at(file.path(), source, &bos, &eos)).transpose()?;
        Ok(Self {
            path: file.path().to_owned(),
            backend: vocabulary.backend,
            bos: vocabulary.bos,
            eos: vocabulary.eos,
            ends: vocabulary.ends,
            template,
        })
    }

    /// Token ids of `text`. Special tokens that occur in the text become their ids in any case; `add_special` adds
    /// those that the tokenizer puts around a text (off for the output of a chat template, which wrote its own).
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>> {
        let encoding = self.backend.encode_fast(text, add_special).map_err(|error| {
            let got = format!("a text of {} bytes it refuses ({error})", text.len());
            ModelError::tokenizer(&self.path, "encode", got, "a text it can encode")
        })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Text of `ids`. Bytes that are not UTF-8 become U+FFFD; `skip_special` leaves special tokens out.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        let size = self.vocab_size();
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= size && self.backend.id_to_token(id).is_none()) {
            let wanted = format!("ids below the vocabulary's {size}");
            return Err(ModelError::tokenizer(&self.path, "decode", format!("token id {id}"), wanted));
        }
        self.backend
            .decode(ids, skip_special)
            .map_err(|error| ModelError::tokenizer(&self.path, "decode", error.to_string(), "ids it can decode"))
    }

    /// A decoder that is fed one id at a time and gives out text as soon as it is whole.
    pub fn decode_stream(&self, skip_special: bool) -> DecodeStream<'_> {
        DecodeStream::new(self, skip_special)
    }

    /// The begin token.
    pub fn bos_id(&self) -> Option<u32> {
        self.bos
    }

    /// The end token that the tokenizer itself names: the one to append to a text.
    pub fn eos_id(&self) -> Option<u32> {
        self.eos
    }

    /// Every id that ends a generation.
    pub fn eos_ids(&self) -> &[u32] {
        &self.ends
    }

    /// The id of exactly this token.
    pub fn id_of(&self, token: &str) -> Option<u32> {
        self.backend.token_to_id(token)
    }

    /// The token of this id, in the vocabulary's own spelling.
    pub fn token_of(&self, id: u32) -> Option<String> {
        self.backend.id_to_token(id)
    }

    /// Number of tokens, added ones included.
    pub fn vocab_size(&self) -> usize {
        self.backend.get_vocab_size(true)
    }

    /// Every id is below this number.
    pub fn id_limit(&self) -> usize {
        let added = self.backend.get_added_vocabulary().get_added_tokens_decoder().keys().max();
        self.vocab_size().max(added.map_or(0, |id| *id as usize + 1))
    }

    /// The chat template, if the model has one.
    pub fn chat_template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// The chat template.
    ///
    /// # Errors
    /// When the model has none.
    pub fn require_chat_template(&self) -> Result<&ChatTemplate> {
        self.template.as_ref().ok_or_else(|| {
            ModelError::template(&self.path, "", "a tokenizer without a chat template", "a chat template for messages")
                .with_hint("use rows of plain text, or put the template into chat_template.jinja beside the model")
        })
    }

    /// The same tokenizer with another chat template.
    #[must_use]
    pub fn with_chat_template(mut self, template: ChatTemplate) -> Self {
        self.template = Some(template);
        self
    }

    /// The whole tokenizer as the text of a `tokenizer.json`.
    ///
    /// # Errors
    /// A tokenizer that cannot be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        self.backend.to_string(false).map_err(|error| {
            ModelError::tokenizer(&self.path, "", error.to_string(), "a tokenizer that can be written as JSON")
        })
    }

    /// A SHA-256, in hexadecimal, over everything that decides ids and prompts: vocabulary, merges, added tokens,
    /// pipeline, special ids and template. Equal fingerprints mean equal encodings.
    pub fn fingerprint(&self) -> Result<String> {
        let mut hash = Sha256::new();
        hash.update(self.to_json()?);
        hash.update(format!("\0{:?}\0{:?}\0{:?}\0", self.bos, self.eos, self.ends));
        if let Some(template) = &self.template {
            hash.update(template.source());
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

#[cfg(test)]
mod tests;
