//! A form and its parts: reads the values of fields and writes the form again.

use std::borrow::Cow;
use std::fmt::Write as _;

use bytes::Bytes;

use super::pieces::Pieces;
use crate::failure::Failure;
use crate::json::Integer;

/// One part: a field, or a file if it has a file name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// The name of the form field.
    pub name: String,
    /// The name of the file.
    pub file_name: Option<String>,
    /// The media type that the part declares.
    pub content_type: Option<String>,
    /// Its bytes.
    pub data: Pieces,
    /// The number of bytes that were moved elsewhere ([`super::Reader::drain`]).
    pub drained_bytes: usize,
}

impl Part {
    /// A text field.
    pub fn field(name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        Self {
            name: name.into(),
            data: Pieces::from(value.into()),
            ..Self::default()
        }
    }

    /// The number of bytes, including those that were moved elsewhere.
    pub fn len(&self) -> usize {
        self.data.bytes() + self.drained_bytes
    }

    /// Takes the bytes, to move them elsewhere.
    pub(super) fn drain(&mut self) -> Vec<Bytes> {
        self.drained_bytes = self.len();
        std::mem::take(&mut self.data).into_vec()
    }

    pub(super) fn is_file(&self, name: &str) -> bool {
        self.name == name && self.file_name.is_some()
    }

    /// Whether the part has no bytes, not even any that were moved elsewhere.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first bytes, by which the type of a file can be detected.
    pub fn head(&self) -> &[u8] {
        let first = self.data.iter().find(|piece| !piece.is_empty());
        first.map_or(&[], |piece| piece)
    }

    /// The text of a field. Invalid UTF-8 is replaced.
    pub fn text(&self) -> Cow<'_, str> {
        match &*self.data {
            [whole] => String::from_utf8_lossy(whole),
            pieces => Cow::Owned(String::from_utf8_lossy(&pieces.concat()).into_owned()),
        }
    }

    /// The integer in a field, of any size and sign.
    pub(crate) fn integer(&self) -> Result<Integer, Failure> {
        let text = self.text();
        let digits = text.trim();
        let bare = digits.strip_prefix('-').unwrap_or(digits);
        if bare.is_empty() || !bare.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.wrong_type("an integer"));
        }
        Ok(match bare.parse() {
            Ok(0) => Integer::Value(0),
            _ if bare.len() < digits.len() => Integer::Negative,
            Ok(value) => Integer::Value(value),
            Err(_) => Integer::Huge,
        })
    }

    /// The boolean in a field, in any of the notations that clients use.
    pub fn boolean(&self) -> Result<bool, Failure> {
        let text = self.text();
        let says = |words: [&str; 2]| words.iter().any(|it| text.trim().eq_ignore_ascii_case(it));
        match (says(["true", "1"]), says(["false", "0"])) {
            (true, _) => Ok(true),
            (_, true) => Ok(false),
            _ => Err(self.wrong_type("a boolean")),
        }
    }

    fn wrong_type(&self, kind: &str) -> Failure {
        let name = &self.name;
        Failure::invalid(format!("`{name}` must be {kind}.")).param(name.clone())
    }
}

/// The name of a list without the index of one of its items: `image` for `image[]` and `image[0]`.
pub(crate) fn list_name(field: &str) -> &str {
    match field.strip_suffix(']').and_then(|it| it.split_once('[')) {
        Some((list, index)) if index.bytes().all(|byte| byte.is_ascii_digit()) => list,
        _ => field,
    }
}

/// A whole form, its parts in the order of the body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    /// Fields and files together. Several parts may have the same name.
    pub parts: Vec<Part>,
}

impl Form {
    /// The only part with this name. Two such parts, or a name in another case, are refused, because
    /// two parsers could see different values.
    pub fn only_part(&self, name: &str) -> Result<Option<&Part>, Failure> {
        let is_it = |part: &&Part| part.name.eq_ignore_ascii_case(name);
        let mut parts = self.parts.iter().filter(is_it);
        let first = parts.next();
        if first.is_some_and(|part| part.name != name) || parts.next().is_some() {
            let message = format!("The field `{name}` must stand in the form once, in lower case.");
            return Err(Failure::invalid(message).param(name.to_owned()));
        }
        Ok(first)
    }

    /// Takes the bytes of the file with this name, to move them elsewhere.
    pub fn drain(&mut self, name: &str) -> Vec<Bytes> {
        self.files(name).flat_map(Part::drain).collect()
    }

    pub(super) fn files(&mut self, name: &str) -> impl Iterator<Item = &mut Part> {
        let parts = self.parts.iter_mut();
        parts.filter(move |part| part.is_file(name))
    }

    /// The form for the journal: fields as text, files by their type and size.
    pub fn for_journal(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            let Part { name, .. } = part;
            let content = part.file_name.is_none().then(|| part.text());
            // A field that is not text is a file, because some clients send files without a name.
            let content = content.filter(|text| !text.contains(char::REPLACEMENT_CHARACTER));
            // Writing to a string cannot fail.
            let _ = if let Some(content) = content {
                writeln!(text, "{name}: {content}")
            } else {
                let media_type = part.content_type.as_deref().unwrap_or("file");
                writeln!(text, "{name}: <{media_type}, {} bytes>", part.len())
            };
        }
        text
    }

    /// Writes the body. `boundary` must not occur in any part. Large pieces are not copied.
    pub fn write(&self, boundary: &str) -> Vec<Bytes> {
        let (mut out, after) = self.write_around(boundary);
        out.extend(after);
        out
    }

    /// Writes the body in two halves. The bytes that were moved elsewhere belong between them.
    pub fn write_around(&self, boundary: &str) -> (Vec<Bytes>, Vec<Bytes>) {
        let mut before = None;
        let mut out = Vec::new();
        let mut head = Vec::new();
        for part in &self.parts {
            head.extend_from_slice(b"--");
            head.extend_from_slice(boundary.as_bytes());
            head.extend_from_slice(b"\r\nContent-Disposition: form-data; name=\"");
            escape(&part.name, &mut head);
            if let Some(file_name) = &part.file_name {
                head.extend_from_slice(b"\"; filename=\"");
                escape(file_name, &mut head);
            }
            head.extend_from_slice(b"\"\r\n");
            if let Some(content_type) = &part.content_type {
                head.extend_from_slice(b"Content-Type: ");
                head.extend_from_slice(content_type.as_bytes());
                head.extend_from_slice(b"\r\n");
            }
            head.extend_from_slice(b"\r\n");
            out.push(std::mem::take(&mut head).into());
            if part.drained_bytes > 0 {
                before = Some(std::mem::take(&mut out));
            }
            out.extend(part.data.iter().cloned());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"--");
        head.extend_from_slice(boundary.as_bytes());
        head.extend_from_slice(b"--\r\n");
        out.push(head.into());
        match before {
            Some(before) => (before, out),
            None => (out, Vec::new()),
        }
    }
}

/// Writes a name as browsers do: characters that would end the string or the line are percent-encoded. A
/// backslash is percent-encoded too, because some readers take it for an escape and would read past a quote
/// after it.
fn escape(name: &str, out: &mut Vec<u8>) {
    for byte in name.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"%22"),
            b'\\' => out.extend_from_slice(b"%5C"),
            b'\r' => out.extend_from_slice(b"%0D"),
            b'\n' => out.extend_from_slice(b"%0A"),
            byte => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_booleans_are_read_from_text() {
        for (text, number) in [
            ("3", Some(Integer::Value(3))),
            (" 007 ", Some(Integer::Value(7))),
            ("-0", Some(Integer::Value(0))),
            ("-3", Some(Integer::Negative)),
            ("99999999999999999999", Some(Integer::Huge)),
            ("-99999999999999999999", Some(Integer::Negative)),
            ("", None),
            ("+3", None),
            ("3.0", None),
            ("--3", None),
            ("three", None),
        ] {
            assert_eq!(Part::field("n", text).integer().ok(), number, "{text}");
        }
        for (text, truth) in [("True", Some(true)), ("0", Some(false)), ("yes", None)] {
            assert_eq!(Part::field("b", text).boolean().ok(), truth, "{text}");
        }
    }

    #[test]
    fn a_part_that_could_be_read_in_two_ways_is_refused() {
        let form = |names: &[&str]| Form {
            parts: names.iter().map(|name| Part::field(*name, "1")).collect(),
        };
        for (names, is_read) in [
            (&["a", "n"][..], true),
            (&["a"], true),
            (&["n", "n"], false),
            (&["N"], false),
            (&["n", "N"], false),
        ] {
            assert_eq!(form(names).only_part("n").is_ok(), is_read, "{names:?}");
        }
    }

    #[test]
    fn the_journal_gets_no_bytes_of_files() {
        let named = Part {
            file_name: Some("a.txt".to_owned()),
            ..Part::field("a", "secret")
        };
        let parts = vec![
            named,
            Part::field("b", Bytes::from_static(b"\x89PNG\r\n\x1a\n")),
            Part::field("prompt", "a boat"),
        ];
        assert_eq!(
            Form { parts }.for_journal(),
            "a: <file, 6 bytes>\nb: <file, 8 bytes>\nprompt: a boat\n"
        );
    }
}
