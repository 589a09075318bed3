//! Checks of generated media: whether a file is the whole video or picture it is said to be.
//!
//! A check reads headers alone, decodes nothing, and is bounded whatever the file holds. It takes
//! any reader that can seek, so that a video is never in memory.

mod boxes;
mod fault;
mod movie;
mod mp4;
mod png;

pub use fault::{Bad, Fault};
pub use mp4::{Container, Video, check_video};
pub use png::{Picture, check_png};
