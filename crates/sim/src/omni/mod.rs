//! Videos through Interactions: the answer is sent when the video is ready.
//!
//! Models whose names begin with `sim-omni` make videos. A script sets how long this takes, as in `sim-omni+delay=3s`.
//! Words in brackets in the prompt change the answer:
//!
//! | word | effect |
//! |---|---|
//! | `[fail]` | the output is blocked |
//! | `[refuse]` | a text instead of a video |
//! | `[cancel]` `[incomplete]` `[budget]` | ends with this status |
//! | `[inline]` | the answer contains the video, even if the caller asked for a link |
//! | `[redirect]` `[broken]` | the file redirects, or is not a video, as in `predict/` |
//! | `[empty]` | the video in the answer has no bytes |
//! | `[unpriced]` | reports no usage |
//! | `[totals]` | reports usage without modalities |
//!
//! Faults for files are queued for `file/` followed by the model's name.

mod call;
mod video_spec;

pub(crate) use call::{Create, is_asked};
