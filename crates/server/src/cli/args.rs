//! Declares the commands and their arguments.

use clap::{Parser, Subcommand};

use super::accounts::{key, wallet};
use super::context::Global;
#[cfg(feature = "sim")]
use super::simulation::{demo, sim};
use super::{
    alerts, audit, catalog, channels, check, health, import, init, ledger, logs, manual, tasks,
    tokens, transfer,
};

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
    /// Ask the running gateway whether it is ready, and fail if it is not.
    Health(health::Health),
    /// Write a configuration for the keys in the environment, with a wallet and a first call.
    Init(init::Init),
    /// Check a configuration and show its catalog.
    Check(check::Check),
    /// Show the known models, and take prices from other catalogs.
    #[command(subcommand)]
    Catalog(catalog::Catalog),
    /// Show the channels, and switch them on and off.
    #[command(subcommand)]
    Channel(channels::Channel),
    /// Create, fund and show wallets.
    #[command(subcommand)]
    Wallet(wallet::Wallet),
    /// Create, limit and show API keys.
    #[command(subcommand)]
    Key(key::Key),
    /// Create, list and revoke tokens of the admin API, and create links to the console.
    #[command(subcommand)]
    Token(tokens::Token),
    /// Show alerts, and set which webhooks get them.
    #[command(subcommand)]
    Alert(alerts::Alert),
    /// Show administrative changes.
    Audit(audit::Audit),
    /// Verify, report and reprice the ledger.
    #[command(subcommand)]
    Ledger(ledger::Ledger),
    /// Show the journal of calls.
    Logs(logs::Logs),
    /// Show video tasks.
    #[command(subcommand)]
    Tasks(tasks::Tasks),
    /// Copy the whole store to a new folder, while servers run.
    Backup(transfer::Backup),
    /// Restore a backup to the configured store, which must be empty.
    Restore(transfer::Restore),
    /// Move the whole store to an empty database.
    Move(transfer::Move),
    /// Print the completion script of a shell.
    Completions(manual::Completions),
    /// Write a manual page for each command to a folder.
    Manual(manual::Manual),
    /// Import accounts, channels and models from another gateway.
    #[command(subcommand)]
    Import(import::Import),
    /// Run only the simulated upstreams.
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
