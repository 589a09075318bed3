//! The convert path: caller and upstream speak different dialects.
//!
//! A request is read by [`read_request`] into the [common form](crate::canon) and written by
//! [`write_request`] for the upstream; the answer comes back through [`convert_answer`] or, as a
//! stream, through a [`Transcoder`]. A [`Translator`] is either this or its native counterpart, so
//! that a relay need not know which.

mod answer;
mod codecs;
mod images;
mod observer;
mod pictures;
mod transcoder;
mod translator;
mod weight;

pub use answer::convert_answer;
pub use codecs::{read_request, write_request};
pub use images::takes_image_url;
pub use transcoder::Transcoder;
pub use translator::Translator;
pub use weight::weigh_request;
