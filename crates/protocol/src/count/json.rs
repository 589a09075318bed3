//! Counts the tokens of a JSON request, with an upper bound.

use super::media::{EndedMedia, MediaFinder, Medium};
use super::text::Counter;
use crate::json::scan::ContentVisitor;
use crate::json::{Cursor, Raw, Text};

/// The count of any text is at least one token per this many bytes, in any form and with any escapes.
pub(crate) const BYTES_PER_TOKEN_MAX: u64 = 12;

/// The maximum number of tokens that upstreams add to a prompt, besides marks around messages. Those marks
/// are shorter than the JSON around the messages.
const FRAME_TOKENS_MAX: u64 = 1_024;
/// Members that probably no model reads are free up to this total size.
const UNREAD_BYTES_FREE: u64 = 1_024;

/// The input tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputCount {
    /// The estimate. It is at least one token per `BYTES_PER_TOKEN_MAX` bytes, not counting inline media.
    pub tokens: u64,
    /// An upper bound for every tokenizer. `None` if only the model's context limits the input, because of
    /// media of unknown length or tools that add text.
    pub tokens_max: Option<u64>,
    /// Whether the request has a medium of unknown length: a PDF, a video, or a file that is only
    /// referenced. It may fill the model's whole context.
    pub fills_context: bool,
    /// Bytes of inline media, to which the lower bound does not apply.
    pub media_bytes: u64,
}

impl InputCount {
    pub(crate) fn plus(self, other: Self) -> Self {
        let most = self.tokens_max.zip(other.tokens_max);
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            tokens_max: most.map(|(one, other)| one.saturating_add(other)),
            fills_context: self.fills_context || other.fills_context,
            media_bytes: self.media_bytes.saturating_add(other.media_bytes),
        }
    }

    /// The count for a request of `body_bytes`, given the count of the part that the model reads.
    pub(crate) fn of_body(self, body_bytes: usize) -> Self {
        let text_bytes = (body_bytes as u64).saturating_sub(self.media_bytes);
        Self {
            tokens: self.tokens.max(text_bytes.div_ceil(BYTES_PER_TOKEN_MAX)),
            tokens_max: self.tokens_max.map(|most| most.max(text_bytes)),
            ..self
        }
    }
}

/// Counts a valid JSON value, all of which the model reads.
pub(crate) fn count_value(value: Raw<'_>) -> InputCount {
    let mut counter = JsonCounter::default();
    counter.begin(MemberUse::Conversation);
    // The value is valid, so there is no error.
    let _ = Cursor::new(value.text()).value_shown_to(&mut counter);
    counter.finish(value.text().len())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MemberUse {
    /// The model reads the text of this member, which can contain media.
    Conversation,
    /// The model reads the text of this member.
    Text,
    /// The dialect defines no text for this member. An upstream may read it anyway.
    #[default]
    Unread,
}

/// Counts the strings, names and numbers of JSON values. Names cost about as much as the marks
/// around messages and tools.
#[derive(Debug, Default)]
pub(crate) struct JsonCounter<'a> {
    member_use: MemberUse,
    read: Counter,
    unread: Counter,
    unread_bytes: u64,
    media: MediaFinder<'a>,
    media_tokens: u64,
    /// The sum of the upper bounds of media. Media without a bound set `is_unbounded`.
    media_tokens_max: u64,
    is_unbounded: bool,
    /// Bytes of inline media, which are not counted as text.
    media_bytes: u64,
    fills_context: bool,
}

impl<'a> JsonCounter<'a> {
    pub(crate) fn begin(&mut self, member_use: MemberUse) {
        self.member_use = member_use;
        self.media.begin(member_use == MemberUse::Conversation);
    }

    /// The count for a request of `body_bytes`, all of which was counted.
    pub(crate) fn finish(&self, body_bytes: usize) -> InputCount {
        let text_bytes = (body_bytes as u64).saturating_sub(self.media_bytes);
        let unread = match self.unread_bytes {
            0..=UNREAD_BYTES_FREE => 0,
            _ => self.unread.tokens(),
        };
        let counted = self.read.tokens().saturating_add(unread);
        let text = counted.max(text_bytes.div_ceil(BYTES_PER_TOKEN_MAX));
        let most = text_bytes
            .saturating_add(FRAME_TOKENS_MAX)
            .saturating_add(self.media_tokens_max);
        InputCount {
            tokens: text.saturating_add(self.media_tokens),
            tokens_max: (!self.is_unbounded).then_some(most),
            fills_context: self.fills_context,
            media_bytes: self.media_bytes,
        }
    }

    fn add(&mut self, text: Text<'_>) {
        let raw = text.raw();
        let counter = self.counter(raw);
        if text.is_escaped() {
            counter.add_separate(raw.as_bytes());
        } else {
            counter.add_separate_plain(raw.as_bytes());
        }
    }

    /// The counter for a text in the current member.
    fn counter(&mut self, raw: &str) -> &mut Counter {
        match self.member_use {
            MemberUse::Conversation | MemberUse::Text => &mut self.read,
            MemberUse::Unread => {
                self.unread_bytes = self.unread_bytes.saturating_add(raw.len() as u64);
                &mut self.unread
            }
        }
    }

    fn add_medium(&mut self, medium: &Medium<'a>) {
        self.media_tokens = self.media_tokens.saturating_add(medium.tokens());
        self.media_bytes = self.media_bytes.saturating_add(medium.bytes());
        self.fills_context |= medium.fills_context();
        match medium.tokens_max() {
            Some(most) => self.media_tokens_max = self.media_tokens_max.saturating_add(most),
            None => self.is_unbounded = true,
        }
        if let Some(text) = medium.text() {
            self.add(text);
        }
    }
}

impl<'a> ContentVisitor<'a> for JsonCounter<'a> {
    fn name(&mut self, name: Text<'a>) {
        self.media.name(name);
        self.add(name);
    }

    fn string(&mut self, text: Text<'a>) {
        // Count a medium when the object around it ends, because the type may be the last member.
        if !self.media.keeps(text) {
            self.add(text);
        }
    }

    fn scalar(&mut self, raw: &'a str) {
        self.media.scalar();
        self.counter(raw).add_separate_plain(raw.as_bytes());
    }

    fn opened(&mut self, is_object: bool) {
        self.media.opened(is_object);
    }

    fn closed(&mut self) {
        match self.media.closed() {
            None => {}
            Some(EndedMedia::Part(medium)) => self.add_medium(&medium),
            Some(EndedMedia::Result(media)) => {
                for medium in &media {
                    self.add_medium(medium);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
