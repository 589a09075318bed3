//! Reduces a JSON Schema to the subset that structured output and strict tools accept.
//!
//! The vendor refuses other keywords. Its own client libraries move them into the description,
//! where the model can at least read them. The gateway does the same.

use std::borrow::Cow;

use crate::json::typed;
use crate::json::write;
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
    let begin = out.len();
    if write_schema(&mut Cursor::new(schema), out).is_err() {
        out.truncate(begin);
        write::raw(out, schema);
    }
}

enum Value<'a> {
    Raw(Raw<'a>),
    /// Schemas, already reduced. Each is read only once, however deep it is nested.
    Reduced(Vec<u8>),
}

impl Value<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Raw(value) => write::raw(out, value.text()),
            Self::Reduced(schemas) => out.extend_from_slice(schemas),
        }
    }

    /// The value for the description, without white space.
    fn compact(&self) -> Cow<'_, str> {
        match self {
            Self::Raw(value) => typed::compact(value.text()).into(),
            Self::Reduced(schemas) => String::from_utf8_lossy(schemas),
        }
    }

    fn raw(&self) -> Option<Raw<'_>> {
        match self {
            Self::Raw(value) => Some(*value),
            Self::Reduced(_) => None,
        }
    }
}

fn write_schema(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        write::raw(out, cursor.value()?.text());
        return Ok(());
    }
    let mut members = Vec::new();
    cursor.object(|cursor, name| {
        let name = name.decode_lossy();
        let value = read_value(cursor, &name)?;
        members.push((name, value));
        Ok::<(), SyntaxError>(())
    })?;
    write_members(&members, out);
    Ok(())
}

fn read_value<'a>(cursor: &mut Cursor<'a>, name: &str) -> Result<Value<'a>, SyntaxError> {
    let mut schemas = Vec::new();
    match (name, cursor.shape()?) {
        ("properties" | "$defs" | "definitions", Shape::Object) => write_map(cursor, &mut schemas)?,
        ("anyOf" | "allOf" | "oneOf", Shape::Array) => write_list(cursor, &mut schemas)?,
        ("items", Shape::Object) => write_schema(cursor, &mut schemas)?,
        _ => return Ok(Value::Raw(cursor.value()?)),
    }
    Ok(Value::Reduced(schemas))
}

fn write_members(members: &[(Cow<'_, str>, Value<'_>)], out: &mut Vec<u8>) {
    let is_object = members.iter().any(|(name, value)| match name.as_ref() {
        "type" => value.raw().is_some_and(means_object),
        "properties" => true,
        _ => false,
    });
    let has_choice = members.iter().any(|(name, _)| name == "anyOf");
    let mut description: Option<String> = None;
    let mut left: Vec<String> = Vec::new();
    write::object(out, |it| {
        for (name, value) in members {
            let satisfies = |test: fn(Raw<'_>) -> bool| value.raw().is_some_and(test);
            match name.as_ref() {
                "type" | "required" | "enum" | "const" | "$ref" | "title" | "properties"
                | "$defs" | "definitions" | "items" | "anyOf" | "allOf" => {
                    it.value(name, |out| value.write(out));
                }
                "oneOf" if !has_choice => {
                    it.value("anyOf", |out| value.write(out));
                }
                "format" if satisfies(is_known_format) => {
                    it.value(name, |out| value.write(out));
                }
                "minItems" if satisfies(is_small) => {
                    it.value(name, |out| value.write(out));
                }
                "description" => {
                    let text = value.raw().and_then(|value| value.string());
                    let text = text.map(|text| text.decode_lossy().into_owned());
                    description = text.or(description.take());
                }
                // The model needs none of these. In an object, `additionalProperties` is always set to false.
                "$schema" | "$id" | "$comment" => {}
                "additionalProperties" if is_object => {}
                _ => left.push(format!("{name}: {}", value.compact())),
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
fn write_map(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
    let begin = out.len();
    cursor.object(|cursor, name| {
        out.push(if out.len() == begin { b'{' } else { b',' });
        crate::json::write_string(out, &name.decode_lossy());
        out.push(b':');
        write_schema(cursor, out)
    })?;
    if out.len() == begin {
        out.push(b'{');
    }
    out.push(b'}');
    Ok(())
}

/// Writes a list of schemas.
fn write_list(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
    let begin = out.len();
    cursor.array(|cursor| {
        out.push(if out.len() == begin { b'[' } else { b',' });
        write_schema(cursor, out)
    })?;
    if out.len() == begin {
        out.push(b'[');
    }
    out.push(b']');
    Ok(())
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

fn is_known_format(value: Raw<'_>) -> bool {
    let text = value.string();
    text.is_some_and(|text| FORMATS.iter().any(|known| text.is(known)))
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

    #[test]
    fn nested_schemas_are_reduced_like_any_other() {
        let (mut schema, mut expected) = (
            r#"{"type":"string","pattern":"^a$"}"#.to_owned(),
            r#"{"type":"string","description":"{pattern: \"^a$\"}"}"#.to_owned(),
        );
        for _ in 0..10 {
            schema = format!(r#"{{"properties":{{"a":{{"items":{{"anyOf":[{schema}]}}}}}}}}"#);
            expected = format!(
                r#"{{"properties":{{"a":{{"items":{{"anyOf":[{expected}]}}}}}},"additionalProperties":false}}"#
            );
        }
        assert_eq!(subset(&schema), expected);
    }

    #[test]
    fn what_is_empty_stays_empty() {
        let schema = r#"{"properties":{},"$defs":{},"allOf":[],"items":{}}"#;
        let expected =
            r#"{"properties":{},"$defs":{},"allOf":[],"items":{},"additionalProperties":false}"#;
        assert_eq!(subset(schema), expected);
    }
}
