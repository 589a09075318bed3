//! Checks whether a generated file is a complete video or image.
//!
//! A check reads only headers and decodes nothing. Its work is bounded for any file. It accepts any
//! reader that can seek, so a video is never loaded into memory.

mod boxes;
mod file_error;
mod movie;
mod mp4;
mod png;

pub use file_error::{FileError, Invalid};
pub use mp4::{Container, Video, check_video};
pub use png::{Picture, check_png};
