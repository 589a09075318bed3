//! Reduces a JSON Schema to the subset that structured output and strict tools accept.
//!
//! The vendor refuses other keywords. Its own client libraries move them into the description,
//! where the model can at least read them. The gateway does the same.

use std::borrow::Cow;

use crate::json::typed;
use crate::json::write::{self, Object};
use crate::json::{Cursor, Integer, Raw, Shape, SyntaxError};

/// String formats that are accepted.
const FORMATS: [&str; 10] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// Writes the schema, reduced to the accepted keywords.
pub(super) fn write_subset(schema: &str, out: &mut Vec<u8>) {
    match Cursor::new(schema).value() {
        Ok(value) => write_schema(value, out),
        Err(_) => write::raw(out, schema),
    }
}

type Members<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

fn write_schema(schema: Raw<'_>, out: &mut Vec<u8>) {
    let Some(members) = members(schema) else {
        return write::raw(out, schema.text());
    };
    let is_object = members.iter().any(|(name, value)| match name.as_ref() {
        "type" => means_object(*value),
        "properties" => true,
        _ => false,
    });
    let mut description: Option<String> = None;
    let mut left: Vec<String> = Vec::new();
    write::object(out, |it| {
        for (name, value) in &members {
            match name.as_ref() {
                "type" | "required" | "enum" | "const" | "$ref" | "title" => {
                    it.raw(name, value.text());
                }
                "properties" | "$defs" | "definitions" => write_map(it, name, *value),
                "items" => {
                    it.value(name, |out| write_schema(*value, out));
                }
                "anyOf" | "allOf" => write_list(it, name, *value),
                "oneOf" if !members.iter().any(|(name, _)| name == "anyOf") => {
                    write_list(it, "anyOf", *value);
                }
                "format" if is_one_of(*value, &FORMATS) => {
                    it.raw(name, value.text());
                }
                "minItems" if is_small(*value) => {
                    it.raw(name, value.text());
                }
                "description" => {
                    let text = value.string().map(|text| text.decode_lossy().into_owned());
                    description = text.or(description.take());
                }
                // The model needs none of these. In an object, `additionalProperties` is always set to false.
                "$schema" | "$id" | "$comment" => {}
                "additionalProperties" if is_object => {}
                _ => left.push(format!("{name}: {}", typed::compact(value.text()))),
            }
        }
        if is_object {
            it.boolean("additionalProperties", false);
        }
        if let Some(description) = describe(description.as_deref(), &left) {
            it.text("description", &description);
        }
    });
}

/// The description, followed by the keywords that were removed.
fn describe(description: Option<&str>, left: &[String]) -> Option<String> {
    if left.is_empty() {
        return description.map(str::to_owned);
    }
    let left = format!("{{{}}}", left.join(", "));
    Some(match description {
        Some(description) => format!("{description}\n\n{left}"),
        None => left,
    })
}

/// Writes schemas by name.
fn write_map(it: &mut Object<'_>, name: &str, map: Raw<'_>) {
    let Some(members) = members(map) else {
        it.raw(name, map.text());
        return;
    };
    it.value(name, |out| {
        out.push(b'{');
        for (number, (name, schema)) in members.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            crate::json::write_string(out, name);
            out.push(b':');
            write_schema(*schema, out);
        }
        out.push(b'}');
    });
}

/// Writes a list of schemas.
fn write_list(it: &mut Object<'_>, name: &str, list: Raw<'_>) {
    if list.shape() != Shape::Array {
        it.raw(name, list.text());
        return;
    }
    it.array(name, |it| {
        let read = Cursor::new(list.text()).array(|cursor| {
            let schema = cursor.value()?;
            it.value(|out| write_schema(schema, out));
            Ok::<(), SyntaxError>(())
        });
        debug_assert!(read.is_ok(), "the list has been read before");
    });
}

fn members(schema: Raw<'_>) -> Option<Members<'_>> {
    if schema.shape() != Shape::Object {
        return None;
    }
    let mut members = Vec::new();
    let read = Cursor::new(schema.text()).object(|cursor, name| {
        members.push((name.decode_lossy(), cursor.value()?));
        Ok::<(), SyntaxError>(())
    });
    read.ok().map(|()| members)
}

fn means_object(kind: Raw<'_>) -> bool {
    if kind.shape() != Shape::Array {
        return kind.string().is_some_and(|kind| kind.is("object"));
    }
    let mut found = false;
    let read = Cursor::new(kind.text()).array(|cursor| {
        found |= cursor
            .value()?
            .string()
            .is_some_and(|kind| kind.is("object"));
        Ok::<(), SyntaxError>(())
    });
    read.is_ok() && found
}

fn is_one_of(value: Raw<'_>, known: &[&str]) -> bool {
    let text = value.string();
    text.is_some_and(|text| known.iter().any(|known| text.is(known)))
}

fn is_small(value: Raw<'_>) -> bool {
    matches!(value.integer(), Some(Integer::Value(0 | 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subset(schema: &str) -> String {
        let mut out = Vec::new();
        write_subset(schema, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn unsupported_keywords_move_into_the_description() {
        for (schema, expected) in [
            (
                r#"{"$schema":"x","type":"object","properties":{"b":{"type":"integer","minimum":1,"description":"How many."},"a":{"type":"string","format":"email"}},"required":["b"]}"#,
                r#"{"type":"object","properties":{"b":{"type":"integer","description":"How many.\n\n{minimum: 1}"},"a":{"type":"string","format":"email"}},"required":["b"],"additionalProperties":false}"#,
            ),
            (
                r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
                r#"{"type":"object","additionalProperties":false}"#,
            ),
            (
                r##"{"oneOf":[{"type":["object","null"]},{"$ref":"#/$defs/x"}],"$defs":{"x":{"type":"string","pattern":"^a$","format":"regex"}}}"##,
                r##"{"anyOf":[{"type":["object","null"],"additionalProperties":false},{"$ref":"#/$defs/x"}],"$defs":{"x":{"type":"string","description":"{pattern: \"^a$\", format: \"regex\"}"}}}"##,
            ),
            (
                r#"{"type":"array","items":{"properties":{}},"minItems":1,"maxItems":3}"#,
                r#"{"type":"array","items":{"properties":{},"additionalProperties":false},"minItems":1,"description":"{maxItems: 3}"}"#,
            ),
            (
                r#"{"anyOf":true,"oneOf":[1],"properties":3,"items":false,"minItems":2}"#,
                r#"{"anyOf":true,"properties":3,"items":false,"additionalProperties":false,"description":"{oneOf: [1], minItems: 2}"}"#,
            ),
            ("true", "true"),
        ] {
            assert_eq!(subset(schema), expected);
            assert_eq!(subset(expected), expected, "again");
        }
    }
}
