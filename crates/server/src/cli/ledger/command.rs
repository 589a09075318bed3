//! `tollgate ledger …`: verifies, reports and reprices the ledger.

use clap::Subcommand;

use super::{report, reprice, verify};
use crate::cli::context::Context;
use crate::cli::terminal::CommandError;

#[derive(Debug, Subcommand)]
pub(crate) enum Ledger {
    /// Check all invariants by recomputing them from the entries; exit 1 on any difference.
    Verify(verify::Verify),
    /// Add up usage and charges by day, wallet, key and model.
    Report(report::Report),
    /// Price stored usage again and check that the charges are the same; exit 1 on any difference.
    Reprice(reprice::Reprice),
}

pub(crate) async fn run(command: Ledger, context: &mut Context) -> Result<(), CommandError> {
    match command {
        Ledger::Verify(command) => verify::run(command, context).await,
        Ledger::Report(command) => report::run(command, context).await,
        Ledger::Reprice(command) => reprice::run(command, context).await,
    }
}
