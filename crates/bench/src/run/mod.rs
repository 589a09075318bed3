//! The whole measurement: starts the processes, measures them alternately, and prints the ratios.

mod args;
mod binary;
mod command;
mod disk;
mod figures;
mod floors;
mod gateway;
mod keys;
mod load_command;
mod memory;
mod postgres;
mod rounds;
mod scenario;
mod table;
mod target;

pub(crate) use args::Args;
pub(crate) use binary::Program;
pub(crate) use command::run;
pub(crate) use gateway::{CONFIG, config, free_addresses, serve};
pub(crate) use postgres::Schema;
