//! Videos through Interactions: the answer comes when the video is ready.
//!
//! Models whose name begins with `sim-omni` make videos. A script sets the time that this takes:
//! `sim-omni+delay=3s`. Words in brackets in the text change the answer:
//!
//! | word | effect |
//! |---|---|
//! | `[fail]` | the output is blocked |
//! | `[refuse]` | a text instead of a video |
//! | `[cancel]` `[incomplete]` `[budget]` | ends with this status |
//! | `[inline]` | the answer contains the video |
//! | `[redirect]` `[broken]` | the file redirects, or is not a video (`predict/`) |
//! | `[empty]` | the video in the answer has no bytes |
//! | `[unpriced]` | reports no usage |
//! | `[totals]` | reports usage without modalities |
//!
//! Faults of files are queued for `file/` and the model's name.

mod call;
mod video_spec;

pub(crate) use call::{Create, is_asked};
