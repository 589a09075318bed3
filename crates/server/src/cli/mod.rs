//! The command line: one file or folder for each group of commands.
//!
//! `args.rs` declares the arguments, `run.rs` calls the group of the command. Commands about
//! wallets, keys, the ledger, the journal and tasks work on the store beside a running server.

mod accounts;
mod args;
mod audit;
mod check;
mod context;
mod ledger;
mod logs;
mod run;
mod serve;
#[cfg(feature = "sim")]
mod simulation;
mod tasks;
mod terminal;
mod tokens;

#[cfg(test)]
mod tests;

pub use run::main;
