//! The whole measurement: starts the parts, lets them take turns, and tells the ratios.

mod args;
mod ask;
mod binary;
mod command;
mod disk;
mod figures;
mod floors;
mod gateway;
mod keys;
mod memory;
mod postgres;
mod rounds;
mod scenario;
mod table;
mod target;

pub(crate) use args::Args;
pub(crate) use command::run;
