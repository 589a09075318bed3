//! Converts this dialect's schemas to JSON Schema, and writes JSON Schema for upstreams of this dialect.
//!
//! Types may be in upper case, names in snake case and bounds in strings, and `nullable` replaces a
//! `null` type. JSON Schema passes unchanged.

use crate::canon::Json;
use crate::failure::Failure;
use crate::json::members::camel;
use crate::json::typed::{ValueError, compact};
use crate::json::write::raw;
use crate::json::{Cursor, Members, Raw, Shape, Spelling, write_string};
use serde_json::value::RawValue;

pub(in crate::generate) fn to_json_schema(cursor: &mut Cursor<'_>) -> Result<Json, Failure> {
    let mut out = Vec::new();
    write(cursor, &mut out)?;
    let text = String::from_utf8(out).unwrap_or_default();
    RawValue::from_string(text).map_err(|_| Failure::invalid("A schema is not valid JSON."))
}

struct Member<'a> {
    name: String,
    value: MemberValue<'a>,
}

enum MemberValue<'a> {
    /// A value without schemas in it.
    Raw(Raw<'a>),
    /// Schemas, already converted.
    Written(Vec<u8>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nullable {
    No,
    Yes,
}

fn write(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), ValueError> {
    if cursor.shape()? != Shape::Object {
        out.extend_from_slice(compact(cursor.value()?.text()).as_bytes());
        return Ok(());
    }
    let mut members = Vec::new();
    let mut null = Nullable::No;
    cursor.object(|cursor, name| {
        let name = camel(&name.decode_lossy()).into_owned();
        let value = read_value(cursor, &name)?;
        if let ("nullable", MemberValue::Raw(value)) = (name.as_str(), &value)
            && value.boolean() == Some(true)
        {
            null = Nullable::Yes;
        }
        members.push(Member { name, value });
        Ok::<(), ValueError>(())
    })?;
    let mut mark = b'{';
    for member in members {
        if is_kept(&member) {
            out.push(std::mem::replace(&mut mark, b','));
            write_string(out, json_name(&member.name));
            out.push(b':');
            write_member(member, null, out);
        }
    }
    if mark == b'{' {
        out.push(b'{');
    }
    out.push(b'}');
    Ok(())
}

fn read_value<'a>(cursor: &mut Cursor<'a>, name: &str) -> Result<MemberValue<'a>, ValueError> {
    let mut written = Vec::new();
    match (name, cursor.shape()?) {
        ("properties" | "defs" | "$defs" | "patternProperties", Shape::Object) => {
            each(cursor, &mut written)?;
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Shape::Array) => {
            list(cursor, &mut written)?;
        }
        ("items" | "additionalProperties" | "not", Shape::Object) => write(cursor, &mut written)?,
        _ => return Ok(MemberValue::Raw(cursor.value()?)),
    }
    Ok(MemberValue::Written(written))
}

/// Whether JSON Schema has this member.
fn is_kept(member: &Member<'_>) -> bool {
    let MemberValue::Raw(value) = &member.value else {
        return true;
    };
    let says = |text: &str| value.string().is_some_and(|value| value.is(text));
    match member.name.as_str() {
        "nullable" | "propertyOrdering" | "example" => false,
        "format" => !says("enum"),
        "type" => !says("TYPE_UNSPECIFIED"),
        _ => !value.is_null(),
    }
}

fn json_name(name: &str) -> &str {
    match name {
        "defs" => "$defs",
        "ref" => "$ref",
        name => name,
    }
}

fn write_member(member: Member<'_>, null: Nullable, out: &mut Vec<u8>) {
    let value = match member.value {
        MemberValue::Raw(value) => value,
        MemberValue::Written(mut written) => {
            out.append(&mut written);
            return;
        }
    };
    match (member.name.as_str(), value.shape()) {
        ("type", Shape::String) => write_type(value, null, out),
        ("enum", Shape::Array) if null == Nullable::Yes => {
            let list = compact(value.text());
            let list = list.strip_suffix(']').unwrap_or(&list);
            out.extend_from_slice(list.as_bytes());
            out.extend_from_slice(if list == "[" { b"null]" } else { b",null]" });
        }
        (name, Shape::String) if is_bound(name) => {
            let text = value.string().map_or("", |text| text.raw());
            let number = text.parse::<serde_json::Number>().is_ok();
            let text = if number { text } else { value.text() };
            out.extend_from_slice(text.as_bytes());
        }
        _ => out.extend_from_slice(compact(value.text()).as_bytes()),
    }
}

fn write_type(value: Raw<'_>, null: Nullable, out: &mut Vec<u8>) {
    let text = value
        .string()
        .map(|text| text.decode_lossy().to_ascii_lowercase());
    let text = text.unwrap_or_default();
    if null == Nullable::Yes {
        out.push(b'[');
        write_string(out, &text);
        out.extend_from_slice(b",\"null\"]");
    } else {
        write_string(out, &text);
    }
}

/// Whether a member is a bound. Bounds are 64-bit integers, which this dialect writes as strings.
fn is_bound(name: &str) -> bool {
    matches!(
        name,
        "minItems"
            | "maxItems"
            | "minLength"
            | "maxLength"
            | "minProperties"
            | "maxProperties"
            | "minimum"
            | "maximum"
    )
}

/// Converts an object whose members are schemas.
fn each(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), ValueError> {
    out.push(b'{');
    let mut first = true;
    cursor.object(|cursor, name| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        write_string(out, &name.decode_lossy());
        out.push(b':');
        write(cursor, out)
    })?;
    out.push(b'}');
    Ok(())
}

/// Converts an array of schemas.
fn list(cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), ValueError> {
    out.push(b'[');
    let mut first = true;
    cursor.array(|cursor| {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        write(cursor, out)
    })?;
    out.push(b']');
    Ok(())
}

/// Writes a schema without `$schema`, which this dialect does not have.
pub(in crate::generate) fn write_schema(out: &mut Vec<u8>, schema: &str) {
    let members = Members::read(schema.as_bytes(), Spelling::One);
    match members {
        Ok(members) if schema.contains("$schema") => {
            let mut mark = b'{';
            for member in members.iter().filter(|member| member.name != "$schema") {
                out.push(std::mem::replace(&mut mark, b','));
                write_string(out, &member.name);
                out.push(b':');
                raw(out, member.value.text());
            }
            if mark == b'{' {
                out.push(b'{');
            }
            out.push(b'}');
        }
        _ => raw(out, schema),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_become_json_schemas() {
        for (schema, expected) in [
            ("{}", "{}"),
            (
                r#"{"type":"OBJECT","properties":{"min_length":{"type":"STRING","format":"enum","enum":["a"]}},"property_ordering":["min_length"],"required":["min_length"]}"#,
                r#"{"type":"object","properties":{"min_length":{"type":"string","enum":["a"]}},"required":["min_length"]}"#,
            ),
            (
                r#"{ "type" : "array", "items": {"type":"Integer","nullable":true}, "min_items": "1", "maxItems": 3 }"#,
                r#"{"type":"array","items":{"type":["integer","null"]},"minItems":1,"maxItems":3}"#,
            ),
            (
                r#"{"nullable":true,"type":"STRING","enum":["x"],"example":1,"default":null}"#,
                r#"{"type":["string","null"],"enum":["x",null]}"#,
            ),
            (
                r#"{"any_of":[{"type":"STRING"},{"type":"NUMBER"}],"defs":{"a":{"type":"NULL"}}}"#,
                r#"{"anyOf":[{"type":"string"},{"type":"number"}],"$defs":{"a":{"type":"null"}}}"#,
            ),
            (
                r#"{"type":"object","additionalProperties":false,"properties":{"x":{"type":["string","null"],"minLength":"x"}}}"#,
                r#"{"type":"object","additionalProperties":false,"properties":{"x":{"type":["string","null"],"minLength":"x"}}}"#,
            ),
        ] {
            let found = to_json_schema(&mut Cursor::new(schema)).unwrap();
            assert_eq!(found.get(), expected);
        }
    }
}
