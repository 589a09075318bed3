//! Text calls in five dialects, and the token counts of their requests.

mod call;
pub(crate) mod capability_check;
pub(crate) mod request;
pub(crate) mod token_count;
