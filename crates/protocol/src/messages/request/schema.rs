//! Reduces a JSON Schema to the subset that structured output and strict tools accept.
//!
//! The vendor refuses other keywords. Its own client libraries move them into the description,
//! where the model can at least read them. The gateway does the same.
//!
//! A keyword is moved as the caller wrote it, and nothing inside it is reduced: a text that is
//! quoted again at every level of nesting would double each time.

use std::borrow::Cow;

use crate::json::scan::ContentVisitor;
use crate::json::typed;
use crate::json::write::{self, Object};
use crate::json::{Cursor, Integer, Raw, Shape, SyntaxError, Text};

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
    if reduce(schema, out).is_err() {
        out.truncate(begin);
        write::raw(out, schema);
    }
}

fn reduce(schema: &str, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
    let reducer = Reducer {
        with_both_choices: ChoiceFinder::find(schema)?,
    };
    reducer.write_schema(&mut Cursor::new(schema), out)
}

/// Finds the objects that have both `anyOf` and `oneOf`, of which only one can be kept.
#[derive(Default)]
struct ChoiceFinder {
    open: Vec<OpenValue>,
    found: Vec<usize>,
}

/// An open object or array.
#[derive(Default)]
struct OpenValue {
    /// The position of the first name.
    first_name: Option<usize>,
    has_any_of: bool,
    has_one_of: bool,
}

impl ChoiceFinder {
    /// The objects, by the position of their first name, sorted.
    fn find(schema: &str) -> Result<Vec<usize>, SyntaxError> {
        let mut finder = Self::default();
        Cursor::new(schema).value_shown_to(&mut finder)?;
        finder.found.sort_unstable();
        Ok(finder.found)
    }
}

impl ContentVisitor<'_> for ChoiceFinder {
    fn name(&mut self, name: Text<'_>) {
        let Some(object) = self.open.last_mut() else {
            return;
        };
        let first = *object.first_name.get_or_insert(name.span().start);
        let had_both = object.has_any_of && object.has_one_of;
        object.has_any_of |= name.is("anyOf");
        object.has_one_of |= name.is("oneOf");
        if !had_both && object.has_any_of && object.has_one_of {
            self.found.push(first);
        }
    }

    fn string(&mut self, _: Text<'_>) {}

    fn opened(&mut self, _is_object: bool) {
        self.open.push(OpenValue::default());
    }

    fn closed(&mut self) {
        self.open.pop();
    }
}

/// Writes reduced schemas. Each byte is read and written once, however deep it is nested.
struct Reducer {
    /// The objects that have both `anyOf` and `oneOf`, see [`ChoiceFinder::find`].
    with_both_choices: Vec<usize>,
}

/// What is known of an object only after its last member.
#[derive(Default)]
struct Rest<'a> {
    is_object: bool,
    description: Option<String>,
    /// Keywords that move into the description.
    moved: Vec<(Cow<'a, str>, Raw<'a>)>,
}

impl Reducer {
    fn write_schema(&self, cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        if cursor.shape()? != Shape::Object {
            write::raw(out, cursor.value()?.text());
            return Ok(());
        }
        let mut written = Ok(());
        write::object(out, |it| written = self.write_members(cursor, it));
        written
    }

    fn write_members(
        &self,
        cursor: &mut Cursor<'_>,
        it: &mut Object<'_>,
    ) -> Result<(), SyntaxError> {
        let mut rest = Rest::default();
        let mut has_both_choices = None;
        cursor.object(|cursor, name| {
            let has_both_choices = *has_both_choices.get_or_insert_with(|| {
                let first = name.span().start;
                self.with_both_choices.binary_search(&first).is_ok()
            });
            let name = name.decode_lossy();
            match &*name {
                "oneOf" if !has_both_choices => self.write_keyword(cursor, "oneOf", "anyOf", it),
                "properties" | "$defs" | "definitions" | "items" | "anyOf" | "allOf" => {
                    rest.is_object |= name == "properties";
                    self.write_keyword(cursor, &name, &name, it)
                }
                _ => {
                    rest.note(name, cursor.value()?, it);
                    Ok(())
                }
            }
        })?;
        rest.write(it);
        Ok(())
    }

    /// Writes a keyword that holds schemas under the name `kept`. A value of another shape is left
    /// to the upstream.
    fn write_keyword(
        &self,
        cursor: &mut Cursor<'_>,
        name: &str,
        kept: &str,
        it: &mut Object<'_>,
    ) -> Result<(), SyntaxError> {
        let shape = cursor.shape()?;
        let mut written = Ok(());
        it.value(kept, |out| {
            written = match (name, shape) {
                ("properties" | "$defs" | "definitions", Shape::Object) => {
                    self.write_map(cursor, out)
                }
                ("anyOf" | "allOf" | "oneOf", Shape::Array) => self.write_list(cursor, out),
                ("items", Shape::Object) => self.write_schema(cursor, out),
                _ => cursor.value().map(|value| write::raw(out, value.text())),
            };
        });
        written
    }

    /// Writes schemas by name.
    fn write_map(&self, cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let begin = out.len();
        cursor.object(|cursor, name| {
            out.push(if out.len() == begin { b'{' } else { b',' });
            crate::json::write_string(out, &name.decode_lossy());
            out.push(b':');
            self.write_schema(cursor, out)
        })?;
        if out.len() == begin {
            out.push(b'{');
        }
        out.push(b'}');
        Ok(())
    }

    /// Writes a list of schemas.
    fn write_list(&self, cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
        let begin = out.len();
        cursor.array(|cursor| {
            out.push(if out.len() == begin { b'[' } else { b',' });
            self.write_schema(cursor, out)
        })?;
        if out.len() == begin {
            out.push(b'[');
        }
        out.push(b']');
        Ok(())
    }
}

impl<'a> Rest<'a> {
    /// Takes a keyword that holds no schemas, or whose schemas are not accepted.
    fn note(&mut self, name: Cow<'a, str>, value: Raw<'a>, it: &mut Object<'_>) {
        match &*name {
            "type" | "required" | "enum" | "const" | "$ref" | "title" => {
                self.is_object |= name == "type" && means_object(value);
                it.raw(&name, value.text());
            }
            "format" if is_known_format(value) => {
                it.raw(&name, value.text());
            }
            "minItems" if is_small(value) => {
                it.raw(&name, value.text());
            }
            "description" => {
                let text = value.string().map(|text| text.decode_lossy().into_owned());
                self.description = text.or(self.description.take());
            }
            // The model needs none of these.
            "$schema" | "$id" | "$comment" => {}
            _ => self.moved.push((name, value)),
        }
    }

    fn write(mut self, it: &mut Object<'_>) {
        if self.is_object {
            // In an object, this member is always set to false.
            self.moved
                .retain(|(name, _)| name != "additionalProperties");
            it.boolean("additionalProperties", false);
        }
        if let Some(description) = self.describe() {
            it.text("description", &description);
        }
    }

    /// The description, followed by the keywords that were removed.
    fn describe(self) -> Option<String> {
        let mut text = match self.description {
            Some(description) if self.moved.is_empty() => return Some(description),
            Some(description) => description + "\n\n",
            None if self.moved.is_empty() => return None,
            None => String::new(),
        };
        for (at, (name, value)) in self.moved.iter().enumerate() {
            text.push_str(if at == 0 { "{" } else { ", " });
            text.push_str(name);
            text.push_str(": ");
            typed::compact_to(value.text(), &mut text);
        }
        text.push('}');
        Some(text)
    }
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
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::cpu_time::cpu_time;

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
            (
                r#"{"oneOf":[{"pattern":"^a$"}, 1],"items":{"oneOf":[{"pattern":"^a$"}]},"anyOf":[{"oneOf":[2]}]}"#,
                r#"{"items":{"anyOf":[{"description":"{pattern: \"^a$\"}"}]},"anyOf":[{"anyOf":[2]}],"description":"{oneOf: [{\"pattern\":\"^a$\"},1]}"}"#,
            ),
            (
                r#"{"additionalProperties":{"type":"string"},"not":{"type":"null"},"description":"x"}"#,
                r#"{"description":"x\n\n{additionalProperties: {\"type\":\"string\"}, not: {\"type\":\"null\"}}"}"#,
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

    /// The most by which a schema grows: each object may get a description and the member
    /// `additionalProperties`, and a quote in a moved keyword becomes two bytes.
    fn bound(schema: &str) -> usize {
        4 * schema.len() + 64
    }

    #[test]
    fn keywords_are_quoted_once_however_deep_they_are_nested() {
        for (before, after) in [
            (r#"{"anyOf":0,"oneOf":["#, "]}"),
            (r#"{"oneOf":["#, r#"],"anyOf":[]}"#),
            (
                r#"{"anyOf":0,"oneOf":[{"oneOf":["#,
                r#"],"pattern":"\""}]}"#,
            ),
            (r#"{"not":"#, "}"),
            (r#"{"patternProperties":{"a":"#, r#"},"pattern":"\\"}"#),
            (r#"{"items":["#, "]}"),
            (r#"{"additionalProperties":"#, "}"),
        ] {
            let schema = format!("{}1{}", before.repeat(30), after.repeat(30));
            let found = subset(&schema);
            assert!(found.len() <= bound(&schema), "{before}: {}", found.len());
            Cursor::new(&found).value().unwrap();
        }
    }

    #[test]
    fn deep_schemas_are_written_at_the_cost_of_flat_ones() {
        let filler = r#"{"type":"object"},"#.repeat(20_000);
        for (before, after) in [
            (r#"{"oneOf":[{"x":"#, r#"}],"anyOf":0}"#),
            (r#"{"oneOf":["#, "]}"),
            (r#"{"items":"#, r#","anyOf":0}"#),
        ] {
            let depth = 40;
            let schema = format!(
                r#"{}{{"anyOf":[{filler}1]}}{}"#,
                before.repeat(depth),
                after.repeat(depth)
            );
            let flat = format!(r#"{{"anyOf":[{filler}1]}}"#);
            assert!(subset(&schema).len() <= bound(&schema), "{before}");
            let [deep, flat] = [&schema, &flat].map(|schema| cpu_time(|| drop(subset(schema))));
            let most = flat * 8 + Duration::from_millis(20);
            assert!(
                deep < most,
                "{before}: {deep:?}, and {flat:?} for a flat one"
            );
        }
    }

    /// Schemas with every keyword that the writer knows and others, nested in all of them.
    fn any_schema() -> impl Strategy<Value = String> {
        let name = prop::sample::select(vec![
            "anyOf",
            "oneOf",
            "allOf",
            "items",
            "properties",
            "$defs",
            "not",
            "additionalProperties",
            "patternProperties",
            "type",
            "description",
            "format",
            "minItems",
            "enum",
            "pattern",
            "$schema",
            "",
        ]);
        let value = prop::sample::select(vec![
            "1",
            "null",
            r#""object""#,
            r#""a\"b\\""#,
            "[]",
            "{}",
            r#"["object"]"#,
        ]);
        value.prop_map(str::to_owned).prop_recursive(12, 200, 4, move |inner| {
            let members = prop::collection::vec((name.clone(), inner.clone()), 0..4);
            prop_oneof![
                3 => members.prop_map(|members| {
                    let members = members.iter().map(|(name, value)| format!("{name:?}:{value}"));
                    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
                }),
                1 => prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[{}]", items.join(","))),
                1 => inner.prop_map(|inner| format!(r#"{{"oneOf":[{inner}],"anyOf":[1]}}"#)),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_schema_grows_in_proportion_to_itself(schema in any_schema()) {
            let found = subset(&schema);
            prop_assert!(found.len() <= bound(&schema), "{} -> {}", schema, found);
            let read = serde_json::from_str::<serde_json::Value>(&found);
            prop_assert!(read.is_ok(), "{} -> {}", schema, found);
        }
    }
}
