//! Defines a parsed script, grouped by the code that applies it.

use crate::habit::{Habits, VendorRefusal};
use crate::true_usage::HostedTools;
use std::time::Duration;

/// All instructions for one answer. The default is a correct answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) times: Delays,
    pub(crate) stop: Option<BreakOff>,
    /// The size in bytes of the pieces in which the body is written.
    pub(crate) pieces: Option<usize>,
    pub(crate) substitute: Option<SubstituteReply>,
    pub(crate) events: EventFaults,
    pub(crate) usage: UsageFault,
    pub(crate) text: TextFaults,
    /// The number of prompt tokens that are reported as read from the cache, and as written to it.
    pub(crate) cached: Option<u64>,
    pub(crate) cache_write: Option<u64>,
    /// The number of calls of each of the upstream's own tools.
    pub(crate) hosted: HostedTools,
    /// Whether members that the protocol does not define are refused.
    pub(crate) strict: bool,
    pub(crate) reasoning: Reasoning,
    /// Replaces the reported finish reason.
    pub(crate) finish: Option<String>,
    pub(crate) google: GoogleOptions,
    /// Deviations from the form of answers that the vendor documents.
    pub(crate) habits: Habits,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GoogleOptions {
    /// Whether the answer stops halfway, with a token that the client sends back to request the rest.
    pub(crate) continuation: bool,
    /// Like older models: thoughts are not signed (`unsigned`), and calls have no ids (`no_call_ids`).
    pub(crate) unsigned: bool,
    pub(crate) no_call_ids: bool,
    /// The tokens of server tools, which are reported separately from the prompt's tokens.
    pub(crate) tool_use_tokens: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Delays {
    pub(crate) delay: Option<Duration>,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) chunk_delay: Option<Duration>,
    pub(crate) slow_usage: Option<Duration>,
}

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
    /// After this many bytes of the body.
    Byte(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SubstituteReply {
    Status(Status),
    ErrorIn200,
    Garbage,
    HtmlPage,
    Swapped,
    EmptyObject,
    EndlessLine,
    /// A vendor's refusal, which is sent with the same bytes in every protocol.
    Refusal(&'static VendorRefusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: u16,
    pub(crate) retry_after_s: Option<u32>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EventFaults {
    /// The number of content events before the garbage, error or failure event.
    pub(crate) garbage_after: Option<u64>,
    pub(crate) error_after: Option<u64>,
    pub(crate) failure_after: Option<u64>,
    pub(crate) no_done: bool,
    pub(crate) no_finish: bool,
    /// Whether the event that opens a part already has content.
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

/// Overrides of the model's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextFaults {
    pub(crate) chunks: Option<usize>,
    pub(crate) bytes: Option<usize>,
    pub(crate) huge_event_bytes: Option<usize>,
    pub(crate) invalid_utf8: bool,
    /// If set, the model refuses. The text is the category, or is empty.
    pub(crate) refuse: Option<String>,
    pub(crate) content_filter: bool,
    pub(crate) ignore_limit: bool,
    /// If set, the vendor's safety system blocks the prompt. The reason is reported if the protocol has a member for
    /// it.
    pub(crate) blocked: Option<String>,
}

/// How the model treats its reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reasoning {
    /// Whether the reasoning is sent in unreadable form.
    pub(crate) redacted: bool,
    /// Whether clients must send tool calls back with the reasoning before them. In Google's protocols, whether the
    /// literals that stand for a missing signature are refused.
    pub(crate) demanded: bool,
    /// Whether a part of the reasoning comes before each call, instead of all of it at the beginning.
    pub(crate) interleaved: bool,
}
