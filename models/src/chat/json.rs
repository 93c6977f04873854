//! JSON as Python's `json.dumps` writes it, to the character: models were trained on its spaces and floats.

use serde_json::Value;

/// Options of `json.dumps`.
pub(super) struct Style {
    /// Text of one level of indentation; `None` for one line.
    pub indent: Option<String>,
    /// Between items and after keys; default `", "` and `": "`, or `","` and `": "` when indented.
    pub separators: Option<(String, String)>,
    /// Whether to escape everything beyond ASCII.
    pub ensure_ascii: bool,
    /// Whether to sort keys by code point.
    pub sort_keys: bool,
}

/// The text of `value`.
pub(super) fn dumps(value: &Value, style: &Style) -> String {
    let between = if style.indent.is_some() { "," } else { ", " };
    let (between, colon) = match &style.separators {
        Some((between, colon)) => (between.as_str(), colon.as_str()),
        None => (between, ": "),
    };
    let mut writer = Writer { style, between, colon, text: String::new() };
    writer.value(value, 0);
    writer.text
}

struct Writer<'s> {
    style: &'s Style,
    between: &'s str,
    colon: &'s str,
    text: String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Null => self.text.push_str("null"),
            Value::Bool(true) => self.text.push_str("true"),
            Value::Bool(false) => self.text.push_str("false"),
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) => self.text.push_str(&python_float(float)),
                None => self.text.push_str(&number.to_string()),
            },
            Value::String(text) => self.string(text),
            Value::Array(items) => self.list('[', ']', depth, items, |writer, item| writer.value(item, depth + 1)),
            Value::Object(object) => {
                let mut entries: Vec<_> = object.iter().collect();
                if self.style.sort_keys {
                    entries.sort_by_key(|entry| entry.0);
                }
                self.list('{', '}', depth, &entries, |writer, (key, item)| {
                    writer.string(key);
                    writer.text.push_str(writer.colon);
                    writer.value(item, depth + 1);
                });
            }
        }
    }

    fn list<T>(&mut self, open: char, close: char, depth: usize, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.text.push(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text.push_str(self.between);
            }
            self.new_line(depth + 1);
            write(self, item);
        }
        if !items.is_empty() {
            self.new_line(depth);
        }
        self.text.push(close);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = &self.style.indent {
            self.text.push('\n');
            self.text.push_str(&indent.repeat(depth));
        }
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for character in text.chars() {
            match character {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                '\u{8}' => self.text.push_str("\\b"),
                '\u{c}' => self.text.push_str("\\f"),
                control if control < ' ' => self.escape(control),
                wide if self.style.ensure_ascii && wide > '\u{7e}' => self.escape(wide),
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }

    fn escape(&mut self, character: char) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            self.text.push_str(&format!("\\u{unit:04x}"));
        }
    }
}

/// Python's `repr` of a float: the shortest digits that read back, with an exponent of two digits or more outside
/// 1e-4 to 1e16.
fn python_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..16).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        let cases = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (-2.5, "-2.5"),
        ];
        for (value, wanted) in cases {
            assert_eq!(python_float(value), wanted);
        }
    }
}
