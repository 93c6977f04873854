//! A row's JSON → one of the shapes that can be trained on.

use serde_json::{Map, Value};

use super::jsonl::{JsonRow, RowPlace, kind_of};
use crate::config::value::Format;
use crate::error::{Detail, Result, TrainError};

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool`, …
    pub role: String,
    /// Text, a list of parts, or null.
    pub content: Value,
    /// All other columns, e.g. `tool_calls`, in their order; without `trainable` and `weight`.
    pub extra: Map<String, Value>,
    /// The row's own word on whether the turn is trained: `trainable`, or `weight` 0 or 1.
    pub trainable: Option<bool>,
}

impl Message {
    /// A turn with a text and nothing else.
    pub fn new(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self { role: role.into(), content: Value::String(text.into()), extra: Map::new(), trainable: None }
    }

    /// Whether it is the assistant's.
    pub fn is_assistant(&self) -> bool {
        self.role == "assistant"
    }
}

/// A prompt or a response: a text, or turns.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text.
    Text(String),
    /// Turns; at least one.
    Messages(Vec<Message>),
}

/// A row that can be trained on.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// A conversation.
    Messages {
        /// Its turns; at least one.
        messages: Vec<Message>,
        /// Schemas of the tools, for the chat template.
        tools: Option<Value>,
    },
    /// A prompt and what follows it.
    Completion {
        /// What is given.
        prompt: Content,
        /// What is trained.
        completion: Content,
        /// Schemas of the tools, for the chat template.
        tools: Option<Value>,
    },
    /// A text.
    Text(String),
    /// A prompt with a better and a worse response.
    Preference {
        /// What is given; `None` when both responses are texts that begin with it.
        prompt: Option<Content>,
        /// The better response, without the prompt's turns.
        chosen: Content,
        /// The worse response, without the prompt's turns.
        rejected: Content,
        /// Schemas of the tools, for the chat template.
        tools: Option<Value>,
    },
}

const SHAPES: &str = "messages, conversations, prompt and completion, text, or chosen and rejected";

/// Reads a row in `format`; `auto` goes by its columns. A column that is null counts as absent.
///
/// # Errors
/// A row that has not the columns of the format, or a column of the wrong type; the error names row and column.
pub fn parse_row(row: &JsonRow, format: Format) -> Result<Row> {
    let columns = Columns { map: &row.columns, place: &row.place };
    let format = match format {
        Format::Auto => columns.detect()?,
        given => given,
    };
    match format {
        Format::Text => Ok(Row::Text(columns.text("text")?)),
        Format::Completion => {
            let (prompt, completion) = (columns.content("prompt")?, columns.content("completion")?);
            Ok(Row::Completion { prompt, completion, tools: columns.tools()? })
        }
        Format::Preference => columns.preference(),
        Format::Messages | Format::Auto => Ok(Row::Messages { messages: columns.messages()?, tools: columns.tools()? }),
    }
}

struct Columns<'a> {
    map: &'a Map<String, Value>,
    place: &'a RowPlace,
}

impl Columns<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn error(&self, field: impl Into<String>, got: impl Into<String>, wanted: impl Into<String>) -> TrainError {
        let field = field.into();
        let field = match self.place.index {
            Some(index) if field.is_empty() => format!("row {index}"),
            Some(index) => format!("row {index}: {field}"),
            None => field,
        };
        TrainError::data(Detail::new(self.place.place(), field, got, wanted))
    }

    fn detect(&self) -> Result<Format> {
        let has = |name: &str| self.get(name).is_some();
        if has("chosen") && has("rejected") {
            return Ok(Format::Preference);
        }
        if has("messages") || has("conversations") {
            return Ok(Format::Messages);
        }
        if has("prompt") && has("completion") {
            return Ok(Format::Completion);
        }
        if has("text") {
            return Ok(Format::Text);
        }
        let names: Vec<&str> = self.map.keys().map(String::as_str).collect();
        let got = if names.is_empty() { "no columns".to_owned() } else { format!("the columns {}", names.join(", ")) };
        Err(self.error("", got, SHAPES))
    }

    fn required(&self, name: &str, wanted: &str) -> Result<&Value> {
        let got = if self.map.contains_key(name) { "null" } else { "no such column" };
        self.get(name).ok_or_else(|| self.error(name, got, wanted))
    }

    fn text(&self, name: &str) -> Result<String> {
        let value = self.required(name, "a string")?;
        value.as_str().map(str::to_owned).ok_or_else(|| self.error(name, kind_of(value), "a string"))
    }

    fn content(&self, name: &str) -> Result<Content> {
        const WANTED: &str = "a string or a list of messages";
        match self.required(name, WANTED)? {
            Value::String(text) => Ok(Content::Text(text.clone())),
            Value::Array(items) => self.message_list(name, items).map(Content::Messages),
            other => Err(self.error(name, kind_of(other), WANTED)),
        }
    }

    fn messages(&self) -> Result<Vec<Message>> {
        const WANTED: &str = "a list of messages";
        let (name, value) = match self.get("conversations") {
            Some(value) if self.get("messages").is_none() => ("conversations", value),
            _ => ("messages", self.required("messages", WANTED)?),
        };
        let items = value.as_array().ok_or_else(|| self.error(name, kind_of(value), WANTED))?;
        let mut messages = self.message_list(name, items)?;
        // ShareGPT files keep the system prompt in a column of its own.
        if name == "conversations" && self.get("system").is_some() {
            messages.insert(0, Message::new("system", self.text("system")?));
        }
        Ok(messages)
    }

    fn message_list(&self, name: &str, items: &[Value]) -> Result<Vec<Message>> {
        if items.is_empty() {
            return Err(self.error(name, "an empty list", "at least one message"));
        }
        items.iter().enumerate().map(|(index, item)| self.message(&format!("{name}[{index}]"), item)).collect()
    }

    fn message(&self, name: &str, item: &Value) -> Result<Message> {
        let Value::Object(map) = item else {
            return Err(self.error(name, kind_of(item), "an object with role and content"));
        };
        let mut extra = map.clone();
        // ShareGPT's spelling.
        let shared = !map.contains_key("role") && map.contains_key("from");
        let (role_key, content_key) = if shared { ("from", "value") } else { ("role", "content") };
        let role = match extra.shift_remove(role_key) {
            Some(Value::String(role)) if !role.trim().is_empty() => role,
            Some(other) => {
                return Err(self.error(format!("{name}.{role_key}"), show(&other), "a role such as \"user\""));
            }
            None => return Err(self.error(format!("{name}.role"), "no such key", "a role such as \"user\"")),
        };
        let role = if shared { self.shared_role(&format!("{name}.from"), &role)? } else { role };
        let content = extra.shift_remove(content_key).unwrap_or(Value::Null);
        match &content {
            Value::String(_) | Value::Array(_) => {}
            Value::Null if !extra.is_empty() => {}
            Value::Null => {
                let got = if map.contains_key(content_key) { "null" } else { "no such key" };
                return Err(self.error(format!("{name}.{content_key}"), got, "a string"));
            }
            other => {
                let wanted = "a string or a list of parts";
                return Err(self.error(format!("{name}.{content_key}"), kind_of(other), wanted));
            }
        }
        let trainable = self.trainable(name, &mut extra)?;
        Ok(Message { role, content, extra, trainable })
    }

    fn shared_role(&self, name: &str, role: &str) -> Result<String> {
        let known = match role {
            "human" | "user" => "user",
            "gpt" | "assistant" | "chatgpt" | "model" | "function_call" => "assistant",
            "system" => "system",
            "tool" | "observation" | "function_response" => "tool",
            other => {
                return Err(self.error(name, format!("\"{other}\""), "human, gpt, system or tool"));
            }
        };
        Ok(known.to_owned())
    }

    fn trainable(&self, name: &str, extra: &mut Map<String, Value>) -> Result<Option<bool>> {
        let flag = match extra.shift_remove("trainable") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(flag)) => Some(flag),
            Some(other) => return Err(self.error(format!("{name}.trainable"), show(&other), "true or false")),
        };
        let weight = match extra.shift_remove("weight") {
            None | Some(Value::Null) => None,
            Some(value) => match value.as_f64() {
                Some(0.0) => Some(false),
                Some(1.0) => Some(true),
                _ => return Err(self.error(format!("{name}.weight"), show(&value), "0 or 1")),
            },
        };
        match (flag, weight) {
            (Some(flag), Some(weight)) if flag != weight => {
                let got = format!("{} beside trainable = {flag}", u8::from(weight));
                Err(self.error(format!("{name}.weight"), got, "one of the two, or both alike"))
            }
            (flag, weight) => Ok(flag.or(weight)),
        }
    }

    fn tools(&self) -> Result<Option<Value>> {
        match self.get("tools") {
            None => Ok(None),
            Some(Value::Array(tools)) if tools.is_empty() => Ok(None),
            Some(tools @ Value::Array(_)) => Ok(Some(tools.clone())),
            // Hub datasets keep schemas as JSON in a string, because their columns are typed.
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => match serde_json::from_str(text) {
                Ok(Value::Array(tools)) => Ok((!tools.is_empty()).then_some(Value::Array(tools))),
                _ => Err(self.error("tools", "a string that is no JSON list", "a list of tool schemas")),
            },
            Some(other) => Err(self.error("tools", kind_of(other), "a list of tool schemas")),
        }
    }

    fn preference(&self) -> Result<Row> {
        let prompt = self.get("prompt").map(|_| self.content("prompt")).transpose()?;
        let (chosen, rejected) = (self.content("chosen")?, self.content("rejected")?);
        let tools = self.tools()?;
        match (chosen, rejected) {
            (Content::Messages(chosen), Content::Messages(rejected)) => {
                let (prompt, chosen, rejected) = self.split_prompt(prompt, chosen, rejected)?;
                let (chosen, rejected) = (Content::Messages(chosen), Content::Messages(rejected));
                Ok(Row::Preference { prompt: Some(Content::Messages(prompt)), chosen, rejected, tools })
            }
            (chosen @ Content::Text(_), rejected @ Content::Text(_)) => {
                Ok(Row::Preference { prompt, chosen, rejected, tools })
            }
            (Content::Text(_), Content::Messages(_)) => {
                Err(self.error("rejected", "a list of messages", "a string as in chosen"))
            }
            (Content::Messages(_), Content::Text(_)) => {
                Err(self.error("rejected", "a string", "a list of messages as in chosen"))
            }
        }
    }

    /// Takes the turns that both lists begin with off them; they are the prompt, after that of its own column.
    fn split_prompt(
        &self,
        prompt: Option<Content>,
        mut chosen: Vec<Message>,
        mut rejected: Vec<Message>,
    ) -> Result<(Vec<Message>, Vec<Message>, Vec<Message>)> {
        let shared = chosen.iter().zip(&rejected).take_while(|(left, right)| left == right).count();
        // Equal responses are found later and counted; here one turn is left to be the response.
        let shared = shared.min(chosen.len() - 1).min(rejected.len() - 1);
        rejected.drain(..shared);
        let shared: Vec<Message> = chosen.drain(..shared).collect();
        for (name, response) in [("chosen", &chosen), ("rejected", &rejected)] {
            if let Some(last) = response.last().filter(|last| !last.is_assistant()) {
                let got = format!("a last message of role \"{}\"", last.role);
                return Err(self.error(name, got, "one of role \"assistant\""));
            }
        }
        let prompt = match prompt {
            // Lists with a user's turn carry the prompt themselves; the column repeats it (UltraFeedback).
            Some(Content::Text(text)) if !shared.iter().any(|message| message.role == "user") => {
                [shared, vec![Message::new("user", text)]].concat()
            }
            Some(Content::Messages(given)) if !shared.starts_with(&given) => [given, shared].concat(),
            _ => shared,
        };
        if prompt.is_empty() {
            let got = "no prompt column, and lists that begin differently";
            return Err(self.error("prompt", got, "a prompt, or lists that begin with the same turns"));
        }
        Ok((prompt, chosen, rejected))
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => kind_of(value).to_owned(),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests;
