//! Reads the system prompt: a string, or an object with one or several strings.

use crate::google::{Field, Refusal};
use serde_json::Value;

const NAME: &str = "system_instruction";

/// Reads the texts of the system prompt, in order.
pub(super) fn read(body: &Field<'_>) -> Result<Vec<String>, Refusal> {
    let mut texts = Vec::new();
    match body.get(NAME) {
        None => return Ok(texts),
        Some(Value::Array(_)) => return Err(refused()),
        Some(system) => collect(system, &mut texts)?,
    }
    if texts.is_empty() {
        return Err(refused());
    }
    Ok(texts)
}

/// Collects the texts of `"…"`, `{"text": "…"}`, `{"parts": [{"text": "…"}]}` and `{"content": …}`.
fn collect(system: &Value, texts: &mut Vec<String>) -> Result<(), Refusal> {
    match system {
        Value::String(text) => {
            texts.push(text.clone());
            Ok(())
        }
        Value::Array(several) => several.iter().try_for_each(|one| collect(one, texts)),
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("text", Value::String(_)) | ("parts" | "content", _) => collect(value, texts)?,
                    ("type", Value::String(kind)) if kind == "text" => {}
                    ("role", Value::String(_)) => {}
                    _ => return Err(refused()),
                }
            }
            Ok(())
        }
        _ => Err(refused()),
    }
}

fn refused() -> Refusal {
    Refusal::invalid(format!(
        "Invalid value at '{NAME}': a text or an object with texts is expected."
    ))
    .field(NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::google::Spelling;
    use serde_json::json;

    fn texts(system: &Value) -> Option<Vec<String>> {
        let body = json!({ NAME: system });
        let body = Field::object(&body, "", Spelling::Snake, &[NAME]).ok()?;
        read(&body).ok()
    }

    #[test]
    fn every_form_of_a_prompt_is_taken() {
        for system in [
            json!("be brief"),
            json!({"text": "be brief"}),
            json!({"type": "text", "text": "be brief"}),
            json!({"role": "system", "parts": [{"text": "be brief"}]}),
            json!({"content": [{"type": "text", "text": "be brief"}]}),
            json!({"content": "be brief"}),
        ] {
            let expected = Some(vec!["be brief".to_owned()]);
            assert_eq!(texts(&system), expected, "{system}");
        }
    }

    #[test]
    fn what_holds_no_text_is_refused() {
        for system in [
            json!({}),
            json!({"parts": []}),
            json!({"parts": [{"image": 1}]}),
            json!({"type": "image"}),
            json!(7),
            json!(["be brief"]),
        ] {
            assert_eq!(texts(&system), None, "{system}");
        }
    }
}
