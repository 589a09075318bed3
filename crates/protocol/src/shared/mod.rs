//! Wire forms that several dialects have in common.

pub(crate) mod iso_time;
pub(crate) mod logprobs;
pub(crate) mod request_member;
pub(crate) mod signature;
pub(crate) mod unsupported;
