//! `tollgate wallet …` and `tollgate key …`.

pub(super) mod key;
mod view;
pub(super) mod wallet;
