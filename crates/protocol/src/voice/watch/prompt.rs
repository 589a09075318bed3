//! Our own count of what a response of a realtime session reads, in case it never reports its usage.

use crate::answer_layout::count_written;
use crate::count::{self, Counter};
use crate::json::Raw;

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
    /// Counts the text of an item, or of settings. The caller has counted the images.
    pub(super) fn read(value: Option<Raw<'_>>, images: u64) -> Self {
        Self {
            text: value.map_or(0, text_tokens),
            images,
        }
    }

    pub(super) fn total(self) -> u64 {
        self.text.saturating_add(self.images)
    }

    #[must_use]
    pub(super) fn plus(self, more: Self) -> Self {
        Self {
            text: self.text.saturating_add(more.text),
            images: self.images.saturating_add(more.images),
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
