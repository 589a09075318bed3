//! Converts this dialect's schemas to JSON Schema, and writes JSON Schema for upstreams of this dialect.
//!
//! Types may be in upper case, names in snake case and bounds in strings, and `nullable` replaces a
//! `null` type. JSON Schema passes unchanged.

use crate::canon::Json;
use crate::failure::Failure;
use crate::json::members::camel;
use crate::json::typed::{ValueError, compact};
use crate::json::write::raw;
use crate::json::{Cursor, Members, Raw, Shape, Spelling, SyntaxError, write_string};
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

const NULL_SCHEMA: &[u8] = br#"{"type":"null"}"#;

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
    members.retain(is_kept);
    if null == Nullable::Yes && !members.iter().any(can_take_null) {
        let (defs, rest) = members.into_iter().partition(is_definitions);
        write_alternative_to_null(defs, rest, out);
    } else {
        out.push(b'{');
        write_members(members, null, out);
        out.push(b'}');
    }
    Ok(())
}

/// Writes members without the braces around them.
fn write_members(members: Vec<Member<'_>>, null: Nullable, out: &mut Vec<u8>) {
    for (at, member) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(out, json_name(&member.name));
        out.push(b':');
        write_member(member, null, out);
    }
}

/// Writes a nullable schema that has no member to which `null` can be added. References point to the
/// definitions from the root, so the definitions stay in their place. An empty schema accepts `null`
/// already.
fn write_alternative_to_null(
    definitions: Vec<Member<'_>>,
    rest: Vec<Member<'_>>,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    let is_first = definitions.is_empty();
    write_members(definitions, Nullable::No, out);
    if !rest.is_empty() {
        if !is_first {
            out.push(b',');
        }
        out.extend_from_slice(b"\"anyOf\":[{");
        write_members(rest, Nullable::No, out);
        out.extend_from_slice(b"},");
        out.extend_from_slice(NULL_SCHEMA);
        out.push(b']');
    }
    out.push(b'}');
}

/// Whether `null` can be added to the values that this member allows.
fn can_take_null(member: &Member<'_>) -> bool {
    match (member.name.as_str(), &member.value) {
        ("type", MemberValue::Raw(value)) => {
            matches!(value.shape(), Shape::String | Shape::Array)
        }
        ("enum", MemberValue::Raw(value)) => value.shape() == Shape::Array,
        ("anyOf" | "oneOf", MemberValue::Written(_)) => true,
        _ => false,
    }
}

fn is_definitions(member: &Member<'_>) -> bool {
    matches!(member.name.as_str(), "defs" | "$defs")
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
    let is_nullable = null == Nullable::Yes;
    let value = match member.value {
        MemberValue::Raw(value) => value,
        MemberValue::Written(written) => {
            let is_choice = matches!(member.name.as_str(), "anyOf" | "oneOf");
            if is_nullable && is_choice {
                write_extended(&written, NULL_SCHEMA, out);
            } else {
                out.extend_from_slice(&written);
            }
            return;
        }
    };
    match (member.name.as_str(), value.shape()) {
        ("type", Shape::String) => write_type(value, null, out),
        ("type" | "enum", Shape::Array) if is_nullable => {
            let null: &[u8] = if member.name == "type" {
                b"\"null\""
            } else {
                b"null"
            };
            write_extended(compact(value.text()).as_bytes(), null, out);
        }
        ("ref" | "$ref", Shape::String) => write_reference(value, out),
        (name, Shape::String) if is_bound(name) => {
            let text = value.string().map_or("", |text| text.raw());
            let number = text.parse::<serde_json::Number>().is_ok();
            let text = if number { text } else { value.text() };
            out.extend_from_slice(text.as_bytes());
        }
        _ => out.extend_from_slice(compact(value.text()).as_bytes()),
    }
}

/// Writes a list, with `item` at the end unless the list contains it. Lists have no white space.
fn write_extended(list: &[u8], item: &[u8], out: &mut Vec<u8>) {
    let inside = list.strip_prefix(b"[").unwrap_or(list);
    let inside = inside.strip_suffix(b"]").unwrap_or(inside);
    out.push(b'[');
    out.extend_from_slice(inside);
    if !has_item(list, item) {
        if !inside.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(item);
    }
    out.push(b']');
}

fn has_item(list: &[u8], item: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(list) else {
        return false;
    };
    let mut is_found = false;
    // Parsing cannot fail, because the list is JSON that was read or written here.
    let _ = Cursor::new(text).array(|cursor| {
        is_found |= cursor.value()?.text().as_bytes() == item;
        Ok::<(), SyntaxError>(())
    });
    is_found
}

/// Writes a reference. `defs` becomes `$defs`, so references to its members change too.
fn write_reference(value: Raw<'_>, out: &mut Vec<u8>) {
    let target = value.string().map(|text| text.decode_lossy());
    let target = target.unwrap_or_default();
    match target.strip_prefix("#/defs/") {
        Some(name) => write_string(out, &format!("#/$defs/{name}")),
        None => write_string(out, &target),
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
                r##"{"ref":"#/defs/a/x","defs":{"a":{"$ref":"#/defs/b"},"b":{"$ref":"#/$defs/c"}}}"##,
                r##"{"$ref":"#/$defs/a/x","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/c"}}}"##,
            ),
            (
                r#"{"nullable":true,"anyOf":[{"type":"STRING"},{"type":"NUMBER"}]}"#,
                r#"{"anyOf":[{"type":"string"},{"type":"number"},{"type":"null"}]}"#,
            ),
            (
                r#"{"oneOf":[{"type":"NULL"},{"type":"NUMBER"}],"nullable":true,"title":"x"}"#,
                r#"{"oneOf":[{"type":"null"},{"type":"number"}],"title":"x"}"#,
            ),
            (
                r##"{"type":"OBJECT","properties":{"x":{"ref":"#/defs/a","nullable":true}}}"##,
                r##"{"type":"object","properties":{"x":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}}}"##,
            ),
            (
                r##"{"type":"TYPE_UNSPECIFIED","nullable":true,"ref":"#/defs/a","defs":{"a":{"type":"STRING"}}}"##,
                r##"{"$defs":{"a":{"type":"string"}},"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}"##,
            ),
            (
                r#"{"type":["string","integer"],"nullable":true}"#,
                r#"{"type":["string","integer","null"]}"#,
            ),
            (
                r#"{"nullable":true,"enum":["a"]}"#,
                r#"{"enum":["a",null]}"#,
            ),
            (r#"{"nullable":true,"enum":[]}"#, r#"{"enum":[null]}"#),
            (r#"{"nullable":true}"#, "{}"),
            (r#"{"nullable":false,"ref":"x"}"#, r#"{"$ref":"x"}"#),
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
