//! The common form that a call passes through if client and upstream use different dialects.
//!
//! Each dialect is read into this form and written from it, so five dialects need ten codecs and
//! not twenty. A dialect is one folder with eight functions and types: `read_request`,
//! `write_request`, `read_response`, `write_response`, `Reader`, `Writer`, `read_failure`,
//! `write_failure`. Members that the other dialect does not have are reported in [`Dropped`].
//! Nothing is lost silently.

pub(crate) mod arguments;
pub mod base64;
pub mod carrier;
mod choose;
pub(crate) mod data_uri;
mod dropped;
mod event;
mod field;
mod label;
mod logprobs;
mod merge_turns;
pub mod mime;
mod offsets;
mod opaque;
mod path;
mod request;
mod response;
mod target;
mod tool_results;
mod unknown_members;

pub use choose::accepted_sampling;
pub(crate) use choose::{ToolCalling, choose, is_usual_verbosity, is_zero};
pub use dropped::Dropped;
pub use event::{Block, Delta, Event, Stop};
pub use field::{Field, Member};
pub(crate) use label::label_schema;
pub use logprobs::{Likelihood, Token};
pub(crate) use merge_turns::{MergedConversation, MergedTurn, merge_turns};
pub(crate) use offsets::OffsetConverter;
pub use opaque::Opaque;
pub use path::Path;
pub use request::{
    Document, Effort, Format, Image, ImageDetail, ImageSource, Json, Logprobs, Part, Reasoning,
    Request, Role, Sampling, SignedAt, Thought, Tool, ToolCall, ToolChoice, ToolResult, Turn,
};
pub use response::{Response, ResponseBlock, ResponseBuilder};
pub use target::{AnswerContext, Target};
pub use tool_results::pair_results;
pub(crate) use unknown_members::{note_unknown, note_unless_empty};
