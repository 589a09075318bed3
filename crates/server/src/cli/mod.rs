//! The command line: one file for each group of commands.
//!
//! `args.rs` says what can be asked, `run.rs` hands it to the file of its group. Commands about
//! wallets, keys, the ledger, the journal and tasks work on the store beside a running server.

mod args;
mod check;
mod context;
#[cfg(feature = "sim")]
mod demo;
mod explain;
#[cfg(feature = "sim")]
mod fetch;
mod heads;
mod key;
mod ledger;
mod logs;
mod output;
mod patience;
mod report;
mod reprice;
mod run;
mod secret;
mod serve;
#[cfg(feature = "sim")]
mod sim;
mod span;
mod stop;
mod table;
mod tasks;
mod verify;
mod view;
mod wallet;
mod when;

#[cfg(test)]
mod tests;

pub use run::main;
