//! Estimates the number of tokens in a text or a request, without a tokenizer.
//!
//! Start with `text`, which counts plain text, and `ascii`, its fast part. `json` counts whole
//! requests and returns an upper bound along with the estimate. `media` finds images and other
//! media in them and estimates each. Decision 022 has the reasons.

mod ascii;
mod json;
mod media;
mod text;

pub use json::InputCount;
pub(crate) use json::{JsonCounter, MemberUse, count_value};
pub use media::IMAGE_TOKENS;
pub(crate) use media::image_tokens;
pub use text::{Counter, tokens};
