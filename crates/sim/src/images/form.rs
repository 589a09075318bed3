//! Parses a multipart form with pictures.

use crate::multipart;
use serde_json::{Map, Value};

/// A parsed form: its fields as JSON members, and its files by name.
#[derive(Debug, Default)]
pub(super) struct Form {
    pub(super) fields: Value,
    pub(super) files: Vec<(String, Vec<u8>)>,
}

/// Parses a form; `None` if the body is not a form or a field is not UTF-8.
pub(super) fn read(content_type: &str, body: &[u8]) -> Option<Form> {
    let mut fields = Map::new();
    let mut files = Vec::new();
    for part in multipart::parse(content_type, body)? {
        if part.is_file {
            files.push((part.name, part.data));
        } else {
            fields.insert(part.name, typed(std::str::from_utf8(&part.data).ok()?));
        }
    }
    Some(Form {
        fields: Value::Object(fields),
        files,
    })
}

/// Converts text to a number or boolean where possible, because forms carry all values as text.
fn typed(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => text
            .parse::<i64>()
            .map_or_else(|_| text.into(), Value::from),
    }
}
