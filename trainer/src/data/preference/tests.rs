use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::config::value::{ChatTemplateUse, Format, TrainOn};
use crate::data::encode::EncodeOptions;
use crate::data::encoder::testing::{BOS, LetterEncoder};
use crate::data::row::Message;

fn options(max_seq_length: usize) -> EncodeOptions {
    EncodeOptions {
        format: Format::Auto,
        max_seq_length,
        train_on: TrainOn::AllAssistant,
        append_eos: true,
        chat_template: ChatTemplateUse::Auto,
    }
}

fn place() -> RowPlace {
    RowPlace { path: Arc::from(Path::new("d.jsonl")), line: 3, index: None }
}

fn text(prompt: Option<&str>, chosen: &str, rejected: &str) -> Row {
    let content = |text: &str| Content::Text(text.to_owned());
    Row::Preference { prompt: prompt.map(content), chosen: content(chosen), rejected: content(rejected), tools: None }
}

fn encode(encoder: &LetterEncoder, max: usize, row: &Row) -> Outcome<PreferenceExample> {
    RowEncoder::new(encoder, &options(max)).pair(row, &place()).unwrap()
}

fn kept(encoder: &LetterEncoder, max: usize, row: &Row) -> (String, String, Notes) {
    match encode(encoder, max, row) {
        Outcome::Kept(PreferenceExample { chosen, rejected }, notes) => {
            assert!(!chosen.mask[0] && !rejected.mask[0]);
            let marked = |example: &Example| encoder.marked(&example.ids, &example.mask);
            (marked(&chosen), marked(&rejected), notes)
        }
        Outcome::Dropped(reason) => panic!("dropped: {reason}"),
    }
}

fn dropped(encoder: &LetterEncoder, max: usize, row: &Row) -> DropReason {
    match encode(encoder, max, row) {
        Outcome::Dropped(reason) => reason,
        Outcome::Kept(pair, _) => panic!("kept {pair:?}"),
    }
}

#[test]
fn only_the_responses_are_trained_and_both_end() {
    let (chosen, rejected, notes) = kept(&LetterEncoder::base(), 100, &text(Some("ab"), "cd", "efg"));
    assert_eq!((chosen.as_str(), rejected.as_str()), ("<s>ab[cd</s>]", "<s>ab[efg</s>]"));
    assert_eq!(notes, Notes::default());
}

#[test]
fn texts_go_through_the_chat_template_when_there_is_one() {
    let (chosen, rejected, _) = kept(&LetterEncoder::chat(), 100, &text(Some("a"), "b", "c"));
    assert_eq!(chosen, "<start>user:a<end>\n<start>assistant:[b<end>\n]");
    assert_eq!(rejected, "<start>user:a<end>\n<start>assistant:[c<end>\n]");
}

#[test]
fn only_the_assistant_speaks_in_a_response_of_several_turns() {
    let messages = |turns: &[(&str, &str)]| {
        Content::Messages(turns.iter().map(|(role, text)| Message::new(*role, *text)).collect())
    };
    let row = Row::Preference {
        prompt: Some(messages(&[("user", "a")])),
        chosen: messages(&[("assistant", "b"), ("user", "c"), ("assistant", "d")]),
        rejected: messages(&[("assistant", "e")]),
        tools: None,
    };
    let (chosen, _, _) = kept(&LetterEncoder::chat(), 100, &row);
    assert_eq!(
        chosen,
        "<start>user:a<end>\n<start>assistant:[b<end>\n]<start>user:c<end>\n<start>assistant:[d<end>\n]"
    );
}

#[test]
fn without_a_prompt_the_shared_beginning_is_the_prompt() {
    let (chosen, rejected, _) = kept(&LetterEncoder::base(), 100, &text(None, "q: yes", "q: no"));
    assert_eq!((chosen.as_str(), rejected.as_str()), ("<s>q: [yes</s>]", "<s>q: [no</s>]"));
}

#[test]
fn equal_and_empty_responses_are_dropped() {
    let base = LetterEncoder::base();
    assert_eq!(dropped(&base, 100, &text(Some("a"), "same", " same ")), DropReason::EqualResponses);
    assert_eq!(dropped(&base, 100, &text(Some("a"), "", "b")), DropReason::EmptyResponse);
    let only = |text: &str| Content::Messages(vec![Message::new("assistant", text)]);
    let prompt = Some(Content::Messages(vec![Message::new("user", "a")]));
    let row = Row::Preference { prompt, chosen: only("x"), rejected: only("x\n"), tools: None };
    assert_eq!(dropped(&LetterEncoder::chat(), 100, &row), DropReason::EqualResponses);
}

#[test]
fn a_long_pair_loses_the_start_of_its_prompt_and_keeps_the_begin_token() {
    // Rejected: <s> abcdef ghi </s>, eleven tokens; the prompt of both loses three.
    let row = text(Some("abcdef"), "g", "ghi");
    let (chosen, rejected, notes) = kept(&LetterEncoder::base(), 8, &row);
    assert_eq!((chosen.as_str(), rejected.as_str()), ("<s>def[g</s>]", "<s>def[ghi</s>]"));
    assert_eq!(notes, Notes { truncated: true, response_truncated: false, unclear_turns: 0 });
}

#[test]
fn without_a_begin_token_the_whole_prompt_may_go() {
    let encoder = LetterEncoder { bos: None, ..LetterEncoder::base() };
    // Spec vectors: prompt 6, response 6, at most 8 leaves a prompt of 2; at most 5 leaves none and the response's start.
    let row = text(Some("abcdef"), "ghijk", "lmnop");
    let Outcome::Kept(pair, _) = encode(&encoder, 8, &row) else { panic!("dropped") };
    assert_eq!((pair.chosen.prompt_len, pair.chosen.ids), (2, encoder.ids("efghijk</s>")));
    let (chosen, _, notes) = kept(&encoder, 5, &row);
    assert_eq!(chosen, "g[hijk]");
    assert!(notes.response_truncated);
}

#[test]
fn a_response_longer_than_the_limit_loses_its_end() {
    let row = text(Some("ab"), "cdefgh", "x");
    let (chosen, rejected, notes) = kept(&LetterEncoder::base(), 5, &row);
    assert_eq!((chosen.as_str(), rejected.as_str()), ("<s>[cdef]", "<s>[x</s>]"));
    assert_eq!(notes, Notes { truncated: true, response_truncated: true, unclear_turns: 0 });
}

#[test]
fn responses_that_truncation_makes_equal_are_dropped() {
    let row = text(Some("ab"), "cdefX", "cdefY");
    assert_eq!(dropped(&LetterEncoder::base(), 4, &row), DropReason::EqualResponses);
}

#[test]
fn another_shape_of_row_names_what_it_is() {
    let base = LetterEncoder::base();
    let error = RowEncoder::new(&base, &options(9)).pair(&Row::Text("a".into()), &place()).unwrap_err();
    assert_eq!(error.to_string(), "d.jsonl:3: found a row of text, wanted chosen and rejected");
}

#[test]
fn a_begin_token_that_only_the_tokenizer_has_is_not_kept_from_a_template() {
    let encoder = LetterEncoder { bos: Some(BOS), ..LetterEncoder::chat() };
    let (chosen, ..) = kept(&encoder, 10, &text(Some("aaaa"), "b", "c"));
    assert_eq!(chosen, "ssistant:[b<end>\n]".replace("ssistant:", "istant:"));
}
