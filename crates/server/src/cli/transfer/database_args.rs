//! Databases that are named on the command line.

use std::path::{Path, PathBuf};

use store::{Location, Server, Settings};

use crate::cli::context::Context;
use crate::cli::terminal::CommandError;
use crate::config::StoreUrl;

/// A database on the command line, with the options that a server needs.
pub(super) struct DatabaseArgs {
    pub(super) url: Option<StoreUrl>,
    pub(super) password_file: Option<PathBuf>,
    pub(super) ca_file: Option<PathBuf>,
}

impl DatabaseArgs {
    /// The settings to open the database. If no URL is given, the settings of the configured store.
    pub(super) fn settings(self, context: &Context) -> Result<Settings, CommandError> {
        let location = match self.url {
            None => return context.store_settings(),
            Some(StoreUrl::File(path)) => Location::File(path),
            Some(StoreUrl::Server(url)) => Location::Server(Server {
                password: self
                    .password_file
                    .as_deref()
                    .map(read_password)
                    .transpose()?,
                ca_file: self.ca_file,
                ..Server::at(url)
            }),
        };
        Ok(Settings {
            location,
            ..Settings::default()
        })
    }
}

fn read_password(file: &Path) -> Result<String, CommandError> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| {
        CommandError::message(format!("{} cannot be read: {error}", file.display()))
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The path or URL of a database without its password, for messages.
pub(super) fn shown(settings: &Settings) -> String {
    match &settings.location {
        Location::File(path) => path.display().to_string(),
        Location::Server(server) => server.shown(),
    }
}
