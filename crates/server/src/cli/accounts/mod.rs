//! `tollgate wallet …` and `tollgate key …`.

pub(super) mod key;
mod statement;
mod view;
pub(super) mod wallet;
