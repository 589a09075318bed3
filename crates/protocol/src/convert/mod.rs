//! Converts calls whose client and upstream use different dialects.
//!
//! [`read_request`] reads a request into the [common form](crate::canon) and [`write_request`]
//! writes it for the upstream. [`convert_answer`] converts a whole answer, and a [`Transcoder`] converts a
//! stream. A [`Translator`] holds the transcoder, or the rewriter of a native stream, images or audio, so
//! that a relay treats all of them alike.

mod answer;
mod codecs;
mod images;
mod memory_estimate;
mod observer;
mod pictures;
mod transcoder;
mod translator;

pub use answer::convert_answer;
pub use codecs::{read_request, write_request};
pub use images::takes_image_url;
pub use memory_estimate::estimate_memory;
pub use transcoder::Transcoder;
pub use translator::Translator;
