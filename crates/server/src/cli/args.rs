//! The commands and their arguments.

use clap::{Parser, Subcommand};

use super::accounts::{key, wallet};
use super::context::Global;
#[cfg(feature = "sim")]
use super::simulation::{demo, sim};
use super::{audit, ledger, logs, tasks, tokens};

/// One API in front of many models, billed in credits.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run everything on this machine: simulated upstream, gateway, a funded wallet.
    #[cfg(feature = "sim")]
    Demo(demo::Demo),
    /// Run the gateway.
    Serve,
    /// Check a configuration and show its catalog.
    Check,
    /// Create, fund and show wallets.
    #[command(subcommand)]
    Wallet(wallet::Wallet),
    /// Create, limit and show API keys.
    #[command(subcommand)]
    Key(key::Key),
    /// Create, list and revoke tokens of the admin API, and make links to the console.
    #[command(subcommand)]
    Token(tokens::Token),
    /// Show who changed what.
    Audit(audit::Audit),
    /// Verify, report and reprice the ledger.
    #[command(subcommand)]
    Ledger(ledger::Ledger),
    /// Show the journal of calls.
    Logs(logs::Logs),
    /// Show video tasks.
    #[command(subcommand)]
    Tasks(tasks::Tasks),
    /// Run the simulated upstreams alone.
    #[cfg(feature = "sim")]
    Sim(sim::Sim),
    /// Explain that this build has no simulator.
    #[cfg(not(feature = "sim"))]
    #[command(name = "sim", alias = "demo", hide = true)]
    NoSimulator {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        ignored: Vec<String>,
    },
}
