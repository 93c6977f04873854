use serde_json::json;

use super::*;

#[derive(Deserialize)]
struct Renders {
    chats: std::collections::HashMap<String, Vec<Message>>,
    tools: Value,
    renders: Vec<Render>,
}

#[derive(Deserialize)]
struct Render {
    template: String,
    chat: String,
    tools: bool,
    prompt: bool,
    text: Option<String>,
    spans: Option<Vec<(usize, usize)>>,
    error: Option<String>,
}

fn source(name: &str) -> &'static str {
    match name {
        "chatml_tools" => include_str!("../../testdata/chatml_tools.jinja"),
        "headers" => include_str!("../../testdata/headers.jinja"),
        _ => include_str!("../../testdata/pipes.jinja"),
    }
}

fn renders() -> Renders {
    serde_json::from_str(include_str!("../../testdata/renders.json")).unwrap()
}

fn one(source: &str) -> String {
    ChatTemplate::new(source, "<s>", "</s>").unwrap().render(&[Message::new("user", "hi")], None, false, &[]).unwrap()
}

#[test]
fn templates_render_as_python_renders_them() {
    let all = renders();
    let thinking = [("enable_thinking", json!(false))];
    let mut compared = 0;
    for case in &all.renders {
        let template = ChatTemplate::new(source(&case.template), "<s>", "</s>").unwrap();
        let tools = case.tools.then_some(&all.tools);
        let result = template.render(&all.chats[&case.chat], tools, case.prompt, &thinking);
        let place = format!("{} of {}, tools {}, prompt {}", case.template, case.chat, case.tools, case.prompt);
        match (&case.text, &case.error) {
            (Some(text), _) => assert_eq!(&result.unwrap_or_else(|error| panic!("{place}: {error}")), text, "{place}"),
            (None, error) => assert!(result.is_err(), "{place}: Python fails with {error:?}, here it renders"),
        }
        compared += 1;
    }
    assert_eq!(compared, 60);
}

#[test]
fn assistant_spans_are_where_python_finds_them() {
    let all = renders();
    let thinking = [("enable_thinking", json!(false))];
    let mut spans_seen = 0;
    for case in all.renders.iter().filter(|case| case.template == "chatml_tools") {
        let (Some(text), Some(wanted)) = (&case.text, &case.spans) else { continue };
        let template = ChatTemplate::new(source(&case.template), "<s>", "</s>").unwrap();
        let tools = case.tools.then_some(&all.tools);
        let chat = &all.chats[&case.chat];
        let (got, spans) = template.render_with_assistant_spans(chat, tools, case.prompt, &thinking).unwrap();
        assert_eq!(&got, text);
        let spans: Vec<_> = spans.into_iter().map(|span| (span.start, span.end)).collect();
        assert_eq!(&spans, wanted);
        spans_seen += spans.len();
    }
    assert_eq!(spans_seen, 16);
}

#[test]
fn spans_hold_the_assistants_words_whatever_characters_the_user_sends() {
    let template = ChatTemplate::new(
        "{% for m in messages %}{{ m.role }}:{%- generation +%}{{ m.content }}{% endgeneration -%}\n{% endfor %}",
        "",
        "",
    )
    .unwrap();
    assert!(template.marks_assistant());
    let chat = [Message::new("user", "\u{FDD0}é\u{FDD1}"), Message::new("assistant", "日本")];
    let (text, spans) = template.render_with_assistant_spans(&chat, None, false, &[]).unwrap();
    assert_eq!(text, "user:\u{FDD0}é\u{FDD1}assistant:日本");
    let parts: Vec<_> = spans.into_iter().map(|span| &text[span]).collect();
    assert_eq!(parts, ["\u{FDD0}é\u{FDD1}", "日本"]);
}

#[test]
fn spans_need_tags_and_text_that_is_printed_as_it_is() {
    let template = ChatTemplate::new("{{ messages[0].content }}", "", "").unwrap();
    let chat = [Message::new("user", "hi")];
    let error = template.render_with_assistant_spans(&chat, None, false, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "chat template: found a template without generation tags, wanted {% generation %} tags around the assistant's words"
    );
    let measured = "{% set x %}{% generation %}ab{% endgeneration %}{% endset %}{{ x | length }}";
    let template = ChatTemplate::new(measured, "", "").unwrap();
    assert_eq!(template.render(&chat, None, false, &[]).unwrap(), "2");
    let error = template.render_with_assistant_spans(&chat, None, false, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "chat template: generation tags: found text that changes when it is marked, wanted marked text that is printed as it is"
    );
}

#[test]
fn tools_and_extra_variables_reach_the_template() {
    let template =
        ChatTemplate::new("{{ bos_token }}{{ tools is none }} {{ thinking }} {{ eos_token }}", "<s>", "</s>").unwrap();
    let render = |extra: &[(&str, Value)]| template.render(&[], None, false, extra).unwrap();
    assert_eq!(render(&[("thinking", json!(true))]), "<s>True True </s>");
    assert_eq!(render(&[("bos_token", json!("<b>"))]), "<b>True  </s>");
}

#[test]
fn messages_keep_their_further_fields_in_order_and_hide_nulls() {
    let message: Message = serde_json::from_value(json!({
        "role": "assistant", "content": null, "zeta": 1, "alpha": {"b": 1, "a": 2}, "none": null
    }))
    .unwrap();
    let template =
        ChatTemplate::new("{{ messages[0] | tojson }} {{ messages[0].content is defined }}", "", "").unwrap();
    let text = template.render(&[message], None, false, &[]).unwrap();
    assert_eq!(text, "{\"role\": \"assistant\", \"zeta\": 1, \"alpha\": {\"b\": 1, \"a\": 2}} False");
}

#[test]
fn none_is_not_iterable_and_lists_are() {
    assert_eq!(
        one("{{ none is iterable }} {{ [1] is iterable }} {{ 'a' is iterable }} {{ 3 is iterable }}"),
        "False True True False"
    );
}

#[test]
fn the_clock_is_formatted_and_an_unknown_code_is_an_error() {
    let year: i32 = one("{{ strftime_now('%Y') }}").parse().unwrap();
    assert!(year >= 2024);
    let template = ChatTemplate::new("{{ strftime_now('%Q') }}", "", "").unwrap();
    let message = template.render(&[], None, false, &[]).unwrap_err().to_string();
    assert!(message.contains("strftime_now: unknown code in \"%Q\""), "{message}");
}

#[test]
fn a_complaint_of_the_template_is_told_from_a_fault_in_it() {
    let template =
        ChatTemplate::at(Path::new("t.jinja"), "a\n{{ raise_exception('roles must alternate') }}", "", "").unwrap();
    assert_eq!(
        template.render(&[], None, false, &[]).unwrap_err().to_string(),
        "chat template: t.jinja: line 2: found the template's own complaint \"roles must alternate\", \
         wanted a conversation that the template accepts"
    );
    let message = ChatTemplate::at(Path::new("t.jinja"), "\n\n{% if %}", "", "").unwrap_err().to_string();
    assert!(message.starts_with("chat template: t.jinja: line 3: found syntax error"), "{message}");
    let template = ChatTemplate::new("{{ messages[3].content }}", "", "").unwrap();
    assert!(template.render(&[], None, false, &[]).unwrap_err().to_string().contains("undefined value"));
}

#[test]
fn generation_tags_are_found_with_any_spacing_and_control() {
    let cases = [
        ("{% generation %}", "{% filter __generation %}"),
        ("{%- generation -%}", "{%- filter __generation -%}"),
        ("{%+generation%}", "{%+ filter __generation %}"),
        ("{%-endgeneration+%}", "{%- endfilter +%}"),
        ("{%   endgeneration   %}", "{% endfilter %}"),
    ];
    for (tag, wanted) in cases {
        assert_eq!(generation::rewrite(tag), (wanted.to_owned(), true));
    }
    for other in ["{% generations %}", "{{ generation }}", "{%", "{% set x = 1 %}é", "%} {%- -"] {
        assert_eq!(generation::rewrite(other), (other.to_owned(), false));
    }
}
