//! The parts of a request that the gateway must know.

use std::ops::Range;

use crate::count::InputCount;
use crate::json::patch::Edit;
use crate::tool::Tools;

/// Whether a request writes input to a cache that is kept for an hour, which costs more than the usual cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LongCache {
    #[default]
    No,
    /// It does, and the upstream counts these writes apart from the others (Messages).
    CountedApart,
    /// It does, and the upstream has one count for all writes (chat).
    CountedTogether,
}

/// The parts of a request that the gateway must know, and their positions.
#[derive(Debug, Clone)]
pub struct Head {
    /// The public model id.
    pub model: String,
    /// Whether the client asks for a stream.
    pub stream: bool,
    /// Whether the client asks for the usage chunk.
    pub include_usage: bool,
    /// The output limit of one choice; `None` if it is absent, zero or negative.
    pub output_tokens_max: Option<u64>,
    /// The number of answers that the client asks for, at least one.
    pub choices: u32,
    /// The input tokens, by our count.
    pub input: InputCount,
    /// Whether the request writes input to a cache that is kept for an hour.
    pub long_cache: LongCache,
    /// Whether the upstream may shorten the conversation first, and so read the input twice. Only
    /// Messages reports and bills that apart from the answer.
    pub compacts: bool,
    /// The built-in tools that the request offers.
    pub tools: Tools,
    /// Sampling members whose value is not the default. On Messages, models with fixed sampling refuse them.
    /// In other dialects the list is empty.
    pub sampling: Vec<&'static str>,
    /// The position of the model's name; empty if the body does not contain it.
    pub(crate) model_span: Range<usize>,
    /// The edits to make before the request is sent on, except for the one that replaces the model's name.
    pub(crate) edits: Vec<Edit>,
    /// The index of the edit that asks the upstream to report its usage.
    pub(crate) usage_edit: Option<usize>,
    /// The position of the client's own `stream_options`. Only chat has them.
    pub(crate) stream_options: Option<Range<usize>>,
}

impl Head {
    #[must_use]
    pub(crate) fn without_usage_request(&self) -> Self {
        let mut head = self.clone();
        if let Some(place) = head.usage_edit.take() {
            head.edits.remove(place);
        }
        head
    }
}
