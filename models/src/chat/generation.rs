//! `{% generation %}…{% endgeneration %}`: the tags around what the assistant says.
//!
//! The engine has no such statement. The pair becomes a filter block, which prints its text unchanged or, when spans
//! are asked for, between two marks that are found and removed afterwards.

use std::ops::Range;

use minijinja::{State, Value};

/// Name of the filter that stands in for the tags.
pub(super) const FILTER: &str = "__generation";
/// Name of the variable that holds the opening and the closing mark.
pub(super) const MARKS: &str = "__generation_marks";

/// The filter.
pub(super) fn mark(state: &State, text: String) -> String {
    match state.lookup(MARKS).as_ref().and_then(Value::as_str).map(|marks| marks.chars().collect::<Vec<_>>()) {
        Some(marks) if marks.len() == 2 => format!("{}{text}{}", marks[0], marks[1]),
        _ => text,
    }
}

/// Replaces the tags, keeping their whitespace control; also tells whether there were any.
pub(super) fn rewrite(source: &str) -> (String, bool) {
    let mut result = String::with_capacity(source.len() + 32);
    let mut found = false;
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        result.push_str(&rest[..at]);
        rest = &rest[at..];
        match tag(rest) {
            Some((open, statement, close, length)) => {
                found = true;
                result.push_str(&format!("{{%{open} {statement} {close}%}}"));
                rest = &rest[length..];
            }
            None => {
                result.push_str("{%");
                rest = &rest[2..];
            }
        }
    }
    result.push_str(rest);
    (result, found)
}

/// Recognises a tag at the start of `text`: its left control, replacement, right control and length.
fn tag(text: &str) -> Option<(&str, String, &str, usize)> {
    let end = text.find("%}")?;
    let inner = &text[2..end];
    let (open, inner) = control(inner, inner.starts_with(['-', '+']), true);
    let (close, inner) = control(inner, inner.ends_with(['-', '+']), false);
    let statement = match inner.trim() {
        "generation" => format!("filter {FILTER}"),
        "endgeneration" => "endfilter".to_owned(),
        _ => return None,
    };
    Some((open, statement, close, end + 2))
}

fn control(inner: &str, present: bool, left: bool) -> (&str, &str) {
    match (present, left) {
        (false, _) => ("", inner),
        (true, true) => inner.split_at(1),
        (true, false) => {
            let (rest, sign) = inner.split_at(inner.len() - 1);
            (sign, rest)
        }
    }
}

/// Two characters that do not occur in `text`, out of those that Unicode sets aside for a program's own use.
pub(super) fn free_marks(text: &str) -> Option<(char, char)> {
    let mut free = ('\u{FDD0}'..='\u{FDEF}').filter(|mark| !text.contains(*mark));
    Some((free.next()?, free.next()?))
}

/// Takes the marks out of `text`; the ranges are where the marked parts lie in the result.
pub(super) fn split(text: &str, (open, close): (char, char)) -> Option<(String, Vec<Range<usize>>)> {
    let mut plain = String::with_capacity(text.len());
    let mut spans = Vec::new();
    let mut start = None;
    for character in text.chars() {
        if character == open {
            if start.replace(plain.len()).is_some() {
                return None;
            }
        } else if character == close {
            spans.push(start.take()?..plain.len());
        } else {
            plain.push(character);
        }
    }
    start.is_none().then_some((plain, spans))
}
