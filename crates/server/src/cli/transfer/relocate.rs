//! `tollgate move`: moves the whole store to another database.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::database_args::{DatabaseArgs, shown};
use super::progress::ProgressBar;
use super::report;
use crate::cli::context::Context;
use crate::cli::terminal::CommandError;
use crate::config::StoreUrl;

/// Move the whole store to an empty database.
///
/// Everything is copied: wallets, keys, entries, the journal with its sums, tasks, tokens, the audit and stored
/// configurations. No server may use either database. The source is not changed. Both databases are verified, and only
/// then can the destination be used. If the command is interrupted, run it again: it continues where it stopped.
#[derive(Debug, Args)]
pub(crate) struct Move {
    /// The store to move: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`; the configured one if left out.
    #[arg(long, value_name = "URL", value_parser = StoreUrl::parse, required_unless_present = "to")]
    from: Option<StoreUrl>,
    /// The database to move it to; the configured one if left out.
    #[arg(long, value_name = "URL", value_parser = StoreUrl::parse)]
    to: Option<StoreUrl>,
    /// A file with the password of the source.
    #[arg(long, value_name = "FILE", requires = "from")]
    from_password_file: Option<PathBuf>,
    /// A file with the password of the destination.
    #[arg(long, value_name = "FILE", requires = "to")]
    to_password_file: Option<PathBuf>,
    /// Certificates (PEM) to trust for the source, in addition to the public ones.
    #[arg(long, value_name = "FILE", requires = "from")]
    from_ca_file: Option<PathBuf>,
    /// Certificates (PEM) to trust for the destination, in addition to the public ones.
    #[arg(long, value_name = "FILE", requires = "to")]
    to_ca_file: Option<PathBuf>,
}

pub(crate) async fn run(command: Move, context: &mut Context) -> Result<(), CommandError> {
    let from = DatabaseArgs {
        url: command.from,
        password_file: command.from_password_file,
        ca_file: command.from_ca_file,
    };
    let to = DatabaseArgs {
        url: command.to,
        password_file: command.to_password_file,
        ca_file: command.to_ca_file,
    };
    let (from, to) = (from.settings(context)?, to.settings(context)?);
    let mut bar = ProgressBar::new();
    let moved = store::move_store(&from, &to, |progress| bar.show(progress)).await;
    drop(bar);
    let moved = match moved {
        Ok(moved) => moved,
        Err(error) => return Err(report::failed(&error, context)),
    };
    let (from, to) = (shown(&from), shown(&to));
    if context.json {
        let mut output = report::report_json(&moved);
        output["from"] = json!(from);
        output["to"] = json!(to);
        return context.out.json(&output);
    }
    report::show(&moved, context)?;
    let line = if moved.already_done {
        format!("{to} already has everything of {from}")
    } else {
        format!("moved and verified: {from} to {to}")
    };
    context.out.line(line)?;
    context
        .out
        .line("Set store.url to the new database before you start a server.")
}
