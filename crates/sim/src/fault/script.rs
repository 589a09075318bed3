//! A parsed script, grouped by who acts on it.

use crate::habit::{Habits, VendorRefusal};
use crate::true_usage::HostedTools;
use std::time::Duration;

/// Everything that is asked of one answer. The default is an honest one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) times: Delays,
    pub(crate) stop: Option<BreakOff>,
    /// Bytes in one write.
    pub(crate) pieces: Option<usize>,
    pub(crate) substitute: Option<Substitute>,
    pub(crate) events: EventFaults,
    pub(crate) usage: UsageFault,
    pub(crate) text: TextFaults,
    /// Tokens of the prompt told as read from the cache, and as written to it.
    pub(crate) cached: Option<u64>,
    pub(crate) cache_write: Option<u64>,
    /// How often the upstream uses tools of its own.
    pub(crate) hosted: HostedTools,
    /// Members that the protocol does not define are refused.
    pub(crate) strict: bool,
    pub(crate) reasoning: Reasoning,
    /// The word for the finish, whatever it truly was.
    pub(crate) finish: Option<String>,
    pub(crate) google: GoogleOptions,
    /// Forms that the vendor's documents do not show.
    pub(crate) habits: Habits,
}

/// What only the Google protocols know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GoogleOptions {
    /// The answer stops half way with a token by which the rest can be had.
    pub(crate) continuation: bool,
    /// The habits of older models: thoughts are not signed, calls have no ids.
    pub(crate) unsigned: bool,
    pub(crate) no_call_ids: bool,
    /// Tokens of server tools, told beside the prompt's.
    pub(crate) tool_use_tokens: Option<u64>,
}

/// What is waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Delays {
    pub(crate) delay: Option<Duration>,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) chunk_delay: Option<Duration>,
    pub(crate) slow_usage: Option<Duration>,
}

/// How an answer breaks off, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BreakOff {
    pub(crate) how: BreakKind,
    pub(crate) place: BreakPoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakKind {
    Hang,
    Reset,
    Cut,
    Truncate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakPoint {
    Head,
    Content,
    /// After so many bytes of the body.
    Byte(u64),
}

/// What is sent in place of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Substitute {
    Status(Status),
    ErrorIn200,
    Garbage,
    HtmlPage,
    Swapped,
    EmptyObject,
    EndlessLine,
    /// A refusal in the words of a vendor, whatever protocol was called.
    Refusal(&'static VendorRefusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: u16,
    pub(crate) retry_after_s: Option<u32>,
}

/// What happens to the events of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EventFaults {
    /// After so many content events.
    pub(crate) garbage_after: Option<u64>,
    pub(crate) error_after: Option<u64>,
    pub(crate) failure_after: Option<u64>,
    pub(crate) no_done: bool,
    pub(crate) no_finish: bool,
    /// The event that opens a part holds its first piece already.
    pub(crate) early_content: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum UsageFault {
    #[default]
    Exact,
    Missing,
    Zero,
    Negative,
    Huge,
    Overflow,
    Text,
    Fraction,
    Shrinking,
    Running,
    OnFinish,
    Unasked,
    Costed,
}

/// What the model says whatever it was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextFaults {
    pub(crate) chunks: Option<usize>,
    pub(crate) bytes: Option<usize>,
    pub(crate) huge_event_bytes: Option<usize>,
    pub(crate) invalid_utf8: bool,
    /// The model declines, for a category where one is named.
    pub(crate) refuse: Option<String>,
    pub(crate) content_filter: bool,
    pub(crate) ignore_limit: bool,
    /// The vendor's safety system stops the prompt, for this reason where the protocol tells one.
    pub(crate) blocked: Option<String>,
}

/// What the model does with its reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reasoning {
    /// It is given, but not to be read.
    pub(crate) redacted: bool,
    /// A history whose calls lack the reasoning before them is refused.
    pub(crate) demanded: bool,
    /// A part of it comes before each call, not all of it at the beginning.
    pub(crate) interleaved: bool,
}
