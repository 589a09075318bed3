//! Reads the members of a request as the vendor's JSON parser does.
//!
//! Generate Content accepts every member in two spellings, `inlineData` and `inline_data`, and
//! refuses unknown names. Interactions has one spelling.

use super::Refusal;
use serde_json::{Map, Value};

/// The spellings of member names that an API accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Both `snake_case` and `camelCase`.
    Both,
    Snake,
}

/// A JSON object and its path for error messages. The path of the top level is empty.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    map: &'a Map<String, Value>,
    path: String,
    spelling: Spelling,
}

impl<'a> Field<'a> {
    /// Reads a value as an object whose members are all known. `known` has their names in `snake_case`.
    pub(crate) fn object(
        value: &'a Value,
        path: impl Into<String>,
        spelling: Spelling,
        known: &[&str],
    ) -> Result<Self, Refusal> {
        let path = path.into();
        let Value::Object(map) = value else {
            return Err(bad_value(&path, "an object", value));
        };
        let field = Self {
            map,
            path,
            spelling,
        };
        field.refuse_unknown(known)?;
        Ok(field)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn refuse_unknown(&self, known: &[&str]) -> Result<(), Refusal> {
        let mut seen: Vec<String> = Vec::new();
        for name in self.map.keys() {
            let plain = match self.spelling {
                Spelling::Both => snake(name),
                Spelling::Snake => name.clone(),
            };
            if !known.contains(&plain.as_str()) {
                return Err(self.unknown(name));
            }
            if seen.contains(&plain) {
                return Err(Refusal::invalid(format!(
                    "Invalid JSON payload received. Duplicate name \"{name}\"."
                ))
                .field(&self.path));
            }
            seen.push(plain);
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> Refusal {
        if self.spelling == Spelling::Snake {
            return Refusal::unknown_parameter(&self.path(name));
        }
        let place = if self.path.is_empty() {
            String::new()
        } else {
            format!(" at '{}'", self.path)
        };
        Refusal::invalid(format!(
            "Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field."
        ))
        .field(&self.path)
    }

    /// The value of a member. Null counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        let found = self.map.get(name).or_else(|| match self.spelling {
            Spelling::Both => self.map.get(&camel(name)),
            Spelling::Snake => None,
        });
        found.filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn required(&self, name: &str) -> Result<&'a Value, Refusal> {
        self.get(name).ok_or_else(|| {
            let path = self.path(name);
            Refusal::invalid(format!("Missing required parameter '{path}'.")).field(&path)
        })
    }

    pub(crate) fn child(&self, name: &str, known: &[&str]) -> Result<Option<Field<'a>>, Refusal> {
        self.get(name)
            .map(|value| Field::object(value, self.path(name), self.spelling, known))
            .transpose()
    }

    /// Reads a list of objects; empty if the list is absent.
    pub(crate) fn children(&self, name: &str, known: &[&str]) -> Result<Vec<Field<'a>>, Refusal> {
        let list = self.list(name)?.unwrap_or_default();
        list.iter()
            .enumerate()
            .map(|(index, value)| {
                let path = self.path(&format!("{name}[{index}]"));
                Field::object(value, path, self.spelling, known)
            })
            .collect()
    }

    pub(crate) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(bad_value(&self.path(name), "an array", other)),
        }
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<&'a str>, Refusal> {
        let list = self.list(name)?.unwrap_or_default();
        let text = |(index, value): (usize, &'a Value)| {
            let path = self.path(&format!("{name}[{index}]"));
            value
                .as_str()
                .ok_or_else(|| bad_value(&path, "TYPE_STRING", value))
        };
        list.iter().enumerate().map(text).collect()
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(bad_value(&self.path(name), "TYPE_STRING", other)),
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
            Some(other) => Err(bad_value(&self.path(name), "TYPE_BOOL", other)),
        }
    }

    /// Reads an integer, written as `3`, `3.0` or `"3"`.
    pub(crate) fn integer(&self, name: &str, min: i64, max: i64) -> Result<Option<i64>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let digits = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let number = digits.strip_suffix(".0").unwrap_or(&digits);
        let number: i64 = number
            .parse()
            .map_err(|_| bad_value(&self.path(name), "TYPE_INT32", value))?;
        if number < min || number > max {
            return Err(self.out_of_range(name, value, min, max));
        }
        Ok(Some(number))
    }

    pub(crate) fn decimal(&self, name: &str, min: i32, max: i32) -> Result<Option<f64>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let Some(number) = value.as_f64() else {
            return Err(bad_value(&self.path(name), "TYPE_FLOAT", value));
        };
        if number < f64::from(min) || number > f64::from(max) {
            return Err(self.out_of_range(name, value, min.into(), max.into()));
        }
        Ok(Some(number))
    }

    fn out_of_range(&self, name: &str, value: &Value, min: i64, max: i64) -> Refusal {
        let path = self.path(name);
        let place = match self.spelling {
            Spelling::Both => format!("* GenerateContentRequest.{path}"),
            Spelling::Snake => format!("Invalid value for '{path}'"),
        };
        Refusal::invalid(format!(
            "{place}: {name} must be in the range [{min}, {max}], got {value}."
        ))
        .field(&path)
    }

    /// Reads a word of a fixed set, in upper or lower case. Returns the spelling of the set.
    pub(crate) fn word(
        &self,
        name: &str,
        allowed: &[&'static str],
    ) -> Result<Option<&'static str>, Refusal> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        allowed
            .iter()
            .find(|word| word.eq_ignore_ascii_case(text))
            .map(|word| Some(*word))
            .ok_or_else(|| {
                let path = self.path(name);
                Refusal::invalid(format!("Invalid value at '{path}' (TYPE_ENUM), \"{text}\""))
                    .field(&path)
            })
    }
}

/// The vendor's error for a value of the wrong type.
pub(super) fn bad_value(path: &str, expected: &str, value: &Value) -> Refusal {
    const SHOWN_MAX: usize = 60;
    let shown: String = value.to_string().chars().take(SHOWN_MAX).collect();
    let message = format!("Invalid value at '{path}' ({expected}), {shown}");
    Refusal::invalid(message).field(path)
}

/// Converts `inlineData` to `inline_data`.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for sign in name.chars() {
        if sign.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(sign.to_ascii_lowercase());
    }
    snake
}

fn camel(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut raise = false;
    for sign in name.chars() {
        if sign == '_' {
            raise = true;
        } else if raise {
            camel.push(sign.to_ascii_uppercase());
            raise = false;
        } else {
            camel.push(sign);
        }
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KNOWN: &[&str] = &["top_k", "mode", "inline_data", "temperature"];

    fn both(value: &Value) -> Result<Field<'_>, Refusal> {
        Field::object(value, "config", Spelling::Both, KNOWN)
    }

    #[test]
    fn both_spellings_are_one_member() {
        for value in [json!({"topK": 3.0}), json!({"top_k": "3"})] {
            let field = both(&value).unwrap();
            assert_eq!(field.integer("top_k", 1, 9), Ok(Some(3)), "{value}");
        }
        let twice = json!({"topK": 3, "top_k": 3});
        assert!(both(&twice).unwrap_err().message.contains("Duplicate name"));
        let camel_only = json!({"topK": 3});
        let refusal = Field::object(&camel_only, "", Spelling::Snake, KNOWN).unwrap_err();
        assert_eq!(refusal.message, "Unknown parameter 'topK'.");
    }

    #[test]
    fn unknown_names_are_refused_with_their_place() {
        let value = json!({"colour": 1});
        assert_eq!(
            both(&value).unwrap_err().message,
            "Invalid JSON payload received. Unknown name \"colour\" at 'config': Cannot find field."
        );
    }

    #[test]
    fn values_of_the_wrong_kind_are_refused() {
        let value = json!({"top_k": 3.5, "mode": "odd", "temperature": 2.5});
        let field = both(&value).unwrap();
        for refusal in [
            field.integer("top_k", 1, 9).unwrap_err(),
            field.word("mode", &["AUTO"]).unwrap_err(),
            field.decimal("temperature", 0, 2).unwrap_err(),
            field.text("top_k").unwrap_err(),
            field.list("mode").unwrap_err(),
            field.flag("mode").unwrap_err(),
        ] {
            assert_eq!(refusal.status, 400);
            assert!(refusal.message.contains("config."), "{}", refusal.message);
        }
        assert_eq!(field.word("mode", &["ODD"]), Ok(Some("ODD")));
    }
}
