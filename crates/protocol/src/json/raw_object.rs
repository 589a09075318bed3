//! Reads the members of an object as unparsed text, to copy the object with a few changes.

use super::raw::Raw;
use super::scan::{Cursor, Shape};
use super::syntax::SyntaxError;
use super::text::Text;
use super::write::Object;

/// The members of an object, in the order of its text.
#[derive(Debug)]
pub(crate) struct RawObject<'a>(Vec<(Text<'a>, Raw<'a>)>);

/// The name of a member, and the JSON that replaces its value. `None` leaves the member out.
pub(super) type Change<'c> = (&'c str, Option<&'c str>);

impl<'a> RawObject<'a> {
    /// The members, if the value is an object.
    pub(crate) fn of(value: Raw<'a>) -> Option<Self> {
        if value.shape() != Shape::Object {
            return None;
        }
        let mut members = Vec::new();
        // The text has been checked already.
        let _ = Cursor::new(value.text()).object(|cursor, name| {
            members.push((name, cursor.value()?));
            Ok::<(), SyntaxError>(())
        });
        Some(Self(members))
    }

    #[must_use]
    pub(crate) fn without_nulls(mut self) -> Self {
        self.0.retain(|(_, value)| !value.is_null());
        self
    }

    /// The member of this name, unless it is `null`. The last one counts, as in most parsers.
    pub(crate) fn get(&self, name: &str) -> Option<Raw<'a>> {
        let found = self.0.iter().rfind(|(known, _)| known.is(name));
        found
            .map(|(_, value)| *value)
            .filter(|value| !value.is_null())
    }

    pub(crate) fn string(&self, name: &str) -> Option<Text<'a>> {
        self.get(name)?.string()
    }

    /// Whether a member is a string with this content.
    pub(crate) fn is(&self, name: &str, content: &str) -> bool {
        self.string(name).is_some_and(|text| text.is(content))
    }

    /// A member of this shape that has content.
    pub(crate) fn filled(&self, name: &str, shape: Shape) -> Option<Raw<'a>> {
        let value = self.get(name).filter(|value| value.shape() == shape);
        value.filter(|value| !value.is_empty())
    }

    /// Writes the members to another object, with `changes` applied. A change to a member that does
    /// not exist adds nothing.
    pub(crate) fn write_to(&self, out: &mut Object<'_>, changes: &[Change<'_>]) {
        for (name, value) in &self.0 {
            match changes.iter().find(|(changed, _)| name.is(changed)) {
                None => drop(out.raw(name.raw(), value.text())),
                Some((_, Some(json))) => drop(out.raw(name.raw(), json)),
                Some((_, None)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::write::object;

    #[test]
    fn members_are_copied_changed_or_left_out() {
        let text =
            "{\"a\" : 1,\"b\\u0063\":\"x\",\"n\":null,\"l\":[],\n\"m\":[2],\"a\":{\"y\":[\n]}}";
        let read = RawObject::of(Cursor::new(text).value().unwrap()).unwrap();
        let mut copy = Vec::new();
        let changes = [("bc", Some("7")), ("n", None), ("absent", Some("8"))];
        object(&mut copy, |it| read.write_to(it, &changes));
        let expected = r#"{"a":1,"b\u0063":7,"l":[],"m":[2],"a":{"y":[]}}"#;
        assert_eq!(String::from_utf8(copy).unwrap(), expected);
        assert_eq!(read.get("a").unwrap().shape(), Shape::Object);
        assert!(read.is("bc", "x") && read.get("n").is_none());
        assert!(read.filled("l", Shape::Array).is_none());
        assert!(read.filled("m", Shape::Array).is_some());
        let mut present = Vec::new();
        object(&mut present, |it| {
            read.without_nulls().write_to(it, &[("a", None)]);
        });
        let expected = r#"{"b\u0063":"x","l":[],"m":[2]}"#;
        assert_eq!(String::from_utf8(present).unwrap(), expected);
        assert!(RawObject::of(Cursor::new("[]").value().unwrap()).is_none());
    }
}
