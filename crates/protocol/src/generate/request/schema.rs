//! Converts this dialect's schemas to JSON Schema, and writes JSON Schema for upstreams of this dialect.
//!
//! Types may be in upper case, names in snake case and bounds in strings, and `nullable` replaces a
//! `null` type. JSON Schema passes unchanged.

use std::ops::Range;

use super::draft::Draft;
use crate::canon::Json;
use crate::failure::Failure;
use crate::json::members::camel;
use crate::json::typed::{ValueError, compact};
use crate::json::write::raw;
use crate::json::{Cursor, Members, Raw, Shape, Spelling, SyntaxError, write_string};
use serde_json::value::RawValue;

pub(in crate::generate) fn to_json_schema(cursor: &mut Cursor<'_>) -> Result<Json, Failure> {
    let mut draft = Draft::default();
    write(cursor, &mut draft)?;
    let text = String::from_utf8(draft.finish()).unwrap_or_default();
    RawValue::from_string(text).map_err(|_| Failure::invalid("A schema is not valid JSON."))
}

const NULL_SCHEMA: &str = r#"{"type":"null"}"#;

/// An object being written. Whether it allows `null` may be known only after its last member.
struct OpenObject {
    /// The position after its brace.
    begin: usize,
    is_nullable: bool,
    /// The values to which `null` can be added.
    null_places: Vec<NullPlace>,
    /// The definitions, without commas.
    definitions: Vec<Range<usize>>,
    /// The position of the first member that is not a definition.
    first_other: Option<usize>,
}

/// A value to which `null` can be added.
enum NullPlace {
    /// The name of a type.
    Type(Range<usize>),
    /// A list, by its end.
    List(usize, MissingNull),
}

/// What to add to a list for `null`: a comma, if the list has items, and the item, unless the list has it.
type MissingNull = [&'static str; 2];

/// The form in which a member holds schemas.
#[derive(Clone, Copy)]
enum Schemas {
    One,
    Named,
    Listed,
}

impl Schemas {
    /// `None` for a member without schemas in it.
    fn of(name: &str, shape: Shape) -> Option<Self> {
        match (name, shape) {
            ("properties" | "defs" | "$defs" | "patternProperties", Shape::Object) => {
                Some(Self::Named)
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Shape::Array) => {
                Some(Self::Listed)
            }
            ("items" | "additionalProperties" | "not", Shape::Object) => Some(Self::One),
            _ => None,
        }
    }
}

fn write(cursor: &mut Cursor<'_>, draft: &mut Draft) -> Result<(), ValueError> {
    if cursor.shape()? != Shape::Object {
        let value = compact(cursor.value()?.text());
        draft.text.extend_from_slice(value.as_bytes());
        return Ok(());
    }
    draft.text.push(b'{');
    let mut object = OpenObject {
        begin: draft.text.len(),
        is_nullable: false,
        null_places: Vec::new(),
        definitions: Vec::new(),
        first_other: None,
    };
    cursor.object(|cursor, name| {
        let name = camel(&name.decode_lossy()).into_owned();
        object.write_member(&name, cursor, draft)
    })?;
    if object.is_nullable {
        object.allow_null(draft);
    }
    draft.text.push(b'}');
    Ok(())
}

impl OpenObject {
    fn write_member(
        &mut self,
        name: &str,
        cursor: &mut Cursor<'_>,
        draft: &mut Draft,
    ) -> Result<(), ValueError> {
        let Some(schemas) = Schemas::of(name, cursor.shape()?) else {
            self.write_plain(name, cursor.value()?, draft);
            return Ok(());
        };
        let start = self.begin_member(name, draft);
        match schemas {
            Schemas::One => write(cursor, draft)?,
            Schemas::Named => each(cursor, draft)?,
            Schemas::Listed => {
                let null = list(cursor, draft)?;
                if matches!(name, "anyOf" | "oneOf") {
                    let place = NullPlace::List(draft.text.len(), null);
                    self.null_places.push(place);
                }
            }
        }
        self.end_member(name, start..draft.text.len());
        Ok(())
    }

    /// Writes a member without schemas in it, if JSON Schema has this member.
    fn write_plain(&mut self, name: &str, value: Raw<'_>, draft: &mut Draft) {
        self.is_nullable |= name == "nullable" && value.boolean() == Some(true);
        if !is_kept(name, value) {
            return;
        }
        let start = self.begin_member(name, draft);
        let begin = draft.text.len();
        write_value(name, value, &mut draft.text);
        let end = draft.text.len();
        match (name, value.shape()) {
            ("type", Shape::String) => self.null_places.push(NullPlace::Type(begin..end)),
            ("type", Shape::Array) => {
                let null = missing_null(value, "\"null\"");
                self.null_places.push(NullPlace::List(end, null));
            }
            ("enum", Shape::Array) => {
                let null = missing_null(value, "null");
                self.null_places.push(NullPlace::List(end, null));
            }
            _ => {}
        }
        self.end_member(name, start..end);
    }

    /// Writes the name of a member and returns its position.
    fn begin_member(&self, name: &str, draft: &mut Draft) -> usize {
        if draft.text.len() > self.begin {
            draft.text.push(b',');
        }
        let start = draft.text.len();
        write_string(&mut draft.text, json_name(name));
        draft.text.push(b':');
        start
    }

    fn end_member(&mut self, name: &str, span: Range<usize>) {
        if matches!(name, "defs" | "$defs") {
            self.definitions.push(span);
        } else {
            self.first_other.get_or_insert(span.start);
        }
    }

    /// Adds `null` to the values that the written members allow.
    fn allow_null(self, draft: &mut Draft) {
        if self.null_places.is_empty() {
            self.allow_null_beside(draft);
        }
        for place in self.null_places {
            match place {
                NullPlace::Type(name) => {
                    draft.insert(name.start, "[");
                    draft.insert(name.end, ",\"null\"]");
                }
                NullPlace::List(end, missing) => {
                    for text in missing {
                        draft.insert(end.saturating_sub(1), text);
                    }
                }
            }
        }
    }

    /// Adds `null` as an alternative to a schema that has no member to which it can be added.
    /// References point to the definitions from the root, so the definitions stay outside. An empty
    /// schema accepts `null` already.
    fn allow_null_beside(&self, draft: &mut Draft) {
        let Some(first_other) = self.first_other else {
            return;
        };
        for definition in &self.definitions {
            draft.copy(self.begin, definition.clone());
            draft.insert(self.begin, ",");
        }
        draft.insert(self.begin, "\"anyOf\":[{");
        for definition in &self.definitions {
            let comma = usize::from(definition.start > self.begin);
            draft.skip(definition.start.saturating_sub(comma)..definition.end);
        }
        if first_other > self.begin {
            draft.skip(first_other.saturating_sub(1)..first_other);
        }
        draft.insert(draft.text.len(), "},{\"type\":\"null\"}]");
    }
}

/// Whether JSON Schema has this member.
fn is_kept(name: &str, value: Raw<'_>) -> bool {
    let says = |text: &str| value.string().is_some_and(|value| value.is(text));
    match name {
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

fn write_value(name: &str, value: Raw<'_>, out: &mut Vec<u8>) {
    match (name, value.shape()) {
        ("type", Shape::String) => {
            let text = value.string().map(|text| text.decode_lossy());
            write_string(out, &text.unwrap_or_default().to_ascii_lowercase());
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

/// What a list without schemas lacks for `null`.
fn missing_null(list: Raw<'_>, null: &'static str) -> MissingNull {
    let mut is_found = false;
    // The list has been validated.
    let _ = Cursor::new(list.text()).array(|cursor| {
        is_found |= cursor.value()?.text() == null;
        Ok::<(), SyntaxError>(())
    });
    missing_from(is_found, list.is_empty(), null)
}

fn missing_from(has_null: bool, is_empty: bool, null: &'static str) -> MissingNull {
    match (has_null, is_empty) {
        (true, _) => ["", ""],
        (false, true) => ["", null],
        (false, false) => [",", null],
    }
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
fn each(cursor: &mut Cursor<'_>, draft: &mut Draft) -> Result<(), ValueError> {
    draft.text.push(b'{');
    let mut first = true;
    cursor.object(|cursor, name| {
        if !std::mem::take(&mut first) {
            draft.text.push(b',');
        }
        write_string(&mut draft.text, &name.decode_lossy());
        draft.text.push(b':');
        write(cursor, draft)
    })?;
    draft.text.push(b'}');
    Ok(())
}

/// Converts an array of schemas. Returns what it lacks for `null`.
fn list(cursor: &mut Cursor<'_>, draft: &mut Draft) -> Result<MissingNull, ValueError> {
    draft.text.push(b'[');
    let mut is_empty = true;
    let mut has_null = false;
    cursor.array(|cursor| {
        if !std::mem::take(&mut is_empty) {
            draft.text.push(b',');
        }
        let (begin, changes) = (draft.text.len(), draft.changes());
        write(cursor, draft)?;
        let written = draft.text.get(begin..).unwrap_or_default();
        has_null |= written == NULL_SCHEMA.as_bytes() && draft.changes() == changes;
        Ok::<(), ValueError>(())
    })?;
    draft.text.push(b']');
    Ok(missing_from(has_null, is_empty, NULL_SCHEMA))
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
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::cpu_time::cpu_time;

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
                r##"{"defs":{"a":{"nullable":true,"title":"t","defs":{"b":{"nullable":true,"ref":"x"}}}},"title":"u","$defs":{},"nullable":true,"ref":"#/defs/a"}"##,
                r##"{"$defs":{"a":{"$defs":{"b":{"anyOf":[{"$ref":"x"},{"type":"null"}]}},"anyOf":[{"title":"t"},{"type":"null"}]}},"$defs":{},"anyOf":[{"title":"u","$ref":"#/$defs/a"},{"type":"null"}]}"##,
            ),
            (
                r#"{"nullable":true,"defs":{"a":{"type":"STRING","nullable":true}}}"#,
                r#"{"$defs":{"a":{"type":["string","null"]}}}"#,
            ),
            (
                r#"{"anyOf":[{"type":"NULL","nullable":true}],"type":"NUMBER","enum":[null,1],"nullable":true}"#,
                r#"{"anyOf":[{"type":["null","null"]},{"type":"null"}],"type":["number","null"],"enum":[null,1]}"#,
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

    fn converted(schema: &str) -> String {
        let found = to_json_schema(&mut Cursor::new(schema)).unwrap();
        found.get().to_owned()
    }

    /// The most by which a schema grows: a nullable one gets an alternative.
    fn bound(schema: &str) -> usize {
        4 * schema.len() + 64
    }

    #[test]
    fn deep_nullable_schemas_are_converted_at_the_cost_of_flat_ones() {
        let filler = r#"{"type":"STRING"},"#.repeat(20_000);
        for (before, after) in [
            (r#"{"nullable":true,"anyOf":["#, "]}"),
            (r#"{"items":"#, r#","title":"t","nullable":true}"#),
            (r#"{"title":"t","defs":{"a":"#, r#"},"nullable":true}"#),
            (r#"{"title":"t","defs":{},"items":"#, r#","nullable":true}"#),
        ] {
            let depth = 55;
            let schema = format!(
                r#"{}{{"anyOf":[{filler}1]}}{}"#,
                before.repeat(depth),
                after.repeat(depth)
            );
            let flat = format!(r#"{{"anyOf":[{filler}1]}}"#);
            assert!(converted(&schema).len() <= bound(&schema), "{before}");
            let [deep, flat] = [&schema, &flat].map(|schema| cpu_time(|| drop(converted(schema))));
            let most = flat * 8 + Duration::from_millis(20);
            assert!(
                deep < most,
                "{before}: {deep:?}, and {flat:?} for a flat one"
            );
        }
    }

    /// Schemas with the keywords that decide where `null` is added, nested in one another.
    fn any_schema() -> impl Strategy<Value = String> {
        let name = prop::sample::select(vec![
            "nullable",
            "type",
            "enum",
            "anyOf",
            "oneOf",
            "allOf",
            "items",
            "properties",
            "defs",
            "$defs",
            "not",
            "ref",
            "title",
            "min_items",
        ]);
        let value = prop::sample::select(vec![
            "true",
            "null",
            r#""STRING""#,
            r#""NULL""#,
            r#""1""#,
            "[]",
            "{}",
            r#"["null"]"#,
            "[null]",
            r#"{"type":"null"}"#,
            r#"{"nullable":true}"#,
        ]);
        value.prop_map(str::to_owned).prop_recursive(12, 200, 4, move |inner| {
            let member = (name.clone(), inner.clone());
            prop_oneof![
                3 => (prop::collection::vec(member, 0..5), any::<bool>()).prop_map(|(members, null)| {
                    let null = null.then(|| r#""nullable":true"#.to_owned());
                    let members = members.iter().map(|(name, value)| format!("{name:?}:{value}"));
                    format!("{{{}}}", members.chain(null).collect::<Vec<_>>().join(","))
                }),
                1 => prop::collection::vec(inner, 0..4)
                    .prop_map(|items| format!("[{}]", items.join(","))),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_schema_grows_in_proportion_to_itself(schema in any_schema()) {
            // It is valid JSON too.
            let found = converted(&schema);
            prop_assert!(found.len() <= bound(&schema), "{} -> {}", schema, found);
        }
    }
}
