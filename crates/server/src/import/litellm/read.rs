//! Reads `LiteLLM`'s configuration file, its database, or both.

use std::path::Path;

use ledger::UnixMs;

use super::config::{self, Config};
use super::database::{self, DatabaseError, Tables};
use super::models::{self, Channels, Source};
use super::sealed::SealKey;
use super::{Choices, SYSTEM, accounts};
use crate::import::plan::ImportPlan;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("{0}")]
    Config(String),
}

/// Reads a configuration file, the database at a URL, or both. `salt_key` is the value of `LITELLM_SALT_KEY`.
pub(crate) async fn read(
    places: &[String],
    salt_key: Option<&str>,
    choices: Choices,
    now: UnixMs,
) -> Result<ImportPlan, ReadError> {
    let is_server =
        |place: &&String| place.starts_with("postgres://") || place.starts_with("postgresql://");
    let mut config = Config::default();
    let mut plan = ImportPlan::of(SYSTEM);
    for place in places.iter().filter(|place| !is_server(place)) {
        config = config::read(Path::new(place)).map_err(ReadError::Config)?;
    }
    let mut tables = Tables::default();
    let mut servers = places.iter().filter(is_server);
    let server = servers.next();
    if let Some(place) = server {
        tables = database::read(place, &mut config).await?;
    }
    let master_key = config.master_key.as_deref();
    let master_key = master_key.filter(|key| !key.starts_with("os.environ/"));
    let key = salt_key.or(master_key).map(SealKey::of);
    let mut channels = Channels::default();
    for (number, entry) in config.model_list.iter().enumerate() {
        let stored = entry["stored_as"].as_str();
        let source = Source {
            origin: match stored {
                Some(id) => format!("models:{id}"),
                None => format!("model_list:{}", number + 1),
            },
            key: key.as_ref(),
            is_sealed: stored.is_some(),
            credentials: &config.credential_list,
        };
        models::read(entry, &source, &mut channels, &mut plan);
    }
    tell_of_config(&config, server.is_some(), &mut plan);
    if server.is_some() {
        let zone = config.time_zone.as_deref().unwrap_or("UTC");
        accounts::read(&tables, zone, choices, now, &mut plan);
    }
    Ok(plan)
}

fn tell_of_config(config: &Config, has_database: bool, plan: &mut ImportPlan) {
    for (alias, target) in &config.aliases {
        let target = plan.catalog.known_id(SYSTEM, target);
        plan.report(
            &format!("aliases:{alias}"),
            format!("models have one id here; callers name {target}"),
        );
    }
    if config.has_fallbacks {
        plan.notes.push(
            "Fallbacks between models are not carried: a model here has several routes instead, and a caller gets the model it asked for."
                .to_owned(),
        );
    }
    if config.stores_models && !has_database {
        plan.notes.push(
            "The file says store_model_in_db: name the database too, because it has models that the file has not.".to_owned(),
        );
    }
    if !has_database {
        plan.notes
            .push("Keys, teams and users are in the database, which was not named.".to_owned());
    }
    if !config.credential_list.is_empty() {
        plan.notes.push(
            "Values of credential_list are not copied; the list of variables names them."
                .to_owned(),
        );
    }
}
