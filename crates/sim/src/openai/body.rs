//! Parses a body, and reads the name of its model.

use super::Refusal;
use super::member::type_name;
use serde_json::Value;

/// Parses a body, which must be a JSON object.
pub(crate) fn parse(body: &[u8]) -> Result<Value, Refusal> {
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) | Err(_) => Err(Refusal::invalid(
            "We could not parse the JSON body of your request. (HINT: This likely means you \
             aren't using your HTTP library correctly. The API expects a JSON payload, but what \
             was sent was not valid JSON.)",
        )),
    }
}

/// Reads the model that a call names, including its script.
pub(crate) fn model_of(request: &Value) -> Result<&str, Refusal> {
    match request.get("model") {
        Some(Value::String(model)) if !model.is_empty() => Ok(model),
        None | Some(Value::Null | Value::String(_)) => {
            Err(Refusal::invalid("you must provide a model parameter"))
        }
        Some(other) => Err(Refusal::invalid(format!(
            "Invalid type for 'model': expected a string, but got {} instead.",
            type_name(other)
        ))
        .param("model")
        .code("invalid_type")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_must_be_an_object_that_names_a_model() {
        for body in ["", "{", "[]", "null", "\u{ff}", "{\"model\":1"] {
            assert!(parse(body.as_bytes()).is_err(), "{body}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
        for request in [
            json!({}),
            json!({"model": null}),
            json!({"model": 7}),
            json!({"model": ""}),
        ] {
            assert!(model_of(&request).is_err(), "{request}");
        }
    }
}
