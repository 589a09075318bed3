//! Our own count of what a response of a realtime session reads, in case it never reports its usage.

use crate::answer_layout::count_written;
use crate::count::{self, Counter};
use crate::json::{Members, Raw};

/// Members whose text the model reads.
const TEXT_MEMBERS: [&str; 6] = [
    "instructions",
    "text",
    "transcript",
    "output",
    "arguments",
    "description",
];

/// The tokens of text and images that a response reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Prompt {
    pub(super) text: u64,
    pub(super) images: u64,
}

impl Prompt {
    /// Counts the text of an item, or of a request for a response. The caller has counted the images.
    pub(super) fn read(value: Option<Raw<'_>>, images: u64) -> Self {
        Self {
            text: value.map_or(0, text_tokens),
            images,
        }
    }

    pub(super) fn total(self) -> u64 {
        self.text.saturating_add(self.images)
    }

    /// The part that fits into this many tokens. Images go first, because they have the higher price.
    #[must_use]
    pub(super) fn at_most(self, tokens: u64) -> Self {
        let images = self.images.min(tokens);
        Self {
            text: self.text.min(tokens - images),
            images,
        }
    }

    #[must_use]
    pub(super) fn plus(self, more: Self) -> Self {
        Self {
            text: self.text.saturating_add(more.text),
            images: self.images.saturating_add(more.images),
        }
    }
}

/// Our own count of the text in the settings of a session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    instructions: u64,
    tools: u64,
    other: u64,
}

impl Settings {
    /// Counts the settings of one event. `members` are those of `session`, if it is an object.
    pub(super) fn read(session: Option<Raw<'_>>, members: Option<&Members<'_>>) -> Self {
        let part = |name: &str| {
            let value = members.and_then(|members| members.get(name).ok().flatten());
            value.map_or(0, text_tokens)
        };
        let (instructions, tools) = (part("instructions"), part("tools"));
        let all = session.map_or(0, text_tokens);
        Self {
            instructions,
            tools,
            other: all.saturating_sub(instructions).saturating_sub(tools),
        }
    }

    /// The longer one of each setting. A later setting replaces an earlier one, but the upstream may
    /// refuse the later one.
    #[must_use]
    pub(super) fn longest(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.max(other.instructions),
            tools: self.tools.max(other.tools),
            other: self.other.max(other.other),
        }
    }

    pub(super) fn prompt(self) -> Prompt {
        let parts = [self.instructions, self.tools, self.other];
        Prompt {
            text: parts.into_iter().fold(0, u64::saturating_add),
            images: 0,
        }
    }
}

fn text_tokens(value: Raw<'_>) -> u64 {
    if let Some(text) = value.string() {
        return count::tokens(text.raw().as_bytes());
    }
    let mut counter = Counter::default();
    // The caller has validated the JSON, so this cannot fail.
    let _ = count_written(value, &TEXT_MEMBERS, &mut counter);
    counter.tokens()
}
