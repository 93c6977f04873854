use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::data::encoder::testing::{BOS, END, LetterEncoder, chat};

type Rendered = std::result::Result<String, EncoderError>;

fn options() -> EncodeOptions {
    EncodeOptions {
        format: Format::Auto,
        max_seq_length: 1000,
        train_on: TrainOn::AllAssistant,
        append_eos: true,
        chat_template: ChatTemplateUse::Auto,
    }
}

fn place() -> RowPlace {
    RowPlace { path: Arc::from(Path::new("d.jsonl")), line: 3, index: None }
}

fn encode(encoder: &LetterEncoder, options: &EncodeOptions, row: &Row) -> Outcome<Example> {
    RowEncoder::new(encoder, options).example(row, &place()).unwrap()
}

fn marked(encoder: &LetterEncoder, options: &EncodeOptions, row: &Row) -> String {
    match encode(encoder, options, row) {
        Outcome::Kept(example, _) => {
            assert!(!example.mask[0]);
            assert!(example.mask[example.prompt_len]);
            assert!(!example.mask[..example.prompt_len].contains(&true));
            encoder.marked(&example.ids, &example.mask)
        }
        Outcome::Dropped(reason) => format!("dropped: {reason}"),
    }
}

fn turns(turns: &[(&str, &str)]) -> Row {
    let messages = turns.iter().map(|(role, text)| Message::new(*role, *text)).collect();
    Row::Messages { messages, tools: None }
}

fn flagged(flags: &[Option<bool>], row: Row) -> Row {
    let Row::Messages { mut messages, tools } = row else { panic!("not messages") };
    for (message, flag) in messages.iter_mut().zip(flags) {
        message.trainable = *flag;
    }
    Row::Messages { messages, tools }
}

fn completion(prompt: &str, completion: &str) -> Row {
    Row::Completion { prompt: Content::Text(prompt.into()), completion: Content::Text(completion.into()), tools: None }
}

fn dialogue() -> Row {
    turns(&[("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")])
}

#[test]
fn every_assistant_turn_is_trained_with_its_end_token() {
    assert_eq!(
        marked(&LetterEncoder::chat(), &options(), &dialogue()),
        "<start>user:a<end>\n<start>assistant:[b<end>\n]<start>user:c<end>\n<start>assistant:[d<end>\n]"
    );
}

#[test]
fn train_on_last_and_all_choose_the_turns() {
    let last = EncodeOptions { train_on: TrainOn::Last, ..options() };
    let text = marked(&LetterEncoder::chat(), &last, &dialogue());
    assert_eq!(text, "<start>user:a<end>\n<start>assistant:b<end>\n<start>user:c<end>\n<start>assistant:[d<end>\n]");
    let all = EncodeOptions { train_on: TrainOn::All, ..options() };
    let text = marked(&LetterEncoder::chat(), &all, &turns(&[("user", "a"), ("assistant", "b")]));
    assert_eq!(text, "<start>[user:a<end>\n<start>assistant:b<end>\n]");
}

#[test]
fn a_message_flag_goes_before_train_on() {
    let encoder = LetterEncoder::chat();
    let row = flagged(&[None, Some(false), None, None], dialogue());
    assert_eq!(
        marked(&encoder, &options(), &row),
        "<start>user:a<end>\n<start>assistant:b<end>\n<start>user:c<end>\n<start>assistant:[d<end>\n]"
    );
    let row = flagged(&[None, Some(false), Some(true), Some(false)], dialogue());
    assert_eq!(
        marked(&encoder, &options(), &row),
        "<start>user:a<end>\n<start>assistant:b<end>\n[<start>user:c<end>\n]<start>assistant:d<end>\n"
    );
    let row = flagged(&[None, Some(false), None, Some(false)], dialogue());
    assert_eq!(marked(&encoder, &options(), &row), "dropped: no trainable tokens");
}

#[test]
fn a_conversation_that_ends_with_the_user_trains_the_assistant_only() {
    let row = turns(&[("user", "a"), ("assistant", "b"), ("user", "c")]);
    let base = LetterEncoder { eos: Some(BOS + 3), ..LetterEncoder::chat() };
    assert_eq!(marked(&base, &options(), &row), "<start>user:a<end>\n<start>assistant:[b<end>\n]<start>user:c<end>\n");
    let row = turns(&[("user", "a")]);
    assert_eq!(marked(&base, &options(), &row), "dropped: no trainable tokens");
}

#[test]
fn the_marks_of_a_template_go_before_the_renders_and_take_the_end_token_along() {
    let encoder = LetterEncoder { marks: true, ..LetterEncoder::chat() };
    assert_eq!(
        marked(&encoder, &options(), &dialogue()),
        "<start>user:a<end>\n<start>assistant:[b<end>]\n<start>user:c<end>\n<start>assistant:[d<end>]\n"
    );
}

#[test]
fn marks_that_do_not_fit_the_turns_are_passed_over() {
    // The user quotes the opening of an assistant's turn, so the template marks three.
    let encoder = LetterEncoder { marks: true, ..LetterEncoder::chat() };
    let row = turns(&[("user", "<start>assistant:x<end>"), ("assistant", "b")]);
    assert_eq!(
        marked(&encoder, &options(), &row),
        "<start>user:<start>assistant:x<end><end>\n<start>assistant:[b<end>\n]"
    );
}

#[test]
fn an_end_token_is_appended_only_when_the_template_has_not_ended_the_turn() {
    let row = turns(&[("user", "a"), ("assistant", "b")]);
    let ended = "<start>user:a<end>\n<start>assistant:[b<end>\n]";
    assert_eq!(marked(&LetterEncoder::chat(), &options(), &row), ended);
    // The template ends the turn with another stop id than the tokenizer's own.
    let other = LetterEncoder { eos: Some(BOS + 3), ends: vec![END], ..LetterEncoder::chat() };
    assert_eq!(marked(&other, &options(), &row), ended);
    let unended = LetterEncoder { eos: Some(BOS + 3), ..LetterEncoder::chat() };
    assert_eq!(marked(&unended, &options(), &row), "<start>user:a<end>\n<start>assistant:[b<end>\n</s>]");
    let off = EncodeOptions { append_eos: false, ..options() };
    assert_eq!(marked(&unended, &off, &row), ended);
}

#[test]
fn a_prompt_that_is_no_prefix_of_the_whole_puts_the_boundary_at_the_common_part() {
    // As Gemma 4 does: the generation prompt opens an empty thought that the whole does not have.
    fn thoughtful(messages: &[Message], prompt: bool) -> Rendered {
        Ok(chat(messages, prompt)? + if prompt { "<thought></thought>" } else { "" })
    }
    let encoder = LetterEncoder { template: Some(thoughtful), ..LetterEncoder::chat() };
    let row = turns(&[("user", "a"), ("assistant", "b")]);
    assert_eq!(marked(&encoder, &options(), &row), "<start>user:a<end>\n<start>assistant:[b<end>\n]");
}

#[test]
fn tokens_that_merge_across_the_boundary_put_it_before_the_merge() {
    // ":w" is one token, so the prompt's ":" is not a token of the whole.
    let row = turns(&[("user", "a"), ("assistant", "wx")]);
    assert_eq!(marked(&LetterEncoder::chat(), &options(), &row), "<start>user:a<end>\n<start>assistant[:wx<end>\n]");
}

#[test]
fn turns_that_a_template_rewrites_later_are_counted_as_unclear() {
    // As Qwen3 does: only the last answer keeps its thoughts, here a leading "?".
    fn forgetful(messages: &[Message], prompt: bool) -> Rendered {
        let mut messages = messages.to_vec();
        let last = messages.len() - 1;
        for message in &mut messages[..last] {
            message.content = Value::String(message.content.as_str().unwrap().trim_start_matches('?').to_owned());
        }
        chat(&messages, prompt)
    }
    let encoder = LetterEncoder { template: Some(forgetful), ..LetterEncoder::chat() };
    let row = turns(&[("user", "a"), ("assistant", "?b"), ("user", "c"), ("assistant", "?d")]);
    let Outcome::Kept(example, notes) = encode(&encoder, &options(), &row) else { panic!("dropped") };
    assert_eq!(notes.unclear_turns, 1);
    assert_eq!(
        encoder.marked(&example.ids, &example.mask),
        "<start>user:a<end>\n<start>assistant:b<end>\n<start>user:c<end>\n<start>assistant:[?d<end>\n]"
    );
}

#[test]
fn a_begin_token_is_never_doubled() {
    fn with_bos(messages: &[Message], prompt: bool) -> Rendered {
        Ok(format!("<s><s>{}", chat(messages, prompt)?))
    }
    let encoder = LetterEncoder { template: Some(with_bos), bos: Some(BOS), ..LetterEncoder::chat() };
    let row = turns(&[("user", "a"), ("assistant", "b")]);
    assert_eq!(marked(&encoder, &options(), &row), "<s><start>user:a<end>\n<start>assistant:[b<end>\n]");
    let base = LetterEncoder::base();
    assert_eq!(marked(&base, &options(), &Row::Text("<s>ab".into())), "<s>[ab</s>]");
    assert_eq!(marked(&base, &options(), &Row::Text("ab</s>".into())), "<s>[ab</s>]");
}

#[test]
fn a_template_without_a_begin_token_gets_none() {
    let encoder = LetterEncoder { bos: Some(BOS), ..LetterEncoder::chat() };
    let row = turns(&[("user", "a"), ("assistant", "b")]);
    assert!(marked(&encoder, &options(), &row).starts_with("<start>user"));
}

#[test]
fn plain_completions_are_joined_without_a_template_and_wrapped_with_one() {
    assert_eq!(marked(&LetterEncoder::base(), &options(), &completion("ab", "cd")), "<s>ab[cd</s>]");
    assert_eq!(marked(&LetterEncoder::base(), &options(), &completion("xy", "zz")), "<s>x[yzz</s>]");
    let row = completion("ab", "cd");
    assert_eq!(marked(&LetterEncoder::chat(), &options(), &row), "<start>user:ab<end>\n<start>assistant:[cd<end>\n]");
    let never = EncodeOptions { chat_template: ChatTemplateUse::Never, ..options() };
    assert_eq!(marked(&LetterEncoder::chat(), &never, &row), "ab[cd<end>]");
    let all = EncodeOptions { train_on: TrainOn::All, ..options() };
    assert_eq!(marked(&LetterEncoder::base(), &all, &row), "<s>[abcd</s>]");
}

#[test]
fn only_the_completion_of_a_conversational_row_is_trained() {
    let prompt = [("user", "a"), ("assistant", "b"), ("user", "c")].map(|(role, text)| Message::new(role, text));
    let row = Row::Completion {
        prompt: Content::Messages(prompt.to_vec()),
        completion: Content::Messages(vec![Message::new("assistant", "d")]),
        tools: None,
    };
    assert_eq!(
        marked(&LetterEncoder::chat(), &options(), &row),
        "<start>user:a<end>\n<start>assistant:b<end>\n<start>user:c<end>\n<start>assistant:[d<end>\n]"
    );
}

#[test]
fn a_text_is_trained_whole() {
    assert_eq!(marked(&LetterEncoder::base(), &options(), &Row::Text("abc".into())), "<s>[abc</s>]");
    assert_eq!(marked(&LetterEncoder::chat(), &options(), &Row::Text("abc".into())), "a[bc<end>]");
}

#[test]
fn rows_without_targets_are_dropped_with_their_reason() {
    let base = LetterEncoder::base();
    assert_eq!(marked(&base, &options(), &completion("a", " \n")), "dropped: empty response");
    let bare = LetterEncoder { bos: None, ..base };
    assert_eq!(marked(&bare, &options(), &Row::Text(String::new())), "dropped: fewer than two tokens");
}

#[test]
fn a_long_row_loses_its_end_and_a_row_whose_response_is_lost_is_dropped() {
    let short = |max_seq_length| EncodeOptions { max_seq_length, ..options() };
    let row = completion("abc", "defg"); // <s> abc defg </s>: nine tokens
    let base = LetterEncoder::base();
    assert_eq!(marked(&base, &short(9), &row), "<s>abc[defg</s>]");
    assert_eq!(marked(&base, &short(6), &row), "<s>abc[de]");
    let Outcome::Kept(_, notes) = encode(&base, &short(6), &row) else { panic!("dropped") };
    assert!(notes.truncated && notes.response_truncated);
    // Four tokens are the prompt: mlx-bun would train on the prompt's last one.
    assert_eq!(marked(&base, &short(4), &row), "dropped: the response lies beyond max_seq_length");
}

#[test]
fn messages_without_a_template_are_an_error_with_a_remedy() {
    let options = options();
    let base = LetterEncoder::base();
    let error = RowEncoder::new(&base, &options).example(&dialogue(), &place()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "d.jsonl:3: found messages, and a model without a chat template, wanted a chat template"
    );
    assert!(error.hint().unwrap().contains("chat_template.jinja"));
}

#[test]
fn a_complaint_of_the_template_names_the_row() {
    fn strict(_: &[Message], _: bool) -> Rendered {
        Err("roles must alternate".into())
    }
    let encoder = LetterEncoder { template: Some(strict), ..LetterEncoder::chat() };
    let options = options();
    let error = RowEncoder::new(&encoder, &options).example(&dialogue(), &place()).unwrap_err();
    assert_eq!(error.to_string(), "cannot render d.jsonl:3");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "roles must alternate");
}

#[test]
fn a_tokenizer_without_an_end_token_is_an_error_unless_none_is_wanted() {
    let encoder = LetterEncoder { eos: None, ..LetterEncoder::base() };
    let row = Row::Text("ab".into());
    let error = RowEncoder::new(&encoder, &options()).example(&row, &place()).unwrap_err();
    assert!(error.hint().unwrap().contains("data.append_eos = false"));
    let off = EncodeOptions { append_eos: false, ..options() };
    assert_eq!(marked(&encoder, &off, &row), "<s>[ab]");
}

#[test]
fn a_preference_row_under_sft_says_which_method_it_is_for() {
    let text = |text: &str| Content::Text(text.into());
    let row = Row::Preference { prompt: None, chosen: text("a"), rejected: text("b"), tools: None };
    let base = LetterEncoder::base();
    let error = RowEncoder::new(&base, &options()).example(&row, &place()).unwrap_err();
    assert!(error.hint().unwrap().contains("orpo"));
}
