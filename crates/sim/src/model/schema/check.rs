//! Checks whether a value satisfies a schema. Supports the common keywords.

use serde_json::{Map, Value};
use std::cell::Cell;

const DEPTH_MAX: usize = 48;
/// The maximum number of values and branches that are checked. The limit is needed because schemas can be recursive.
const STEPS_MAX: usize = 1000;
const REFERENCES_MAX: usize = 16;

/// Follows `$ref`. `None` if the target does not exist, or if the references form a cycle or a chain that is too long.
pub(super) fn resolve<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    let mut schema = schema;
    for _ in 0..REFERENCES_MAX {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return Some(schema);
        };
        schema = root.pointer(reference.strip_prefix('#')?)?;
    }
    None
}

/// The types that a schema allows; empty if it allows any type.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn satisfies(value: &Value, schema: &Value, root: &Value) -> bool {
    let check = SchemaCheck {
        root,
        left: Cell::new(STEPS_MAX),
    };
    check.fits(value, schema, 0)
}

struct SchemaCheck<'a> {
    root: &'a Value,
    left: Cell<usize>,
}

impl SchemaCheck<'_> {
    fn fits(&self, value: &Value, schema: &Value, depth: usize) -> bool {
        self.left.set(self.left.get().saturating_sub(1));
        if depth > DEPTH_MAX || self.left.get() == 0 {
            return false;
        }
        let rules = match resolve(schema, self.root) {
            Some(Value::Object(rules)) => rules,
            Some(Value::Bool(all)) => return *all,
            Some(_) => return true,
            None => return false,
        };
        let list = |name: &str| rules.get(name).and_then(Value::as_array);
        let within = |schema: &Value| self.fits(value, schema, depth + 1);
        rules.get("const").is_none_or(|only| only == value)
            && list("enum").is_none_or(|all| all.contains(value))
            && fits_type(value, rules)
            && list("allOf").is_none_or(|all| all.iter().all(within))
            && list("anyOf").is_none_or(|any| any.iter().any(within))
            && list("oneOf").is_none_or(|any| any.iter().any(within))
            && match value {
                Value::String(text) => fits_text(text, rules),
                Value::Number(_) => fits_number(value, rules),
                Value::Array(items) => self.fits_items(items, rules, depth),
                Value::Object(members) => self.fits_members(members, rules, depth),
                Value::Null | Value::Bool(_) => true,
            }
    }

    fn fits_items(&self, items: &[Value], rules: &Map<String, Value>, depth: usize) -> bool {
        let first = rules.get("prefixItems").and_then(Value::as_array);
        let first_len = first.map_or(0, Vec::len);
        bound(rules, "minItems").is_none_or(|min| items.len() as u64 >= min)
            && bound(rules, "maxItems").is_none_or(|max| items.len() as u64 <= max)
            && first.is_none_or(|first| {
                first
                    .iter()
                    .zip(items)
                    .all(|(schema, item)| self.fits(item, schema, depth + 1))
            })
            && rules.get("items").is_none_or(|schema| {
                items
                    .iter()
                    .skip(first_len)
                    .all(|item| self.fits(item, schema, depth + 1))
            })
    }

    fn fits_members(
        &self,
        members: &Map<String, Value>,
        rules: &Map<String, Value>,
        depth: usize,
    ) -> bool {
        let known = rules.get("properties").and_then(Value::as_object);
        let required = rules.get("required").and_then(Value::as_array);
        let more = rules.get("additionalProperties");
        required.is_none_or(|names| {
            names
                .iter()
                .filter_map(Value::as_str)
                .all(|name| members.contains_key(name))
        }) && members.iter().all(|(name, value)| {
            let schema = known.and_then(|known| known.get(name)).or(more);
            schema.is_none_or(|schema| self.fits(value, schema, depth + 1))
        })
    }
}

fn fits_type(value: &Value, rules: &Map<String, Value>) -> bool {
    let named = match rules.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return true,
    };
    named.into_iter().any(|kind| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    })
}

fn fits_text(text: &str, rules: &Map<String, Value>) -> bool {
    let length = text.chars().count() as u64;
    bound(rules, "minLength").is_none_or(|min| length >= min)
        && bound(rules, "maxLength").is_none_or(|max| length <= max)
}

pub(super) fn fits_number(value: &Value, rules: &Map<String, Value>) -> bool {
    let Some(number) = value.as_f64() else {
        return false;
    };
    let limit = |name: &str| rules.get(name).and_then(Value::as_f64);
    limit("minimum").is_none_or(|min| number >= min)
        && limit("maximum").is_none_or(|max| number <= max)
        && limit("exclusiveMinimum").is_none_or(|min| number > min)
        && limit("exclusiveMaximum").is_none_or(|max| number < max)
        && limit("multipleOf").is_none_or(|step| is_multiple(number, step))
}

#[expect(clippy::float_arithmetic, reason = "a schema's numbers are floats")]
fn is_multiple(number: f64, step: f64) -> bool {
    if step <= 0.0 {
        return true;
    }
    let times = number / step;
    (times - times.round()).abs() < 1e-9
}

pub(super) fn bound(rules: &Map<String, Value>, name: &str) -> Option<u64> {
    rules.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_checked() {
        let point = json!({
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/coordinate"}, "tag": {"enum": ["a", "b"]}},
            "required": ["x"],
            "additionalProperties": false,
            "$defs": {"coordinate": {"type": "number", "minimum": 0, "exclusiveMaximum": 10}}
        });
        for (value, schema, expected) in [
            (json!({"x": 1}), &point, true),
            (json!({"x": 1, "tag": "b"}), &point, true),
            (json!({"x": 10}), &point, false),
            (json!({"x": 1, "tag": "c"}), &point, false),
            (json!({"x": 1, "y": 2}), &point, false),
            (json!({}), &point, false),
            (json!(1.5), &json!({"type": "integer"}), false),
            (json!(null), &json!({"type": ["string", "null"]}), true),
            (json!("abc"), &json!({"maxLength": 2}), false),
            (
                json!([1, "a"]),
                &json!({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}),
                true,
            ),
            (json!(0.3), &json!({"multipleOf": 0.1}), true),
            (
                json!(7),
                &json!({"anyOf": [{"type": "string"}, {"const": 7}]}),
                true,
            ),
            (json!(7), &json!({"$ref": "#"}), false),
            (json!(7), &json!(false), false),
        ] {
            assert_eq!(
                satisfies(&value, schema, schema),
                expected,
                "{value} {schema}"
            );
        }
    }
}
