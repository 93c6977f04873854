//! Conversations → prompts, by the model's own template in the Jinja dialect of Hugging Face.
//!
//! The engine is minijinja; `dialect` adds what templates use beyond it, `generation` the tags that mark the
//! assistant's words.

mod dialect;
mod generation;
mod json;

use std::ops::Range;
use std::path::{Path, PathBuf};

use minijinja::value::Serde;
use minijinja::{Environment, Value as JinjaValue};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{ModelError, Result};

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool`, …
    pub role: String,
    /// Text; or a list of parts; or null, which templates do not get to see.
    #[serde(default)]
    pub content: Value,
    /// All other fields, e.g. `tool_calls` or `reasoning_content`, in their order. Nulls are not shown to templates.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Message {
    /// A turn of `role` with `content` and nothing else.
    pub fn new(role: impl Into<String>, content: impl Into<Value>) -> Self {
        Self { role: role.into(), content: content.into(), extra: Map::new() }
    }

    /// The content when it is a plain text.
    pub fn text(&self) -> Option<&str> {
        self.content.as_str()
    }

    /// What the template sees: role, content, the rest; without nulls, on which many templates print "None".
    fn visible(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("role".to_owned(), Value::String(self.role.clone()));
        let content = [("content".to_owned(), &self.content)];
        let extra = self.extra.iter().map(|(key, value)| (key.clone(), value));
        for (key, value) in content.into_iter().chain(extra).filter(|(_, value)| !value.is_null()) {
            fields.insert(key, value.clone());
        }
        fields
    }
}

/// A compiled chat template.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    path: PathBuf,
    source: String,
    bos: String,
    eos: String,
    marks_assistant: bool,
    environment: Environment<'static>,
}

const NAME: &str = "chat";

impl ChatTemplate {
    /// Compiles `source`; `bos` and `eos` are the texts of the tokens that it may write.
    ///
    /// # Errors
    /// When the source is not a template.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<Self> {
        Self::at(Path::new(""), source, bos, eos)
    }

    /// As [`ChatTemplate::new`], with the file that the source was read from, for errors.
    ///
    /// # Errors
    /// When the source is not a template.
    pub fn at(path: &Path, source: &str, bos: &str, eos: &str) -> Result<Self> {
        let (rewritten, marks_assistant) = generation::rewrite(source);
        let mut environment = dialect::environment();
        environment
            .add_template_owned(NAME, rewritten)
            .map_err(|error| failure(path, &error, "a template that compiles"))?;
        Ok(Self {
            path: path.to_owned(),
            source: source.to_owned(),
            bos: bos.to_owned(),
            eos: eos.to_owned(),
            marks_assistant,
            environment,
        })
    }

    /// The source as it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the template marks the assistant's words with `{% generation %}`.
    pub fn marks_assistant(&self) -> bool {
        self.marks_assistant
    }

    /// The prompt of a conversation.
    ///
    /// `tools` is the list of tool schemas, `add_generation_prompt` opens the assistant's next turn, `extra` are
    /// further variables (e.g. `enable_thinking`), which go before those of the same name.
    ///
    /// # Errors
    /// When the template fails, e.g. by its own `raise_exception`.
    pub fn render(
        &self,
        messages: &[Message],
        tools: Option<&Value>,
        add_generation_prompt: bool,
        extra: &[(&str, Value)],
    ) -> Result<String> {
        self.run(messages, tools, add_generation_prompt, extra, None)
    }

    /// The prompt, and the byte ranges in it that the template marks as the assistant's words; in ascending order.
    ///
    /// # Errors
    /// When the template fails, has no `{% generation %}` tags, or works on the marked text (cuts or measures it) so
    /// that the places cannot be told.
    pub fn render_with_assistant_spans(
        &self,
        messages: &[Message],
        tools: Option<&Value>,
        add_generation_prompt: bool,
        extra: &[(&str, Value)],
    ) -> Result<(String, Vec<Range<usize>>)> {
        if !self.marks_assistant {
            let wanted = "{% generation %} tags around the assistant's words";
            return Err(ModelError::template(&self.path, "", "a template without generation tags", wanted)
                .with_hint("mark the tags in the template, or mask by the prompt's length instead"));
        }
        let plain = self.run(messages, tools, add_generation_prompt, extra, None)?;
        let unclear = |got: &str| {
            ModelError::template(&self.path, "generation tags", got, "marked text that is printed as it is")
        };
        let marks = generation::free_marks(&plain).ok_or_else(|| unclear("a prompt full of non-characters"))?;
        let marked = self.run(messages, tools, add_generation_prompt, extra, Some(marks))?;
        let (text, spans) = generation::split(&marked, marks).ok_or_else(|| unclear("unbalanced marks"))?;
        if text == plain { Ok((text, spans)) } else { Err(unclear("text that changes when it is marked")) }
    }

    fn run(
        &self,
        messages: &[Message],
        tools: Option<&Value>,
        add_generation_prompt: bool,
        extra: &[(&str, Value)],
        marks: Option<(char, char)>,
    ) -> Result<String> {
        let messages: Vec<_> = messages.iter().map(Message::visible).collect();
        let mut variables: Vec<(String, JinjaValue)> = vec![
            ("messages".to_owned(), JinjaValue::from(Serde(&messages))),
            ("tools".to_owned(), JinjaValue::from(Serde(tools))),
            ("add_generation_prompt".to_owned(), add_generation_prompt.into()),
            ("bos_token".to_owned(), self.bos.as_str().into()),
            ("eos_token".to_owned(), self.eos.as_str().into()),
        ];
        for (name, value) in extra {
            variables.retain(|(known, _)| known != name);
            variables.push(((*name).to_owned(), JinjaValue::from(Serde(value))));
        }
        if let Some((open, close)) = marks {
            variables.push((generation::MARKS.to_owned(), format!("{open}{close}").into()));
        }
        let context = JinjaValue::from_pairs(variables);
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(context))
            .map_err(|error| failure(&self.path, &error, "a conversation that the template accepts"))
    }
}

fn failure(path: &Path, error: &minijinja::Error, wanted: &str) -> ModelError {
    let place = error.line().map(|line| format!("line {line}")).unwrap_or_default();
    let got = match error.detail() {
        Some(detail) if dialect::is_raised(error) => format!("the template's own complaint \"{detail}\""),
        Some(detail) => format!("{} ({detail})", error.kind()),
        None => error.kind().to_string(),
    };
    ModelError::template(path, place, got, wanted)
}

#[cfg(test)]
mod tests;
