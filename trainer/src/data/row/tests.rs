use std::path::Path;

use serde_json::json;

use super::*;
use crate::data::jsonl::parse_rows;

fn parse_as(value: &Value, format: Format) -> Result<Row> {
    let text = format!("\n{value}\n");
    parse_row(&parse_rows(Path::new("d.jsonl"), text.as_bytes()).unwrap()[0], format)
}

fn parse(value: Value) -> Result<Row> {
    parse_as(&value, Format::Auto)
}

fn failure(value: Value) -> String {
    parse(value).unwrap_err().to_string()
}

fn user(text: &str) -> Message {
    Message::new("user", text)
}

fn assistant(text: &str) -> Message {
    Message::new("assistant", text)
}

#[test]
fn the_shape_goes_by_the_columns() {
    assert_eq!(parse(json!({"text": "a", "id": 3})).unwrap(), Row::Text("a".into()));
    let row = parse(json!({"prompt": "p", "completion": [{"role": "assistant", "content": "c"}]})).unwrap();
    let completion = Content::Messages(vec![assistant("c")]);
    assert_eq!(row, Row::Completion { prompt: Content::Text("p".into()), completion, tools: None });
    let row = parse(json!({"messages": [{"role": "user", "content": "u"}], "text": "x", "tools": [{"name": "t"}]}));
    assert_eq!(row.unwrap(), Row::Messages { messages: vec![user("u")], tools: Some(json!([{"name": "t"}])) });
}

#[test]
fn a_row_without_known_columns_lists_its_own() {
    assert_eq!(
        failure(json!({"question": "q", "answer": "a"})),
        "d.jsonl:2: found the columns question, answer, wanted messages, conversations, prompt and completion, text, \
         or chosen and rejected"
    );
    assert!(failure(json!({})).contains("found no columns"));
}

#[test]
fn a_format_that_was_asked_for_is_kept_to() {
    let row = json!({"messages": [{"role": "user", "content": "u"}], "text": "x"});
    assert_eq!(parse_as(&row, Format::Text).unwrap(), Row::Text("x".into()));
    let error = parse_as(&row, Format::Preference).unwrap_err().to_string();
    assert_eq!(error, "d.jsonl:2: chosen: found no such column, wanted a string or a list of messages");
}

#[test]
fn a_column_of_the_wrong_type_is_named() {
    assert_eq!(failure(json!({"text": 3})), "d.jsonl:2: text: found a number, wanted a string");
    assert_eq!(
        failure(json!({"messages": [{"role": "user", "content": 3}]})),
        "d.jsonl:2: messages[0].content: found a number, wanted a string or a list of parts"
    );
    assert_eq!(
        failure(json!({"messages": [{"role": "user", "content": "a"}, "b"]})),
        "d.jsonl:2: messages[1]: found a string, wanted an object with role and content"
    );
    assert_eq!(
        failure(json!({"messages": [{"content": "a"}]})),
        "d.jsonl:2: messages[0].role: found no such key, wanted a role such as \"user\""
    );
    assert_eq!(
        failure(json!({"messages": []})),
        "d.jsonl:2: messages: found an empty list, wanted at least one message"
    );
    assert_eq!(failure(json!({"messages": "hi"})), "d.jsonl:2: messages: found a string, wanted a list of messages");
    assert_eq!(
        failure(json!({"messages": [{"role": "assistant", "content": null}]})),
        "d.jsonl:2: messages[0].content: found null, wanted a string"
    );
    assert_eq!(
        failure(json!({"text": "a", "prompt": null, "chosen": 1, "rejected": "b"})),
        "d.jsonl:2: chosen: found a number, wanted a string or a list of messages"
    );
}

#[test]
fn a_tool_call_needs_no_content_and_keeps_its_keys_in_order() {
    let call = json!([{"z": 1, "a": 2}]);
    let row = parse(json!({"messages": [{"role": "assistant", "tool_calls": call, "name": "n"}]})).unwrap();
    let Row::Messages { messages, .. } = row else { panic!("not messages") };
    assert_eq!(messages[0].content, Value::Null);
    assert_eq!(serde_json::to_string(&messages[0].extra).unwrap(), r#"{"tool_calls":[{"z":1,"a":2}],"name":"n"}"#);
}

#[test]
fn trainable_and_weight_flags_leave_the_message() {
    let turn = |key: &str, value: Value| json!({"messages": [{"role": "assistant", "content": "a", key: value}]});
    let flag = |key: &str, value: Value| match parse(turn(key, value)).unwrap() {
        Row::Messages { messages, .. } => {
            assert!(messages[0].extra.is_empty());
            messages[0].trainable
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(flag("trainable", json!(false)), Some(false));
    assert_eq!(flag("weight", json!(1)), Some(true));
    assert_eq!(flag("weight", json!(0.0)), Some(false));
    assert_eq!(flag("weight", json!(null)), None);
    assert_eq!(failure(turn("weight", json!(0.5))), "d.jsonl:2: messages[0].weight: found 0.5, wanted 0 or 1");
    assert_eq!(
        failure(turn("trainable", json!("yes"))),
        "d.jsonl:2: messages[0].trainable: found \"yes\", wanted true or false"
    );
}

#[test]
fn sharegpt_conversations_become_messages() {
    let row = json!({"system": "s", "conversations": [{"from": "human", "value": "u"}, {"from": "gpt", "value": "a"}]});
    let messages = vec![Message::new("system", "s"), user("u"), assistant("a")];
    assert_eq!(parse(row).unwrap(), Row::Messages { messages, tools: None });
    assert_eq!(
        failure(json!({"conversations": [{"from": "alien", "value": "u"}]})),
        "d.jsonl:2: conversations[0].from: found \"alien\", wanted human, gpt, system or tool"
    );
}

#[test]
fn tools_may_be_json_in_a_string() {
    let row = |tools: Value| json!({"messages": [{"role": "user", "content": "u"}], "tools": tools});
    let tools = |value: Value| match parse(row(value)).unwrap() {
        Row::Messages { tools, .. } => tools,
        other => panic!("{other:?}"),
    };
    assert_eq!(tools(json!("[{\"name\": \"t\"}]")), Some(json!([{"name": "t"}])));
    assert_eq!(tools(json!("[]")), None);
    assert_eq!(tools(json!([])), None);
    assert_eq!(failure(row(json!({}))), "d.jsonl:2: tools: found an object, wanted a list of tool schemas");
}

fn preference(value: Value) -> (Option<Content>, Content, Content) {
    match parse(value).unwrap() {
        Row::Preference { prompt, chosen, rejected, .. } => (prompt, chosen, rejected),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_turns_that_both_responses_share_are_the_prompt() {
    let turns = |last: &str| json!([{"role": "user", "content": "u"}, {"role": "assistant", "content": last}]);
    let wanted = (
        Some(Content::Messages(vec![user("u")])),
        Content::Messages(vec![assistant("c")]),
        Content::Messages(vec![assistant("r")]),
    );
    assert_eq!(preference(json!({"chosen": turns("c"), "rejected": turns("r")})), wanted);
    // UltraFeedback repeats the prompt in a column.
    assert_eq!(preference(json!({"prompt": "u", "chosen": turns("c"), "rejected": turns("r")})), wanted);
    let prompt = json!([{"role": "user", "content": "u"}]);
    assert_eq!(preference(json!({"prompt": prompt, "chosen": turns("c"), "rejected": turns("r")})), wanted);
    let only = |text: &str| json!([{"role": "assistant", "content": text}]);
    assert_eq!(preference(json!({"prompt": prompt, "chosen": only("c"), "rejected": only("r")})), wanted);
    assert_eq!(preference(json!({"prompt": "u", "chosen": only("c"), "rejected": only("r")})), wanted);
}

#[test]
fn a_shared_system_turn_goes_before_the_prompt_column() {
    let turns = |last: &str| json!([{"role": "system", "content": "s"}, {"role": "assistant", "content": last}]);
    let (prompt, ..) = preference(json!({"prompt": "u", "chosen": turns("c"), "rejected": turns("r")}));
    assert_eq!(prompt, Some(Content::Messages(vec![Message::new("system", "s"), user("u")])));
}

#[test]
fn equal_responses_keep_one_turn_each() {
    let turns = json!([{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]);
    let (_, chosen, rejected) = preference(json!({"chosen": turns, "rejected": turns}));
    assert_eq!((chosen, rejected), (Content::Messages(vec![assistant("a")]), Content::Messages(vec![assistant("a")])));
}

#[test]
fn texts_may_come_without_a_prompt() {
    let (prompt, chosen, _) = preference(json!({"prompt": null, "chosen": "x y", "rejected": "x z"}));
    assert_eq!((prompt, chosen), (None, Content::Text("x y".into())));
}

#[test]
fn responses_of_different_kinds_or_without_an_answer_are_errors() {
    let only = |role: &str| json!([{"role": role, "content": "c"}]);
    assert_eq!(
        failure(json!({"prompt": "p", "chosen": "c", "rejected": only("assistant")})),
        "d.jsonl:2: rejected: found a list of messages, wanted a string as in chosen"
    );
    assert_eq!(
        failure(json!({"prompt": "p", "chosen": only("user"), "rejected": only("assistant")})),
        "d.jsonl:2: chosen: found a last message of role \"user\", wanted one of role \"assistant\""
    );
    let other = json!([{"role": "assistant", "content": "r"}]);
    assert!(
        failure(json!({"chosen": only("assistant"), "rejected": other})).starts_with("d.jsonl:2: prompt: found no")
    );
}
