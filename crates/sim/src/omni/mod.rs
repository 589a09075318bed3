//! Videos through Interactions: the answer comes when the film is there.
//!
//! Models whose name begins with `sim-omni` make films. A script gives them the time that they take:
//! `sim-omni+delay=3s`. Words in brackets in the text change the answer:
//!
//! | word | |
//! |---|---|
//! | `[fail]` | the output is blocked |
//! | `[refuse]` | a text instead of a film |
//! | `[cancel]` `[incomplete]` `[budget]` | ends so |
//! | `[inline]` | the film stands in the answer |
//! | `[redirect]` `[broken]` | its file is elsewhere, or no film (`predict/`) |
//! | `[empty]` | the film in the answer has no bytes |
//! | `[unpriced]` | no usage is told |
//! | `[totals]` | usage is not told by modality |
//!
//! Faults of files are queued for `file/` and the model's name.

mod call;
mod video_spec;

pub(crate) use call::{Create, is_asked};
