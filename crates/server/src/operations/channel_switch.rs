//! Switches a channel on or off, also while a gateway runs.
//!
//! The change is saved where the admin API saves its changes: in the configuration file, or in the store. A running
//! gateway loads it from there like any other change.

use store::{Actor, Store, StoreError};

use crate::config::{CatalogLocation, Config, Entries, EntriesError, FileDraft, Problem};
use crate::gateway::switch_action;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SwitchError {
    #[error("there is no channel {0}")]
    NoChannel(String),
    #[error("somebody else has changed the configuration at the same time; try again")]
    Version,
    #[error("the entries have problems")]
    Problems(Vec<Problem>),
    #[error("the catalog in the store is not readable: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the configuration file cannot be written: {0}")]
    File(#[from] std::io::Error),
    #[error(transparent)]
    Entries(#[from] EntriesError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The channels and models in force: those in the store if `admin.config` says so and the store has a catalog, or else
/// those of the file.
pub(crate) struct EntriesInForce {
    entries: Entries,
    /// The version in the store; 0 if the entries are those of the file.
    version: i64,
    /// The configuration with these entries.
    pub(crate) config: Config,
}

impl EntriesInForce {
    pub(crate) async fn read(config: Config, store: &Store) -> Result<Self, SwitchError> {
        let stored = match config.admin.config {
            CatalogLocation::File => None,
            CatalogLocation::Store => store.latest_catalog().await?,
        };
        let Some(stored) = stored else {
            return Ok(Self {
                entries: Entries::of(&config.text)?,
                version: 0,
                config,
            });
        };
        let entries: Entries = serde_json::from_str(&stored.document)?;
        Ok(Self {
            config: with_entries(&config, &entries)?,
            entries,
            version: stored.version,
        })
    }

    /// Switches a channel on or off, and returns the changed configuration. If the channel already has this state,
    /// nothing changes.
    pub(crate) async fn switch(
        self,
        channel: &str,
        enabled: bool,
        store: &Store,
        actor: &Actor,
    ) -> Result<Config, SwitchError> {
        let mut after = self.entries.clone();
        if !after.switch_channel(channel, enabled) {
            return Err(SwitchError::NoChannel(channel.to_owned()));
        }
        if after == self.entries {
            return Ok(self.config);
        }
        let config = with_entries(&self.config, &after)?;
        let action = switch_action(channel, enabled, &self.entries, &after);
        match config.admin.config {
            CatalogLocation::Store => {
                let document = serde_json::to_string(&after)?;
                let stored = store.replace_catalog(self.version, document, action, actor);
                stored.await?.ok_or(SwitchError::Version)?;
            }
            CatalogLocation::File => {
                let file = config.file.clone().unwrap_or_default();
                let draft = FileDraft::write(&file, &config.text)?;
                store.note_action(action, actor).await?;
                draft.replace()?;
            }
        }
        Ok(config)
    }
}

fn with_entries(config: &Config, entries: &Entries) -> Result<Config, SwitchError> {
    config.with_entries(entries)?.map_err(SwitchError::Problems)
}
