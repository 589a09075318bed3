//! The command line: one file or folder for each group of commands.
//!
//! `args.rs` declares the arguments, and `run.rs` runs the command. Commands about wallets, keys, the ledger, the
//! journal and tasks open the store themselves, also while a server uses it.

mod accounts;
mod alerts;
mod args;
mod audit;
mod catalog;
mod channels;
mod check;
mod context;
mod health;
mod import;
mod init;
mod ledger;
mod logs;
mod manual;
mod price_text;
mod run;
mod serve;
#[cfg(feature = "sim")]
mod simulation;
mod tasks;
mod terminal;
mod tokens;
mod transfer;
mod user;

#[cfg(test)]
mod tests;

pub use run::main;
