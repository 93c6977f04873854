//! `inspect`: counts, lengths and masks before any training.

use crate::fixture::{Workshop, preferences};

#[test]
fn a_conversation_is_shown_with_its_mask() {
    let shop = Workshop::new();
    let text = shop.run(&["inspect", "run.toml", "--samples", "1"]).succeeded().stdout;
    assert!(text.starts_with("train.jsonl: 10 of 10 rows, "), "{text}");
    assert!(text.contains("\ntrain: 10 rows\n  tokens per row: min "), "{text}");
    let sample = "<|im_start|>user\nsay 0<|im_end|>\n<|im_start|>assistant\n⟦I say 0, .<|im_end|>\n⟧\n";
    assert!(text.ends_with(sample), "{text}");
    assert!(!shop.path("out").exists());
}

#[test]
fn both_sides_of_a_pair_are_shown() {
    let shop = Workshop::new();
    shop.write("train.jsonl", &preferences(3));
    let args = ["inspect", "run.toml", "--samples", "1", "--set", "method.name=orpo"];
    let text = shop.run(&args).succeeded().stdout;
    let prompt = "<|im_start|>user\nsay 0<|im_end|>\n<|im_start|>assistant\n";
    assert!(text.contains(&format!("tokens, 10 trained\n{prompt}⟦I say 0.<|im_end|>\n⟧")), "{text}");
    assert!(text.ends_with(&format!("{prompt}⟦No, never.<|im_end|>\n⟧\n")), "{text}");
}

#[test]
fn what_was_cut_and_dropped_is_counted() {
    let shop = Workshop::new();
    let long = "x".repeat(60);
    let rows = [
        r#"{"text": "short"}"#.to_owned(),
        format!(r#"{{"text": "{long}"}}"#),
        r#"{"prompt": "p", "completion": "  "}"#.to_owned(),
        format!(r#"{{"prompt": "{long}", "completion": "gone"}}"#),
    ];
    shop.write("train.jsonl", &rows.join("\n"));
    let text = shop.run(&["inspect", "run.toml", "--max-seq-length", "40"]).succeeded().stdout;
    let report: Vec<&str> = text.lines().take(5).collect();
    assert_eq!(
        report,
        [
            "train.jsonl: 2 of 4 rows, 46 tokens, 44 trained, longest 40",
            "  dropped 1 row: the response lies beyond max_seq_length (first at train.jsonl:4)",
            "  dropped 1 row: empty response (first at train.jsonl:3)",
            "  1 row longer than 40 tokens, truncated (first at train.jsonl:2)",
            "  1 row of which a response lost its end at 40 tokens (first at train.jsonl:2)",
        ]
    );
}

#[test]
fn the_token_that_ends_a_row_can_be_named() {
    let shop = Workshop::new();
    shop.write("train.jsonl", r#"{"text": "short"}"#);
    let shown = |args: &[&str]| shop.run(&[&["inspect", "run.toml"], args].concat()).succeeded().stdout;
    assert!(shown(&[]).ends_with("s⟦hort<|im_end|>⟧\n"), "{}", shown(&[]));
    let named = shown(&["--set", "data.eos_token=</s>"]);
    assert!(named.ends_with("s⟦hort</s>⟧\n"), "{named}");
    let message = "error: --set: data.eos_token: found \"<end>\", wanted a token of the model's vocabulary";
    shop.run(&["inspect", "run.toml", "--set", "data.eos_token=<end>"]).failed(2, message);
}
