//! Writes JSON member by member, directly into a buffer.
//!
//! The output is one line, so it can be the data of an event. It contains no line ends, not even
//! those that only some clients recognize.

use std::io::Write as _;

use super::text::write_string;

pub(crate) fn object(out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    write(&mut Object { out, first: true });
    out.push(b'}');
}

pub(crate) fn array(out: &mut Vec<u8>, write: impl FnOnce(&mut Array<'_>)) {
    out.push(b'[');
    write(&mut Array { out, first: true });
    out.push(b']');
}

/// Writes a JSON text, which must be valid, without its line ends.
pub(crate) fn raw(out: &mut Vec<u8>, json: &str) {
    let bytes = json.as_bytes();
    if memchr::memchr3(b'\n', b'\r', 0xc2, bytes).is_none() && memchr::memchr(0xe2, bytes).is_none()
    {
        out.extend_from_slice(bytes);
        return;
    }
    for c in json.chars() {
        match c {
            // These line ends are between tokens, because a string cannot contain them unescaped.
            '\n' | '\r' => {}
            // These line ends are inside a string, because they cannot occur elsewhere.
            '\u{85}' => out.extend_from_slice(b"\\u0085"),
            '\u{2028}' => out.extend_from_slice(b"\\u2028"),
            '\u{2029}' => out.extend_from_slice(b"\\u2029"),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

pub(crate) trait Number {
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! whole_numbers {
    ($($kind:ty)*) => {$(
        impl Number for $kind {
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(itoa::Buffer::new().format(self).as_bytes());
            }
        }
    )*};
}

whole_numbers!(u8 i32 u32 i64 u64 usize);

impl Number for &serde_json::Number {
    fn write(self, out: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = write!(out, "{self}");
    }
}

/// An object being written. The names of members are written unchanged: they are constants that need
/// no escapes, or names in JSON notation.
#[derive(Debug)]
pub(crate) struct Object<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl Object<'_> {
    /// Continues an object that has members and was left open.
    pub(crate) fn resume(out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
        write(&mut Object { out, first: false });
        out.push(b'}');
    }

    /// A member whose value the closure writes.
    pub(crate) fn value(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        comma(self.out, &mut self.first);
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        write(self.out);
        self
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.value(name, |out| write_string(out, value))
    }

    pub(crate) fn text_or_null(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(name, value),
            None => self.null(name),
        }
    }

    pub(crate) fn number(&mut self, name: &str, value: impl Number) -> &mut Self {
        self.value(name, |out| value.write(out))
    }

    pub(crate) fn boolean(&mut self, name: &str, value: bool) -> &mut Self {
        self.word(name, if value { "true" } else { "false" })
    }

    pub(crate) fn null(&mut self, name: &str) -> &mut Self {
        self.word(name, "null")
    }

    fn word(&mut self, name: &str, word: &str) -> &mut Self {
        self.value(name, |out| out.extend_from_slice(word.as_bytes()))
    }

    /// A value that is JSON already.
    pub(crate) fn raw(&mut self, name: &str, json: &str) -> &mut Self {
        self.value(name, |out| raw(out, json))
    }

    pub(crate) fn object(&mut self, name: &str, write: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        self.value(name, |out| object(out, write))
    }

    pub(crate) fn array(&mut self, name: &str, write: impl FnOnce(&mut Array<'_>)) -> &mut Self {
        self.value(name, |out| array(out, write))
    }
}

#[derive(Debug)]
pub(crate) struct Array<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl Array<'_> {
    /// An item that the closure writes.
    pub(crate) fn value(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        comma(self.out, &mut self.first);
        write(self.out);
        self
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.value(|out| write_string(out, value))
    }

    /// A value that is JSON already.
    pub(crate) fn raw(&mut self, json: &str) -> &mut Self {
        self.value(|out| raw(out, json))
    }

    pub(crate) fn object(&mut self, write: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        self.value(|out| object(out, write))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first
    }
}

fn comma(out: &mut Vec<u8>, first: &mut bool) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_and_items_are_separated() {
        let mut out = Vec::new();
        object(&mut out, |it| {
            it.text("a", "x\"")
                .null("b")
                .boolean("c", true)
                .number("d", 15);
            it.array("e", |it| {
                assert!(it.is_empty());
                it.text("1").raw("2").object(|_| {});
            });
            it.object("f", |it| {
                it.text_or_null("g", None);
            });
        });
        let expected = r#"{"a":"x\"","b":null,"c":true,"d":15,"e":["1",2,{}],"f":{"g":null}}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn no_line_end_of_any_kind_is_left_in_raw_values() {
        for (json, line) in [
            ("{\"a\":1}", "{\"a\":1}"),
            ("{\n \"a\":\r\n1}", "{ \"a\":1}"),
            (
                "\"\u{2028}\u{2029}\u{85}\u{e9}\u{2027}\"",
                "\"\\u2028\\u2029\\u0085\u{e9}\u{2027}\"",
            ),
        ] {
            let mut out = Vec::new();
            raw(&mut out, json);
            assert_eq!(String::from_utf8(out).unwrap(), line);
        }
    }

    proptest! {
        #[test]
        fn raw_values_keep_their_meaning(text in any::<String>(), number in any::<i64>()) {
            let value = serde_json::json!({ "a": [text, number], "b": {} });
            let mut out = Vec::new();
            raw(&mut out, &serde_json::to_string_pretty(&value).unwrap());
            prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), value);
            prop_assert!(!out.contains(&b'\n'));
        }
    }
}
