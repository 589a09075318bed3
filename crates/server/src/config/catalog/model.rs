//! `[[model]]`: a public model, its price, its capabilities and its routes.

use engine::RouteSpec;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ledger::{PriceCard, PriceKey};
use protocol::{Base, Dialect, Kind, Profile, UnknownDialect};
use toml::de::DeValue;
use upstream::Protocol;

use super::channel::Named;
use super::price::read_price;
use super::profile::read_profile;
use super::protocols;
use crate::config::document::{At, Log, Section, nearest, value};

/// The contract's bound for a model id.
const ID_BYTES_MAX: usize = 256;

/// A model whose routes have not been matched with live channels yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub id: String,
    pub kind: Kind,
    pub enabled: bool,
    /// Unix seconds.
    pub created: i64,
    pub routes: Vec<RouteSpec>,
    /// A model without a price is not listed.
    pub price: Option<PriceCard>,
    pub profile: Profile,
}

/// An entry, as far as it could be read.
#[derive(Debug)]
pub(crate) struct Draft {
    id: Option<At<String>>,
    model: Option<Model>,
}

pub(crate) fn read(section: &mut Section<'_, '_, '_>, channels: &Named<'_>) -> Draft {
    let id = section.require("id", model_id);
    let kind = section.require("kind", read_kind).map(|at| at.value);
    let enabled = section.value("enabled", value::flag).unwrap_or(true);
    let created = section.value("created", unix_seconds).unwrap_or(0);
    let price = read_price(section, "price");
    let profile = read_profile(section, "profile", kind);
    let base = profile.as_ref().and_then(|profile| profile.base);
    let routes = section.each("routes", |route| {
        read_route(route, kind, base, price.as_ref(), channels)
    });

    let parts = id.as_ref().zip(kind).zip(profile);
    let model = parts.map(|((id, kind), profile)| Model {
        id: id.value.clone(),
        kind,
        enabled,
        created,
        routes: routes.into_iter().flatten().collect(),
        price,
        profile,
    });
    Draft { id, model }
}

/// The entries without problems; a second one of the same id is reported.
pub(crate) fn sound(drafts: Vec<Draft>, log: &mut Log<'_>) -> Vec<Model> {
    let mut seen = std::collections::BTreeSet::new();
    for id in drafts.iter().filter_map(|draft| draft.id.as_ref()) {
        if !seen.insert(id.value.as_str()) {
            let message = format!("a model `{}` stands above already", id.value);
            log.report(Some(id.span.clone()), id.key.as_str(), message);
        }
    }
    drafts.into_iter().filter_map(|draft| draft.model).collect()
}

fn read_route(
    section: &mut Section<'_, '_, '_>,
    kind: Option<Kind>,
    base: Option<Base>,
    price: Option<&PriceCard>,
    channels: &Named<'_>,
) -> Option<RouteSpec> {
    let channel = section.require("channel", value::text);
    let model = section.require("model", value::text);
    let priority = section.value("priority", value::count).unwrap_or(0);
    let weight = section.value("weight", value::positive).unwrap_or(1);
    let dialect = section.take("dialect", read_dialect);
    let cost = read_price(section, "cost");
    if let Some((price, cost)) = price.zip(cost.as_ref()) {
        check_cost(price, cost, section);
    }
    if let Some(channel) = &channel {
        check_channel(channel, dialect.as_ref(), kind, base, channels, section.log);
    }
    Some(RouteSpec {
        channel: channel?.value,
        model: model?.value,
        priority,
        weight,
        dialect: dialect.map(|at| at.value),
        cost,
    })
}

/// A cost card must have every unit that the price has: usage is metered in the units of the price, and a call with
/// a unit that has no cost would have no known cost at all.
fn check_cost(price: &PriceCard, cost: &PriceCard, section: &mut Section<'_, '_, '_>) {
    let lacks =
        |key: &PriceKey| price.unit_price(*key).is_some() && cost.unit_price(*key).is_none();
    // A class that falls back to a missing one is not named beside it.
    let is_first = |key: &PriceKey| key.fallback().is_none_or(|other| !lacks(&other));
    let missing = PriceKey::ALL.into_iter().filter(lacks);
    let missing: Vec<_> = missing.filter(is_first).collect();
    if missing.is_empty() {
        return;
    }
    let names: Vec<_> = missing.iter().map(|key| format!("`{key}`")).collect();
    let path = section.path_of("cost");
    let message = format!(
        "lacks {}, which the price of the model has",
        names.join(", ")
    );
    section.log.report(section.span(), path, message);
}

fn check_channel(
    name: &At<String>,
    dialect: Option<&At<Dialect>>,
    kind: Option<Kind>,
    base: Option<Base>,
    channels: &Named<'_>,
    log: &mut Log<'_>,
) {
    if let Some(dialect) = dialect
        && kind.is_some_and(|kind| kind != Kind::Text)
    {
        let message = "a route is pinned to a dialect for text models only";
        log.report(Some(dialect.span.clone()), dialect.key.as_str(), message);
    }
    let channel = match channels.get(name.value.as_str()) {
        Some(Some(channel)) => channel,
        // Its problems are reported at its own entry.
        Some(None) => return,
        None => {
            let message = match nearest(&name.value, channels.keys().copied()) {
                Some(meant) => format!("no channel `{}`; did you mean `{meant}`?", name.value),
                None => format!("no channel `{}` in this file", name.value),
            };
            log.report(Some(name.span.clone()), name.key.as_str(), message);
            return;
        }
    };
    let spoken = channel.protocols();
    if let Some(kind) = kind {
        let fitting = protocols::protocols_for(kind, base);
        if !fitting.iter().any(|protocol| spoken.contains(protocol)) {
            let message = format!(
                "channel `{}` speaks {}; this {} model needs {}",
                name.value,
                names(spoken, ", "),
                kind.as_str(),
                names(fitting, " or "),
            );
            log.report(Some(name.span.clone()), name.key.as_str(), message);
            return;
        }
    }
    if let Some(dialect) = dialect
        && !spoken.contains(&Protocol::from(dialect.value))
    {
        let message = format!("channel `{}` speaks {}", name.value, names(spoken, ", "));
        log.report(Some(dialect.span.clone()), dialect.key.as_str(), message);
    }
}

fn names(protocols: &[Protocol], between: &str) -> String {
    let names: Vec<_> = protocols.iter().map(|protocol| protocol.as_str()).collect();
    names.join(between)
}

/// Ids are used in URLs, headers and metrics: plain characters, no empty part, no `..`.
fn model_id(raw: &DeValue<'_>) -> Result<String, String> {
    let id = value::text(raw)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:@+~/".contains(c);
    if id.len() > ID_BYTES_MAX {
        return Err(format!("must be at most {ID_BYTES_MAX} bytes"));
    }
    if !id.chars().all(plain) {
        return Err("must be letters, digits and any of `-_.:@+~/`".to_owned());
    }
    if !id.contains('/') || id.split('/').any(str::is_empty) || id.contains("..") {
        return Err("must have the form <maker>/<model>".to_owned());
    }
    Ok(id)
}

fn read_kind(raw: &DeValue<'_>) -> Result<Kind, String> {
    let kinds = [
        Kind::Text,
        Kind::Embedding,
        Kind::Image,
        Kind::Video,
        Kind::Audio,
    ];
    value::one_of(raw, &kinds.map(|kind| (kind.as_str(), kind)))
}

fn read_dialect(raw: &DeValue<'_>) -> Result<Dialect, String> {
    let text = value::text(raw)?;
    text.parse()
        .map_err(|error: UnknownDialect| error.to_string())
}

/// A whole number of seconds, or a date; without a zone it is UTC.
fn unix_seconds(raw: &DeValue<'_>) -> Result<i64, String> {
    let DeValue::Datetime(time) = raw else {
        return value::count::<i64>(raw)
            .map_err(|fault| format!("{fault}; write Unix seconds or a date"));
    };
    let text = time.to_string();
    let stamp = text.parse::<jiff::Timestamp>().or_else(|_| {
        let civil: DateTime = text.parse()?;
        civil.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp())
    });
    stamp
        .map(jiff::Timestamp::as_second)
        .map_err(|_| "must be Unix seconds or a date".to_owned())
}
