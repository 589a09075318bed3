//! Checks schemas in strict mode by the vendor's rules.

use serde_json::Value;

const DEPTH_MAX: usize = 64;

/// Checks that every object requires all its properties and allows no others.
pub(crate) fn check(schema: &Value) -> Result<(), String> {
    check_at(schema, &mut Vec::new())
}

fn check_at(schema: &Value, path: &mut Vec<String>) -> Result<(), String> {
    if path.len() > DEPTH_MAX {
        return Err("schema is nested too deeply.".to_owned());
    }
    let is_object = match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => false,
    };
    if is_object {
        check_object(schema, path)?;
    }
    for (word, inner) in children(schema) {
        path.push(word);
        check_at(inner, path)?;
        path.pop();
    }
    Ok(())
}

fn check_object(schema: &Value, path: &[String]) -> Result<(), String> {
    let context = format!("In context=({})", path.join(", "));
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(format!(
            "{context}, 'additionalProperties' is required to be supplied and to be false."
        ));
    }
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    for name in properties
        .into_iter()
        .flat_map(|properties| properties.keys())
    {
        if !required.is_some_and(|required| required.iter().any(|item| item == name)) {
            return Err(format!(
                "{context}, 'required' is required to be supplied and to be an array including \
                 every key in properties. Missing '{name}'."
            ));
        }
    }
    Ok(())
}

/// The nested schemas of a schema, each with the path segment that leads to it.
fn children(schema: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for word in ["properties", "$defs", "definitions"] {
        let inner = schema.get(word).and_then(Value::as_object);
        for (name, schema) in inner.into_iter().flatten() {
            found.push((format!("'{word}', '{name}'"), schema));
        }
    }
    for word in ["anyOf", "allOf", "oneOf", "prefixItems"] {
        let inner = schema.get(word).and_then(Value::as_array);
        for (index, schema) in inner.into_iter().flatten().enumerate() {
            found.push((format!("'{word}', '{index}'"), schema));
        }
    }
    if let Some(items) = schema.get("items") {
        found.push(("'items'".to_owned(), items));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn loose_objects_are_named_by_their_context() {
        let closed = |properties: Value, required: Value| {
            json!({"type": "object", "properties": properties, "required": required,
                   "additionalProperties": false})
        };
        assert_eq!(
            check(&closed(json!({"a": {"type": "string"}}), json!(["a"]))),
            Ok(())
        );
        assert_eq!(check(&json!({"type": "string"})), Ok(()));
        for (schema, part) in [
            (
                json!({"type": "object"}),
                "context=(), 'additionalProperties'",
            ),
            (closed(json!({"a": {}}), json!([])), "Missing 'a'"),
            (
                closed(
                    json!({"a": {"type": "array", "items": {"type": "object"}}}),
                    json!(["a"]),
                ),
                "('properties', 'a', 'items')",
            ),
            (
                closed(
                    json!({"a": {"anyOf": [{"type": ["object", "null"]}]}}),
                    json!(["a"]),
                ),
                "('properties', 'a', 'anyOf', '0')",
            ),
        ] {
            let why = check(&schema).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
    }
}
