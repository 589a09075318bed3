//! Reads typed values at a cursor, for readers that parse a text in one pass. `null` means absent.

use std::borrow::Cow;

use serde_json::Number;
use serde_json::value::RawValue;

use super::raw::Integer;
use super::scan::{Cursor, Shape};
use super::syntax::SyntaxError;
use crate::failure::Failure;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    #[error("`{name}` must be {wanted}")]
    Type {
        /// The name of the member in the client's request.
        name: Box<str>,
        wanted: &'static str,
    },
}

impl ValueError {
    fn wanted(name: &str, wanted: &'static str) -> Self {
        Self::Type {
            name: name.into(),
            wanted,
        }
    }
}

impl From<ValueError> for Failure {
    fn from(error: ValueError) -> Self {
        let message = match &error {
            ValueError::Syntax(error) => format!("The body is not valid JSON: {error}."),
            ValueError::Type { .. } => format!("{error}."),
        };
        let failure = Self::invalid(message);
        match error {
            ValueError::Syntax(_) => failure,
            ValueError::Type { name, .. } => failure.param(name.into_string()),
        }
    }
}

impl From<SyntaxError> for Failure {
    fn from(error: SyntaxError) -> Self {
        ValueError::Syntax(error).into()
    }
}

/// Skips a `null`, if one comes next.
pub(crate) fn null(cursor: &mut Cursor<'_>) -> Result<bool, SyntaxError> {
    if cursor.shape()? == Shape::Null {
        cursor.value()?;
        return Ok(true);
    }
    Ok(false)
}

/// A string. Halves of characters, which clients produce when they cut strings, are replaced.
pub(crate) fn string<'a>(
    cursor: &mut Cursor<'a>,
    name: &str,
) -> Result<Option<Cow<'a, str>>, ValueError> {
    match cursor.shape()? {
        Shape::String => Ok(Some(cursor.string()?.decode_lossy())),
        Shape::Null => cursor.value().map(|_| None).map_err(ValueError::from),
        _ => Err(ValueError::wanted(name, "a string")),
    }
}

pub(crate) fn boolean(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<bool>, ValueError> {
    if null(cursor)? {
        return Ok(None);
    }
    let value = cursor.value()?.boolean();
    value
        .map(Some)
        .ok_or_else(|| ValueError::wanted(name, "a boolean"))
}

/// An integer, also in the form `10.0`.
pub(crate) fn integer(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<Integer>, ValueError> {
    if null(cursor)? {
        return Ok(None);
    }
    let value = cursor.value()?.integer();
    value
        .map(Some)
        .ok_or_else(|| ValueError::wanted(name, "an integer"))
}

/// An integer that is not negative. Values above `u64::MAX` become `u64::MAX`.
pub(crate) fn count(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<u64>, ValueError> {
    match integer(cursor, name)? {
        Some(Integer::Negative) => Err(ValueError::wanted(name, "a number from 0 up")),
        count => Ok(count.map(Integer::saturating)),
    }
}

pub(crate) fn signed(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<i64>, ValueError> {
    let number = number(cursor, name)?;
    let whole = number.as_ref().map(Number::as_i64);
    match whole {
        Some(None) => Err(ValueError::wanted(name, "an integer")),
        whole => Ok(whole.flatten()),
    }
}

pub(crate) fn number(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<Number>, ValueError> {
    if null(cursor)? {
        return Ok(None);
    }
    let value = cursor.value()?;
    let number = match value.shape() {
        Shape::Number => value.text().parse().ok(),
        _ => None,
    };
    number
        .map(Some)
        .ok_or_else(|| ValueError::wanted(name, "a number"))
}

/// An object, as unparsed text.
pub(crate) fn json(
    cursor: &mut Cursor<'_>,
    name: &str,
) -> Result<Option<Box<RawValue>>, ValueError> {
    if null(cursor)? {
        return Ok(None);
    }
    let value = cursor.value()?;
    if value.shape() != Shape::Object {
        return Err(ValueError::wanted(name, "an object"));
    }
    let raw = RawValue::from_string(value.text().to_owned());
    raw.map(Some)
        .map_err(|_| ValueError::wanted(name, "an object"))
}

pub(crate) fn strings(cursor: &mut Cursor<'_>, name: &str) -> Result<Vec<String>, ValueError> {
    let mut list = Vec::new();
    array(cursor, name, |cursor, _| {
        list.extend(string(cursor, name)?.map(Cow::into_owned));
        Ok::<(), ValueError>(())
    })?;
    Ok(list)
}

/// Enters an object. Does nothing for `null`.
pub(crate) fn object<'a, E: From<ValueError> + From<SyntaxError>>(
    cursor: &mut Cursor<'a>,
    name: &str,
    mut member: impl FnMut(&mut Cursor<'a>, &str) -> Result<(), E>,
) -> Result<(), E> {
    match cursor.shape()? {
        Shape::Null => cursor.value().map(drop).map_err(E::from),
        Shape::Object => cursor.object(|cursor, name| member(cursor, &name.decode_lossy())),
        _ => Err(ValueError::wanted(name, "an object").into()),
    }
}

/// Enters an array. Does nothing for `null`.
pub(crate) fn array<'a, E: From<ValueError> + From<SyntaxError>>(
    cursor: &mut Cursor<'a>,
    name: &str,
    mut item: impl FnMut(&mut Cursor<'a>, usize) -> Result<(), E>,
) -> Result<(), E> {
    match cursor.shape()? {
        Shape::Null => cursor.value().map(drop).map_err(E::from),
        Shape::Array => {
            let mut index = 0;
            cursor.array(|cursor| {
                item(cursor, index)?;
                index += 1;
                Ok(())
            })
        }
        _ => Err(ValueError::wanted(name, "an array").into()),
    }
}

/// The text of a value without white space between its tokens.
pub(crate) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    compact_to(json, &mut out);
    out
}

/// Appends the text of a value without white space between its tokens.
pub(crate) fn compact_to(json: &str, out: &mut String) {
    let mut rest = json;
    while let Some(quote) = rest.find('"') {
        let (between, string) = rest.split_at(quote);
        out.extend(between.split_ascii_whitespace());
        // The text is valid, so a quote starts a string.
        let length = Cursor::new(string)
            .value()
            .map_or(string.len(), |value| value.text().len());
        let (string, after) = string.split_at(length);
        out.push_str(string);
        rest = after;
    }
    out.extend(rest.split_ascii_whitespace());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn absent_and_null_are_the_same() {
        let mut cursor = Cursor::new("[null, \"a\\ud800b\", null, 3.0, null, 0.5, null]");
        let mut seen = Vec::new();
        array(&mut cursor, "x", |cursor, index| {
            seen.push(match index {
                0 | 1 => format!("{:?}", string(cursor, "x")?),
                2 | 3 => format!("{:?}", integer(cursor, "x")?),
                4 | 5 => format!("{:?}", number(cursor, "x")?),
                _ => format!("{:?}", json(cursor, "x")?),
            });
            Ok::<(), ValueError>(())
        })
        .unwrap();
        assert_eq!(
            seen,
            [
                "None",
                "Some(\"a\u{fffd}b\")",
                "None",
                "Some(Value(3))",
                "None",
                "Some(Number(0.5))",
                "None"
            ]
        );
    }

    #[test]
    fn a_wrong_type_is_reported_by_name() {
        for failure in [
            string(&mut Cursor::new("1"), "a.b").map(drop),
            boolean(&mut Cursor::new("1"), "a.b").map(drop),
            integer(&mut Cursor::new("1.5"), "a.b").map(drop),
            count(&mut Cursor::new("-1"), "a.b").map(drop),
            signed(&mut Cursor::new("1.5"), "a.b").map(drop),
            number(&mut Cursor::new("\"1\""), "a.b").map(drop),
            json(&mut Cursor::new("[]"), "a.b").map(drop),
            strings(&mut Cursor::new("[1]"), "a.b").map(drop),
            object(&mut Cursor::new("1"), "a.b", |_, _| Ok(())),
            array(&mut Cursor::new("{}"), "a.b", |_, _| Ok(())),
        ] {
            let failure = Failure::from(failure.unwrap_err());
            assert_eq!(failure.param.as_deref(), Some("a.b"));
        }
    }

    #[test]
    fn white_space_inside_strings_stays() {
        assert_eq!(
            compact(" { \"a b\" : [ 1 ,\n\"\\\" \" , { } ] } "),
            "{\"a b\":[1,\"\\\" \",{}]}"
        );
        assert_eq!(compact(" 12 "), "12");
    }

    proptest! {
        #[test]
        fn compact_text_means_the_same(text in any::<String>(), number in any::<i32>()) {
            let value = serde_json::json!({ text.clone(): [number, text, null, {"a": true}] });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(compact(&pretty), value.to_string());
        }
    }
}
