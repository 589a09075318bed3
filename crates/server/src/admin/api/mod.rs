//! The parts that all resources of the admin API share: errors, pages, extractors, amounts and state.

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod extract;
mod nul;
pub(crate) mod object;
pub(crate) mod page;
pub(crate) mod state;

pub(crate) use crate::operations::amount;
