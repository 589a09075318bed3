//! Walks through JSON text and validates every byte, without building values.
//!
//! A [`Cursor`] enters the objects and arrays that its caller wants to see and skips the rest. Skipped
//! values are validated just as strictly: syntax, depth and the number of keys.

use std::ops::Range;

use super::lex::{number_length, string_end};
use super::raw::Raw;
use super::syntax::{DEPTH_MAX, KEYS_MAX, SyntaxError, SyntaxErrorKind};
use super::text::Text;

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

impl Shape {
    pub(super) fn of(first: u8) -> Option<Self> {
        Some(match first {
            b'{' => Self::Object,
            b'[' => Self::Array,
            b'"' => Self::String,
            b'-' | b'0'..=b'9' => Self::Number,
            b't' | b'f' => Self::Boolean,
            b'n' => Self::Null,
            _ => return None,
        })
    }
}

/// Receives the content of a skipped value, in order.
pub(crate) trait ContentVisitor<'a> {
    /// The name of a member.
    fn name(&mut self, name: Text<'a>);
    /// A string that is a value.
    fn string(&mut self, text: Text<'a>);
    /// A number, a boolean or `null`.
    fn scalar(&mut self, _raw: &'a str) {}
    fn opened(&mut self, _is_object: bool) {}
    /// The innermost object or array ends.
    fn closed(&mut self) {}
}

/// Ignores the content.
impl ContentVisitor<'_> for () {
    fn name(&mut self, _: Text<'_>) {}
    fn string(&mut self, _: Text<'_>) {}
}

/// A position in JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
        }
    }

    /// A cursor inside the outermost object of `text`, after a member that ends at `at`. Used if `text`
    /// starts with the same bytes as a text that was read before.
    pub(crate) fn after_member(text: &'a str, at: usize) -> Self {
        Self { text, at, depth: 1 }
    }

    /// The position of the next byte to read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The kind of the next value.
    pub(crate) fn shape(&mut self) -> Result<Shape, SyntaxError> {
        self.skip_space();
        self.peek()
            .and_then(Shape::of)
            .ok_or_else(|| self.error(SyntaxErrorKind::Value))
    }

    /// Skips a value and returns it with its position.
    pub(crate) fn value(&mut self) -> Result<Raw<'a>, SyntaxError> {
        self.value_shown_to(&mut ())
    }

    /// The text between `start`, an earlier position, and this position.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.slice(start..self.at)
    }

    /// Skips a value, passes its content to `strings`, and returns the value with its position.
    pub(crate) fn value_shown_to(
        &mut self,
        strings: &mut impl ContentVisitor<'a>,
    ) -> Result<Raw<'a>, SyntaxError> {
        self.skip_space();
        let start = self.at;
        let mut escaped = false;
        match self.peek() {
            Some(b'"') => {
                let text = self.string_body()?;
                escaped = text.is_escaped();
                strings.string(text);
            }
            Some(b'{' | b'[') => self.container(strings)?,
            _ => {
                self.scalar()?;
                strings.scalar(self.slice(start..self.at));
            }
        }
        Ok(Raw::new(self.slice(start..self.at), start, escaped))
    }

    pub(crate) fn string(&mut self) -> Result<Text<'a>, SyntaxError> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.error(SyntaxErrorKind::Value));
        }
        self.string_body()
    }

    /// Enters an object. `member` receives each name and must read the value.
    pub(crate) fn object<E: From<SyntaxError>>(
        &mut self,
        member: impl FnMut(&mut Self, Text<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'{', SyntaxErrorKind::Object)?;
        self.skip_space();
        if self.take(b'}') {
            self.depth = self.depth.saturating_sub(1);
            return Ok(());
        }
        self.members(1, member)
    }

    /// Continues an object after one of its members. See [`Cursor::after_member`].
    pub(crate) fn rest_of_object<E: From<SyntaxError>>(
        &mut self,
        member: impl FnMut(&mut Self, Text<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.next_member()? {
            self.members(1, member)
        } else {
            Ok(())
        }
    }

    /// Enters an array. `item` must read each value.
    pub(crate) fn array<E: From<SyntaxError>>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[', SyntaxErrorKind::Array)?;
        self.skip_space();
        if self.take(b']') {
            self.depth = self.depth.saturating_sub(1);
            return Ok(());
        }
        loop {
            item(self)?;
            self.skip_space();
            if self.take(b',') {
                continue;
            }
            if self.take(b']') {
                self.depth = self.depth.saturating_sub(1);
                return Ok(());
            }
            return Err(self.error(SyntaxErrorKind::ArrayEnd).into());
        }
    }

    /// Checks that only white space follows.
    pub(crate) fn end(&mut self) -> Result<(), SyntaxError> {
        self.skip_space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error(SyntaxErrorKind::Trailing)),
        }
    }

    fn members<E: From<SyntaxError>>(
        &mut self,
        mut count: usize,
        mut member: impl FnMut(&mut Self, Text<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            if count > KEYS_MAX {
                return Err(self.error(SyntaxErrorKind::Keys).into());
            }
            let name = self.key()?;
            member(self, name)?;
            if !self.next_member()? {
                return Ok(());
            }
            count += 1;
        }
    }

    /// Whether another member follows the current one. Otherwise the object has ended.
    fn next_member(&mut self) -> Result<bool, SyntaxError> {
        self.skip_space();
        if self.take(b',') {
            return Ok(true);
        }
        if self.take(b'}') {
            self.depth = self.depth.saturating_sub(1);
            return Ok(false);
        }
        Err(self.error(SyntaxErrorKind::ObjectEnd))
    }

    #[inline]
    fn key(&mut self) -> Result<Text<'a>, SyntaxError> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.error(SyntaxErrorKind::Key));
        }
        let name = self.string_body()?;
        self.skip_space();
        if self.take(b':') {
            Ok(name)
        } else {
            Err(self.error(SyntaxErrorKind::Colon))
        }
    }

    fn open(&mut self, bracket: u8, kind: SyntaxErrorKind) -> Result<(), SyntaxError> {
        self.skip_space();
        if !self.take(bracket) {
            return Err(self.error(kind));
        }
        if self.depth >= DEPTH_MAX {
            return Err(self.error(SyntaxErrorKind::Depth));
        }
        self.depth += 1;
        Ok(())
    }

    /// Skips an object or array with its content, in one loop without recursion, so that a level of
    /// nesting costs no stack frame.
    fn container(&mut self, strings: &mut impl ContentVisitor<'a>) -> Result<(), SyntaxError> {
        let mut open = Nesting::new(self.depth);
        loop {
            self.skip_space();
            let entered = match self.peek() {
                Some(b'"') => {
                    strings.string(self.string_body()?);
                    false
                }
                Some(b'{') => {
                    self.at += 1;
                    open.enter(true).map_err(|kind| self.error(kind))?;
                    strings.opened(true);
                    self.skip_space();
                    if self.peek() == Some(b'}') {
                        false
                    } else {
                        strings.name(self.key()?);
                        true
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    open.enter(false).map_err(|kind| self.error(kind))?;
                    strings.opened(false);
                    self.skip_space();
                    self.peek() != Some(b']')
                }
                _ => {
                    let start = self.at;
                    self.scalar()?;
                    strings.scalar(self.slice(start..self.at));
                    false
                }
            };
            if entered {
                continue;
            }
            loop {
                self.skip_space();
                match (self.peek(), open.in_object()) {
                    (Some(b','), true) => {
                        self.at += 1;
                        open.count_key().map_err(|kind| self.error(kind))?;
                        strings.name(self.key()?);
                        break;
                    }
                    (Some(b','), false) => {
                        self.at += 1;
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        strings.closed();
                        if open.leave() {
                            return Ok(());
                        }
                    }
                    (_, true) => return Err(self.error(SyntaxErrorKind::ObjectEnd)),
                    (_, false) => return Err(self.error(SyntaxErrorKind::ArrayEnd)),
                }
            }
        }
    }

    fn scalar(&mut self) -> Result<(), SyntaxError> {
        let rest = self.rest();
        let literal: &[u8] = match rest.first() {
            Some(b't') => b"true",
            Some(b'f') => b"false",
            Some(b'n') => b"null",
            Some(b'-' | b'0'..=b'9') => {
                let length =
                    number_length(rest).ok_or_else(|| self.error(SyntaxErrorKind::Number))?;
                self.at += length;
                return Ok(());
            }
            _ => return Err(self.error(SyntaxErrorKind::Value)),
        };
        if rest.starts_with(literal) {
            self.at += literal.len();
            Ok(())
        } else {
            Err(self.error(SyntaxErrorKind::Value))
        }
    }

    /// Reads a string whose opening quote is the next byte.
    #[inline]
    fn string_body(&mut self) -> Result<Text<'a>, SyntaxError> {
        let start = self.at + 1;
        let (end, escaped) = string_end(self.text.as_bytes(), start)?;
        self.at = end + 1;
        Ok(Text::new(self.slice(start..end), start, escaped))
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn slice(&self, span: Range<usize>) -> &'a str {
        // Spans start and end next to ASCII bytes, so they never split a character.
        self.text.get(span).unwrap_or_default()
    }

    #[cold]
    fn error(&self, kind: SyntaxErrorKind) -> SyntaxError {
        SyntaxError { kind, at: self.at }
    }
}

/// The open containers of one skipped value.
struct Nesting {
    /// One bit for each open container, set for objects. The lowest bit is the innermost.
    objects: u128,
    keys: [u16; DEPTH_MAX],
    level: usize,
    outside: usize,
}

impl Nesting {
    fn new(outside: usize) -> Self {
        Self {
            objects: 0,
            keys: [0; DEPTH_MAX],
            level: 0,
            outside,
        }
    }

    fn enter(&mut self, object: bool) -> Result<(), SyntaxErrorKind> {
        if self.level + self.outside >= DEPTH_MAX {
            return Err(SyntaxErrorKind::Depth);
        }
        self.objects = (self.objects << 1) | u128::from(object);
        if let Some(keys) = self.keys.get_mut(self.level) {
            *keys = 1;
        }
        self.level += 1;
        Ok(())
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn count_key(&mut self) -> Result<(), SyntaxErrorKind> {
        if let Some(keys) = self.keys.get_mut(self.level.wrapping_sub(1)) {
            *keys += 1;
            if usize::from(*keys) > KEYS_MAX {
                return Err(SyntaxErrorKind::Keys);
            }
        }
        Ok(())
    }

    /// Closes the innermost container. Returns whether it was the last.
    fn leave(&mut self) -> bool {
        self.objects >>= 1;
        self.level = self.level.saturating_sub(1);
        self.level == 0
    }
}

#[cfg(test)]
mod tests;
