//! Reads the members of a request, with the vendor's errors for wrong types.

use super::refusal::Refusal;
use serde_json::{Map, Value};

/// A JSON object and its path for error messages. The path of the top level is empty.
#[derive(Debug, Clone)]
pub(super) struct Member<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

impl<'a> Member<'a> {
    pub(super) fn object(value: &'a Value, path: impl Into<String>) -> Result<Self, Refusal> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            _ => Err(Refusal::at(&path, "Input should be an object")),
        }
    }

    pub(super) fn own_path(&self) -> &str {
        &self.path
    }

    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    pub(super) fn wrong(&self, name: &str, why: impl AsRef<str>) -> Refusal {
        Refusal::at(&self.path(name), why)
    }

    /// The value of a member. Null counts as absent.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn required(&self, name: &str) -> Result<&'a Value, Refusal> {
        self.get(name)
            .ok_or_else(|| self.wrong(name, "Field required"))
    }

    pub(super) fn child(&self, name: &str) -> Result<Option<Member<'a>>, Refusal> {
        self.get(name)
            .map(|value| Member::object(value, self.path(name)))
            .transpose()
    }

    pub(super) fn required_child(&self, name: &str) -> Result<Member<'a>, Refusal> {
        Member::object(self.required(name)?, self.path(name))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "Input should be a valid string")),
        }
    }

    pub(super) fn required_text(&self, name: &str) -> Result<&'a str, Refusal> {
        self.required(name)?;
        Ok(self.text(name)?.unwrap_or_default())
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.wrong(name, "Input should be a valid boolean")),
        }
    }

    pub(super) fn list(&self, name: &str) -> Result<Option<&'a [Value]>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(self.wrong(name, "Input should be a valid array")),
        }
    }

    pub(super) fn integer(&self, name: &str, min: u64) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        if !value.is_i64() && !value.is_u64() {
            return Err(self.wrong(name, "Input should be a valid integer"));
        }
        match value.as_u64() {
            Some(number) if number >= min => Ok(Some(number)),
            _ => Err(self.wrong(
                name,
                format!("Input should be greater than or equal to {min}"),
            )),
        }
    }

    /// Reads a number from 0 to 1.
    pub(super) fn share(&self, name: &str) -> Result<Option<f64>, Refusal> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.as_f64() {
            Some(number) if (0.0..=1.0).contains(&number) => Ok(Some(number)),
            Some(_) => Err(self.wrong(name, "range: 0..1")),
            None => Err(self.wrong(name, "Input should be a valid number")),
        }
    }

    pub(super) fn one_of(&self, name: &str, allowed: &[&str]) -> Result<Option<&'a str>, Refusal> {
        match self.text(name)? {
            Some(text) if !allowed.contains(&text) => {
                Err(self.wrong(name, format!("Input should be {}", listed(allowed))))
            }
            text => Ok(text),
        }
    }

    /// Refuses unknown members, as this vendor always does.
    pub(super) fn refuse_unknown(&self, known: &[&str]) -> Result<(), Refusal> {
        match self.map.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(self.wrong(name, "Extra inputs are not permitted")),
        }
    }

    /// Reads the `type` tag of a union.
    pub(super) fn tag(&self, allowed: &[&str]) -> Result<&'a str, Refusal> {
        let found = self.required_text("type")?;
        if allowed.contains(&found) {
            return Ok(found);
        }
        let quoted: Vec<_> = allowed.iter().map(|word| format!("'{word}'")).collect();
        Err(Refusal::at(
            &self.path,
            format!(
                "Input tag '{found}' found using 'type' does not match any of the expected tags: {}",
                quoted.join(", ")
            ),
        ))
    }
}

/// Formats words as `'a', 'b' or 'c'`.
fn listed(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    match quoted.split_last() {
        Some((last, earlier)) if !earlier.is_empty() => {
            format!("{} or {last}", earlier.join(", "))
        }
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_are_worded_as_the_vendor_does() {
        let body = json!({"t": 1.5, "n": 0, "f": 1.5, "s": 7, "role": "king", "l": {}, "o": []});
        let top = Member::object(&body, "").unwrap();
        let item = Member::object(&body, "messages.0").unwrap();
        for (refusal, message) in [
            (top.share("t").err(), "t: range: 0..1"),
            (
                top.integer("n", 1).err(),
                "n: Input should be greater than or equal to 1",
            ),
            (
                top.integer("f", 1).err(),
                "f: Input should be a valid integer",
            ),
            (top.text("s").err(), "s: Input should be a valid string"),
            (top.list("l").err(), "l: Input should be a valid array"),
            (top.child("o").err(), "o: Input should be an object"),
            (top.required("x").err(), "x: Field required"),
            (
                item.one_of("role", &["user", "assistant"]).err(),
                "messages.0.role: Input should be 'user' or 'assistant'",
            ),
            (
                item.refuse_unknown(&["t", "n", "f", "s", "l", "o"]).err(),
                "messages.0.role: Extra inputs are not permitted",
            ),
        ] {
            assert_eq!(refusal.unwrap().message, message);
        }
        assert_eq!(top.share("absent"), Ok(None));
    }
}
