//! `tollgate check`: the problems of a configuration, its catalog, and the answers of its upstreams and stores.

mod command;
mod live;

pub(super) use command::{Check, run};
