//! Removes words and members that identify the upstream from its texts and answers.
//!
//! An upstream's error message is worth passing on, because it says which member is wrong and why. The
//! message may also identify the upstream. A list of words to remove could never be complete. So [`explain`]
//! passes on only words that are known to be harmless: plain English and API words (`vocabulary.rs`), small
//! numbers, and the client's own words. [`mask`] is for content, such as the names of voices. It removes
//! known kinds of identity and keeps the rest. `WordEdits` changes an upstream's texts inside an answer that
//! otherwise passes unchanged. `Ids` removes the members that identify the upstream.

mod explain;
mod identity;
mod ids;
mod names;
mod places;
mod vendors;
mod vocabulary;
mod words;

pub use explain::explain;
pub(crate) use explain::{explain_code, explain_path};
pub use identity::{mask, mask_keys};
pub(crate) use ids::{Ids, is_identity, strip, strip_transcript};
pub use names::Names;
pub(crate) use words::WordEdits;
