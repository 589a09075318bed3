//! `tollgate import …`: imports from other gateways.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ledger::Micro;
use store::{Store, StoreState};

use super::report;
use crate::cli::accounts::wallet::credits;
use crate::cli::context::{Context, actor};
use crate::cli::terminal::time;
use crate::cli::terminal::{CommandError, with_sources};
use crate::import::litellm::{self, BudgetsAs, Choices};
use crate::import::{self, ImportPlan, Outcome, SecretsFile, new_api, openrouter};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Import {
    /// From a `LiteLLM` proxy: teams, users, keys and deployments.
    Litellm {
        /// The database (postgres://…), the config.yaml, or both; env:NAME reads one of them from a variable.
        #[arg(required = true, num_args = 1..=2, value_name = "FILE_OR_DB")]
        places: Vec<String>,
        /// How to import the budget of a team or user.
        #[arg(long, value_enum, default_value_t)]
        budgets_as: BudgetsAs,
        /// The credit line of wallets whose team or user has no budget.
        #[arg(long, value_name = "CREDITS", default_value = "0", value_parser = credits)]
        credit_line: Micro,
        #[command(flatten)]
        common: Common,
    },
    /// From `OpenRouter`: the keys and the credits of an account.
    Openrouter {
        /// Answers to GET /api/v1/keys and GET /api/v1/credits.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// A file with the secret of one key, to detect whether existing secrets can keep working.
        #[arg(long, value_name = "FILE")]
        known_key_file: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
    /// From new-api or one-api: users, tokens, channels and ratios.
    NewApi {
        /// The database: postgres://…, a `SQLite` file or a dump of `MySQL`; env:NAME reads one of them from a
        /// variable.
        place: String,
        /// The price group whose ratios become prices; the one with the most users if left out.
        #[arg(long)]
        group: Option<String>,
        #[command(flatten)]
        common: Common,
    },
}

/// The arguments of every import.
#[derive(Debug, Args)]
pub(in crate::cli) struct Common {
    /// Show what would be imported, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// A name for the imported installation, if there are several of the same kind.
    #[arg(long, value_name = "NAME", value_parser = source_name)]
    source: Option<String>,
    /// The file to write channels and models to, for review; it must not exist.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The file to write new secrets to, for keys that need them; only its owner can read it.
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
}

pub(in crate::cli) async fn run(
    command: Import,
    context: &mut Context,
) -> Result<(), CommandError> {
    let (plan, common) = match command {
        Import::Litellm {
            places,
            budgets_as,
            credit_line,
            common,
        } => {
            let places = places.iter().map(|place| resolve_variable(place));
            let places = places.collect::<Result<Vec<_>, _>>()?;
            let salt_key = std::env::var("LITELLM_SALT_KEY").ok();
            let salt_key = salt_key.as_deref().filter(|key| !key.is_empty());
            let choices = Choices {
                budgets_as,
                credit_line,
            };
            let read = litellm::read(&places, salt_key, choices, time::now()).await;
            (read.map_err(|error| command_error(&error))?, common)
        }
        Import::Openrouter {
            files,
            known_key_file,
            common,
        } => {
            let known_key = known_key_file.as_deref().map(read_file).transpose()?;
            let files = files.iter().map(|path| {
                let text = read_file(path)?;
                Ok((path.display().to_string(), text))
            });
            let files = files.collect::<Result<Vec<_>, CommandError>>()?;
            let read = openrouter::read(&files, known_key.as_deref());
            (read.map_err(CommandError::message)?, common)
        }
        Import::NewApi {
            place,
            group,
            common,
        } => {
            let place = resolve_variable(&place)?;
            let read = new_api::read(&place, group.as_deref()).await;
            (read.map_err(|error| command_error(&error))?, common)
        }
    };
    import_plan(&plan, &common, context).await
}

async fn import_plan(
    plan: &ImportPlan,
    common: &Common,
    context: &mut Context,
) -> Result<(), CommandError> {
    let source = common.source.as_deref().unwrap_or(plan.system);
    // Refuse an existing file before anything is written.
    if let Some(out) = common.out.as_ref().filter(|out| out.exists()) {
        return Err(exists(out));
    }
    let outcome = if common.dry_run {
        let store = existing_store(context).await?;
        let comparison = import::compare(store.as_ref(), plan, source).await;
        comparison.map_err(|error| command_error(&error))?.outcome
    } else {
        write(plan, common, source, context).await?
    };
    if !outcome.adds_up() {
        return Err(CommandError::message(
            "the sums of this import do not add up; please report this with the output of --dry-run --json",
        ));
    }
    if context.json {
        let report = report::to_json(plan, &outcome, source, common.dry_run);
        return context.out.json(&report);
    }
    report::show(plan, &outcome, common.dry_run, &mut context.out)?;
    match &common.out {
        Some(out) if !common.dry_run => {
            let out = out.display();
            context
                .out
                .line(format!("channels and models are in {out}; review it"))
        }
        None if !plan.catalog.is_empty() => context
            .out
            .line("channels and models were not written; name a file for them with --out FILE"),
        _ => Ok(()),
    }
}

async fn write(
    plan: &ImportPlan,
    common: &Common,
    source: &str,
    context: &Context,
) -> Result<Outcome, CommandError> {
    let store = context.store()?;
    let comparison = import::compare(Some(&store), plan, source).await;
    let comparison = comparison.map_err(|error| command_error(&error))?;
    if !comparison.outcome.adds_up() {
        return Ok(comparison.outcome);
    }
    let needs_secrets = comparison.fresh_secrets() > 0;
    let mut secrets = match &common.secrets {
        Some(path) if needs_secrets => Some(SecretsFile::open(path)?),
        _ => None,
    };
    let created = import::create(&store, comparison, source, secrets.as_mut(), &actor()).await;
    let outcome = created.map_err(|error| command_error(&error))?;
    if let Some(out) = &common.out {
        write_new(out, &plan.catalog.text(plan.system))?;
    }
    Ok(outcome)
}

/// Opens the store, if it exists and can be compared without a migration.
async fn existing_store(context: &Context) -> Result<Option<Store>, CommandError> {
    let settings = context.store_settings()?;
    match Store::inspect(&settings).await? {
        StoreState::Current { .. } => Ok(Some(context.store()?)),
        StoreState::Absent | StoreState::Older { .. } => Ok(None),
    }
}

fn write_new(path: &Path, text: &str) -> Result<(), CommandError> {
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match created {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            Ok(file.sync_all()?)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(error) => Err(CommandError::message(format!(
            "{}: {error}",
            path.display()
        ))),
    }
}

fn read_file(path: &Path) -> Result<String, CommandError> {
    let text = std::fs::read_to_string(path);
    text.map_err(|error| CommandError::message(format!("{}: {error}", path.display())))
}

fn exists(path: &Path) -> CommandError {
    CommandError::message(format!("{} exists already", path.display()))
}

fn command_error(error: &dyn std::error::Error) -> CommandError {
    CommandError::message(with_sources(error))
}

/// Resolves `env:NAME`, so that a URL with a password need not appear on a command line.
fn resolve_variable(text: &str) -> Result<String, CommandError> {
    let Some(name) = text.strip_prefix("env:") else {
        return Ok(text.to_owned());
    };
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    value.ok_or_else(|| CommandError::message(format!("the variable {name} is not set")))
}

fn source_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if (1..=64).contains(&text.len()) && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("write 1 to 64 letters, digits and any of `-_.`".to_owned())
    }
}
