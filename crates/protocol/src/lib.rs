//! The wire formats of the gateway: bytes in, bytes out.
//!
//! This crate has no clock, socket, thread, random source or runtime. Callers pass everything that it needs
//! from outside as arguments. Start reading at [`native`], the path of a call whose client and upstream use
//! the same dialect. Continue with [`convert`], the path for different dialects. The five dialects have the
//! same functions, and nearly the same files. ARCHITECTURE.md lists the differences. Read [`chat`] first.

mod answer_layout;
mod answer_summary;
mod byte_queue;
pub mod canon;
pub mod chat;
pub mod convert;
pub mod count;
#[cfg(test)]
mod cpu_time;
mod dialect;
pub mod embeddings;
pub mod event_stream;
pub mod failure;
pub mod generate;
pub mod guard;
pub mod images;
pub mod interactions;
mod json;
pub mod media;
pub mod messages;
mod model_list;
pub mod multipart;
pub mod native;
mod needle;
mod profile;
mod rejection;
mod request_head;
pub mod responses;
pub mod scrub;
mod shared;
pub mod sse;
mod tool;
mod unusable_answer;
mod usage;
pub mod video;
pub mod voice;

pub use byte_queue::ByteQueue;
pub use convert::Translator;
pub use dialect::{Dialect, UnknownDialect};
pub use failure::{Code, Failure, Family};
pub use json::redact;
pub use model_list::{ListedModel, ModelList, read_model_list};
pub use profile::{
    AllowedValues, BuiltInProfile, Kind, OutputLimit, Profile, References, Thinking,
};
pub use tool::{Tool, ToolCalls, Tools};
pub use usage::{Compaction, Usage};
