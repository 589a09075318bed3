//! Faults by script: how an answer is bent, delayed or broken.
//!
//! A script stands behind the upstream model's name, each part after a `+`, or is queued for a
//! model's next calls by the control endpoint. Parts combine; a part given twice, and
//! two parts that exclude each other, are refused.
//!
//! ```text
//! model    = name *( "+" part )            sim-chat+delay=200ms+cut=1000
//! part     = fault | fault "=" value
//! duration = 1*DIGIT ( "ms" | "s" | "m" )  at most an hour
//! place    = "head" | "body" | "content" | bytes
//! ```
//!
//! A place is where it happens: before the head; after the head and before the first byte of the
//! body; after the first content event (half of an unstreamed body); after so many bytes of the
//! body. A place behind the end of the answer never happens.
//!
//! | time | |
//! |---|---|
//! | `delay=DURATION` | before the head |
//! | `first-byte=DURATION` | between the head and the first byte of the body |
//! | `chunk-delay=DURATION` | before each content event but the first |
//! | `slow-usage=DURATION` | before the usage event |
//!
//! | connection | at most one of them |
//! |---|---|
//! | `hang=PLACE` | silence until the peer goes away |
//! | `reset=PLACE` | TCP reset |
//! | `cut=PLACE` | TCP close in order, the HTTP message unfinished |
//! | `truncate=PLACE` | the HTTP message ends in order, its content unfinished (not at `head`) |
//! | `pieces=N` | the body is written in pieces of N bytes, each flushed (combines with all others) |
//!
//! | instead of the answer | at most one of them |
//! |---|---|
//! | `status=CODE` | an error of that status (300 to 599) |
//! | `status=CODE:retry-after=SECONDS` | the same with the header |
//! | `error-in-200` | an error body under status 200; the first event of a stream |
//! | `garbage` | bytes that are no text |
//! | `wrong-type` | an HTML page under status 200 |
//! | `wrong-type=swapped` | a stream where JSON was asked for, JSON where a stream was |
//! | `empty-object` | `{}` |
//! | `endless-line` | a line that does not end |
//! | `no-such-model=VENDOR` | the refusal of an unknown model, in the words of that vendor (`habit/vendors.rs`) |
//! | `context-overflow=VENDOR` | the refusal of a prompt that is too long, in the words of that vendor |
//!
//! | inside the answer | |
//! |---|---|
//! | `garbage-event=K` | an event that is no JSON, after K content events |
//! | `error-event=K` | an error event after K content events, then the end |
//! | `failure-event=K` | the same by an answer that says of itself that it failed (Responses) |
//! | `invalid-utf8` | bytes inside the text that are no UTF-8 |
//! | `huge-event=BYTES` | one content event of that size |
//! | `early-content` | the event that opens a part has content in it: the first piece of a step (Interactions), the whole block (Messages), all arguments of a call (Responses) |
//! | `no-done` | no end mark |
//! | `no-finish` | neither finish reason nor end mark |
//! | `no-usage` | no usage |
//! | `usage=zero` `negative` `huge` `overflow` `string` `fraction` | every figure so |
//! | `usage=shrinking` | running figures that grow, and a final one that is half the truth |
//! | `usage=running` | running figures on every event, as some vendors do |
//! | `usage=on-finish` | usage on the finishing event, not on one of its own (Messages: nothing told at the start) |
//! | `usage=unasked` | usage also when it was not asked for |
//! | `usage=costed` | usage has a `cost`, and its chunk an empty choice instead of none (Chat) |
//!
//! | habits of real upstreams | correct answers in another form than the documented one |
//! |---|---|
//! | `without=MEMBER,MEMBER` | these members are left out wherever they stand: `sequence_number`, `output_index,content_index`, `index`, `modelVersion` |
//! | `no-event-lines` | events have no `event:` line |
//! | `late-done` | all `done` events come together, before the last event (Responses) |
//! | `flat-end` | the members of the interaction stand in `interaction.completed` itself (Interactions) |
//!
//! Other habits have their own names above: `usage=zero`, `wrong-type=swapped` (a whole JSON answer to
//! a stream request), `status=401`.
//!
//! | the model's behaviour | no faults, but steered alike |
//! |---|---|
//! | `chunks=N` | a text of exactly N content events |
//! | `reply-bytes=N` | a text of exactly N bytes; with `chunks`, cut evenly |
//! | `cached=N` `cache-write=N` | so many of the prompt's tokens are told as cached, as written to the cache |
//! | `searches=N` `file-searches=N` `code-runs=N` `fetches=N` | the upstream uses tools of its own so often, and tells so where the protocol has a form for it: Chat (but for fetches), Responses (the same, by items), Messages (searches and fetches), Generate Content (searches and fetches), Interactions (searches) |
//! | `refuse` `refuse=CATEGORY` | the model declines |
//! | `redacted` | reasoning comes back unreadable, where the protocol has a form for it |
//! | `interleaved` | a part of the reasoning comes before each call (Responses, Messages) |
//! | `demand-reasoning` | tool calls that came with reasoning must come back with it, and no literal of the vendor's stands for it |
//! | `ignore-limit` | the answer is as long as it would be without the caller's token limit |
//! | `content-filter` | the answer is stopped half way by the vendor's filter |
//! | `blocked` `blocked=REASON` | the vendor's safety system stops the prompt, by `SAFETY` if not said otherwise |
//! | `strict` | members that the protocol does not define are refused |
//! | `finish=WORD` | the reason or status that ends the answer is this word |
//!
//! | of the Google protocols | |
//! |---|---|
//! | `continuation` | the text stops half way; the token that comes with it gives the rest |
//! | `unsigned` | an older model: no thought signatures, and none are looked at |
//! | `no-call-ids` | an older model: function calls have no ids |
//! | `tool-use=N` | so many tokens of server tools are told beside the prompt's |

mod parse;
mod queue;
mod script;
mod value;

pub use parse::ScriptError;

pub(crate) use parse::split_model;
pub(crate) use queue::{Queue, QueueError, Queued};
pub(crate) use script::{BreakKind, BreakOff, BreakPoint, Script, Status, Substitute, UsageFault};
