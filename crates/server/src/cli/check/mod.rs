//! `tollgate check`: the problems of a configuration, its catalog, and what its upstreams and stores say.

mod command;
mod live;

pub(super) use command::{Check, run};
