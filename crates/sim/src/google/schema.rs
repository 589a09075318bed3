//! Converts the vendor's schemas, a subset of `OpenAPI`, to JSON Schema.

use super::Refusal;
use super::field::{bad_value, snake};
use serde_json::{Map, Value, json};

const NAME_LENGTH_MAX: usize = 128;
/// The allowed members of a schema, each with its name in JSON Schema. All others are refused, including `$schema`, and
/// `$ref` and `$defs`, which this vendor spells `ref` and `defs`.
const KNOWN: &[(&str, &str)] = &[
    ("additional_properties", "additionalProperties"),
    ("any_of", "anyOf"),
    ("default", "default"),
    ("defs", "$defs"),
    ("description", "description"),
    ("enum", "enum"),
    ("example", "example"),
    ("format", "format"),
    ("items", "items"),
    ("max_items", "maxItems"),
    ("max_length", "maxLength"),
    ("max_properties", "maxProperties"),
    ("maximum", "maximum"),
    ("min_items", "minItems"),
    ("min_length", "minLength"),
    ("min_properties", "minProperties"),
    ("minimum", "minimum"),
    ("nullable", "nullable"),
    ("pattern", "pattern"),
    ("properties", "properties"),
    ("property_ordering", "propertyOrdering"),
    ("ref", "$ref"),
    ("required", "required"),
    ("title", "title"),
    ("type", "type"),
];
const TYPES: &[&str] = &[
    "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL",
];

/// Converts a schema and applies the vendor's checks.
pub(crate) fn to_json_schema(schema: &Value, path: &str) -> Result<Value, Refusal> {
    let Value::Object(members) = schema else {
        return Err(bad_value(path, "an object", schema));
    };
    let mut read = Map::new();
    let mut nullable = false;
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let plain = snake(name);
        let Some((_, word)) = KNOWN.iter().find(|(known, _)| *known == plain) else {
            return Err(Refusal::invalid(format!(
                "Invalid JSON payload received. Unknown name \"{name}\" at '{path}': Cannot find \
                 field."
            ))
            .field(path));
        };
        let inner = format!("{path}.{plain}");
        match *word {
            "type" => {
                read.insert("type".to_owned(), type_of(value, &inner)?);
            }
            "nullable" => nullable = value == &Value::Bool(true),
            "items" => {
                read.insert("items".to_owned(), to_json_schema(value, &inner)?);
            }
            "anyOf" => {
                let branches = value.as_array().into_iter().flatten().enumerate();
                let branches: Result<Vec<_>, _> = branches
                    .map(|(index, branch)| to_json_schema(branch, &format!("{inner}[{index}]")))
                    .collect();
                read.insert("anyOf".to_owned(), branches?.into());
            }
            "properties" | "$defs" => {
                let mut properties = Map::new();
                for (name, value) in value.as_object().into_iter().flatten() {
                    let place = format!("{inner}.{name}");
                    properties.insert(name.clone(), to_json_schema(value, &place)?);
                }
                if properties.is_empty() {
                    return Err(Refusal::invalid(format!(
                        "* GenerateContentRequest.{inner}: should be non-empty for OBJECT type"
                    ))
                    .field(&inner));
                }
                read.insert((*word).to_owned(), properties.into());
            }
            word => {
                read.insert(word.to_owned(), value.clone());
            }
        }
    }
    if let (true, Some(kind)) = (nullable, read.get_mut("type")) {
        *kind = json!([kind.clone(), "null"]);
    }
    Ok(read.into())
}

fn type_of(value: &Value, path: &str) -> Result<Value, Refusal> {
    let word = value.as_str().unwrap_or_default();
    if TYPES.iter().any(|known| known.eq_ignore_ascii_case(word)) {
        return Ok(word.to_ascii_lowercase().into());
    }
    Err(bad_value(
        path,
        "type.googleapis.com/google.ai.generativelanguage.v1beta.Type",
        value,
    ))
}

pub(crate) fn check_name(name: &str, path: &str) -> Result<(), Refusal> {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c));
    if first && rest && name.len() <= NAME_LENGTH_MAX {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "* GenerateContentRequest.{path}: Invalid function name. Must start with a letter or an \
         underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), \
         or dashes (-), with a maximum length of {NAME_LENGTH_MAX}."
    ))
    .field(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_become_json_schemas() {
        let schema = json!({"type": "OBJECT", "property_ordering": ["a"], "required": ["a"],
            "properties": {
                "a": {"type": "STRING", "nullable": true, "min_length": 2},
                "b": {"type": "array", "items": {"anyOf": [{"type": "INTEGER"}, {"type": "NULL"}]}}}});
        assert_eq!(
            to_json_schema(&schema, "s"),
            Ok(
                json!({"type": "object", "propertyOrdering": ["a"], "required": ["a"],
                "properties": {
                    "a": {"type": ["string", "null"], "minLength": 2},
                    "b": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}})
            )
        );
    }

    #[test]
    fn foreign_words_are_refused_with_their_place() {
        for (schema, part) in [
            (json!({"$schema": "x"}), "\"$schema\" at 's'"),
            (
                json!({"type": "OBJECT", "properties": {"a": {"oneOf": []}}}),
                "\"oneOf\" at 's.properties.a'",
            ),
            (json!({"type": ["STRING", "NULL"]}), "s.type"),
            (json!({"type": "TEXT"}), "s.type"),
            (
                json!({"type": "OBJECT", "properties": {}}),
                "should be non-empty",
            ),
            (json!("STRING"), "'s'"),
        ] {
            let refusal = to_json_schema(&schema, "s").unwrap_err();
            assert!(refusal.message.contains(part), "{}", refusal.message);
        }
    }

    #[test]
    fn names_have_a_form() {
        for (name, good) in [
            ("get_weather", true),
            ("_a.b:c-d1", true),
            ("", false),
            ("1a", false),
            ("a b", false),
            ("ä", false),
        ] {
            assert_eq!(check_name(name, "p").is_ok(), good, "{name}");
        }
        assert!(check_name(&"x".repeat(129), "p").is_err());
    }
}
