//! Reads the members of a request object with their spans. Refuses objects that two parsers could
//! understand differently.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use super::raw::{Integer, Raw};
use super::scan::{ContentVisitor, Cursor, Shape};
use super::syntax::{SyntaxError, utf8};
use crate::failure::Failure;

/// Whether the name of a member may be written in more than one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    One,
    /// `max_tokens` and `maxTokens` are the same member.
    SnakeOrCamel,
}

#[derive(Debug, Clone)]
pub(crate) struct Member<'a> {
    /// The name, unescaped.
    pub(crate) name: Cow<'a, str>,
    /// The value, which may be `null`.
    pub(crate) value: Raw<'a>,
    /// The normalized name, if it differs from the name.
    normalized_name: Option<Box<str>>,
}

impl Member<'_> {
    fn normalized_name(&self) -> &str {
        self.normalized_name.as_deref().unwrap_or(&self.name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MembersError {
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    #[error("it must be a JSON object")]
    NotObject,
    /// A name that contains a lone surrogate, so that it cannot be decoded.
    #[error("a member name has a lone surrogate")]
    Name,
    /// A name that occurs twice, perhaps escaped or in another case. Two readers could see
    /// different values: the gateway would bill one and the upstream would run the other.
    #[error("the member `{0}` occurs more than once")]
    Duplicate(String),
}

/// Lists up to this length are searched linearly, which is faster than a binary search.
const SHORT: usize = 16;

#[derive(Debug)]
pub(crate) struct Members<'a> {
    list: Vec<Member<'a>>,
    /// Indexes into `list`, sorted by normalized name. Empty if the list is short.
    order: Vec<usize>,
    /// A bit filter over the names. Most names that are looked up are absent, and the filter rules
    /// them out.
    name_bits: u64,
    spelling: Spelling,
    /// The prefix of names in messages for the client.
    path: &'static str,
    inside: usize,
}

impl<'a> Members<'a> {
    /// Reads a whole body and validates every byte.
    pub(crate) fn read(body: &'a [u8], spelling: Spelling) -> Result<Self, MembersError> {
        Self::read_text(utf8(body)?, spelling)
    }

    /// Like [`Members::read`], for a body that is known to be UTF-8.
    pub(crate) fn read_text(body: &'a str, spelling: Spelling) -> Result<Self, MembersError> {
        Self::whole(body, spelling, |cursor, _| cursor.value())
    }

    /// Like [`Members::read`], and passes all content to `strings`. `begin` receives the name of
    /// each member before the content of its value is passed on.
    pub(crate) fn read_shown_to<S: ContentVisitor<'a>>(
        body: &'a [u8],
        spelling: Spelling,
        strings: &mut S,
        begin: impl Fn(&mut S, &str),
    ) -> Result<Self, MembersError> {
        Self::whole(utf8(body)?, spelling, |cursor, name| {
            begin(strings, name);
            cursor.value_shown_to(strings)
        })
    }

    fn whole(
        body: &'a str,
        spelling: Spelling,
        value: impl FnMut(&mut Cursor<'a>, &str) -> Result<Raw<'a>, SyntaxError>,
    ) -> Result<Self, MembersError> {
        let mut cursor = Cursor::new(body);
        let members = Self::walk(&mut cursor, spelling, value)?;
        cursor.end()?;
        Ok(members)
    }

    /// Reads an object inside a larger text. Spans refer to the larger text. `path` is the name of
    /// the object, followed by a dot.
    pub(crate) fn nested(
        raw: Raw<'a>,
        path: &'static str,
        spelling: Spelling,
    ) -> Result<Self, Failure> {
        let mut cursor = Cursor::new(raw.text());
        let mut members = Self::walk(&mut cursor, spelling, |cursor, _| cursor.value())
            .map_err(|error| invalid(&error).param(path.trim_end_matches('.')))?;
        let offset = raw.span().start;
        for member in &mut members.list {
            member.value = member.value.moved(offset);
        }
        members.inside = members.inside.saturating_add(offset);
        members.path = path;
        Ok(members)
    }

    fn walk(
        cursor: &mut Cursor<'a>,
        spelling: Spelling,
        mut value: impl FnMut(&mut Cursor<'a>, &str) -> Result<Raw<'a>, SyntaxError>,
    ) -> Result<Self, MembersError> {
        if cursor.shape()? != Shape::Object {
            return Err(MembersError::NotObject);
        }
        let inside = cursor.position().saturating_add(1);
        let mut list = Vec::new();
        let mut name_bits = 0;
        cursor.object(|cursor, name| {
            let name = name.decode().map_err(|_| MembersError::Name)?;
            let normalized_name = normalize(&name, spelling);
            let value = value(cursor, &name)?;
            let member = Member {
                name,
                value,
                normalized_name,
            };
            name_bits |= name_bit(member.normalized_name().as_bytes(), 0);
            // An empty object takes no memory, because a list may hold millions of them.
            if list.is_empty() {
                list.reserve(SHORT / 2);
            }
            list.push(member);
            Ok::<(), MembersError>(())
        })?;
        let mut members = Self {
            list,
            order: Vec::new(),
            name_bits,
            spelling,
            path: "",
            inside,
        };
        if members.list.len() > SHORT {
            members.sort();
        }
        match members.repeated() {
            Some(member) => Err(MembersError::Duplicate(member.name.to_string())),
            None => Ok(members),
        }
    }

    fn sort(&mut self) {
        let Self { list, order, .. } = self;
        let normalized = |place: &usize| list.get(*place).map(Member::normalized_name);
        order.extend(0..list.len());
        order.sort_unstable_by(|a, b| normalized(a).cmp(&normalized(b)));
    }

    /// A member whose name occurred before.
    fn repeated(&self) -> Option<&Member<'a>> {
        let Self { list, order, .. } = self;
        if order.is_empty() {
            return list.iter().enumerate().find_map(|(place, member)| {
                let mut before = list.iter().take(place);
                let repeats = before.any(|it| it.normalized_name() == member.normalized_name());
                repeats.then_some(member)
            });
        }
        order.windows(2).find_map(|pair| {
            let &[a, b] = pair else { return None };
            let (a, b) = (list.get(a.min(b))?, list.get(a.max(b))?);
            (a.normalized_name() == b.normalized_name()).then_some(b)
        })
    }

    fn find_normalized(&self, wanted: &str) -> Option<&Member<'a>> {
        let Self { list, order, .. } = self;
        if order.is_empty() {
            return list
                .iter()
                .find(|member| member.normalized_name() == wanted);
        }
        let found = order.binary_search_by(|place| {
            list.get(*place).map_or(Ordering::Less, |member| {
                member.normalized_name().cmp(wanted)
            })
        });
        list.get(*order.get(found.ok()?)?)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The position after the opening brace, where a member can be inserted.
    pub(crate) fn inside(&self) -> usize {
        self.inside
    }

    /// The spans of the members with these names, including names and commas, to remove them from
    /// `body`, the text that was read. The spans are in the order of the text and do not overlap.
    pub(crate) fn with_names(
        &self,
        body: &[u8],
        names: &[&str],
    ) -> Result<Vec<Range<usize>>, Failure> {
        let mut ends = Vec::with_capacity(names.len());
        for name in names {
            ends.extend(self.find(name)?.map(|value| value.span().end));
        }
        let mut spans: Vec<Range<usize>> = Vec::with_capacity(ends.len());
        let mut previous_end = None;
        let mut keeps_one = false;
        for (place, member) in self.list.iter().enumerate() {
            let end = member.value.span().end;
            let before = previous_end.replace(end);
            if !ends.contains(&end) {
                keeps_one = true;
            } else if let Some(before) = before.filter(|_| keeps_one) {
                spans.push(before..end);
            } else {
                // The first members are removed with the comma after them, if there is one.
                let is_last = place + 1 == self.list.len();
                let after = body.get(end..).unwrap_or_default();
                let comma = memchr::memchr(b',', after).filter(|_| !is_last);
                spans.clear();
                spans.push(self.inside..end + comma.map_or(0, |at| at + 1));
            }
        }
        Ok(spans)
    }

    /// The members in the order of the text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member<'a>> {
        self.list.iter()
    }

    /// The member with this name (in snake case), even if it is `null`. A name in another case
    /// (`Stream`) is refused, because some upstreams would read it and the gateway would not.
    #[inline]
    pub(crate) fn find(&self, name: &str) -> Result<Option<Raw<'a>>, Failure> {
        // Names are looked up in lower case, which is the normalized form if there is one spelling.
        debug_assert!(!name.starts_with('_') && !name.ends_with('_'), "{name}");
        debug_assert!(
            !name.bytes().any(|byte| byte.is_ascii_uppercase()),
            "{name}"
        );
        let underscores = match self.spelling {
            Spelling::One => 0,
            Spelling::SnakeOrCamel => name.bytes().filter(|byte| *byte == b'_').count(),
        };
        if self.name_bits & name_bit(name.as_bytes(), underscores) == 0 {
            return Ok(None);
        }
        self.find_present(name)
    }

    /// Like [`Members::find`], for a name that the filter does not rule out. A separate function, so that the
    /// compiler inlines only the filter, and computes the bit of a constant name in advance.
    #[inline(never)]
    fn find_present(&self, name: &str) -> Result<Option<Raw<'a>>, Failure> {
        let normalized = match self.spelling {
            Spelling::One => None,
            Spelling::SnakeOrCamel => normalize(name, self.spelling),
        };
        match self.find_normalized(normalized.as_deref().unwrap_or(name)) {
            Some(member) if is_spelt(&member.name, name, self.spelling) => Ok(Some(member.value)),
            Some(member) => {
                let param = self.param(name);
                let message = format!("Unknown member `{}`; write `{param}`.", member.name);
                Err(Failure::invalid(message).param(param))
            }
            None => Ok(None),
        }
    }

    /// The member of this name, unless it is absent or `null`.
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Result<Option<Raw<'a>>, Failure> {
        Ok(self.find(name)?.filter(|value| !value.is_null()))
    }

    #[inline]
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, Failure> {
        self.typed(name, "a boolean", |value| value.boolean())
    }

    /// An integer of any size and sign. Its range is left to the upstream.
    #[inline]
    pub(crate) fn integer(&self, name: &str) -> Result<Option<Integer>, Failure> {
        self.typed(name, "an integer", |value| value.integer())
    }

    /// A string member, unescaped.
    #[inline]
    pub(crate) fn string(&self, name: &str) -> Result<Option<Cow<'a, str>>, Failure> {
        self.typed(name, "a string", |value| value.string()?.decode().ok())
    }

    #[inline]
    pub(crate) fn array(&self, name: &str) -> Result<Option<Raw<'a>>, Failure> {
        self.typed(name, "an array", |value| {
            (value.shape() == Shape::Array).then_some(value)
        })
    }

    #[inline]
    pub(crate) fn object(&self, name: &str) -> Result<Option<Raw<'a>>, Failure> {
        self.typed(name, "an object", |value| {
            (value.shape() == Shape::Object).then_some(value)
        })
    }

    #[inline]
    fn typed<T>(
        &self,
        name: &str,
        kind: &str,
        read: impl FnOnce(Raw<'a>) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        let Some(value) = self.get(name)? else {
            return Ok(None);
        };
        read(value).map(Some).ok_or_else(|| {
            let param = self.param(name);
            let message = format!("`{param}` must be {kind}.");
            Failure::invalid(message).param(param)
        })
    }

    /// A name in messages for the client. If two spellings are allowed, it is in camel case, as in
    /// the documentation.
    fn param(&self, name: &str) -> String {
        match self.spelling {
            Spelling::One => format!("{}{name}", self.path),
            Spelling::SnakeOrCamel => format!("{}{}", self.path, camel(name)),
        }
    }
}

impl From<MembersError> for Failure {
    fn from(error: MembersError) -> Self {
        invalid(&error)
    }
}

fn invalid(error: &MembersError) -> Failure {
    let message = match error {
        MembersError::Syntax(error) => format!("The body is not valid JSON: {error}."),
        MembersError::NotObject => "The value must be a JSON object.".to_owned(),
        MembersError::Name => "A member name has a lone surrogate.".to_owned(),
        MembersError::Duplicate(name) => format!("The member `{name}` occurs more than once."),
    };
    let failure = Failure::invalid(message);
    match error {
        MembersError::Duplicate(name) => failure.param(name.clone()),
        _ => failure,
    }
}

/// The normalized name, in which all spellings of a name are equal. `None` if the name is normalized already.
///
/// Letters are converted to upper case first. This turns U+017F and U+212A into `s` and `k`, as some upstreams
/// read them.
fn normalize(name: &str, spelling: Spelling) -> Option<Box<str>> {
    let plain = |byte: u8| {
        byte.is_ascii() && !byte.is_ascii_uppercase() && (byte != b'_' || spelling == Spelling::One)
    };
    if name.bytes().all(plain) {
        return None;
    }
    let letters = name.chars().flat_map(char::to_uppercase);
    let letters = letters.flat_map(char::to_lowercase);
    let normalized: String = match spelling {
        Spelling::One => letters.collect(),
        Spelling::SnakeOrCamel => letters.filter(|c| *c != '_').collect(),
    };
    Some(normalized.into_boxed_str())
}

/// A name in the form in which all its spellings are equal: in lower case, without underscores.
pub(crate) fn normalized_name(name: &str) -> Cow<'_, str> {
    match normalize(name, Spelling::SnakeOrCamel) {
        Some(normalized) => Cow::Owned(normalized.into_string()),
        None => Cow::Borrowed(name),
    }
}

/// One of 64 bits for a name, by its first and last letter and its normalized length. Few names
/// share a bit.
#[inline]
fn name_bit(name: &[u8], underscores: usize) -> u64 {
    let end = |byte: Option<&u8>| byte.map_or(0, |byte| usize::from(*byte));
    let mixed = end(name.first()) * 5 + end(name.last()) * 3 + name.len() - underscores;
    1 << (mixed % 64)
}

/// Whether `found` is a spelling of the name, which is in snake case.
pub(crate) fn is_spelt(found: &str, name: &str, spelling: Spelling) -> bool {
    found == name || (spelling == Spelling::SnakeOrCamel && is_camel(found, name))
}

/// Whether `found` equals [`camel`] of the name, without an allocation.
fn is_camel(found: &str, snake: &str) -> bool {
    let mut found = found.bytes();
    let mut is_first = false;
    for letter in snake.bytes() {
        if letter == b'_' {
            is_first = true;
            continue;
        }
        let wanted = if is_first {
            letter.to_ascii_uppercase()
        } else {
            letter
        };
        is_first = false;
        if found.next() != Some(wanted) {
            return false;
        }
    }
    found.next().is_none()
}

pub(crate) fn camel(snake: &str) -> Cow<'_, str> {
    if !snake.contains('_') {
        return Cow::Borrowed(snake);
    }
    let mut camel = String::with_capacity(snake.len());
    for (number, word) in snake.split('_').enumerate() {
        let mut letters = word.chars();
        if number > 0 {
            camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        }
        camel.push_str(letters.as_str());
    }
    Cow::Owned(camel)
}

#[cfg(test)]
mod tests;
