//! Rows that are refused or left out, with their lines and reasons.

use serde_json::json;

use crate::fixture::{Workshop, conversations, lines, preferences};

/// Training on `rows` ends with this message and leaves nothing behind.
#[track_caller]
fn refused(rows: &str, args: &[&str], message: &str) {
    let shop = Workshop::new();
    shop.write("train.jsonl", rows);
    shop.train(args).failed(1, message);
    assert_eq!(shop.list("out"), [""; 0]);
}

#[test]
fn a_missing_and_an_empty_file_are_named() {
    let shop = Workshop::new();
    shop.train(&["--data", "nope.jsonl"])
        .failed(1, "error: cannot read nope.jsonl\n  caused by: No such file or directory (os error 2)");
    refused("", &[], "error: train.jsonl: found an empty file, wanted at least one row");
    refused("\n\r\n", &[], "error: train.jsonl: found a file without rows, wanted at least one row");
}

#[test]
fn a_file_that_breaks_in_the_middle_names_the_line() {
    let rows = conversations(3) + "{\"messages\": [{\"role\": \"user\"\n" + &conversations(1);
    refused(
        &rows,
        &[],
        "error: train.jsonl:4:29: found text that is not JSON (EOF while parsing an object): \
         {\"messages\": [{\"role\": \"user\", wanted a JSON object\n\n\
         hint: a row is one JSON object on one line; for rows over several lines, make the file a JSON array",
    );
}

#[test]
fn a_byte_order_mark_crlf_and_blank_lines_change_nothing() {
    let shop = Workshop::new();
    shop.train(&["--adapter-path", "plain"]).succeeded();
    shop.write("train.jsonl", &format!("\u{feff}{}\r\n  \r\n", conversations(10).replace('\n', "\r\n\r\n")));
    shop.train(&["--adapter-path", "marked"]).succeeded();
    assert_eq!(shop.figures("plain"), shop.figures("marked"));
    let array = format!("[{}]", conversations(10).trim_end().replace('\n', ",\n"));
    shop.write("train.jsonl", &array);
    shop.train(&["--adapter-path", "array"]).succeeded();
    assert_eq!(shop.figures("plain"), shop.figures("array"));
}

#[test]
fn rows_of_an_unknown_shape_are_named() {
    refused(
        "{\"text\": \"a b\"}\n{\"question\": \"q\", \"answer\": \"a\"}\n",
        &[],
        "error: train.jsonl:2: found the columns question, answer, \
         wanted messages, conversations, prompt and completion, text, or chosen and rejected",
    );
    refused(
        "{\"messages\": [{\"role\": \"user\", \"content\": 3}]}\n",
        &[],
        "error: train.jsonl:1: messages[0].content: found a number, wanted a string or a list of parts",
    );
}

#[test]
fn rows_without_anything_to_train_are_an_error_with_the_reasons() {
    let rows = [
        json!({"messages": [{"role": "user", "content": "only a question"}]}),
        json!({"messages": [{"role": "user", "content": "another"}]}),
        json!({"prompt": "p", "completion": " "}),
    ];
    refused(
        &lines(rows.into_iter()),
        &[],
        "error: train.jsonl: found no usable row of 3 (2 dropped: no trainable tokens; 1 dropped: empty response), \
         wanted at least one row with trainable tokens\n\n\
         hint: check data.train_on and the roles of the messages; mlx-train inspect shows the mask",
    );
}

#[test]
fn a_prompt_longer_than_the_limit_is_dropped_under_sft_and_trimmed_under_orpo() {
    let shop = Workshop::new();
    let long = json!({"prompt": "p ".repeat(60), "completion": "an answer"});
    shop.write("train.jsonl", &(lines([long].into_iter()) + &conversations(3)));
    let outcome = shop.train(&["--max-seq-length", "60"]).succeeded();
    assert!(
        outcome
            .stderr
            .contains("\n  dropped 1 row: the response lies beyond max_seq_length (first at train.jsonl:1)\n"),
        "{}",
        outcome.stderr
    );
    let long = json!({"prompt": "p ".repeat(60), "chosen": "an answer", "rejected": "no"});
    shop.write("train.jsonl", &(lines([long].into_iter()) + &preferences(3)));
    let outcome = shop.train(&["--max-seq-length", "60", "--overwrite", "--set", "method.name=orpo"]).succeeded();
    assert!(outcome.stderr.starts_with("train.jsonl: 4 of 4 rows, "), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains(", longest 60\n  1 row longer than 60 tokens, truncated (first at train.jsonl:1)\n"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn equal_responses_are_dropped_and_counted() {
    let shop = Workshop::new();
    let equal = json!({"prompt": "p", "chosen": "same", "rejected": "same "});
    shop.write("train.jsonl", &(preferences(2) + &lines([equal.clone(), equal.clone()].into_iter())));
    let outcome = shop.train(&["--set", "method.name=orpo"]).succeeded();
    let wanted = "train.jsonl: 2 of 4 rows, ";
    assert!(outcome.stderr.starts_with(wanted), "{}", outcome.stderr);
    let wanted = "\n  dropped 2 rows: chosen and rejected are the same (first at train.jsonl:3)\n";
    assert!(outcome.stderr.contains(wanted), "{}", outcome.stderr);
    refused(
        &lines([equal].into_iter()),
        &["--set", "method.name=orpo"],
        "error: train.jsonl: found no usable row of 1 (1 dropped: chosen and rejected are the same), \
         wanted at least one row with trainable tokens\n\nhint: chosen and rejected must differ",
    );
}

#[test]
fn rows_of_the_other_method_are_refused_with_its_name() {
    refused(
        &preferences(2),
        &[],
        "error: train.jsonl:1: found a preference row, wanted messages, prompt and completion, or text\n\n\
         hint: train on it with method.name = \"orpo\"",
    );
    refused(
        &conversations(2),
        &["--set", "method.name=orpo"],
        "error: train.jsonl:1: found a row of messages, wanted chosen and rejected\n\n\
         hint: train on it with method.name = \"sft\"",
    );
}

#[test]
fn bytes_that_are_not_utf8_name_line_and_offset() {
    let shop = Workshop::new();
    std::fs::write(shop.path("train.jsonl"), b"{\"text\": \"ab\"}\n{\"text\": \"\xe9\"}\n").unwrap();
    shop.train(&[]).failed(1, "error: train.jsonl:2: found byte 0xe9 at offset 25, which is not UTF-8, wanted UTF-8");
}
