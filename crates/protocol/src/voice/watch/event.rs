//! Reads the members of a JSON event that a watch needs.

use std::borrow::Cow;

use crate::failure::Failure;
use crate::json::{Cursor, Members, MembersError, Raw, Shape, Spelling, SyntaxError};

/// An event of either side.
#[derive(Debug)]
pub(super) struct Event<'a> {
    members: Members<'a>,
    kind: Cow<'a, str>,
}

/// The reason why a text cannot be read as an event.
#[derive(Debug)]
pub(super) enum EventError {
    /// The text is not a JSON object. It is passed on, and its receiver will reject it.
    NotAnEvent,
    /// Two parsers could read different events from the text.
    Ambiguous(Failure),
}

impl<'a> Event<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, EventError> {
        let members = match Members::read_text(text, Spelling::One) {
            Ok(members) => members,
            Err(MembersError::Syntax(_) | MembersError::NotObject) => {
                return Err(EventError::NotAnEvent);
            }
            Err(error) => return Err(EventError::Ambiguous(error.into())),
        };
        let kind = members.get("type").map_err(EventError::Ambiguous)?;
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

    /// The string with this name, unescaped. Values of other types are left to the receiver of the event.
    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, Failure> {
        Ok(self.get(name)?.and_then(text_of))
    }

    pub(super) fn object(&self, name: &'static str) -> Result<Option<Members<'a>>, Failure> {
        object_of(self.get(name)?, name)
    }

    pub(super) fn id(&self) -> Option<String> {
        self.text("event_id").ok()?.map(Cow::into_owned)
    }
}

pub(super) fn text_of(value: Raw<'_>) -> Option<Cow<'_, str>> {
    value.string().map(|text| text.decode_lossy())
}

/// The value as an object. `path` is its name in messages for the client.
pub(super) fn object_of<'a>(
    value: Option<Raw<'a>>,
    path: &'static str,
) -> Result<Option<Members<'a>>, Failure> {
    let object = value.filter(|value| value.shape() == Shape::Object);
    object
        .map(|object| Members::nested(object, path, Spelling::One))
        .transpose()
}

/// The objects of a list. An object without a list around it counts as a list of one, because a lenient upstream may
/// read it as one.
pub(super) fn objects_of<'a>(
    value: Option<Raw<'a>>,
    path: &'static str,
) -> Result<Vec<Members<'a>>, Failure> {
    if let Some(only) = object_of(value, path)? {
        return Ok(vec![only]);
    }
    let Some(list) = value.filter(|value| value.shape() == Shape::Array) else {
        return Ok(Vec::new());
    };
    let mut items = Vec::new();
    // The text was validated before, so this cannot fail.
    let _ = Cursor::new(list.text()).array(|cursor| {
        items.push(cursor.value()?);
        Ok::<_, SyntaxError>(())
    });
    let objects = items
        .into_iter()
        .filter_map(|item| object_of(Some(item), path).transpose());
    objects.collect()
}

/// The value at a path of names, even if it is `null`. Use this only for events of an upstream, because an
/// ambiguous object counts as empty.
pub(super) fn at<'a>(value: Raw<'a>, path: &[&str]) -> Option<Raw<'a>> {
    let Some((first, rest)) = path.split_first() else {
        return Some(value);
    };
    let members = object_of(Some(value), "").ok()??;
    at(members.find(first).ok()??, rest)
}
