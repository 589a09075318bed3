//! Reads `output_config.format`, and checks its schema as the vendor does.

use super::member::Member;
use super::refusal::Refusal;
use crate::model::TextFormat;
use serde_json::{Map, Value};

const DEPTH_MAX: usize = 64;
/// Schema keywords that the vendor refuses, by type.
const REFUSED: [(&str, &[&str]); 5] = [
    (
        "integer",
        &[
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ],
    ),
    (
        "number",
        &[
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ],
    ),
    ("string", &["minLength", "maxLength", "pattern"]),
    ("array", &["maxItems", "uniqueItems"]),
    (
        "object",
        &["minProperties", "maxProperties", "patternProperties"],
    ),
];
const FORMATS: &[&str] = &[
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

pub(super) fn read(body: &Member<'_>) -> Result<TextFormat, Refusal> {
    let Some(config) = body.child("output_config")? else {
        return Ok(TextFormat::Text);
    };
    let Some(format) = config.child("format")? else {
        return Ok(TextFormat::Text);
    };
    format.tag(&["json_schema"])?;
    format.refuse_unknown(&["type", "schema"])?;
    format.required_child("schema")?;
    let schema = format.required("schema")?;
    check(schema, 0).map_err(|why| format.wrong("schema", why))?;
    Ok(TextFormat::Schema(schema.clone()))
}

fn check(schema: &Value, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err("Schema is nested too deeply".to_owned());
    }
    let Some(rules) = schema.as_object() else {
        return Ok(());
    };
    if rules.contains_key("oneOf") {
        return Err("Schema type 'oneOf' is not supported".to_owned());
    }
    if let Some(Value::String(kind)) = rules.get("type") {
        check_keywords(kind, rules)?;
    }
    for inner in children(rules) {
        check(inner, depth + 1)?;
    }
    Ok(())
}

fn check_keywords(kind: &str, rules: &Map<String, Value>) -> Result<(), String> {
    if kind == "object" && rules.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(
            "For 'object' type, 'additionalProperties' must be explicitly set to false".to_owned(),
        );
    }
    let refused = REFUSED.iter().find(|(of, _)| *of == kind);
    let found: Vec<_> = refused
        .into_iter()
        .flat_map(|(_, words)| *words)
        .copied()
        .filter(|word| rules.contains_key(*word))
        .collect();
    if !found.is_empty() {
        return Err(format!(
            "For '{kind}' type, properties {} are not supported",
            found.join(", ")
        ));
    }
    if kind == "array" && rules.get("minItems").and_then(Value::as_u64) > Some(1) {
        return Err(
            "For 'array' type, 'minItems' values other than 0 or 1 are not supported".to_owned(),
        );
    }
    match rules.get("format").and_then(Value::as_str) {
        Some(format) if kind == "string" && !FORMATS.contains(&format) => {
            Err(format!("String format '{format}' is not supported"))
        }
        _ => Ok(()),
    }
}

/// The nested schemas of a schema.
fn children(rules: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let named = ["properties", "$defs", "definitions"]
        .into_iter()
        .filter_map(|word| rules.get(word)?.as_object())
        .flat_map(|map| map.values());
    let listed = ["anyOf", "allOf"]
        .into_iter()
        .filter_map(|word| rules.get(word)?.as_array())
        .flatten();
    named.chain(listed).chain(rules.get("items"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_outside_the_vendors_subset_are_refused() {
        let closed = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
        for (schema, part) in [
            (
                closed(json!({"a": {"type": "string", "format": "date"}})),
                None,
            ),
            (
                closed(
                    json!({"a": {"type": "array", "items": {"$ref": "#/$defs/x"}, "minItems": 1}}),
                ),
                None,
            ),
            (json!({"type": "object"}), Some("additionalProperties")),
            (
                closed(json!({"a": {"type": "object"}})),
                Some("additionalProperties"),
            ),
            (
                closed(json!({"a": {"type": "integer", "minimum": 1, "maximum": 2}})),
                Some("minimum, maximum"),
            ),
            (
                closed(json!({"a": {"anyOf": [{"type": "string", "pattern": "x"}]}})),
                Some("pattern"),
            ),
            (
                closed(json!({"a": {"type": "array", "minItems": 2}})),
                Some("minItems"),
            ),
            (
                closed(json!({"a": {"type": "string", "format": "color"}})),
                Some("'color'"),
            ),
            (closed(json!({"a": {"oneOf": []}})), Some("oneOf")),
        ] {
            let found = check(&schema, 0).err();
            assert_eq!(found.is_some(), part.is_some(), "{schema} {found:?}");
            if let (Some(found), Some(part)) = (found, part) {
                assert!(found.contains(part), "{found}");
            }
        }
    }
}
