//! The wire formats of the gateway: bytes in, bytes out.
//!
//! This crate has no clock, socket, thread, random source or runtime. What it needs from outside
//! comes in as an argument. Start reading at [`native`], the path of a call whose client and
//! upstream use the same dialect, then [`convert`], the path for different dialects. The five
//! dialects have the same files and the same functions, so who has read [`chat`] knows the others.

mod byte_queue;
pub mod canon;
pub mod chat;
pub mod convert;
pub mod count;
mod dialect;
pub mod embeddings;
pub mod failure;
pub mod generate;
pub mod guard;
pub mod images;
pub mod interactions;
pub mod json;
pub mod media;
pub mod messages;
pub mod multipart;
pub mod native;
mod needle;
mod profile;
mod rejection;
pub mod responses;
pub mod scrub;
mod shared;
pub mod sse;
mod tool;
mod usage;
pub mod video;
pub mod voice;

pub use byte_queue::ByteQueue;
pub use convert::Translator;
pub use dialect::{Dialect, UnknownDialect};
pub use failure::{Code, Failure, Family};
pub use profile::{Allowed, Base, Kind, OutputLimit, Profile, References, Thinking};
pub use tool::{Tool, ToolCalls, Tools};
pub use usage::Usage;
