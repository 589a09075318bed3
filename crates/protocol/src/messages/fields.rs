//! The members of a JSON object, taken by name. Members that remain at the end are unknown to the reader.

use std::borrow::Cow;
use std::fmt;

use crate::canon::note_unless_empty;
use crate::failure::Failure;
use crate::json::{Cursor, Raw, Shape, SyntaxError};

/// The members of an object that are not `null`, in their order.
#[derive(Debug, Default)]
pub(super) struct Fields<'a> {
    list: Vec<(Cow<'a, str>, Raw<'a>)>,
}

impl<'a> Fields<'a> {
    /// Reads the object at the cursor. `None` if the value is not an object.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Option<Self>, SyntaxError> {
        if cursor.shape()? != Shape::Object {
            cursor.value()?;
            return Ok(None);
        }
        let mut list = Vec::with_capacity(4);
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            if !value.is_null() {
                list.push((name.decode_lossy(), value));
            }
            Ok::<(), SyntaxError>(())
        })?;
        Ok(Some(Self { list }))
    }

    /// Reads an object. `None` if the value is not one.
    pub(super) fn of(value: Raw<'a>) -> Option<Self> {
        Self::read(&mut Cursor::new(value.text())).ok().flatten()
    }

    pub(super) fn with_one_member(name: &'static str, value: Raw<'a>) -> Self {
        Self {
            list: vec![(Cow::Borrowed(name), value)],
        }
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Raw<'a>> {
        let place = self.list.iter().position(|(known, _)| known == name)?;
        Some(self.list.remove(place).1)
    }

    pub(super) fn string(&mut self, name: &str) -> Option<Cow<'a, str>> {
        Some(self.take(name)?.string()?.decode_lossy())
    }

    /// Takes a required string. `path` names it in the error message.
    pub(super) fn text(&mut self, name: &str, path: &'static str) -> Result<Cow<'a, str>, Failure> {
        self.string(name)
            .ok_or_else(|| Failure::invalid(format!("`{path}` must be a string.")).param(path))
    }

    /// Takes a boolean. `None` if the value is not one.
    pub(super) fn boolean(&mut self, name: &str) -> Option<bool> {
        self.take(name)?.boolean()
    }

    /// Reports the remaining members of a request as dropped, except empty ones.
    pub(super) fn report_rest_at_root(self, unknown: &mut Vec<String>) {
        for (name, value) in self.list {
            note_unless_empty(value, unknown, || name.into_owned());
        }
    }

    /// Reports the remaining members of the object at `place` as dropped, except empty ones.
    pub(super) fn report_rest(self, place: &dyn fmt::Display, unknown: &mut Vec<String>) {
        for (name, value) in self.list {
            note_unless_empty(value, unknown, || format!("{place}.{name}"));
        }
    }
}
