//! A file of rows → JSON values with the line each begins on.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::{Detail, Place, Result, Stage, TrainError};

/// Longest piece of a broken line that an error shows, in characters.
const EXCERPT: usize = 60;

/// Where a row stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPlace {
    /// Its file.
    pub path: Arc<Path>,
    /// Its first line, from 1.
    pub line: usize,
    /// Its number in a JSON array, from 1; `None` in a file with one row a line.
    pub index: Option<usize>,
}

impl RowPlace {
    /// The place for an error about the row.
    pub fn place(&self) -> Place {
        Place::line(&self.path, self.line)
    }
}

impl fmt::Display for RowPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)?;
        self.index.map_or(Ok(()), |index| write!(f, " (row {index})"))
    }
}

/// A row as it stands in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonRow {
    /// Its columns.
    pub columns: Map<String, Value>,
    /// Where it stands.
    pub place: RowPlace,
}

/// Reads all rows of `path`: one JSON object per line, or one JSON array of objects.
///
/// A byte-order mark, CRLF line ends and blank lines are accepted.
///
/// # Errors
/// A file that is missing or holds no row, bytes that are not UTF-8, a line that is not JSON, a row that is no object.
pub fn read_rows(path: &Path) -> Result<Vec<JsonRow>> {
    let bytes = std::fs::read(path).map_err(|error| TrainError::io(Stage::Data, "read", path, error))?;
    parse_rows(path, &bytes)
}

/// As [`read_rows`], of bytes that were read from `path`.
///
/// # Errors
/// As [`read_rows`], but for a missing file.
pub fn parse_rows(path: &Path, bytes: &[u8]) -> Result<Vec<JsonRow>> {
    let text = decode(path, bytes)?;
    let shared: Arc<Path> = Arc::from(path);
    let rows = if text.trim_start().starts_with('[') {
        ArrayReader { path: &shared, text, at: 0, line: 1, counted: 0 }.rows()?
    } else {
        let lines = text.split('\n').enumerate();
        let lines = lines.map(|(index, line)| (index + 1, line.strip_suffix('\r').unwrap_or(line)));
        lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| parse_line(&shared, number, line))
            .collect::<Result<Vec<_>>>()?
    };
    if rows.is_empty() {
        let got = if text.is_empty() { "an empty file" } else { "a file without rows" };
        return Err(TrainError::data(Detail::new(Place::file(path), "", got, "at least one row")));
    }
    Ok(rows)
}

fn decode<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let detail = Detail::new(Place::line(path, 1), "", "UTF-16", "UTF-8");
        return Err(TrainError::data(detail.hint("save the file as UTF-8")));
    }
    let marked = bytes.starts_with(b"\xef\xbb\xbf");
    let skipped = if marked { 3 } else { 0 };
    std::str::from_utf8(&bytes[skipped..]).map_err(|error| {
        let offset = skipped + error.valid_up_to();
        let line = bytes[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
        let got = format!("byte 0x{:02x} at offset {offset}, which is not UTF-8", bytes[offset]);
        TrainError::data(Detail::new(Place::line(path, line), "", got, "UTF-8"))
    })
}

fn parse_line(path: &Arc<Path>, number: usize, line: &str) -> Result<JsonRow> {
    let value = serde_json::from_str(line).map_err(|error| {
        // serde_json counts bytes; people count characters.
        let column = characters(line, error.column().saturating_sub(1)) + 1;
        let detail = broken(Place::column(path, number, column), line, column, &error);
        TrainError::data(if error.is_eof() {
            detail.hint("a row is one JSON object on one line; for rows over several lines, make the file a JSON array")
        } else {
            detail
        })
    })?;
    into_row(value, RowPlace { path: path.clone(), line: number, index: None })
}

fn characters(text: &str, bytes: usize) -> usize {
    text.char_indices().take_while(|(at, _)| *at < bytes).count()
}

fn broken(place: Place, line: &str, column: usize, error: &serde_json::Error) -> Detail {
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default();
    let got = format!("text that is not JSON ({reason}): {}", excerpt(line, column));
    Detail::new(place, "", got, "a JSON object")
}

/// The part of `line` around `column`.
fn excerpt(line: &str, column: usize) -> String {
    let letters: Vec<char> = line.trim_end().chars().collect();
    let start = column.saturating_sub(EXCERPT / 2).min(letters.len().saturating_sub(EXCERPT));
    let end = (start + EXCERPT).min(letters.len());
    let part: String = letters[start..end].iter().collect();
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < letters.len() { "…" } else { "" });
    format!("{before}{part}{after}")
}

fn into_row(value: Value, place: RowPlace) -> Result<JsonRow> {
    match value {
        Value::Object(columns) => Ok(JsonRow { columns, place }),
        other => {
            let field = place.index.map(|index| format!("row {index}")).unwrap_or_default();
            Err(TrainError::data(Detail::new(place.place(), field, kind_of(&other), "a JSON object")))
        }
    }
}

/// What a JSON value is, for errors.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Reads a JSON array one element at a time, so that each row's line is known.
struct ArrayReader<'a> {
    path: &'a Arc<Path>,
    text: &'a str,
    at: usize,
    line: usize,
    counted: usize,
}

impl ArrayReader<'_> {
    fn rows(mut self) -> Result<Vec<JsonRow>> {
        self.skip_blanks();
        self.at += 1; // the bracket that made this an array
        let mut rows = Vec::new();
        self.skip_blanks();
        if self.next() == Some(']') {
            self.at += 1;
            return self.end(rows);
        }
        loop {
            rows.push(self.element(rows.len() + 1)?);
            self.skip_blanks();
            match self.next() {
                Some(',') => self.at += 1,
                Some(']') => {
                    self.at += 1;
                    return self.end(rows);
                }
                Some(other) => return Err(self.unexpected(&format!("`{other}`"), "`,` or `]` after a row")),
                None => return Err(self.unexpected("the end of the file", "`]` at the end of the array")),
            }
        }
    }

    fn element(&mut self, index: usize) -> Result<JsonRow> {
        self.skip_blanks();
        let line = self.line();
        let rest = &self.text[self.at..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                self.at += stream.byte_offset();
                into_row(value, RowPlace { path: self.path.clone(), line, index: Some(index) })
            }
            Some(Err(error)) => {
                let broken_line = rest.split('\n').nth(error.line() - 1).unwrap_or_default();
                let mut column = characters(broken_line, error.column().saturating_sub(1)) + 1;
                let shown = column;
                if error.line() == 1 {
                    column += self.column() - 1;
                }
                let place = Place::column(self.path, line + error.line() - 1, column);
                Err(TrainError::data(broken(place, broken_line, shown, &error)))
            }
            None => Err(self.unexpected("the end of the file", "a row")),
        }
    }

    fn end(mut self, rows: Vec<JsonRow>) -> Result<Vec<JsonRow>> {
        self.skip_blanks();
        match self.next() {
            None => Ok(rows),
            Some(_) => Err(self.unexpected("more text after the array", "the end of the file")),
        }
    }

    fn next(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Line of the current place; counts on from the last call.
    fn line(&mut self) -> usize {
        self.line += self.text[self.counted..self.at].matches('\n').count();
        self.counted = self.at;
        self.line
    }

    fn column(&self) -> usize {
        self.text[..self.at].rsplit('\n').next().unwrap_or_default().chars().count() + 1
    }

    fn unexpected(&mut self, got: &str, wanted: &str) -> TrainError {
        let place = Place::column(self.path, self.line(), self.column());
        TrainError::data(Detail::new(place, "", got, wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: &[u8]) -> Result<Vec<JsonRow>> {
        parse_rows(Path::new("d.jsonl"), bytes)
    }

    fn lines(bytes: &[u8]) -> Vec<usize> {
        rows(bytes).unwrap().iter().map(|row| row.place.line).collect()
    }

    fn failure(bytes: &[u8]) -> String {
        let error = rows(bytes).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        error.to_string()
    }

    #[test]
    fn a_byte_order_mark_blank_lines_and_crlf_are_accepted() {
        let text = b"\xef\xbb\xbf{\"text\": \"a\"}\r\n\r\n   \n{\"text\": \"b\"}\r\n{\"text\": \"c\"}";
        assert_eq!(lines(text), [1, 4, 5]);
        assert_eq!(rows(text).unwrap()[1].columns["text"], "b");
    }

    #[test]
    fn an_empty_file_and_a_blank_file_are_errors() {
        assert_eq!(failure(b""), "d.jsonl: found an empty file, wanted at least one row");
        assert_eq!(failure(b"\xef\xbb\xbf"), "d.jsonl: found an empty file, wanted at least one row");
        assert_eq!(failure(b"\r\n \n"), "d.jsonl: found a file without rows, wanted at least one row");
        assert_eq!(failure(b"[ ]\n"), "d.jsonl: found a file without rows, wanted at least one row");
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let error = read_rows(Path::new("no/such.jsonl")).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.exit_code()), ("cannot read no/such.jsonl", 1));
    }

    #[test]
    fn broken_json_names_line_column_and_text() {
        let text = "{\"text\": \"a\"}\n\n{\"text\": \"ä\" \"b\"}\n".as_bytes();
        assert_eq!(
            failure(text),
            "d.jsonl:3:14: found text that is not JSON (expected `,` or `}`): {\"text\": \"ä\" \"b\"}, \
             wanted a JSON object"
        );
    }

    #[test]
    fn a_long_broken_line_is_shown_around_the_break() {
        let text = format!("{{\"text\": \"{}\" oops, \"more\": \"{}\"}}", "a".repeat(300), "b".repeat(300));
        let text = failure(text.as_bytes());
        assert!(text.contains(" oops, "), "{text}");
        assert!(text.contains(": …aaaa") && text.contains("bbb…,"), "{text}");
        assert!(text.chars().count() < 180, "{text}");
    }

    #[test]
    fn an_object_over_several_lines_gets_a_hint() {
        let error = rows(b"{\n  \"text\": \"a\"\n}\n").unwrap_err();
        assert!(error.to_string().starts_with("d.jsonl:1:1: found text that is not JSON (EOF"), "{error}");
        assert!(error.hint().unwrap().contains("one JSON object on one line"));
    }

    #[test]
    fn bytes_that_are_not_utf8_name_the_offset_and_the_line() {
        let wanted = "d.jsonl:2: found byte 0xe9 at offset 23, which is not UTF-8, wanted UTF-8";
        assert_eq!(failure(b"{\"text\": \"a\"}\n{\"text\":\"\xe9\"}\n"), wanted);
        assert_eq!(failure(b"\xff\xfe{\0"), "d.jsonl:1: found UTF-16, wanted UTF-8");
    }

    #[test]
    fn an_array_file_gives_rows_with_line_and_number() {
        let text = b" [\n {\"text\": \"a\"},\n {\n  \"text\": \"b\"\n },{\"text\": \"c\"}\n]\n";
        let rows = rows(text).unwrap();
        let places: Vec<String> = rows.iter().map(|row| row.place.to_string()).collect();
        assert_eq!(places, ["d.jsonl:2 (row 1)", "d.jsonl:3 (row 2)", "d.jsonl:5 (row 3)"]);
        assert_eq!(rows[2].columns["text"], "c");
    }

    #[test]
    fn a_broken_array_names_the_place() {
        assert_eq!(failure(b"[{\"a\": 1}\n {\"a\": 2}]"), "d.jsonl:2:2: found `{`, wanted `,` or `]` after a row");
        assert_eq!(
            failure(b"[{\"a\": 1}"),
            "d.jsonl:1:10: found the end of the file, wanted `]` at the end of the array"
        );
        assert_eq!(failure(b"[{\"a\": 1},"), "d.jsonl:1:11: found the end of the file, wanted a row");
        assert_eq!(
            failure(b"[{\"a\": 1}] x"),
            "d.jsonl:1:12: found more text after the array, wanted the end of the file"
        );
        let text = failure(b"[{\"a\": 1},\n {\"a\": 2 3}]");
        assert!(text.starts_with("d.jsonl:2:10: found text that is not JSON (expected `,` or `}`)"), "{text}");
    }

    #[test]
    fn a_row_that_is_no_object_is_an_error() {
        assert_eq!(failure(b"{}\n3\n"), "d.jsonl:2: found a number, wanted a JSON object");
        assert_eq!(failure(b"[{},\n\"x\"]"), "d.jsonl:2: row 2: found a string, wanted a JSON object");
    }
}
