//! Reads YAML into JSON values. Numbers keep the text that they have in the file.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

/// The maximum number of values in a configuration, so that aliases of aliases cannot exhaust the memory.
const VALUES_MAX: usize = 1_000_000;
/// The maximum nesting of lists and tables.
const DEPTH_MAX: usize = 128;

/// A list or table whose end has not been read.
enum Open {
    List(Vec<Value>, usize),
    /// A table, and the key whose value comes next.
    Table(Map<String, Value>, Option<String>, usize),
}

/// Reads the first document of a text.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader {
        open: Vec::new(),
        anchors: HashMap::new(),
        values: 0,
        document: None,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|fault| fault.to_string())?;
        let line = span.start.line();
        reader
            .take(event)
            .map_err(|fault| format!("line {line}: {fault}"))?;
        if reader.document.is_some() {
            break;
        }
    }
    Ok(reader.document.unwrap_or(Value::Null))
}

struct Reader {
    open: Vec<Open>,
    /// Anchored values, each with the number of values that it contains.
    anchors: HashMap<usize, (Value, usize)>,
    values: usize,
    document: Option<Value>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        let begins = matches!(event, Event::SequenceStart(..) | Event::MappingStart(..));
        if begins && self.open.len() >= DEPTH_MAX {
            return Err("too many lists and tables are within each other".to_owned());
        }
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let value = match (style, &*text) {
                    (ScalarStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => Value::Null,
                    (ScalarStyle::Plain, "true" | "True" | "TRUE") => Value::Bool(true),
                    (ScalarStyle::Plain, "false" | "False" | "FALSE") => Value::Bool(false),
                    _ => Value::String(text.into_owned()),
                };
                self.put(value, anchor, 1)
            }
            Event::SequenceStart(anchor, _) => {
                self.open.push(Open::List(Vec::new(), anchor));
                Ok(())
            }
            Event::MappingStart(anchor, _) => {
                self.open.push(Open::Table(Map::new(), None, anchor));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (value, anchor) = match self.open.pop() {
                    Some(Open::List(list, anchor)) => (Value::Array(list), anchor),
                    Some(Open::Table(table, _, anchor)) => (Value::Object(table), anchor),
                    None => return Ok(()),
                };
                let size = if anchor == 0 { 1 } else { size_of(&value) };
                self.put(value, anchor, size)
            }
            Event::Alias(anchor) => {
                let found = self.anchors.get(&anchor).cloned();
                let (value, size) = found.ok_or("an alias names nothing")?;
                self.values = self.values.saturating_add(size);
                self.put(value, 0, 1)
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, value: Value, anchor: usize, size: usize) -> Result<(), String> {
        self.values = self.values.saturating_add(1);
        if self.values > VALUES_MAX {
            return Err("the file has too many values".to_owned());
        }
        if anchor != 0 {
            self.anchors.insert(anchor, (value.clone(), size));
        }
        match self.open.last_mut() {
            None => self.document = Some(value),
            Some(Open::List(list, _)) => list.push(value),
            Some(Open::Table(table, key, _)) => match key.take() {
                None => *key = Some(key_text(value)?),
                Some(name) if name == "<<" => merge(table, value),
                Some(name) => {
                    table.insert(name, value);
                }
            },
        }
        Ok(())
    }
}

fn key_text(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Null => Ok("null".to_owned()),
        _ => Err("a key is a list or a table".to_owned()),
    }
}

/// Applies the merge key `<<`: adds the members of other tables whose keys the table does not have.
fn merge(table: &mut Map<String, Value>, value: Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                table.entry(name).or_insert(value);
            }
        }
        Value::Array(tables) => tables.into_iter().for_each(|value| merge(table, value)),
        _ => {}
    }
}

fn size_of(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(size_of).sum::<usize>(),
        Value::Object(table) => 1 + table.values().map(size_of).sum::<usize>(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_read_with_its_numbers_as_texts() {
        let text = "\
a: 2e-07
b: [1.50, 'true', true, ~, \"x\\ny\"]
base: &base {x: 1, y: 2}
more:
  <<: *base
  y: 3
  z: |
    line
";
        let expected = json!({
            "a": "2e-07",
            "b": ["1.50", "true", true, null, "x\ny"],
            "base": {"x": "1", "y": "2"},
            "more": {"x": "1", "y": "3", "z": "line\n"},
        });
        assert_eq!(read(text), Ok(expected));
        assert_eq!(read(""), Ok(Value::Null));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in ["a: [1", "a: b: c", "*x", "a: *nobody"] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = |levels: usize| read(&format!("{}x", "- ".repeat(levels)));
        assert!(deep(DEPTH_MAX).is_ok());
        let fault = deep(100_000).unwrap_err();
        assert!(fault.contains("within each other"), "{fault}");
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..9 {
            let below = level - 1;
            let list = vec![format!("*a{below}"); 10].join(",");
            bomb.extend([format!("a{level}: &a{level} [{list}]\n")]);
        }
        let fault = read(&bomb).unwrap_err();
        assert!(fault.contains("too many values"), "{fault}");
    }
}
