//! Reads a configuration file and reports all its problems at once.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::DeTable;

use super::catalog::{channel, channel_models, live_plan, model};
use super::document::{Environment, Log, Problem, Section, process_environment};
use super::entries::{Entries, EntriesError};
use super::settings::{
    Admin, Alerts, Catalog, Journal, Ledger, Limits, LogOutput, Media, Outbound, Server, Store,
    Tasks, Telemetry, Timeouts,
};
use crate::known_models::KnownModels;

/// A configuration file, typed and checked.
///
/// `Config::default()` has the settings of an empty file in the current folder. A configuration only names secrets;
/// [`resolve`](super::resolve) looks them up.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    /// The file that was read, if the configuration comes from one.
    pub file: Option<PathBuf>,
    pub(crate) text: Arc<str>,
    pub server: Server,
    pub admin: Admin,
    pub store: Store,
    pub media: Media,
    pub outbound: Outbound,
    pub tasks: Tasks,
    pub alerts: Alerts,
    pub limits: Limits,
    pub timeouts: Timeouts,
    pub ledger: Ledger,
    pub journal: Journal,
    pub log: LogOutput,
    /// Boxed, so that futures that hold a configuration stay small.
    pub telemetry: Box<Telemetry>,
    pub catalog: Catalog,
    pub channels: Vec<channel::Channel>,
    pub models: Vec<model::Model>,
}

impl Config {
    /// Reads a file. Its paths are relative to its folder.
    pub fn load(file: &Path) -> Result<Self, Vec<Problem>> {
        Self::parse(&read_text(file)?, file)
    }

    /// Reads the text of a file.
    pub fn parse(text: &str, file: &Path) -> Result<Self, Vec<Problem>> {
        parse_in(text, file, &process_environment)
    }
}

impl Config {
    /// Replaces the channels and models. Returns the new configuration, or the problems of the entries.
    pub(crate) fn with_entries(
        &self,
        entries: &Entries,
    ) -> Result<Result<Self, Vec<Problem>>, EntriesError> {
        let text = entries.write_into(&self.text)?;
        let file = self.file.clone().unwrap_or_default();
        Ok(Self::parse(&text, &file))
    }
}

/// The settings of the store, even if other tables of the file have problems.
pub fn load_store_settings(file: &Path) -> Result<store::Settings, Vec<Problem>> {
    Ok(load_parts(file, &["store"])?.store_settings())
}

/// The settings of the store and of the media storage, even if other tables of the file have problems.
pub fn load_storage_settings(
    file: &Path,
) -> Result<(store::Settings, store::MediaPlace), Vec<Problem>> {
    let config = load_parts(file, &["store", "media"])?;
    Ok((config.store_settings(), config.media_settings().place))
}

/// Reads a file, and ignores problems outside of these tables. Text that is not TOML is always an error.
fn load_parts(file: &Path, tables: &[&str]) -> Result<Config, Vec<Problem>> {
    let text = read_text(file)?;
    let mut log = Log::new(file, &text);
    let (document, faults) = DeTable::parse_recoverable(&text);
    for fault in &faults {
        log.report(fault.span(), "", fault.message());
    }
    let mut config = read(document.get_ref(), &mut log);
    config.file = Some(file.to_owned());
    let mut problems = log.problems;
    // After a syntax error, the settings are guesses.
    if faults.is_empty() {
        let of_secrets = live_plan::storage_secret_problems(&config, &process_environment);
        problems.extend(of_secrets);
    }
    problems.retain(|problem| {
        problem.key.is_empty() || tables.iter().any(|table| problem.key.starts_with(table))
    });
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(sorted(problems))
    }
}

pub(super) fn parse_in(
    text: &str,
    file: &Path,
    environment: Environment<'_>,
) -> Result<Config, Vec<Problem>> {
    let mut log = Log::new(file, text);
    let (document, faults) = DeTable::parse_recoverable(text);
    for fault in &faults {
        log.report(fault.span(), "", fault.message());
    }
    // The parser recovers from a syntax error by guessing. Problems that result from a guess would confuse the
    // operator.
    if !faults.is_empty() {
        return Err(sorted(log.problems));
    }
    let mut config = read(document.get_ref(), &mut log);
    config.file = Some(file.to_owned());
    config.text = text.into();
    // Secrets are looked up here too, so that their problems are reported together with the others.
    if let Err(problems) = live_plan::secrets(&config, environment) {
        log.problems.extend(problems);
    }
    if log.problems.is_empty() {
        Ok(config)
    } else {
        Err(sorted(log.problems))
    }
}

fn read<'d>(document: &'d DeTable<'d>, log: &mut Log<'_>) -> Config {
    let mut root = Section::root(document, log);
    let mut config = Config {
        server: root.table("server", Server::read),
        admin: root.table("admin", Admin::read),
        store: root.table("store", Store::read),
        media: root.table("media", Media::read_checked),
        outbound: root.table("outbound", Outbound::read),
        tasks: root.table("tasks", Tasks::read_checked),
        alerts: root.table("alerts", Alerts::read),
        limits: root.table("limits", Limits::read),
        timeouts: root.table("timeouts", Timeouts::read_checked),
        ledger: root.table("ledger", Ledger::read),
        journal: root.table("journal", Journal::read),
        log: root.table("log", LogOutput::read),
        telemetry: root.table("telemetry", |section| Box::new(Telemetry::read(section))),
        catalog: root.table("catalog", Catalog::read),
        ..Config::default()
    };
    let channels = root.each("channel", channel::read);
    let named = channel::by_name(&channels, root.log);
    let known = known_models(&config.catalog, root.log);
    let mut models = root.each("model", |section| model::read(section, &named, &known));
    channel_models::add(&mut models, &channels, &known, root.log);
    config.models = model::valid_entries(models, &named, &known, root.log);
    config.channels = channel::valid_entries(channels);
    root.end();
    config
}

/// The known models of a configuration. A catalog file that cannot be read is a problem, because prices would differ
/// without it.
fn known_models(catalog: &Catalog, log: &mut Log<'_>) -> Cow<'static, KnownModels> {
    match catalog.known_models() {
        Ok(known) => known,
        Err(fault) => {
            log.report(None, "catalog.file", fault);
            Cow::Borrowed(KnownModels::built_in())
        }
    }
}

fn read_text(file: &Path) -> Result<String, Vec<Problem>> {
    std::fs::read_to_string(file).map_err(|error| {
        vec![Problem {
            file: file.to_owned(),
            position: None,
            key: String::new(),
            message: format!("cannot be read: {error}"),
        }]
    })
}

fn sorted(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_key(|problem| problem.position);
    problems
}

/// The path of every setting that the readers ask for, even if the text lacks it, such as `channel[].name`.
#[cfg(test)]
pub(super) fn known_settings(text: &str) -> std::collections::BTreeSet<String> {
    let file = Path::new("known.toml");
    let mut log = Log::new(file, text);
    let (document, _) = DeTable::parse_recoverable(text);
    let _ = read(document.get_ref(), &mut log);
    log.known
}
