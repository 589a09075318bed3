//! Converts the arguments of a tool call for dialects that send them as an object, not as a string.

use std::borrow::Cow;

use crate::json::{Cursor, Shape, write_string};

/// The arguments as a JSON object. Blank arguments become an empty object. Any other value, for example a
/// truncated object, is wrapped in an object, so that the rest of the history stays usable.
pub(crate) fn object(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    let mut cursor = Cursor::new(arguments);
    let value = cursor.value().and_then(|value| {
        cursor.end()?;
        Ok(value)
    });
    match value {
        Ok(value) if value.shape() == Shape::Object => Cow::Borrowed(value.text()),
        _ => {
            let mut wrapped = b"{\"_raw\":".to_vec();
            write_string(&mut wrapped, arguments);
            wrapped.push(b'}');
            Cow::Owned(String::from_utf8(wrapped).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_model_wrote_becomes_an_object() {
        for (arguments, expected) in [
            ("", "{}"),
            (" \n", "{}"),
            (" {\"a\": 1} ", "{\"a\": 1}"),
            ("{\"a\":", r#"{"_raw":"{\"a\":"}"#),
            ("[1]", r#"{"_raw":"[1]"}"#),
            ("{} {}", r#"{"_raw":"{} {}"}"#),
            ("12345678901234567890", r#"{"_raw":"12345678901234567890"}"#),
        ] {
            assert_eq!(object(arguments), expected);
        }
    }
}
