//! `[[channel]]`: an upstream account.

use std::collections::BTreeMap;
use std::time::Duration;

use toml::de::DeValue;
use upstream::{Preset, Protocol, UnknownName};

use crate::config::document::{At, Log, SecretSource, Section, read_source, value};

/// An upstream account whose credential has not been looked up yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    pub name: String,
    pub preset: Preset,
    /// The preset's own when absent.
    pub base_url: Option<String>,
    pub credential: Option<SecretSource>,
    /// The preset's own when absent.
    pub protocols: Option<Vec<Protocol>>,
    /// The upstream can reach addresses that callers must not reach through it.
    pub private_network: bool,
    /// Whether the upstream keeps the output limit of a request; by preset and address when absent.
    pub keeps_output_limit: Option<bool>,
    /// How long a call is read for its usage after its client has gone; that of `[timeouts]` when absent.
    pub client_gone_drain: Option<Duration>,
    /// Whether the upstream counts the tokens of requests; by preset when absent.
    pub counts_tokens: Option<bool>,
    /// The path of the entry, such as `channel[0]`.
    pub(crate) key: String,
}

impl Channel {
    /// The configured address, or the preset's.
    pub fn base_url(&self) -> &str {
        let named = self.base_url.as_deref();
        named.or(self.preset.base_url()).unwrap_or_default()
    }

    /// Whether it keeps the output limit of a request.
    pub fn keeps_output_limit(&self) -> bool {
        let by_address = || self.preset.keeps_output_limit(self.base_url.as_deref());
        self.keeps_output_limit.unwrap_or_else(by_address)
    }

    /// Whether it counts the tokens of requests.
    pub fn counts_tokens(&self) -> bool {
        self.counts_tokens.unwrap_or(self.preset.counts_tokens())
    }

    /// The configured protocols, or the preset's.
    pub fn protocols(&self) -> &[Protocol] {
        self.protocols
            .as_deref()
            .unwrap_or_else(|| self.preset.protocols())
    }
}

/// An entry, as far as it could be read. Routes may name an entry that has problems; these are reported
/// once, at the entry.
#[derive(Debug)]
pub(crate) struct Draft {
    name: Option<At<String>>,
    channel: Option<Channel>,
}

/// The channels of the file by name; `None` for an entry with problems.
pub(crate) type Named<'c> = BTreeMap<&'c str, Option<&'c Channel>>;

pub(crate) fn read(section: &mut Section<'_, '_, '_>) -> Draft {
    let name = section.require("name", value::label);
    let preset = section.require("preset", preset);
    let base_url = section.take("base_url", value::web_address);
    let credential = read_source(section, "credential");
    let protocols = section.list("protocols", protocol);
    let private_network = section.value("private_network", value::flag);
    let keeps_output_limit = section.take("keeps_output_limit", value::flag);
    let client_gone_drain = section.take("client_gone_drain_ms", value::millis_or_zero);
    let counts_tokens = section.take("counts_tokens", value::flag);

    if section.is_empty_list("protocols") {
        let path = section.path_of("protocols");
        let message = "must name at least one protocol, or be left out for the preset's own";
        section.log.report(section.span(), path, message);
    }
    if let Some(preset) = &preset
        && preset.value.base_url().is_none()
        && !section.has("base_url")
    {
        let path = section.path_of("base_url");
        let message = format!(
            "is missing: preset `{}` has no address of its own",
            preset.value
        );
        section.log.report(section.span(), path, message);
    }

    let channel = name.as_ref().zip(preset).map(|(name, preset)| Channel {
        name: name.value.clone(),
        preset: preset.value,
        base_url: base_url.map(|at| at.value),
        credential,
        protocols: protocols.map(|list| list.into_iter().map(|at| at.value).collect()),
        private_network: private_network.unwrap_or(false),
        keeps_output_limit: keeps_output_limit.map(|at| at.value),
        client_gone_drain: client_gone_drain.map(|at| at.value),
        counts_tokens: counts_tokens.map(|at| at.value),
        key: section.path().to_owned(),
    });
    Draft { name, channel }
}

/// The entries by name; a second one of the same name is reported.
pub(crate) fn by_name<'c>(drafts: &'c [Draft], log: &mut Log<'_>) -> Named<'c> {
    let mut named = Named::new();
    for draft in drafts {
        let Some(name) = &draft.name else { continue };
        if named.contains_key(name.value.as_str()) {
            let message = format!("a channel `{}` stands above already", name.value);
            log.report(Some(name.span.clone()), name.key.as_str(), message);
            continue;
        }
        named.insert(&name.value, draft.channel.as_ref());
    }
    named
}

/// The entries without problems.
pub(crate) fn sound(drafts: Vec<Draft>) -> Vec<Channel> {
    drafts
        .into_iter()
        .filter_map(|draft| draft.channel)
        .collect()
}

fn preset(raw: &DeValue<'_>) -> Result<Preset, String> {
    value::text(raw)?
        .parse()
        .map_err(|error: UnknownName| error.to_string())
}

fn protocol(raw: &DeValue<'_>) -> Result<Protocol, String> {
    value::text(raw)?
        .parse()
        .map_err(|error: UnknownName| error.to_string())
}
