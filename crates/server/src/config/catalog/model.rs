//! `[[model]]`: a public model, its price, its capabilities and its routes.

use engine::{RouteLimits, RouteSpec, Routing};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ledger::{PriceCard, PriceKey};
use protocol::{BuiltInProfile, Dialect, Kind, Profile, UnknownDialect};
use toml::de::DeValue;
use upstream::Protocol;

use super::channel::{Channel, ChannelsByName};
use super::known;
use super::price::read_price;
use super::profile::read_profile;
use super::protocols;
use super::routing::{check_fallbacks, read_routing};
use super::source::{Source, Sources};
use crate::config::document::{At, Log, Section, nearest, value};
use crate::known_models::{Day, KnownModel, KnownModels, Origin};

/// The maximum length of a model id in the API.
const ID_BYTES_MAX: usize = 256;

/// A model whose routes have not been matched to live channels yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub id: String,
    pub kind: Kind,
    pub enabled: bool,
    /// Unix seconds.
    pub created: i64,
    pub routes: Vec<RouteSpec>,
    pub routing: Routing,
    /// A model without a price is not listed.
    pub price: Option<PriceCard>,
    pub profile: Profile,
    /// Notes about the model, for the operator.
    pub notes: Vec<String>,
    /// Why channels that list the model are not among its routes.
    pub unfit_channels: Vec<String>,
    pub sources: Sources,
}

/// The valid parts of an entry.
#[derive(Debug)]
pub(crate) struct EntryParts {
    id: Option<At<String>>,
    model: Option<Model>,
    names_routes: bool,
    names_price: bool,
    /// Checked after all models have been read.
    pub(super) fallbacks: Vec<At<String>>,
}

impl EntryParts {
    /// A model that a channel lists and that has no entry.
    pub(crate) fn without_entry(model: Model) -> Self {
        Self {
            id: None,
            model: Some(model),
            names_routes: false,
            names_price: false,
            fallbacks: Vec::new(),
        }
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_ref().map(|id| id.value.as_str())
    }

    /// The id of the model, and its kind if that is valid.
    pub(super) fn named_kind(&self) -> Option<(&str, Option<Kind>)> {
        let model = self.model.as_ref();
        let id = self.id().or(model.map(|model| model.id.as_str()))?;
        Some((id, model.map(|model| model.kind)))
    }

    /// Adds a route to a channel that lists the model, unless the entry names its own routes. The entry may change the
    /// kind or the base of the known model. If the channel cannot serve the changed model, it gets no route.
    pub(crate) fn add_channel_route(&mut self, channel: &Channel, mut route: RouteSpec) {
        if self.names_routes {
            return;
        }
        let Some(model) = &mut self.model else { return };
        if let Some(reason) = why_unfit(channel, model.kind, model.profile.base) {
            model.unfit_channels.push(reason);
            return;
        }
        // Only routes of text models can be pinned to a dialect.
        route.dialect = route.dialect.filter(|_| model.kind == Kind::Text);
        model.routes.push(route);
        model.sources.routes = Source::Channel;
    }
}

pub(crate) fn read(
    section: &mut Section<'_, '_, '_>,
    channels: &ChannelsByName<'_>,
    known: &KnownModels,
) -> EntryParts {
    let id = section.require("id", model_id);
    let known = id.as_ref().and_then(|id| known.find(&id.value));
    let from_catalog = known.map(|(_, origin)| Source::from(origin));
    let source = |named: bool, known: bool| match from_catalog {
        _ if named => Source::File,
        Some(source) if known => source,
        _ => Source::Default,
    };
    let kind = match known {
        Some((known, _)) if !section.has("kind") => {
            section.raw("kind");
            Some(known.kind)
        }
        _ => section.require("kind", read_kind).map(|at| at.value),
    };
    let enabled = section.value("enabled", value::flag).unwrap_or(true);
    let known_created = known.and_then(|(known, _)| known.created);
    let created = section.value("created", unix_seconds);
    let created = created.or(known_created.map(Day::unix_seconds));
    let price = read_price(section, "price");
    let profile = read_profile(section, "profile", kind, known.map(|(it, _)| &it.profile));
    let entry = RoutedEntry {
        kind,
        base: profile.as_ref().and_then(|profile| profile.base),
        // If the entry has no price, its price is derived later from the first route. Until then, costs are checked
        // against the list price of the known model.
        price: price.as_ref().or(known.map(|(known, _)| &known.price)),
        known,
        channels,
    };
    let routes = section.each("routes", |route| read_route(route, &entry));
    let (routing, fallbacks) = read_routing(section, kind);

    let sources = Sources {
        kind: source(section.has("kind"), true),
        created: source(section.has("created"), known_created.is_some()),
        routes: source(section.has("routes"), false),
        price: source(section.has("price"), false),
        profile: source(section.has("profile"), true),
        markup: None,
    };
    let parts = id.as_ref().zip(kind).zip(profile);
    let model = parts.map(|((id, kind), profile)| Model {
        id: id.value.clone(),
        kind,
        enabled,
        created: created.unwrap_or(0),
        routes: routes.into_iter().flatten().collect(),
        routing,
        price,
        profile,
        notes: Vec::new(),
        unfit_channels: Vec::new(),
        sources,
    });
    EntryParts {
        id,
        model,
        names_routes: section.has("routes"),
        names_price: section.has("price"),
        fallbacks,
    }
}

/// The entries with a valid id, kind and profile. A repeated id is reported. A model without a price gets its price
/// from the known model with the same id.
pub(crate) fn valid_entries(
    entries: Vec<EntryParts>,
    channels: &ChannelsByName<'_>,
    known: &KnownModels,
    log: &mut Log<'_>,
) -> Vec<Model> {
    check_fallbacks(&entries, log);
    let mut seen = std::collections::BTreeSet::new();
    let mut models = Vec::with_capacity(entries.len());
    for entry in entries {
        let at = entry
            .id
            .as_ref()
            .map(|id| (id.span.clone(), id.key.clone()));
        let (span, key) = at.unzip();
        let mut report =
            |message| log.report(span.clone(), key.clone().unwrap_or_default(), message);
        if let Some(id) = &entry.id
            && !seen.insert(id.value.clone())
        {
            report(format!("a model `{}` stands above already", id.value));
        }
        let Some(mut model) = entry.model else {
            continue;
        };
        match (&model.price, known.find(&model.id)) {
            (Some(price), _) => {
                let price = price.clone();
                known::drop_unfit_costs(&price, &mut model.routes);
            }
            (None, Some((known, origin))) if !entry.names_price => {
                match known::price(known, &model.routes, channels) {
                    Ok(known) => {
                        model.price = Some(known.price);
                        model.notes = known.notes;
                        model.sources.price = Source::from(origin);
                        model.sources.markup = known.markup;
                    }
                    Err(fault) => report(fault),
                }
            }
            (None, _) => {}
        }
        model.notes.extend(model.unfit_channels.iter().cloned());
        models.push(model);
    }
    models
}

/// The context in which the routes of an entry are checked.
struct RoutedEntry<'e> {
    kind: Option<Kind>,
    base: Option<BuiltInProfile>,
    price: Option<&'e PriceCard>,
    known: Option<(&'e KnownModel, Origin)>,
    channels: &'e ChannelsByName<'e>,
}

fn read_route(section: &mut Section<'_, '_, '_>, entry: &RoutedEntry<'_>) -> Option<RouteSpec> {
    let channel = section.require("channel", value::text);
    let served = channel.as_ref().and_then(|name| {
        let channel = entry.channels.get(name.value.as_str()).copied().flatten()?;
        let (known, _) = entry.known?;
        Some((channel, known, known.offer(channel.preset)?))
    });
    let model = match served {
        // Take the vendor's name for the model from the known model.
        Some((_, _, offer)) if !section.has("model") => {
            section.raw("model");
            Some(offer.model.clone())
        }
        _ => section.require("model", value::text).map(|at| at.value),
    };
    let priority = section.value("priority", value::count).unwrap_or(0);
    let weight = section.value("weight", value::positive).unwrap_or(1);
    let dialect = section.take("dialect", read_dialect);
    let limits = RouteLimits {
        rpm: section.value("rpm", value::positive),
        tpm: section.value("tpm", value::positive),
    };
    let cost = read_price(section, "cost");
    if let Some((price, cost)) = entry.price.zip(cost.as_ref()) {
        check_cost(price, cost, section);
    }
    if let Some(channel) = &channel {
        check_channel(channel, dialect.as_ref(), entry, section.log);
    }
    // If the route does not name a model, its dialect and cost come from the known model too.
    let derived = served.filter(|_| !section.has("model"));
    let dialect = dialect.map(|at| at.value);
    Some(RouteSpec {
        channel: channel?.value,
        model: model?,
        priority,
        weight,
        dialect: dialect.or_else(|| {
            let (channel, known, offer) = derived?;
            known::pinned_dialect(channel.protocols(), known.kind, offer)
        }),
        limits,
        cost: cost.or_else(|| Some(derived?.1.cost(derived?.0.preset).clone())),
    })
}

/// Checks that a cost card has every unit of the price. Usage is metered in the units of the price, so a call that uses
/// a unit without a cost would have no known cost.
fn check_cost(price: &PriceCard, cost: &PriceCard, section: &mut Section<'_, '_, '_>) {
    let lacks =
        |key: &PriceKey| price.unit_price(*key).is_some() && cost.unit_price(*key).is_none();
    // If both a token class and its fallback class are missing, only the fallback class is reported.
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
    entry: &RoutedEntry<'_>,
    log: &mut Log<'_>,
) {
    let RoutedEntry {
        kind,
        base,
        channels,
        ..
    } = *entry;
    if let Some(dialect) = dialect
        && kind.is_some_and(|kind| kind != Kind::Text)
    {
        let message = "a route is pinned to a dialect for text models only";
        log.report(Some(dialect.span.clone()), dialect.key.as_str(), message);
    }
    let channel = match channels.get(name.value.as_str()) {
        Some(Some(channel)) => channel,
        // The problems of the channel are reported at its own entry.
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
    if let Some(message) = kind.and_then(|kind| why_unfit(channel, kind, base)) {
        log.report(Some(name.span.clone()), name.key.as_str(), message);
        return;
    }
    let spoken = channel.protocols();
    if let Some(dialect) = dialect
        && !spoken.contains(&Protocol::from(dialect.value))
    {
        let message = format!("channel `{}` speaks {}", name.value, names(spoken, ", "));
        log.report(Some(dialect.span.clone()), dialect.key.as_str(), message);
    }
}

/// Why a channel cannot serve models of this kind and base. `None` if it speaks a protocol that can.
fn why_unfit(channel: &Channel, kind: Kind, base: Option<BuiltInProfile>) -> Option<String> {
    let (spoken, fitting) = (channel.protocols(), protocols::protocols_for(kind, base));
    if fitting.iter().any(|protocol| spoken.contains(protocol)) {
        return None;
    }
    Some(format!(
        "channel `{}` speaks {}; this {} model needs {}",
        channel.name,
        names(spoken, ", "),
        kind.as_str(),
        names(fitting, " or "),
    ))
}

fn names(protocols: &[Protocol], between: &str) -> String {
    let names: Vec<_> = protocols.iter().map(|protocol| protocol.as_str()).collect();
    names.join(between)
}

/// Ids are used in URLs, headers and metrics, so they have only plain characters, no empty part and no `..`.
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

/// A whole number of seconds, or a date. A date without a time zone is in UTC.
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
