//! The tokenizer out of GGUF metadata: byte-level BPE (`gpt2`) and SentencePiece with byte fallback (`llama`).

use serde_json::{Value, json};
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::{
    AddedToken, DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Tokenizer as Backend,
};

use super::config::end_ids;
use super::header::GgufFile;
use crate::error::{ModelError, Result};

/// What a GGUF file says about text.
pub(crate) struct Vocabulary {
    /// The tokenizer, which puts the begin token first if the file asks for it.
    pub backend: Backend,
    /// Begin of text.
    pub bos: Option<u32>,
    /// End of text.
    pub eos: Option<u32>,
    /// All ids that end a generation.
    pub ends: Vec<u32>,
    /// Source of the chat template.
    pub template: Option<String>,
}

const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// Splitting of text before merging, as the vocabularies named in [`Family::of`] were trained.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Family {
    Gpt2,
    Gpt2Digits,
    Llama3,
    Dbrx,
    Qwen2,
    Tekken,
    Gpt4o,
}

/// Names of `tokenizer.ggml.pre` and the family each belongs to.
const PRE_TOKENIZERS: &[(&str, Family)] = &[
    ("default", Family::Gpt2),
    ("gpt-2", Family::Gpt2),
    ("mpt", Family::Gpt2),
    ("olmo", Family::Gpt2),
    ("phi-2", Family::Gpt2),
    ("smollm", Family::Gpt2Digits),
    ("starcoder", Family::Gpt2Digits),
    ("refact", Family::Gpt2Digits),
    ("command-r", Family::Gpt2Digits),
    ("codeshell", Family::Gpt2Digits),
    ("llama3", Family::Llama3),
    ("llama-v3", Family::Llama3),
    ("llama-bpe", Family::Llama3),
    ("falcon3", Family::Llama3),
    ("pixtral", Family::Llama3),
    ("dbrx", Family::Dbrx),
    ("smaug-bpe", Family::Dbrx),
    ("qwen2", Family::Qwen2),
    ("stablelm2", Family::Qwen2),
    ("deepseek-r1-qwen", Family::Qwen2),
    ("tekken", Family::Tekken),
    ("gpt-4o", Family::Gpt4o),
    ("llama4", Family::Gpt4o),
];

impl Family {
    fn of(file: &GgufFile) -> Result<Self> {
        let key = "tokenizer.ggml.pre";
        let Some(name) = file.text(key)? else {
            tracing::warn!(file = %file.path().display(), "no {key} in the metadata: splitting text as GPT-2 does");
            return Ok(Self::Gpt2);
        };
        PRE_TOKENIZERS.iter().find(|(known, _)| *known == name).map(|&(_, family)| family).ok_or_else(|| {
            let known = PRE_TOKENIZERS.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
            ModelError::gguf(
                file.path(),
                format!("metadata `{key}`"),
                format!("\"{name}\""),
                format!("one of: {known}"),
            )
        })
    }

    /// The splitting expression; `None` for GPT-2's own, which byte-level BPE has built in.
    fn pattern(self) -> Option<&'static str> {
        match self {
            Self::Gpt2 | Self::Gpt2Digits => None,
            Self::Llama3 | Self::Dbrx => Some(concat!(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*",
                r"|\s*[\r\n]+|\s+(?!\S)|\s+"
            )),
            Self::Qwen2 => Some(concat!(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*",
                r"|\s*[\r\n]+|\s+(?!\S)|\s+"
            )),
            Self::Tekken => Some(concat!(
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
                r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
                r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            )),
            Self::Gpt4o => Some(concat!(
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            )),
        }
    }

    fn pre_tokenizer(self) -> Value {
        let byte_level = |regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex});
        match (self, self.pattern()) {
            (Self::Gpt2Digits, _) => json!({"type": "Sequence", "pretokenizers": [
                {"type": "Digits", "individual_digits": true}, byte_level(true)]}),
            (_, None) => byte_level(true),
            (_, Some(pattern)) => json!({"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
                byte_level(false)]}),
        }
    }

    /// Whether a piece that is a token as it stands is taken whole, without merging.
    fn ignores_merges(self) -> bool {
        matches!(self, Self::Llama3 | Self::Tekken)
    }

    /// Whether the begin token is put first when the file does not say.
    fn adds_bos(self) -> bool {
        matches!(self, Self::Llama3 | Self::Tekken)
    }
}

/// Builds the tokenizer of `file`.
pub(crate) fn read_vocabulary(file: &GgufFile) -> Result<Vocabulary> {
    let tokens = file.texts("tokenizer.ggml.tokens")?.ok_or_else(|| {
        ModelError::tokenizer(file.path(), "metadata `tokenizer.ggml.tokens`", "no such key", "the vocabulary")
    })?;
    let model = file.text("tokenizer.ggml.model")?.unwrap_or_default();
    let (mut backend, adds_bos) = match model {
        "gpt2" => {
            let family = Family::of(file)?;
            (byte_level(file, tokens, family)?, family.adds_bos())
        }
        "llama" => (sentence_piece(file, tokens)?, true),
        other => {
            let got = format!("\"{other}\"");
            return Err(ModelError::tokenizer(file.path(), "metadata `tokenizer.ggml.model`", got, "gpt2 or llama"));
        }
    };
    add_whole_tokens(file, tokens, &mut backend)?;
    let bos = special(file, tokens, "bos")?;
    let eos = special(file, tokens, "eos")?;
    let adds_bos = file.flag("tokenizer.ggml.add_bos_token")?.unwrap_or(adds_bos);
    let adds_eos = file.flag("tokenizer.ggml.add_eos_token")?.unwrap_or(false);
    surround(file, tokens, &mut backend, bos.filter(|_| adds_bos), eos.filter(|_| adds_eos))?;
    Ok(Vocabulary {
        backend,
        bos,
        eos,
        ends: end_ids(file)?,
        template: file.text("tokenizer.chat_template")?.map(str::to_owned),
    })
}

fn special(file: &GgufFile, tokens: &[String], name: &str) -> Result<Option<u32>> {
    let key = format!("tokenizer.ggml.{name}_token_id");
    match file.token_id(&key)? {
        Some(id) if id as usize >= tokens.len() => {
            let wanted = format!("an id below the vocabulary's {} tokens", tokens.len());
            Err(ModelError::tokenizer(file.path(), format!("metadata `{key}`"), id.to_string(), wanted))
        }
        id => Ok(id),
    }
}

fn vocabulary(tokens: &[String]) -> Vocab {
    tokens.iter().zip(0u32..).map(|(token, id)| (token.clone(), id)).collect()
}

fn byte_level(file: &GgufFile, tokens: &[String], family: Family) -> Result<Backend> {
    let key = "tokenizer.ggml.merges";
    let lines = file.texts(key)?.ok_or_else(|| {
        ModelError::tokenizer(file.path(), format!("metadata `{key}`"), "no such key", "the merges of the vocabulary")
    })?;
    let merges = lines
        .iter()
        .enumerate()
        .map(|(rank, line)| {
            line.split_once(' ').map(|(left, right)| (left.to_owned(), right.to_owned())).ok_or_else(|| {
                let place = format!("metadata `{key}`, merge {rank}");
                ModelError::tokenizer(file.path(), place, format!("\"{line}\""), "two tokens with a space between")
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let model = BPE::builder()
        .vocab_and_merges(vocabulary(tokens), merges)
        .ignore_merges(family.ignores_merges())
        .build()
        .map_err(|error| refused(file, "merges", &*error))?;
    let mut backend = Backend::new(model);
    if family == Family::Qwen2 {
        let normalizer: NormalizerWrapper = part(file, json!({"type": "NFC"}))?;
        backend.with_normalizer(Some(normalizer)).map_err(|error| refused(file, "normalizer", &*error))?;
    }
    backend.with_pre_tokenizer(Some(part::<PreTokenizerWrapper>(file, family.pre_tokenizer())?));
    let decoder = json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true});
    backend.with_decoder(Some(part::<DecoderWrapper>(file, decoder)?));
    Ok(backend)
}

/// SentencePiece's greedy merging by score equals BPE whose merges are sorted by the score of what they make.
fn sentence_piece(file: &GgufFile, tokens: &[String]) -> Result<Backend> {
    let key = "tokenizer.ggml.scores";
    let scores = file.floats(key)?.unwrap_or_default();
    if scores.len() != tokens.len() {
        let got = format!("{} scores", scores.len());
        let wanted = format!("one for each of {} tokens", tokens.len());
        return Err(ModelError::tokenizer(file.path(), format!("metadata `{key}`"), got, wanted));
    }
    let vocab = vocabulary(tokens);
    let merges = merges_by_score(tokens, scores, &vocab);
    let unknown = special(file, tokens, "unknown")?.unwrap_or(0) as usize;
    let mut builder = BPE::builder().vocab_and_merges(vocab, merges).fuse_unk(true).byte_fallback(true);
    if let Some(token) = tokens.get(unknown) {
        builder = builder.unk_token(token.clone());
    }
    let model = builder.build().map_err(|error| refused(file, "vocabulary", &*error))?;
    let mut backend = Backend::new(model);
    let prefix = file.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let normalizer = if prefix {
        json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]})
    } else {
        replace
    };
    let normalizer: NormalizerWrapper = part(file, normalizer)?;
    backend.with_normalizer(Some(normalizer)).map_err(|error| refused(file, "normalizer", &*error))?;
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    backend.with_decoder(Some(part::<DecoderWrapper>(file, json!({"type": "Sequence", "decoders": decoders}))?));
    Ok(backend)
}

/// Every way to make a token of two others; better scores first, then the longer halves.
fn merges_by_score(tokens: &[String], scores: &[f32], vocab: &Vocab) -> Vec<(String, String)> {
    let mut merges = Vec::new();
    for (token, &score) in tokens.iter().zip(scores) {
        let splits = token.char_indices().skip(1).filter_map(|(at, _)| {
            let (left, right) = token.split_at(at);
            Some((score, *vocab.get(left)?, *vocab.get(right)?, left, right))
        });
        let mut splits: Vec<_> = splits.collect();
        splits.sort_by_key(|split| (split.1, split.2));
        merges.extend(splits);
    }
    // Stable, so that equal scores and lengths stay in vocabulary order.
    let length = |text: &str| text.chars().count();
    merges.sort_by(|a, b| {
        b.0.total_cmp(&a.0).then_with(|| length(b.3).cmp(&length(a.3))).then_with(|| length(b.4).cmp(&length(a.4)))
    });
    merges.into_iter().map(|(.., left, right)| (left.to_owned(), right.to_owned())).collect()
}

/// Control tokens are special, user-defined ones are not; both are matched whole before any splitting.
fn add_whole_tokens(file: &GgufFile, tokens: &[String], backend: &mut Backend) -> Result<()> {
    let key = "tokenizer.ggml.token_type";
    let Some(types) = file.integers(key)? else { return Ok(()) };
    if types.len() != tokens.len() {
        let got = format!("{} types", types.len());
        let wanted = format!("one for each of {} tokens", tokens.len());
        return Err(ModelError::tokenizer(file.path(), format!("metadata `{key}`"), got, wanted));
    }
    let of_type = |wanted: &[i64], special: bool| -> Vec<AddedToken> {
        let chosen = tokens.iter().zip(&types).filter(|(token, kind)| wanted.contains(kind) && !token.is_empty());
        chosen.map(|(token, _)| AddedToken::from(token.clone(), special).normalized(false)).collect()
    };
    backend
        .add_special_tokens(of_type(&[UNKNOWN, CONTROL], true))
        .and_then(|_| backend.add_tokens(of_type(&[USER_DEFINED], false)))
        .map(|_| ())
        .map_err(|error| refused(file, "added tokens", &*error))
}

/// Puts the begin and end tokens around a text that is encoded with special tokens.
fn surround(
    file: &GgufFile,
    tokens: &[String],
    backend: &mut Backend,
    bos: Option<u32>,
    eos: Option<u32>,
) -> Result<()> {
    if bos.is_none() && eos.is_none() {
        return Ok(());
    }
    let piece = |id: u32| json!({"SpecialToken": {"id": tokens[id as usize], "type_id": 0}});
    let sequence = |name: &str| json!({"Sequence": {"id": name, "type_id": 0}});
    let around =
        |inner: Vec<Value>| -> Vec<Value> { bos.map(piece).into_iter().chain(inner).chain(eos.map(piece)).collect() };
    let single = around(vec![sequence("A")]);
    let pair = around(vec![sequence("A"), sequence("B")]);
    let specials: serde_json::Map<String, Value> = [bos, eos]
        .into_iter()
        .flatten()
        .map(|id| {
            let token = &tokens[id as usize];
            (token.clone(), json!({"id": token, "ids": [id], "tokens": [token]}))
        })
        .collect();
    let template = json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": specials});
    backend.with_post_processor(Some(part::<PostProcessorWrapper>(file, template)?));
    Ok(())
}

fn part<T: serde::de::DeserializeOwned>(file: &GgufFile, description: Value) -> Result<T> {
    serde_json::from_value(description).map_err(|error| refused(file, "pipeline", &error))
}

fn refused(file: &GgufFile, item: &str, error: &dyn std::error::Error) -> ModelError {
    ModelError::tokenizer(file.path(), item, error.to_string(), "a vocabulary that the tokenizer accepts")
}
