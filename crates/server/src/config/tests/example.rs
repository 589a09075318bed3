//! Tests that `config/example.toml` shows every setting, and that its commented entries work.

use std::collections::BTreeSet;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::config::catalog::live_plan::resolve_in;
use crate::config::load::{known_settings, parse_in};
use crate::config::*;

const EXAMPLE: &str = include_str!("../../../../../config/example.toml");

/// An environment in which every variable with the name of a secret is set.
fn environment(name: &str) -> Option<String> {
    const SECRETS: [&str; 5] = ["_KEY", "_ID", "_TOKEN", "_PASSWORD", "_SECRET"];
    if name.ends_with("_HEADERS") {
        return Some("x-api-key=secret".to_owned());
    }
    let is_set = SECRETS.iter().any(|kind| name.ends_with(kind));
    is_set.then(|| "secret".to_owned())
}

/// The example with the commented settings uncommented.
fn uncommented() -> String {
    let is_setting = |text: &str| {
        let name = text.split_once(" = ").map(|(name, _)| name);
        text.starts_with("[[")
            || name.is_some_and(|name| {
                name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !name.is_empty()
            })
    };
    let line = |line: &'static str| match line.strip_prefix("# ") {
        Some(rest) if is_setting(rest) => rest,
        _ => line,
    };
    EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The tables of settings are between these two lines of the example.
const TABLES_START: &str = "[server]\n";
const TABLES_END: &str = "# Channels: upstream accounts.";

#[test]
fn the_example_shows_every_setting_as_it_is_declared() {
    let (head, rest) = EXAMPLE.split_once(TABLES_START).unwrap();
    let (_, tail) = rest.split_once(TABLES_END).unwrap();
    let tables = [
        Server::example(),
        Admin::example(),
        Store::example(),
        Media::example(),
        Outbound::example(),
        Tasks::example(),
        Alerts::example(),
        Limits::example(),
        Timeouts::example(),
        Ledger::example(),
        Journal::example(),
        LogOutput::example(),
        Telemetry::example(),
        Catalog::example(),
    ];
    let expected = format!("{head}{}{TABLES_END}{tail}", tables.concat());
    if EXAMPLE != expected && std::env::var_os("TOLLGATE_WRITE_EXAMPLE").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/example.toml");
        std::fs::write(file, &expected).unwrap();
    }
    let advice = "TOLLGATE_WRITE_EXAMPLE=1 makes this test write config/example.toml";
    for (shown, declared) in EXAMPLE.lines().zip(expected.lines()) {
        assert_eq!(shown, declared, "{advice}");
    }
    assert_eq!(EXAMPLE.len(), expected.len(), "{advice}");
}

#[test]
fn the_example_states_the_defaults() {
    let file = Path::new("example.toml");
    let config = parse_in(EXAMPLE, file, &environment).unwrap();
    let expected = Config {
        file: Some(file.to_owned()),
        text: EXAMPLE.into(),
        ..Config::default()
    };
    assert_eq!(config, expected);
}

#[test]
fn every_setting_stands_in_the_example() {
    let text = uncommented();
    let document = DeTable::parse(&text).unwrap();
    let mut shown = BTreeSet::new();
    collect(document.get_ref(), "", &mut shown);
    for known in known_settings(&text) {
        let name = known.rsplit('.').next().unwrap_or_default();
        // The comment of `admin.token` shows both forms of a secret.
        let is_source = matches!(name, "env" | "file");
        // The second name of a setting is only in its comment.
        let is_explained = EXAMPLE.contains(&format!("`{name}` means the same"));
        assert!(
            shown.contains(&known) || is_source || is_explained,
            "{known}"
        );
    }
}

#[test]
fn the_commented_entries_make_a_catalog() {
    // The file that this line names does not exist in tests.
    let text = uncommented().replace("file = \"catalog.toml\"\n", "");
    let config = parse_in(&text, Path::new("example.toml"), &environment).unwrap();
    let plan = resolve_in(&config, &environment).unwrap();
    assert!(plan.unlisted.is_empty(), "{:?}", plan.unlisted);
    assert!(plan.idle.is_empty(), "{:?}", plan.idle);
    let presets: BTreeSet<_> = config
        .channels
        .iter()
        .map(|channel| channel.preset.as_str())
        .collect();
    assert_eq!(presets.len(), 8, "one channel for each preset: {presets:?}");
    let kinds: BTreeSet<_> = config
        .models
        .iter()
        .map(|model| model.kind.as_str())
        .collect();
    assert_eq!(kinds.len(), 5, "one model of each kind: {kinds:?}");
}

/// The paths of all members, such as `channel[].name`.
fn collect(table: &DeTable<'_>, path: &str, into: &mut BTreeSet<String>) {
    for (key, value) in table {
        let path = match path {
            "" => key.get_ref().to_string(),
            path => format!("{path}.{}", key.get_ref()),
        };
        match value.get_ref() {
            DeValue::Table(inner) => collect(inner, &path, into),
            DeValue::Array(items) => {
                for inner in items.iter().filter_map(|item| item.get_ref().as_table()) {
                    collect(inner, &format!("{path}[]"), into);
                }
            }
            _ => {}
        }
        into.insert(path);
    }
}
