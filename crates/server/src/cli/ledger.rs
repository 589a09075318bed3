//! `tollgate ledger …`: what the books say, and proof that they are right.

use clap::Subcommand;

use super::context::Context;
use super::stop::Stop;
use super::{report, reprice, verify};

#[derive(Debug, Subcommand)]
pub(super) enum Ledger {
    /// Recompute every invariant from the entries; exit 1 on any difference.
    Verify(verify::Verify),
    /// Add up usage and charges by day, wallet, key and model.
    Report(report::Report),
    /// Price stored usage again and prove the same total; exit 1 on any difference.
    Reprice(reprice::Reprice),
}

pub(super) async fn run(command: Ledger, context: &mut Context) -> Result<(), Stop> {
    match command {
        Ledger::Verify(command) => verify::run(command, context).await,
        Ledger::Report(command) => report::run(command, context).await,
        Ledger::Reprice(command) => reprice::run(command, context).await,
    }
}
