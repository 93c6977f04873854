use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::gguf::builder::Builder;

/// A byte-level vocabulary: the bytes' characters, two merges and two special tokens.
fn byte_level() -> Builder {
    let mut tokens: Vec<String> = vec!["<|end|>".into(), "<|start|>".into(), "<think>".into()];
    let visible = (b'!'..=b'~').map(char::from).chain('¡'..='¬').chain('®'..='ÿ');
    tokens.extend(visible.chain('Ā'..='Ń').map(String::from));
    tokens.extend(["he".to_owned(), "Ġhe".to_owned()]);
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let mut types = vec![1; tokens.len()];
    (types[0], types[1], types[2]) = (3, 3, 4);
    Builder::new()
        .string("tokenizer.ggml.model", "gpt2")
        .strings("tokenizer.ggml.tokens", &tokens)
        .strings("tokenizer.ggml.merges", &["h e", "Ġ he"])
        .integers("tokenizer.ggml.token_type", &types)
        .count("tokenizer.ggml.bos_token_id", 1)
        .count("tokenizer.ggml.eos_token_id", 0)
}

/// A SentencePiece vocabulary with byte fallback.
fn pieces() -> Builder {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(String::from).into();
    tokens.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
    tokens.extend(["▁", "a", "b", "ab", "▁ab", "ba", "▁a"].map(String::from));
    let mut scores = vec![0.0; 259];
    scores.extend([-10.0, -11.0, -12.0, -2.0, -3.0, -1.0, -4.0]);
    let mut types = vec![2, 3, 3];
    types.extend([6; 256]);
    types.extend([1; 7]);
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    Builder::new()
        .string("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", &tokens)
        .floats("tokenizer.ggml.scores", &scores)
        .integers("tokenizer.ggml.token_type", &types)
        .count("tokenizer.ggml.bos_token_id", 1)
        .count("tokenizer.ggml.eos_token_id", 2)
        .count("tokenizer.ggml.unknown_token_id", 0)
}

fn read(builder: &Builder) -> Result<Tokenizer> {
    let (_folder, path) = builder.write();
    Tokenizer::from_gguf(&GgufFile::open(&path)?)
}

fn tokens(tokenizer: &Tokenizer, text: &str) -> Vec<String> {
    tokenizer.encode(text, false).unwrap().into_iter().map(|id| tokenizer.token_of(id).unwrap()).collect()
}

fn complaint(builder: &Builder) -> String {
    let text = read(builder).unwrap_err().to_string();
    text[text.find("/m.gguf").map_or(0, |at| at + 1)..].to_owned()
}

#[test]
fn byte_level_merges_and_whole_tokens_are_applied() {
    let tokenizer = read(&byte_level().string("tokenizer.ggml.pre", "smollm")).unwrap();
    assert_eq!(tokens(&tokenizer, "he he"), ["he", "Ġhe"]);
    assert_eq!(tokens(&tokenizer, "<|start|>he<think><|end|>"), ["<|start|>", "he", "<think>", "<|end|>"]);
    assert_eq!((tokenizer.bos_id(), tokenizer.eos_id(), tokenizer.eos_ids()), (Some(1), Some(0), &[0][..]));
    assert_eq!((tokenizer.id_of("<think>"), tokenizer.id_of("nope")), (Some(2), None));
    let ids = tokenizer.encode("<|start|>hé<think>", false).unwrap();
    assert_eq!(tokenizer.decode(&ids, false).unwrap(), "<|start|>hé<think>");
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), "hé<think>", "only control tokens are special");
}

#[test]
fn the_begin_token_is_put_first_when_the_file_asks_for_it() {
    let builder = || byte_level().string("tokenizer.ggml.pre", "gpt-2");
    let ids = |builder: Builder, special| read(&builder).unwrap().encode("he", special).unwrap();
    let he = read(&builder()).unwrap().id_of("he").unwrap();
    assert_eq!(ids(builder(), true), [he], "GPT-2's family adds none by itself");
    assert_eq!(ids(builder().flag("tokenizer.ggml.add_bos_token", true), true), [1, he]);
    assert_eq!(ids(builder().flag("tokenizer.ggml.add_bos_token", true), false), [he]);
    assert_eq!(ids(builder().flag("tokenizer.ggml.add_eos_token", true), true), [he, 0]);
    assert_eq!(ids(byte_level().string("tokenizer.ggml.pre", "llama-bpe"), true), [1, he]);
}

#[test]
fn digits_are_split_as_the_pre_tokenizer_says() {
    let with = |pre: &str| {
        let (_folder, path) = byte_level().string("tokenizer.ggml.pre", pre).write();
        let vocabulary = crate::gguf::read_vocabulary(&GgufFile::open(&path).unwrap()).unwrap();
        let mut text = tokenizers::PreTokenizedString::from("a 12345!\n\nB's");
        let splitter = vocabulary.backend.get_pre_tokenizer().unwrap().clone();
        tokenizers::PreTokenizer::pre_tokenize(&splitter, &mut text).unwrap();
        let splits = text.get_splits(tokenizers::OffsetReferential::Original, tokenizers::OffsetType::Byte);
        splits.into_iter().map(|split| split.0.to_owned()).collect::<Vec<_>>().join("·")
    };
    assert_eq!(with("gpt-2"), "a·Ġ12345·!·ĊĊ·B·'s".replace("ĊĊ", "Ċ·Ċ"));
    assert_eq!(with("smollm"), "a·Ġ·1·2·3·4·5·!·Ċ·Ċ·B·'s");
    assert_eq!(with("llama-bpe"), "a·Ġ·123·45·!ĊĊ·B·'s");
    assert_eq!(with("qwen2"), "a·Ġ·1·2·3·4·5·!ĊĊ·B·'s");
    assert_eq!(with("tekken"), "a·Ġ·1·2·3·4·5·!ĊĊ·B·'s");
    assert_eq!(with("gpt-4o"), "a·Ġ·123·45·!ĊĊ·B's");
}

#[test]
fn sentence_pieces_merge_by_score_and_fall_back_to_bytes() {
    let tokenizer = read(&pieces()).unwrap();
    // "ba" has the best score, so it wins over "ab" and "▁ab" wherever it occurs.
    assert_eq!(tokens(&tokenizer, "aba"), ["▁a", "ba"]);
    assert_eq!(tokens(&tokenizer, "ab"), ["▁ab"]);
    assert_eq!(tokens(&tokenizer, "é"), ["▁", "<0xC3>", "<0xA9>"]);
    assert_eq!(tokens(&tokenizer, "</s>ab"), ["</s>", "▁ab"]);
    assert_eq!(tokenizer.encode("ab", true).unwrap()[0], 1, "SentencePiece begins with <s>");
    let ids = tokenizer.encode("ab é ba", true).unwrap();
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), "ab é ba");
    let plain = read(&pieces().flag("tokenizer.ggml.add_space_prefix", false)).unwrap();
    assert_eq!(tokens(&plain, "ab"), ["ab"]);
    assert_eq!(plain.decode(&plain.encode(" ab", false).unwrap(), false).unwrap(), " ab");
}

#[test]
fn metadata_that_makes_no_tokenizer_is_named() {
    assert_eq!(
        complaint(&Builder::new()),
        "m.gguf: metadata `tokenizer.ggml.tokens`: found no such key, wanted the vocabulary"
    );
    let base = || Builder::new().strings("tokenizer.ggml.tokens", &["a", "b"]);
    assert_eq!(
        complaint(&base().string("tokenizer.ggml.model", "bert")),
        "m.gguf: metadata `tokenizer.ggml.model`: found \"bert\", wanted gpt2 or llama"
    );
    let message = complaint(&base().string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", "poro"));
    assert!(
        message.starts_with("m.gguf: metadata `tokenizer.ggml.pre`: found \"poro\", wanted one of: default, gpt-2,"),
        "{message}"
    );
    let gpt2 = || base().string("tokenizer.ggml.model", "gpt2");
    assert_eq!(
        complaint(&gpt2()),
        "m.gguf: metadata `tokenizer.ggml.merges`: found no such key, wanted the merges of the vocabulary"
    );
    assert_eq!(
        complaint(&gpt2().strings("tokenizer.ggml.merges", &["ab"])),
        "m.gguf: metadata `tokenizer.ggml.merges`, merge 0: found \"ab\", wanted two tokens with a space between"
    );
    assert_eq!(
        complaint(&gpt2().strings("tokenizer.ggml.merges", &["a z"])),
        "m.gguf: merges: found Token `z` out of vocabulary, wanted a vocabulary that the tokenizer accepts"
    );
    let merged = || gpt2().strings("tokenizer.ggml.merges", &[]);
    assert_eq!(
        complaint(&merged().integers("tokenizer.ggml.token_type", &[1])),
        "m.gguf: metadata `tokenizer.ggml.token_type`: found 1 types, wanted one for each of 2 tokens"
    );
    assert_eq!(
        complaint(&merged().count("tokenizer.ggml.eos_token_id", 2)),
        "m.gguf: metadata `tokenizer.ggml.eos_token_id`: found 2, wanted an id below the vocabulary's 2 tokens"
    );
    assert_eq!(
        complaint(&base().string("tokenizer.ggml.model", "llama").floats("tokenizer.ggml.scores", &[0.0])),
        "m.gguf: metadata `tokenizer.ggml.scores`: found 1 scores, wanted one for each of 2 tokens"
    );
}

#[test]
fn a_stream_gives_out_whole_characters_only() {
    let tokenizer = read(&byte_level().string("tokenizer.ggml.pre", "gpt-2")).unwrap();
    let mut stream = tokenizer.decode_stream(false);
    let ids = tokenizer.encode("aé", false).unwrap();
    assert_eq!(ids.len(), 3);
    assert_eq!(stream.push(ids[0]).unwrap().as_deref(), Some("a"));
    assert_eq!(stream.push(ids[1]).unwrap(), None);
    assert_eq!(stream.push(ids[2]).unwrap().as_deref(), Some("é"));
    assert_eq!(stream.push(ids[1]).unwrap(), None);
    assert_eq!(stream.finish().unwrap().as_deref(), Some("\u{FFFD}"));
    assert_eq!(stream.finish().unwrap(), None);
}

#[test]
fn a_stream_does_not_wait_for_ever_on_bytes_that_are_no_text() {
    let tokenizer = read(&byte_level().string("tokenizer.ggml.pre", "gpt-2")).unwrap();
    let lone = tokenizer.encode("é", false).unwrap()[0];
    let mut stream = tokenizer.decode_stream(false);
    let given = (0..150).filter_map(|_| stream.push(lone).unwrap()).collect::<String>();
    assert!(given.chars().count() >= 129 && given.chars().all(|character| character == '\u{FFFD}'), "{given:?}");
}

#[test]
fn a_stream_keeps_the_space_between_pieces_and_drops_the_first() {
    let tokenizer = read(&pieces()).unwrap();
    let mut stream = tokenizer.decode_stream(true);
    let ids = tokenizer.encode("ab ab é", true).unwrap();
    let parts: Vec<_> = ids.iter().filter_map(|&id| stream.push(id).unwrap()).collect();
    assert_eq!(parts.concat(), "ab ab é");
    assert_eq!(parts[1], " ab");
}

static BOTH: LazyLock<[Tokenizer; 2]> = LazyLock::new(|| {
    [byte_level().string("tokenizer.ggml.pre", "gpt-2"), pieces()].map(|builder| read(&builder).unwrap())
});

/// The text of `ids`, one id at a time.
fn streamed(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let mut stream = tokenizer.decode_stream(true);
    let mut text: String = ids.iter().filter_map(|&id| stream.push(id).unwrap()).collect();
    text.extend(stream.finish().unwrap());
    text
}

#[test]
fn replacement_characters_of_the_text_itself_do_not_break_the_character_after_them() {
    for text in ["\u{FFFD}\u{FFFD}\u{1F800}", "\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}é\u{FFFD}\u{1F800}x"] {
        for tokenizer in BOTH.iter() {
            let ids = tokenizer.encode(text, false).unwrap();
            assert_eq!(streamed(tokenizer, &ids), text);
        }
    }
}

proptest! {
    #[test]
    fn pieces_of_a_stream_together_are_the_decoded_text(text in "(\\PC|\u{FFFD}){0,30}", special: bool) {
        for tokenizer in BOTH.iter() {
            let ids = tokenizer.encode(&text, special).unwrap();
            prop_assert_eq!(streamed(tokenizer, &ids), tokenizer.decode(&ids, true).unwrap());
        }
    }
}

#[test]
fn an_id_beyond_the_vocabulary_is_refused() {
    let tokenizer = read(&pieces()).unwrap();
    let message = tokenizer.decode(&[4000], false).unwrap_err().to_string();
    assert!(message.ends_with("decode: found token id 4000, wanted ids below the vocabulary's 266"), "{message}");
}

/// A folder with the tokenizer of `byte_level` and the given further files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = read(&byte_level().string("tokenizer.ggml.pre", "gpt-2")).unwrap();
    tokenizer.backend.save(folder.path().join("tokenizer.json"), false).unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

#[test]
fn a_folder_gives_the_same_ids_as_the_file_it_was_made_of() {
    let folder = folder(&[
        (
            "tokenizer_config.json",
            r#"{"bos_token": "<|start|>", "eos_token": {"content": "<|end|>"}, "chat_template": "T"}"#,
        ),
        ("generation_config.json", r#"{"eos_token_id": [2]}"#),
        ("config.json", r#"{"eos_token_id": 1}"#),
    ]);
    let tokenizer = Tokenizer::from_dir(folder.path()).unwrap();
    assert_eq!(tokens(&tokenizer, "he<|end|>"), ["he", "<|end|>"]);
    assert_eq!((tokenizer.bos_id(), tokenizer.eos_id(), tokenizer.eos_ids()), (Some(1), Some(0), &[2, 0][..]));
    assert_eq!(tokenizer.chat_template().unwrap().source(), "T");
}

#[test]
fn a_template_file_goes_before_the_one_in_the_config_and_a_list_gives_its_default() {
    let list = r#"{"chat_template": [{"name": "rag", "template": "R"}, {"name": "default", "template": "D"}]}"#;
    let source = |files: &[(&str, &str)]| {
        Tokenizer::from_dir(folder(files).path()).unwrap().chat_template().unwrap().source().to_owned()
    };
    assert_eq!(source(&[("tokenizer_config.json", list)]), "D");
    assert_eq!(source(&[("tokenizer_config.json", list), ("chat_template.jinja", "F")]), "F");
}

#[test]
fn a_missing_template_is_one_clear_error() {
    let tokenizer = Tokenizer::from_dir(folder(&[]).path()).unwrap();
    assert!(tokenizer.chat_template().is_none());
    assert_eq!(tokenizer.eos_ids(), [] as [u32; 0]);
    let error = tokenizer.require_chat_template().unwrap_err();
    let message = error.to_string();
    assert!(
        message.ends_with("found a tokenizer without a chat template, wanted a chat template for messages"),
        "{message}"
    );
    assert_eq!(
        error.hint(),
        Some("use rows of plain text, or put the template into chat_template.jinja beside the model")
    );
}

#[test]
fn broken_tokenizer_files_are_named() {
    let empty = tempfile::tempdir().unwrap();
    let complaint = |path: &Path| Tokenizer::from_dir(path).unwrap_err().to_string();
    assert!(complaint(empty.path()).ends_with("tokenizer.json: found no such file, wanted the tokenizer of the model"));
    std::fs::write(empty.path().join("tokenizer.json"), "{}").unwrap();
    let message = complaint(empty.path());
    assert!(message.ends_with("wanted a tokenizer in Hugging Face's format"), "{message}");
    let cases = [
        (r#"{"eos_token": "<x>"}"#, "field `eos_token`: found \"<x>\", wanted a token of the vocabulary"),
        (r#"{"bos_token": 3}"#, "field `bos_token`: found the number 3, wanted a token's text"),
        (
            r#"{"chat_template": []}"#,
            "field `chat_template`: found a list of 0 without a default, wanted a template, or a list of templates with one named default",
        ),
        ("[]", "top level: found an array of 0 items, wanted a JSON object"),
    ];
    for (config, wanted) in cases {
        let folder = folder(&[("tokenizer_config.json", config)]);
        let message = complaint(folder.path());
        assert!(message.ends_with(&format!("tokenizer_config.json: {wanted}")), "{message}");
    }
}

#[test]
fn the_fingerprint_tells_tokenizers_and_templates_apart() {
    let print = |tokenizer: &Tokenizer| tokenizer.fingerprint().unwrap();
    let one = read(&byte_level().string("tokenizer.ggml.pre", "gpt-2")).unwrap();
    let same = read(&byte_level().string("tokenizer.ggml.pre", "gpt-2")).unwrap();
    let other = read(&byte_level().string("tokenizer.ggml.pre", "smollm")).unwrap();
    let templated = same.clone().with_chat_template(ChatTemplate::new("x", "", "").unwrap());
    assert_eq!(print(&one), print(&same));
    assert_eq!(print(&one).len(), 64);
    assert_ne!(print(&one), print(&other));
    assert_ne!(print(&one), print(&templated));
}
