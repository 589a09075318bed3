//! `[[channel]]`: an upstream account.

use std::collections::BTreeMap;
use std::time::Duration;

use ledger::{DecimalError, Markup};
use toml::de::DeValue;
use upstream::{Preset, Protocol, UnknownName};

use super::account::{self, AccountSettings};
use super::model_choice::{ModelChoice, read_choice};
use crate::config::document::{
    At, Log, SecretSource, Section, kind_of, nearest, read_source, value,
};

/// An upstream account whose credential has not been looked up yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    pub name: String,
    pub preset: Preset,
    /// `false` takes the channel out of use. Running calls and open tasks still finish.
    pub enabled: bool,
    /// The preset's address if absent.
    pub base_url: Option<String>,
    pub credential: Option<SecretSource>,
    /// The settings that the preset needs in addition to the credential.
    pub account: AccountSettings,
    /// The preset's protocols if absent.
    pub protocols: Option<Vec<Protocol>>,
    /// Whether the upstream can reach private addresses. URLs of callers are then checked before they are sent to it.
    pub private_network: bool,
    /// Whether the upstream obeys the output limit of a request. If absent, decided by preset and address.
    pub keeps_output_limit: Option<bool>,
    /// How long a call is read for its usage after its client has left. If absent, the value of `[timeouts]`.
    pub client_gone_drain: Option<Duration>,
    /// Whether the upstream can count the tokens of a request. If absent, decided by the preset.
    pub counts_tokens: Option<bool>,
    /// Whether the upstream gets a `traceparent` header with each call that is traced.
    pub sends_traceparent: bool,
    /// The known models that the channel serves without entries of their own.
    pub models: Option<ModelChoice>,
    /// The factor between the channel's costs and the prices of models without a price of their own.
    pub markup: Option<Markup>,
    /// The path of the entry, such as `channel[0]`.
    pub(crate) key: String,
}

impl Channel {
    pub fn base_url(&self) -> String {
        if let Some(named) = &self.base_url {
            return named.clone();
        }
        // If an account setting is not in the file, the address keeps its placeholder.
        let filled = self.preset.base_url_of(&account::shown(&self.account));
        let template = || self.preset.base_url().map(str::to_owned);
        filled.ok().flatten().or_else(template).unwrap_or_default()
    }

    pub fn keeps_output_limit(&self) -> bool {
        let by_address = || self.preset.keeps_output_limit(self.base_url.as_deref());
        self.keeps_output_limit.unwrap_or_else(by_address)
    }

    pub fn counts_tokens(&self) -> bool {
        self.counts_tokens.unwrap_or(self.preset.counts_tokens())
    }

    pub fn protocols(&self) -> &[Protocol] {
        self.protocols
            .as_deref()
            .unwrap_or_else(|| self.preset.protocols())
    }
}

/// The valid parts of an entry. A route may name an entry that has problems. The problems are then reported only once,
/// at the entry.
#[derive(Debug)]
pub(crate) struct EntryParts {
    name: Option<At<String>>,
    channel: Option<Channel>,
    models: Option<At<ModelChoice>>,
}

impl EntryParts {
    /// The channel, and the models that it lists.
    pub(crate) fn choice(&self) -> Option<(&Channel, &At<ModelChoice>)> {
        self.channel.as_ref().zip(self.models.as_ref())
    }
}

/// The channels of the file by name; `None` for an entry without a valid preset.
pub(crate) type ChannelsByName<'c> = BTreeMap<&'c str, Option<&'c Channel>>;

pub(crate) fn read(section: &mut Section<'_, '_, '_>) -> EntryParts {
    let name = section.require("name", value::label);
    let preset = section.require("preset", preset);
    let enabled = section.value("enabled", value::flag).unwrap_or(true);
    let base_url = section.take("base_url", value::web_address);
    let credential = read_source(section, "credential");
    let protocols = section.list("protocols", protocol);
    let private_network = section.value("private_network", value::flag);
    let keeps_output_limit = section.take("keeps_output_limit", value::flag);
    let client_gone_drain = section.take("client_gone_drain_ms", value::millis_or_zero);
    let counts_tokens = section.take("counts_tokens", value::flag);
    let sends_traceparent = section.value("sends_traceparent", value::flag);
    let account = if let Some(preset) = &preset {
        account::read(section, preset.value)
    } else {
        // Without a preset, the account cannot be checked.
        section.raw("account");
        AccountSettings::new()
    };
    let models = section.take("models", read_choice);
    let markup = section.value("markup", read_markup);

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
        enabled,
        base_url: base_url.map(|at| at.value),
        credential,
        account,
        protocols: protocols.map(|list| list.into_iter().map(|at| at.value).collect()),
        private_network: private_network.unwrap_or(preset.value.is_in_private_network()),
        keeps_output_limit: keeps_output_limit.map(|at| at.value),
        client_gone_drain: client_gone_drain.map(|at| at.value),
        counts_tokens: counts_tokens.map(|at| at.value),
        sends_traceparent: sends_traceparent.unwrap_or(false),
        models: models.as_ref().map(|at| at.value.clone()),
        markup,
        key: section.path().to_owned(),
    });
    EntryParts {
        name,
        channel,
        models,
    }
}

/// The entries by name. Reports repeated names.
pub(crate) fn by_name<'c>(entries: &'c [EntryParts], log: &mut Log<'_>) -> ChannelsByName<'c> {
    let mut named = ChannelsByName::new();
    for entry in entries {
        let Some(name) = &entry.name else { continue };
        if named.contains_key(name.value.as_str()) {
            let message = format!("a channel `{}` stands above already", name.value);
            log.report(Some(name.span.clone()), name.key.as_str(), message);
            continue;
        }
        named.insert(&name.value, entry.channel.as_ref());
    }
    named
}

/// The entries with a valid name and preset. Problems of their other members are already in the log.
pub(crate) fn valid_entries(entries: Vec<EntryParts>) -> Vec<Channel> {
    entries
        .into_iter()
        .filter_map(|entry| entry.channel)
        .collect()
}

fn preset(raw: &DeValue<'_>) -> Result<Preset, String> {
    let name = value::text(raw)?;
    name.parse().map_err(|error: UnknownName| {
        match nearest(&name, Preset::all().map(Preset::as_str)) {
            Some(meant) => format!("is no preset; did you mean `{meant}`?"),
            None => error.to_string(),
        }
    })
}

fn read_markup(raw: &DeValue<'_>) -> Result<Markup, String> {
    let DeValue::String(text) = raw else {
        let found = kind_of(raw);
        return Err(format!(
            "must be a decimal text such as \"1.2\", found {found}"
        ));
    };
    text.parse().map_err(|error: DecimalError| match error {
        DecimalError::Malformed => "must be a decimal text above 0, such as \"1.2\"".to_owned(),
        other => other.to_string(),
    })
}

fn protocol(raw: &DeValue<'_>) -> Result<Protocol, String> {
    value::text(raw)?
        .parse()
        .map_err(|error: UnknownName| error.to_string())
}
