//! Cleans an upstream's own words inside an answer that otherwise passes unchanged, such as the reason
//! for a refusal or a failure.
//!
//! The text around them is kept. Each string is checked like an error message ([`explain`]). A
//! string that cannot be shown becomes `null`, or a sentence of ours if clients expect one.

use super::explain::{explain, explain_code};
use super::identity::mask_keys;
use super::names::Names;
use crate::json::patch::Edit;
use crate::json::{Cursor, Raw, Shape, SyntaxError, write_string};

/// Replaces a `message` of which nothing can be shown.
const UNEXPLAINED: &str = "The model's upstream refused this request.";
/// Limit for the words that are kept for operators.
const KEPT_BYTES_MAX: usize = 2_000;

/// The edits to an answer, and the words that they removed.
#[derive(Debug, Default)]
pub(crate) struct WordEdits {
    /// The edits, with positions in the text that was read.
    pub(crate) edits: Vec<Edit>,
    /// The words that are not shown, with keys masked, for operators only.
    withheld: String,
}

impl WordEdits {
    /// The words that were not shown so far.
    pub(crate) fn withheld(&self) -> Option<&str> {
        (!self.withheld.is_empty()).then_some(&*self.withheld)
    }

    /// Checks every string in the value of a member.
    pub(crate) fn clean(&mut self, name: &str, value: Raw<'_>, names: Names<'_>) {
        // The caller has validated the JSON.
        let _ = self.walk(name, value, names);
    }

    fn walk(&mut self, name: &str, value: Raw<'_>, names: Names<'_>) -> Result<(), SyntaxError> {
        let offset = value.span().start;
        let mut cursor = Cursor::new(value.text());
        match value.shape() {
            Shape::Object => cursor.object(|cursor, name| {
                let value = cursor.value()?.moved(offset);
                self.walk(&name.decode_lossy(), value, names)
            }),
            Shape::Array => {
                cursor.array(|cursor| self.walk(name, cursor.value()?.moved(offset), names))
            }
            Shape::String => {
                self.string(name, value, names);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn string(&mut self, name: &str, value: Raw<'_>, names: Names<'_>) {
        let Some(text) = value.string().map(|text| text.decode_lossy()) else {
            return;
        };
        if text.is_empty() || is_callers(name) || explain_code(&text, names).is_some() {
            return;
        }
        let shown = explain(&text, names);
        if shown.as_deref() == Some(&*text) {
            return;
        }
        let mut json = Vec::new();
        match shown
            .as_deref()
            .or((name == "message").then_some(UNEXPLAINED))
        {
            Some(shown) => write_string(&mut json, shown),
            None => json.extend_from_slice(b"null"),
        }
        self.edits.push(Edit::replace(value.span(), json));
        self.withhold(&text);
    }

    /// Keeps words for operators.
    pub(crate) fn withhold(&mut self, text: &str) {
        let left = KEPT_BYTES_MAX.saturating_sub(self.withheld.len());
        if left == 0 {
            return;
        }
        if !self.withheld.is_empty() {
            self.withheld.push_str("; ");
        }
        let text: String = text.chars().take(left).collect();
        self.withheld.push_str(&mask_keys(&text));
    }
}

/// Whether a member repeats words of the client.
fn is_callers(name: &str) -> bool {
    name == "event_id"
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::patch;

    #[test]
    fn only_words_that_identify_the_upstream_are_changed() {
        let names = Names::of_model("gpt-x", "maker/x");
        for (value, shown, withheld) in [
            (r#"{"code":"invalid_value","n":[1,null]}"#, "", ""),
            (r#""The value is too large.""#, "", ""),
            (
                r#"{"message":"Zork: host-7.acme.xyz broke","event_id":"ev_1"}"#,
                r#"{"message":"The model's upstream refused this request.","event_id":"ev_1"}"#,
                "Zork: host-7.acme.xyz broke",
            ),
            (
                r#"{"a":{"message":"The model gpt-x is not ready, see acme.xyz"},"code":"acme_7Fz"}"#,
                r#"{"a":{"message":"The model maker/x is not ready, see […]"},"code":null}"#,
                "The model gpt-x is not ready, see acme.xyz; acme_7Fz",
            ),
            (
                r#"["key sk-123456789 of zork"]"#,
                "[\"key [key] of […]\"]",
                "key [key] of zork",
            ),
        ] {
            let mut cursor = Cursor::new(value);
            let mut words = WordEdits::default();
            words.clean("", cursor.value().unwrap(), names);
            let text = patch::apply(&Bytes::from(value), std::mem::take(&mut words.edits));
            let expected = if shown.is_empty() { value } else { shown };
            assert_eq!(text, expected);
            assert_eq!(words.withheld().unwrap_or_default(), withheld);
        }
    }
}
