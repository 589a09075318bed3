//! Parses multipart forms. The simulator has its own parser, so that it checks the gateway's forms
//! independently.

use serde_json::{Map, Value};

/// A form: fields as JSON members, files by name.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) fields: Value,
    pub(super) files: Vec<(String, Vec<u8>)>,
}

/// Parses a form; `None` if the body is not one.
pub(super) fn read(content_type: &str, body: &[u8]) -> Option<Form> {
    let boundary = content_type.split("boundary=").nth(1)?;
    let boundary = boundary.split(';').next()?.trim().trim_matches('"');
    let delimiter = format!("\r\n--{boundary}");
    let body = [b"\r\n", body].concat();
    let mut fields = Map::new();
    let mut files = Vec::new();
    let mut parts = split(&body, delimiter.as_bytes());
    let last = parts.pop()?;
    if !last.starts_with(b"--") || !parts.first()?.is_empty() {
        return None;
    }
    for part in parts.iter().skip(1) {
        let part = part.strip_prefix(b"\r\n")?;
        let end = part.windows(4).position(|it| it == b"\r\n\r\n")?;
        let head = std::str::from_utf8(part.get(..end)?).ok()?;
        let data = part.get(end + 4..)?;
        let name = quoted(head, "name")?;
        if quoted(head, "filename").is_some() {
            files.push((name, data.to_vec()));
        } else {
            fields.insert(name, typed(std::str::from_utf8(data).ok()?));
        }
    }
    Some(Form {
        fields: Value::Object(fields),
        files,
    })
}

fn split<'a>(mut body: &'a [u8], delimiter: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = find(body, delimiter) {
        let (part, rest) = body.split_at(at);
        parts.push(part);
        body = rest.get(delimiter.len()..).unwrap_or_default();
    }
    parts.push(body);
    parts
}

/// Searches for the line end first, which is rare in binary files.
fn find(body: &[u8], delimiter: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + body.get(from..)?.iter().position(|byte| *byte == b'\r')?;
        if body.get(at..)?.starts_with(delimiter) {
            return Some(at);
        }
        from = at + 1;
    }
}

fn quoted(head: &str, name: &str) -> Option<String> {
    let mut pieces = head.split([';', '\r', '\n']);
    let value = pieces.find_map(|piece| piece.trim().strip_prefix(name)?.strip_prefix('='))?;
    Some(value.trim_matches('"').to_owned())
}

/// Converts numbers and booleans, which forms carry as text.
fn typed(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => text
            .parse::<i64>()
            .map_or_else(|_| text.into(), Value::from),
    }
}
