//! Estimates how many tokens a text or a request is, without a tokenizer.
//!
//! Start with `text`, which counts plain text, and `ascii`, its fast part. `json` counts whole requests and gives an upper
//! bound beside the estimate. `media` finds images and other media in them and says what each
//! counts as. Decision 022 has the reasons.

mod ascii;
mod json;
mod media;
mod text;

pub use json::{BYTES_PER_TOKEN_MAX, InputCount};
pub(crate) use json::{JsonCounter, Reading, count_value};
pub use media::IMAGE_TOKENS;
pub use text::{Counter, tokens};
