//! `tollgate wallet …` and `tollgate key …`.

pub(super) mod key;
mod limit_change;
mod statement;
mod view;
pub(super) mod wallet;
