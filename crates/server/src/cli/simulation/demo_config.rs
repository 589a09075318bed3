//! Builds the configuration of `tollgate demo`: the built-in one, with the entries that the console has added.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Map, Value};

use crate::cli::terminal::CommandError;
use crate::config::{Config, Entries, EntriesError, FileDraft, read_if_exists};

/// The addresses of the parts of the demo.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listeners {
    pub(super) upstream: SocketAddr,
    pub(super) gateway: SocketAddr,
    pub(super) admin: SocketAddr,
}

/// The configuration of this start. It keeps the entries that the last start left in the file.
pub(super) fn config(listeners: Listeners, data: &Path) -> Result<Config, CommandError> {
    let file = data.join("demo.toml");
    let kept = read_if_exists(&file)?;
    let text = text(listeners, kept.as_deref()).map_err(|error| {
        let file = file.display();
        CommandError::message(format!("{file}: {error}. Mend the file or remove it."))
    })?;
    Ok(Config::parse(&text, &file)?)
}

/// Writes the configuration to its file, where the console can change it.
pub(super) fn write_file(config: &Config) -> io::Result<()> {
    let Some(file) = &config.file else {
        return Ok(());
    };
    if read_if_exists(file)?.is_some() {
        return FileDraft::write(file, &config.text)?.replace();
    }
    std::fs::write(file, &*config.text)
}

/// The text of the configuration: the built-in settings, the entries of `kept`, and the built-in entries that `kept`
/// lacks.
fn text(listeners: Listeners, kept: Option<&str>) -> Result<String, EntriesError> {
    let built_in = include_str!("demo.toml")
        .replace("SIM_ADDRESS", &listeners.upstream.to_string())
        .replace("LISTEN_ADDRESS", &listeners.gateway.to_string())
        .replace("ADMIN_ADDRESS", &listeners.admin.to_string());
    let Some(kept) = kept else {
        return Ok(built_in);
    };
    let own = Entries::of(&built_in)?;
    let mut entries = Entries::of(kept)?;
    complete(&mut entries.models, &own.models, "id");
    complete(&mut entries.channels, &own.channels, "name");
    // The simulated upstream listens on a free port, which is different at each start.
    for channel in &mut entries.channels {
        let is_same = |it: &&Map<String, Value>| it.get("name") == channel.get("name");
        let own = own.channels.iter().find(is_same);
        if let Some(address) = own.and_then(|own| own.get("base_url")) {
            channel.insert("base_url".to_owned(), address.clone());
        }
    }
    entries.write_into(&built_in)
}

/// Adds the built-in entries that are missing.
fn complete(entries: &mut Vec<Map<String, Value>>, own: &[Map<String, Value>], name: &str) {
    for entry in own {
        if !entries.iter().any(|it| it.get(name) == entry.get(name)) {
            entries.push(entry.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::json;

    use super::super::demo::MODEL;
    use super::*;
    use crate::config;

    fn listeners(port: u16) -> Listeners {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Listeners {
            upstream: at(port),
            gateway: at(1),
            admin: at(2),
        }
    }

    #[test]
    fn the_built_in_configuration_makes_a_catalog() {
        let folder = tempfile::tempdir().unwrap();
        let (data, listeners) = (folder.path().join("new"), listeners(9));
        let config = config(listeners, &data).unwrap();
        assert_eq!(config.file, Some(data.join("demo.toml")));
        assert_eq!(
            (config.server.listen, config.admin.listen),
            (listeners.gateway, listeners.admin)
        );
        let plan = config::resolve(&config).unwrap();
        assert!(plan.unlisted.is_empty(), "{:?}", plan.unlisted);
        assert!(plan.models.iter().any(|model| model.id == MODEL));
        assert_eq!(
            plan.channels[0].base_url.as_deref(),
            Some("http://127.0.0.1:9/v1")
        );
    }

    #[test]
    fn what_was_added_to_a_demo_stays_and_addresses_are_those_of_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let start = |port| config(listeners(port), folder.path());
        let first = start(9).unwrap();
        write_file(&first).unwrap();
        let mut entries = Entries::of(&first.text).unwrap();
        let added = json!({ "name": "mine", "preset": "sim", "base_url": "http://127.0.0.1:7/v1" });
        entries.channels.push(added.as_object().unwrap().clone());
        entries.models.retain(|model| model["id"] == "sim/mini");
        entries.models[0]["price"]["output"] = json!("3");
        let text = entries.write_into(&first.text).unwrap();
        std::fs::write(first.file.as_ref().unwrap(), text).unwrap();
        let second = start(10).unwrap();
        let channels = second.channels.iter();
        let addresses: Vec<_> = channels.map(config::Channel::base_url).collect();
        assert_eq!(
            addresses,
            ["http://127.0.0.1:10/v1", "http://127.0.0.1:7/v1"]
        );
        let kept = Entries::of(&second.text).unwrap();
        assert_eq!(kept.models[0]["price"]["output"], "3");
        // The demo needs its models for the first call.
        assert_eq!(second.models.len(), first.models.len());
        std::fs::write(second.file.as_ref().unwrap(), "channel = ").unwrap();
        let broken = start(11).unwrap_err().to_string();
        assert!(
            broken.contains("demo.toml") && broken.contains("remove it"),
            "{broken}"
        );
    }
}
