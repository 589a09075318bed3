//! Creates strings that satisfy a schema.

use super::check::bound;
use crate::model::prompt_values::{PromptValues, clipped};
use serde_json::{Map, Value};

const LENGTH_MAX: u64 = 100_000;
/// The maximum number of bytes of the question that fill one of the properties below.
const QUOTE_BYTES_MAX: usize = 80;
/// A property whose name ends with one of these words is filled with the beginning of the question if the question has
/// no other value for it. Any other property then gets an example text.
const WHOLE_QUESTION_PROPERTIES: [&str; 9] = [
    "query", "question", "prompt", "text", "message", "input", "content", "summary", "answer",
];

pub(super) fn text(
    name: &str,
    rules: &Map<String, Value>,
    from_prompt: &mut PromptValues<'_>,
) -> String {
    if let Some(example) = rules
        .get("format")
        .and_then(Value::as_str)
        .and_then(of_format)
    {
        return example.to_owned();
    }
    let value = from_prompt.text_of(name).map(str::to_owned);
    let value = value.or_else(|| {
        let whole = WHOLE_QUESTION_PROPERTIES
            .iter()
            .any(|word| name.ends_with(word));
        if whole && from_prompt.phrases().is_empty() {
            return None;
        }
        from_prompt.next_phrase().map(str::to_owned)
    });
    let value = value.unwrap_or_else(|| {
        let quote = clipped(from_prompt.text().trim(), QUOTE_BYTES_MAX).trim();
        if quote.is_empty()
            || !WHOLE_QUESTION_PROPERTIES
                .iter()
                .any(|word| name.ends_with(word))
        {
            format!("example {}", if name.is_empty() { "text" } else { name })
        } else {
            quote.to_owned()
        }
    });
    of_length(value, rules)
}

/// Pads or cuts a text to the required length.
fn of_length(text: String, rules: &Map<String, Value>) -> String {
    let length = text.chars().count() as u64;
    let min = bound(rules, "minLength").unwrap_or(0).min(LENGTH_MAX);
    let max = bound(rules, "maxLength").unwrap_or(u64::MAX);
    if length > max {
        return text
            .chars()
            .take(usize::try_from(max).unwrap_or(usize::MAX))
            .collect();
    }
    let missing = usize::try_from(min.saturating_sub(length)).unwrap_or_default();
    text + &"x".repeat(missing)
}

fn of_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "2026-01-01",
        "time" => "09:30:00Z",
        "date-time" => "2026-01-01T09:30:00Z",
        "duration" => "PT1H",
        "email" => "ada@example.com",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "url" => "https://example.com/",
        "uuid" => "01234567-89ab-4cde-8f01-23456789abcd",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_come_from_the_prompt_and_fit() {
        for (name, schema, prompt, expected) in [
            ("city", json!({}), "Weather in Paris", "Paris"),
            ("city", json!({}), "What about Paris?", "Paris"),
            ("city", json!({}), "where city=Rome, ok", "Rome"),
            ("city", json!({}), "", "example city"),
            ("query", json!({}), "find red shoes", "find red shoes"),
            ("city", json!({"maxLength": 3}), "in Paris", "Par"),
            ("city", json!({"minLength": 7}), "in Paris", "Parisxx"),
            ("day", json!({"format": "date"}), "in Paris", "2026-01-01"),
        ] {
            let mut from_prompt = PromptValues::new(prompt);
            let text = text(name, schema.as_object().unwrap(), &mut from_prompt);
            assert_eq!(text, expected, "{name} {schema} {prompt}");
        }
    }
}
