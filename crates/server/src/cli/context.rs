//! Gives a command its configuration, its store and its output.

use std::path::{Path, PathBuf};

use clap::Args;
use store::{Actor, MediaPlace, Settings, Store};

use super::terminal::{CommandError, Output};
use super::user;
use crate::config::{self, Config};
use crate::gateway::{local_address, scheme};

/// The configuration file if none is named.
const CONFIG_FILE: &str = "tollgate.toml";

/// The arguments of every command.
#[derive(Debug, Args)]
pub(super) struct Global {
    /// The configuration file; ./tollgate.toml if left out.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "TOLLGATE_CONFIG",
        hide_env_values = true
    )]
    pub(super) config: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    pub(super) json: bool,
}

/// The common arguments of a command, and its output.
#[derive(Debug)]
pub(super) struct Context {
    config: Option<PathBuf>,
    pub(super) json: bool,
    pub(super) out: Output,
}

impl Context {
    pub(super) fn new(global: Global, out: Output) -> Self {
        Self {
            // An empty variable counts as unset.
            config: global.config.filter(|file| !file.as_os_str().is_empty()),
            json: global.json,
            out,
        }
    }

    /// Reads the configuration, which must exist.
    pub(super) fn config(&self) -> Result<Config, CommandError> {
        let file = self.config_file();
        if self.config.is_none() && !file.exists() {
            return Err(CommandError::message(format!(
                "there is no ./{CONFIG_FILE}. Name a configuration with --config FILE or \
                 TOLLGATE_CONFIG, begin with `tollgate init` or a copy of config/example.toml, or run `tollgate demo`, \
                 which needs none"
            )));
        }
        Ok(Config::load(&file)?)
    }

    /// Reads the configuration. Returns the default one if no file is named and ./tollgate.toml does not exist.
    pub(super) fn config_or_default(&self) -> Result<Config, CommandError> {
        let file = self.config_file();
        if self.config.is_none() && !file.exists() {
            return Ok(Config::default());
        }
        Ok(Config::load(&file)?)
    }

    /// Opens the store, even while a server uses it. Without a configuration file, the store is the embedded database
    /// at its default path. Problems in other tables of the file do not prevent commands such as `key disable`.
    pub(super) fn store(&self) -> Result<Store, CommandError> {
        Ok(Store::attach(&self.store_settings()?)?)
    }

    pub(super) fn store_settings(&self) -> Result<Settings, CommandError> {
        let file = self.config_file();
        if self.config.is_none() && !file.exists() {
            return Ok(Config::default().store_settings());
        }
        Ok(config::load_store_settings(&file)?)
    }

    /// The settings to open the store and the media storage.
    pub(super) fn storage_settings(&self) -> Result<(Settings, MediaPlace), CommandError> {
        let file = self.config_file();
        if self.config.is_none() && !file.exists() {
            let config = Config::default();
            return Ok((config.store_settings(), config.media_settings().place));
        }
        Ok(config::load_storage_settings(&file)?)
    }

    /// The URL at which a browser on this machine reaches the admin listener, according to the configuration.
    pub(super) fn console_url(&self) -> Result<String, CommandError> {
        let config = self.config_or_default()?;
        let scheme = scheme(config.admin.tls.is_some());
        Ok(format!("{scheme}://{}", local_address(config.admin.listen)))
    }

    /// The named configuration file, or the default one.
    pub(super) fn config_file(&self) -> PathBuf {
        self.config
            .clone()
            .unwrap_or_else(|| Path::new(CONFIG_FILE).to_owned())
    }
}

/// The actor to whom the audit attributes the changes of a command.
pub(super) fn actor() -> Actor {
    Actor::cli(&user::name())
}
