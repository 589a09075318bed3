//! Reads the members of a JSON event that a watch needs.

use std::borrow::Cow;

use crate::failure::Failure;
use crate::json::{Cursor, Members, MembersError, Raw, Shape, Spelling, SyntaxError};

/// Some encoders write it before a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

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
    /// We read no event from the text, but a lenient upstream may: for example, the text is nested deeper than we
    /// read, or has a comma too many.
    Unreadable(Failure),
    /// Two parsers could read different events from the text.
    Ambiguous(Failure),
}

impl<'a> Event<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, EventError> {
        let members = match Members::read_text(text, Spelling::One) {
            Ok(members) => members,
            Err(error @ (MembersError::Syntax(_) | MembersError::NotObject)) => {
                return Err(EventError::of_unread(text, &error));
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

impl EventError {
    /// The error for a text that is not a JSON object, as we read it.
    fn of_unread(text: &str, error: &MembersError) -> Self {
        // Lenient parsers skip much before an object: comments, a byte order mark, odd white space.
        if text.contains('{') {
            let why = format!("The frame cannot be read as an event: {error}.");
            Self::Unreadable(Failure::invalid(why))
        } else {
            Self::NotAnEvent
        }
    }
}

/// The text of a binary frame that an upstream may read as an event. Many upstreams decode messages
/// without looking at their kind, and some replace bytes that are not UTF-8.
pub(super) fn event_text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let start = bytes.trim_ascii_start();
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    let start = start.trim_ascii_start();
    let inside = start.strip_prefix(b"{")?.trim_ascii_start();
    // Audio may begin with a brace too, but seldom with the name of a member.
    let begins_with_name = inside.first().is_some_and(|byte| !byte.is_ascii_control());
    if !begins_with_name || memchr::memchr(b':', inside).is_none() {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(Cow::Borrowed(text)),
        Err(_) if !inside.starts_with(b"\"") => None,
        Err(_) if names_a_member(&String::from_utf8_lossy(start)) => {
            Some(String::from_utf8_lossy(bytes))
        }
        Err(_) => None,
    }
}

/// Whether a text begins like a JSON object with a member.
fn names_a_member(text: &str) -> bool {
    // The object ends early, at its first member.
    let first = Cursor::new(text).object(|_, _| Err(None::<SyntaxError>));
    first == Err(None)
}

/// The value as a string, unescaped.
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

/// Calls a function with each object of a list. They are not collected, because a frame may hold
/// millions. An object without a list around it counts as a list of one, because a lenient upstream
/// may read it as one.
pub(super) fn each_object<'a>(
    value: Option<Raw<'a>>,
    path: &'static str,
    mut each: impl FnMut(&Members<'a>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if let Some(only) = object_of(value, path)? {
        return each(&only);
    }
    let Some(list) = value.filter(|value| value.shape() == Shape::Array) else {
        return Ok(());
    };
    Cursor::new(list.text()).array(|cursor| {
        let object = object_of(Some(cursor.value()?), path)?;
        object.as_ref().map_or(Ok(()), &mut each)
    })
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
