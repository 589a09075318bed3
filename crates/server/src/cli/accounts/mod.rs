//! `tollgate wallet …` and `tollgate key …`.

pub(super) mod key;
mod secret;
mod view;
pub(super) mod wallet;
