//! A JSON event, as far as a watch looks into it.

use std::borrow::Cow;

use crate::failure::Failure;
use crate::json::{Cursor, Members, MembersError, Raw, Shape, Spelling, SyntaxError};

/// An event of either side.
#[derive(Debug)]
pub(super) struct Event<'a> {
    members: Members<'a>,
    kind: Cow<'a, str>,
}

/// Why a text is no event.
#[derive(Debug)]
pub(super) enum Unread {
    /// No JSON object: it goes on as it is, and the other side will say so.
    NoEvent,
    /// Two readers could see two events in it.
    Ambiguous(Failure),
}

impl<'a> Event<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, Unread> {
        let members = match Members::read_text(text, Spelling::One) {
            Ok(members) => members,
            Err(MembersError::Syntax(_) | MembersError::NotObject) => return Err(Unread::NoEvent),
            Err(error) => return Err(Unread::Ambiguous(error.into())),
        };
        let kind = members.get("type").map_err(Unread::Ambiguous)?;
        let kind = kind.and_then(|kind| kind.string());
        Ok(Self {
            members,
            kind: kind.map_or(Cow::Borrowed(""), |kind| kind.decode_lossy()),
        })
    }

    pub(super) fn kind(&self) -> &str {
        &self.kind
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<Raw<'a>>, Failure> {
        self.members.get(name)
    }

    /// The string of this name, unescaped; anything else is the other side's to judge.
    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, Failure> {
        Ok(self.get(name)?.and_then(text_of))
    }

    /// The object of this name.
    pub(super) fn object(&self, name: &'static str) -> Result<Option<Members<'a>>, Failure> {
        object_of(self.get(name)?, name)
    }

    pub(super) fn id(&self) -> Option<String> {
        self.text("event_id").ok()?.map(Cow::into_owned)
    }
}

/// The string that a value is, unescaped.
pub(super) fn text_of(value: Raw<'_>) -> Option<Cow<'_, str>> {
    value.string().map(|text| text.decode_lossy())
}

/// The object that a value is; `path` is its name for the caller.
pub(super) fn object_of<'a>(
    value: Option<Raw<'a>>,
    path: &'static str,
) -> Result<Option<Members<'a>>, Failure> {
    let object = value.filter(|value| value.shape() == Shape::Object);
    object
        .map(|object| Members::nested(object, path, Spelling::One))
        .transpose()
}

/// The objects of an array.
pub(super) fn objects_of<'a>(
    value: Option<Raw<'a>>,
    path: &'static str,
) -> Result<Vec<Members<'a>>, Failure> {
    let Some(list) = value.filter(|value| value.shape() == Shape::Array) else {
        return Ok(Vec::new());
    };
    let mut items = Vec::new();
    // The text was read once already, so this cannot fail.
    let _ = Cursor::new(list.text()).array(|cursor| {
        items.push(cursor.value()?);
        Ok::<_, SyntaxError>(())
    });
    let objects = items
        .into_iter()
        .filter_map(|item| object_of(Some(item), path).transpose());
    objects.collect()
}

/// The value at a path of names; `null` is one. Only for what an upstream says: a doubtful object
/// has none.
pub(super) fn at<'a>(value: Raw<'a>, path: &[&str]) -> Option<Raw<'a>> {
    let Some((first, rest)) = path.split_first() else {
        return Some(value);
    };
    let members = object_of(Some(value), "").ok()??;
    at(members.find(first).ok()??, rest)
}
