//! Numbers that satisfy a schema.

use super::check::fits_number;
use crate::model::prompt_values::PromptValues;
use serde_json::{Map, Number, Value};

/// How many multiples are tried in search of a number.
const TRIES_MAX: i64 = 64;

pub(super) fn integer(rules: &Map<String, Value>, from_prompt: &mut PromptValues<'_>) -> Value {
    while let Some(number) = from_prompt.next_number() {
        let value = Value::Number(number.clone());
        if number.as_i64().is_some() && fits_number(&value, rules) {
            return value;
        }
    }
    let whole = |name: &str| rules.get(name).and_then(whole_number);
    let step = whole("multipleOf").filter(|step| *step > 0).unwrap_or(1);
    let starts = [
        whole("default"),
        Some(1),
        Some(0),
        whole("minimum"),
        whole("exclusiveMinimum"),
        whole("maximum"),
        whole("exclusiveMaximum"),
    ];
    let candidates = starts.into_iter().flatten().flat_map(|start| {
        let base = start.saturating_sub(start.rem_euclid(step));
        (-2..TRIES_MAX)
            .map(move |times| base.saturating_add(step.saturating_mul(times)))
            .chain([start])
    });
    // 1 is preferred, then numbers close to the bounds.
    std::iter::once(1)
        .chain(candidates)
        .map(Value::from)
        .find(|value| fits_number(value, rules))
        .unwrap_or_else(|| Value::from(1))
}

pub(super) fn number(rules: &Map<String, Value>, from_prompt: &mut PromptValues<'_>) -> Value {
    while let Some(number) = from_prompt.next_number() {
        let value = Value::Number(number.clone());
        if fits_number(&value, rules) {
            return value;
        }
    }
    let exact = ["default", "minimum", "maximum"];
    let near = [
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minimum",
        "maximum",
        "multipleOf",
    ];
    let candidates = std::iter::once(Value::from(1))
        .chain(exact.iter().filter_map(|name| rules.get(*name)).cloned())
        .chain(
            near.iter()
                .filter_map(|name| rules.get(*name))
                .flat_map(neighbours),
        );
    candidates
        .filter(Value::is_number)
        .find(|value| fits_number(value, rules))
        .unwrap_or_else(|| Value::from(1))
}

/// Numbers close to a bound, on both sides, and half of it.
#[expect(clippy::float_arithmetic, reason = "a schema's numbers are floats")]
fn neighbours(bound: &Value) -> Vec<Value> {
    let Some(bound) = bound.as_f64() else {
        return Vec::new();
    };
    [0.0, 1.0, -1.0, 0.5, -0.5, 0.001, -0.001]
        .into_iter()
        .map(|away| bound + away)
        .chain([bound / 2.0, bound * 2.0])
        .filter_map(Number::from_f64)
        .map(Value::Number)
        .collect()
}

/// A bound as an integer, without its fraction.
fn whole_number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        let text = format!("{:.0}", number.trunc());
        text.parse().ok()
    })
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
            json!({"minimum": 10, "multipleOf": 7}),
            json!({"minimum": 1000, "maximum": 1000}),
            json!({"minimum": 2.5}),
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
            json!({"exclusiveMinimum": 99.5}),
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
