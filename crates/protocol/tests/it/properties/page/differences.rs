//! Finds the places where two versions of a JSON document differ.

use std::collections::BTreeSet;

use serde_json::Value;

/// The places of `before` that `after` does not have or has with another value. A place is a path of names.
/// An item of a list is named by its role or type, because its index says little.
pub(super) fn differences(before: &Value, after: &Value) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    compare(before, after, "", &mut places);
    places
}

fn compare(before: &Value, after: &Value, path: &str, places: &mut BTreeSet<String>) {
    match (before, after) {
        (Value::Object(had), Value::Object(has)) => {
            for (name, value) in had {
                let path = member(path, name);
                match has.get(name) {
                    Some(other) => compare(value, other, &path, places),
                    None => {
                        places.insert(path);
                    }
                }
            }
        }
        (Value::Array(had), Value::Array(has)) if had.len() == has.len() => {
            for (value, other) in had.iter().zip(has) {
                compare(value, other, &item(path, value), places);
            }
        }
        (Value::Array(had), Value::Array(has)) => {
            let same = had.iter().zip(has).take_while(|(a, b)| a == b).count();
            places.insert(
                had.get(same)
                    .map_or_else(|| format!("{path}[]"), |first_lost| item(path, first_lost)),
            );
        }
        _ if before != after => {
            places.insert(path.to_owned());
        }
        _ => {}
    }
}

pub(super) fn member(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

pub(super) fn item(path: &str, item: &Value) -> String {
    let kind = item["role"].as_str().or_else(|| item["type"].as_str());
    format!("{path}[{}]", kind.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_are_named_by_the_kinds_of_items() {
        let before =
            json!({"a": 1, "list": [{"role": "user", "x": 1}, {"type": "text"}], "b": {"c": 2}});
        for (after, expected) in [
            (
                json!({"list": [{"role": "user", "x": 1}, {"type": "text"}], "b": {"c": 2}}),
                vec!["a"],
            ),
            (
                json!({"a": 1, "list": [{"role": "user", "x": 2}, {"type": "text"}], "b": {"c": 3}}),
                vec!["b.c", "list[user].x"],
            ),
            (
                json!({"a": 1, "list": [{"role": "user", "x": 1}], "b": {"c": 2}}),
                vec!["list[text]"],
            ),
            (
                json!({"a": 1, "list": [{"type": "text"}], "b": {"c": 2, "d": 1}}),
                vec!["list[user]"],
            ),
        ] {
            let found = differences(&before, &after);
            assert_eq!(
                found.iter().map(String::as_str).collect::<Vec<_>>(),
                expected
            );
        }
    }
}
