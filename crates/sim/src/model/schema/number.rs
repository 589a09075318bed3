//! Creates numbers that satisfy a schema.

use super::check::fits_number;
use crate::model::prompt_values::PromptValues;
use serde_json::{Map, Value};

pub(super) fn integer(rules: &Map<String, Value>, from_prompt: &mut PromptValues<'_>) -> Value {
    first_fit(rules, from_prompt, |value| value.as_i64().is_some())
}

pub(super) fn number(rules: &Map<String, Value>, from_prompt: &mut PromptValues<'_>) -> Value {
    first_fit(rules, from_prompt, Value::is_number)
}

/// The next number in the prompt that fits. If there is none, the first of these that fits: the default, 1, 0, 0.5, the
/// numbers at the bounds, and `multipleOf`.
fn first_fit(
    rules: &Map<String, Value>,
    from_prompt: &mut PromptValues<'_>,
    is_kind: impl Fn(&Value) -> bool,
) -> Value {
    let fits = |value: &Value| is_kind(value) && fits_number(value, rules);
    while let Some(number) = from_prompt.next_number() {
        let value = Value::Number(number.clone());
        if fits(&value) {
            return value;
        }
    }
    let rule = |name: &str| rules.get(name).cloned();
    let beyond = |name: &str, step: i64| {
        let bound = rules.get(name)?.as_i64()?;
        Some(Value::from(bound.saturating_add(step)))
    };
    [
        rule("default"),
        Some(Value::from(1)),
        Some(Value::from(0)),
        Some(Value::from(0.5)),
        rule("minimum"),
        rule("maximum"),
        beyond("exclusiveMinimum", 1),
        beyond("exclusiveMaximum", -1),
        rule("multipleOf"),
    ]
    .into_iter()
    .flatten()
    .find(fits)
    .unwrap_or_else(|| Value::from(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_satisfy_their_bounds() {
        for schema in [
            json!({}),
            json!({"minimum": 5}),
            json!({"maximum": -5}),
            json!({"exclusiveMinimum": 10, "exclusiveMaximum": 12}),
            json!({"minimum": 1000, "maximum": 1000}),
            json!({"maximum": 0}),
            json!({"minimum": i64::MAX}),
        ] {
            let rules = schema.as_object().unwrap();
            let mut from_prompt = PromptValues::new("");
            let value = integer(rules, &mut from_prompt);
            assert!(
                value.is_i64() && fits_number(&value, rules),
                "{schema}: {value}"
            );
        }
        for schema in [
            json!({}),
            json!({"minimum": 0.1, "maximum": 0.2}),
            json!({"exclusiveMinimum": 0, "exclusiveMaximum": 1}),
            json!({"maximum": -0.25}),
            json!({"multipleOf": 0.25}),
        ] {
            let rules = schema.as_object().unwrap();
            let value = number(rules, &mut PromptValues::new(""));
            assert!(fits_number(&value, rules), "{schema}: {value}");
        }
    }

    #[test]
    fn numbers_of_the_prompt_come_first_if_they_fit() {
        let mut from_prompt = PromptValues::new("Take 3.5, then 200, then 7.");
        let rules = json!({"maximum": 100});
        assert_eq!(integer(rules.as_object().unwrap(), &mut from_prompt), 7);
    }
}
