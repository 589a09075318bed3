//! Scripts, which change, delay or break an answer.
//!
//! A script follows the name of the upstream model, each part after a `+`. The control endpoint can
//! also queue a script for the next calls of a model. Parts can be combined. A script with a repeated
//! part, or with two parts that exclude each other, is refused.
//!
//! ```text
//! model    = name *( "+" part )            sim-chat+delay=200ms+cut=1000
//! part     = fault | fault "=" value
//! duration = 1*DIGIT ( "ms" | "s" | "m" )  at most an hour
//! place    = "head" | "body" | "content" | bytes
//! ```
//!
//! A place is the position of a fault: `head` is before the head, `body` between the head and the
//! first byte of the body, `content` after the first content event (in a whole answer, after half of
//! the body), and a number after that many bytes of the body. A fault whose place is after the end of
//! the answer has no effect.
//!
//! | time | delay |
//! |---|---|
//! | `delay=DURATION` | before the head |
//! | `first-byte=DURATION` | between the head and the first byte of the body |
//! | `chunk-delay=DURATION` | before each content event except the first |
//! | `slow-usage=DURATION` | before the usage event |
//!
//! | connection | at most one of them |
//! |---|---|
//! | `hang=PLACE` | sends nothing more until the peer closes the connection |
//! | `reset=PLACE` | TCP reset |
//! | `cut=PLACE` | normal TCP close in the middle of the HTTP message |
//! | `truncate=PLACE` | normal end of the HTTP message in the middle of its content (not at `head`) |
//! | `pieces=N` | writes the body in pieces of N bytes, each flushed (can be combined with all others) |
//!
//! | instead of the answer | at most one of them |
//! |---|---|
//! | `status=CODE` | an error with this status (300 to 599) |
//! | `status=CODE:retry-after=SECONDS` | the same, with a `retry-after` header |
//! | `error-in-200` | an error with status 200; in a stream, as the first event |
//! | `garbage` | bytes that are not text |
//! | `wrong-type` | an HTML page with status 200 |
//! | `wrong-type=swapped` | a stream if the caller asked for JSON, JSON if it asked for a stream |
//! | `empty-object` | `{}`; in a stream, as the data of events |
//! | `endless-line` | a line that never ends |
//! | `no-such-model=VENDOR` | the vendor's refusal of an unknown model (`habit/vendors.rs`) |
//! | `context-overflow=VENDOR` | the vendor's refusal of a prompt that is too long |
//!
//! | inside the answer | fault |
//! |---|---|
//! | `garbage-event=K` | an event that is not JSON, after K content events |
//! | `error-event=K` | an error event after K content events, then the end |
//! | `failure-event=K` | the same, as a response with status `failed` (Responses; in Chat and Messages like `error-event`) |
//! | `invalid-utf8` | invalid UTF-8 inside the text |
//! | `huge-event=BYTES` | one content event whose text has this size |
//! | `early-content` | the event that opens a part already has content: the first piece of a text or thought (Interactions), the whole block (Messages), all arguments of a call (Interactions, Responses) |
//! | `no-done` | no end mark |
//! | `no-finish` | no finish reason, no final usage and no end mark (an array of Generate Content keeps its end mark) |
//! | `no-usage` | no usage |
//! | `usage=zero` `negative` `huge` `overflow` `string` `fraction` | every number of the usage has this error |
//! | `usage=shrinking` | usage grows during the stream (Messages: is complete at the start), but the final usage is half of the truth |
//! | `usage=running` | usage on every content event, as some vendors send it (Chat, Interactions; Generate Content always does) |
//! | `usage=on-finish` | usage in the event with the finish reason, not in its own (Messages: zeros at the start) |
//! | `usage=unasked` | usage even if the caller did not ask for it |
//! | `usage=costed` | usage has a `cost`, and the usage chunk has an empty choice instead of no choices (Chat) |
//!
//! | habits of real upstreams | correct answers in an undocumented form |
//! |---|---|
//! | `without=MEMBER,MEMBER` | leaves these members out at every level, for example `sequence_number`, `output_index,content_index`, `index` or `modelVersion` |
//! | `no-event-lines` | events have no `event:` line |
//! | `late-done` | all `done` events come together, before the last event (Responses) |
//! | `flat-end` | the members of the interaction are in `interaction.completed` itself (Interactions) |
//!
//! Some parts above are habits of real upstreams too: `usage=zero`, `wrong-type=swapped`
//! (a whole answer to a request for a stream), `status=401`.
//!
//! | behaviour of the model | effect |
//! |---|---|
//! | `chunks=N` | a text of exactly N content events |
//! | `reply-bytes=N` | a text of exactly N bytes; with `chunks`, in pieces of equal size |
//! | `cached=N` `cache-write=N` | reports N prompt tokens as cached, or (not for Google) as written to the cache |
//! | `searches=N` `file-searches=N` `code-runs=N` `fetches=N` | the upstream calls its own tools this many times, and reports it if the protocol can: Chat (except fetches), Responses (the same, as items), Messages (searches and fetches), Generate Content (searches and fetches), Interactions (searches) |
//! | `refuse` `refuse=CATEGORY` | the model refuses |
//! | `redacted` | reasoning is sent in unreadable form, if the protocol has one |
//! | `interleaved` | a part of the reasoning comes before each call (Responses, Messages) |
//! | `demand-reasoning` | the client must send tool calls back with the reasoning before them; the placeholders that the vendor documents for missing signatures are refused |
//! | `ignore-limit` | ignores the caller's token limit |
//! | `content-filter` | the vendor's filter stops the answer halfway |
//! | `blocked` `blocked=REASON` | the vendor blocks the prompt (not in Chat); the default reason is `SAFETY` |
//! | `strict` | refuses members that the protocol does not define |
//! | `finish=WORD` | reports this finish reason or status (not in Chat) |
//!
//! | Google protocols | effect |
//! |---|---|
//! | `continuation` | the text of an answer without calls stops halfway; the client can request the rest with a token in the answer |
//! | `unsigned` | like an older model: thought signatures are neither sent nor checked |
//! | `no-call-ids` | like an older model: function calls have no ids (Generate Content) |
//! | `tool-use=N` | reports N tokens of server tools, separately from the prompt's tokens |

mod parse;
mod queue;
mod script;
mod value;

pub use parse::ScriptError;

pub(crate) use parse::split_model;
pub(crate) use queue::{Queue, QueueError, QueuedFaults};
pub(crate) use script::{
    BreakKind, BreakOff, BreakPoint, Script, Status, SubstituteReply, UsageFault,
};
