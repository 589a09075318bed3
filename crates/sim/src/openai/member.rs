//! Reads the members of a request, with the vendor's errors for wrong types.

use super::Refusal;
use serde_json::{Map, Value};

/// A JSON object and its path for error messages. The path of the top level is empty.
#[derive(Debug, Clone)]
pub(crate) struct Member<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

impl<'a> Member<'a> {
    pub(crate) fn object(value: &'a Value, path: impl Into<String>) -> Result<Self, Refusal> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            other => Err(wrong_type(&path, "an object", other)),
        }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.map.keys().map(String::as_str)
    }

    /// The value of a member. Null counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn required(&self, name: &str) -> Result<&'a Value, Refusal> {
        self.get(name).ok_or_else(|| {
            let path = self.path(name);
            Refusal::invalid(format!("Missing required parameter: '{path}'."))
                .code("missing_required_parameter")
                .param(path)
        })
    }

    pub(crate) fn child(&self, name: &str) -> Result<Option<Member<'a>>, Refusal> {
        self.get(name)
            .map(|value| Member::object(value, self.path(name)))
            .transpose()
    }

    pub(crate) fn required_child(&self, name: &str) -> Result<Member<'a>, Refusal> {
        Member::object(self.required(name)?, self.path(name))
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(&self.path(name), "a string", other)),
        }
    }

    pub(crate) fn required_text(&self, name: &str) -> Result<&'a str, Refusal> {
        self.required(name)?;
        Ok(self.text(name)?.unwrap_or_default())
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(wrong_type(&self.path(name), "a boolean", other)),
        }
    }

    pub(crate) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(wrong_type(&self.path(name), "an array", other)),
        }
    }

    pub(crate) fn integer(&self, name: &str, min: i64, max: i64) -> Result<Option<i64>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let path = self.path(name);
        let Some(number) = value.as_i64() else {
            return Err(wrong_type(&path, "an integer", value));
        };
        let (side, word, sign, bound, code) = if number < min {
            ("below", "minimum", ">=", min, "integer_below_min_value")
        } else if number > max {
            ("above", "maximum", "<=", max, "integer_above_max_value")
        } else {
            return Ok(Some(number));
        };
        Err(Refusal::invalid(format!(
            "Invalid '{path}': integer {side} {word} value. Expected a value {sign} {bound}, but \
             got {number} instead."
        ))
        .param(path)
        .code(code))
    }

    pub(crate) fn decimal(&self, name: &str, min: i32, max: i32) -> Result<Option<f64>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let path = self.path(name);
        let Some(number) = value.as_f64() else {
            return Err(wrong_type(&path, "a decimal", value));
        };
        let (side, word, sign, bound, code) = if number < f64::from(min) {
            ("below", "minimum", ">=", min, "decimal_below_min_value")
        } else if number > f64::from(max) {
            ("above", "maximum", "<=", max, "decimal_above_max_value")
        } else {
            return Ok(Some(number));
        };
        Err(Refusal::invalid(format!(
            "Invalid '{path}': decimal {side} {word} value. Expected a value {sign} {bound}, but \
             got {value} instead."
        ))
        .param(path)
        .code(code))
    }

    pub(crate) fn one_of(&self, name: &str, allowed: &[&str]) -> Result<Option<&'a str>, Refusal> {
        match self.text(name)? {
            Some(text) if !allowed.contains(&text) => {
                Err(bad_value(&self.path(name), text, allowed))
            }
            text => Ok(text),
        }
    }

    pub(crate) fn refuse_unknown(&self, known: &[&str]) -> Result<(), Refusal> {
        match self.names().find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => {
                let path = self.path(name);
                Err(Refusal::invalid(format!("Unknown parameter: '{path}'."))
                    .param(path)
                    .code("unknown_parameter"))
            }
        }
    }
}

pub(crate) fn wrong_type(path: &str, expected: &str, value: &Value) -> Refusal {
    Refusal::invalid(format!(
        "Invalid type for '{path}': expected {expected}, but got {} instead.",
        type_name(value)
    ))
    .param(path)
    .code("invalid_type")
}

fn bad_value(path: &str, value: &str, allowed: &[&str]) -> Refusal {
    let listed: Vec<_> = allowed.iter().map(|word| format!("'{word}'")).collect();
    Refusal::invalid(format!(
        "Invalid value: '{value}'. Supported values are: {}.",
        listed.join(", ")
    ))
    .param(path)
    .code("invalid_value")
}

/// The vendor's name for the type of a value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_outside_their_bounds_are_named() {
        let body = json!({"t": 2.5, "low": -3, "n": 0, "text": "1", "none": null, "big": 1e300});
        let top = Member::object(&body, "").unwrap();
        for (result, code) in [
            (top.decimal("t", 0, 2).err(), "decimal_above_max_value"),
            (top.decimal("low", -2, 2).err(), "decimal_below_min_value"),
            (top.decimal("text", 0, 2).err(), "invalid_type"),
            (top.integer("n", 1, 128).err(), "integer_below_min_value"),
            (top.integer("t", 1, 128).err(), "invalid_type"),
            (top.integer("big", 1, 128).err(), "invalid_type"),
        ] {
            assert_eq!(result.and_then(|refusal| refusal.code), Some(code));
        }
        assert_eq!(top.decimal("none", 0, 2), Ok(None));
        assert_eq!(top.decimal("t", 0, 3), Ok(Some(2.5)));
    }

    #[test]
    fn errors_name_the_whole_path() {
        let body = json!({"role": "king"});
        let message = Member::object(&body, "messages[0]").unwrap();
        let refusal = message.one_of("role", &["user"]).unwrap_err();
        assert_eq!(refusal.param.as_deref(), Some("messages[0].role"));
        assert!(refusal.message.contains("'king'"));
        let refusal = message.required_text("content").unwrap_err();
        assert_eq!(refusal.param.as_deref(), Some("messages[0].content"));
        let refusal = message.refuse_unknown(&["content"]).unwrap_err();
        assert_eq!(refusal.code, Some("unknown_parameter"));
    }
}
