//! Proposes entries for models that an upstream lists, with all known values, for an operator to complete and save.

use protocol::{Dialect, Kind, ListedModel};
use serde_json::{Map, Value, json};
use upstream::{Preset, Protocol};

use crate::config::{Entries, Model, Source, is_reachable, pinned_dialect};
use crate::known_models::{KnownModel, KnownModels};

/// The characters of a public id in addition to letters and digits.
const ID_CHARS: &str = "-_.:@+~/";

/// A `[[model]]` entry without routes, with the values that are known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Proposal {
    pub(crate) entry: Map<String, Value>,
    /// The source of its price and profile; `None` if no price is known.
    pub(crate) source: Option<&'static str>,
    /// Whether the configuration already has a model with this id. If so, saving adds a route to it.
    pub(crate) is_configured: bool,
    /// Whether the channel can serve the model if the channel's `models` list contains the id.
    pub(crate) has_catalog_route: bool,
    /// The dialect that a route must use, from the catalog. `None` if the vendor serves the model in every dialect that
    /// the channel speaks, or if the catalog does not have the model.
    pub(crate) dialect: Option<Dialect>,
}

/// The account whose models are proposed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account<'a> {
    pub(crate) preset: Preset,
    pub(crate) channel: &'a str,
    pub(crate) protocols: &'a [Protocol],
}

/// The models that proposals are taken from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProposalSources<'a> {
    pub(crate) entries: &'a Entries,
    /// The models in force. Models that a channel lists in `models` have no entry, so they are only here.
    pub(crate) in_force: &'a [Model],
    pub(crate) catalog: &'a KnownModels,
}

/// The models of the catalog, for an account whose vendor does not list its models.
pub(crate) fn models_of_catalog(
    account: Account<'_>,
    catalog: &KnownModels,
) -> impl Iterator<Item = ListedModel> {
    let models = catalog.of_preset(account.preset);
    let offers = models.filter_map(move |(model, _)| model.offer(account.preset));
    let reachable = offers.filter(move |offer| is_reachable(account.protocols, offer));
    reachable.map(|offer| ListedModel {
        name: offer.model.clone(),
        title: None,
        kind: None,
        context_tokens: None,
        output_tokens_max: None,
    })
}

/// Proposes an entry for a listed model. Configured models take precedence: one with the same name at the same kind of
/// upstream, or one with the id that this model would get. Otherwise the catalog is used.
pub(crate) fn propose(
    account: Account<'_>,
    listed: &ListedModel,
    sources: ProposalSources<'_>,
) -> Proposal {
    let Account {
        preset, channel, ..
    } = account;
    let ProposalSources {
        entries, catalog, ..
    } = sources;
    let has_name = |model: &KnownModel| {
        let offer = model.offer(preset);
        offer.is_some_and(|offer| offer.model == listed.name)
    };
    let public = catalog.of_preset(preset).find(|(model, _)| has_name(model));
    let id = public.map_or_else(
        || public_id(preset, channel, &listed.name),
        |(model, _)| model.id.clone(),
    );
    let offer = public.and_then(|(model, _)| Some((model, model.offer(preset)?)));
    let dialect =
        offer.and_then(|(model, offer)| pinned_dialect(account.protocols, model.kind, offer));
    // A channel lists models by their ids in the catalog.
    let has_catalog_route = |id: Option<&str>| {
        let fits = |(model, offer): (&KnownModel, _)| {
            id == Some(model.id.as_str()) && is_reachable(account.protocols, offer)
        };
        offer.is_some_and(fits)
    };
    let same_route = |model: &&Map<String, Value>| {
        let is_same = |route: &Value| {
            route.get("model").and_then(Value::as_str) == Some(&listed.name)
                && preset_of(route, entries) == Some(preset.as_str())
        };
        routes(model).any(is_same)
    };
    let same_id = |model: &&Map<String, Value>| id_of(model) == Some(&id);
    let entry = entries.models.iter().find(same_route);
    if let Some(entry) = entry.or_else(|| entries.models.iter().find(same_id)) {
        let mut entry = entry.clone();
        entry.remove("routes");
        entry.remove("enabled");
        let source = entry.contains_key("price").then_some("configuration");
        return Proposal {
            has_catalog_route: has_catalog_route(id_of(&entry)),
            entry,
            source,
            is_configured: true,
            dialect,
        };
    }
    let is_configured = sources.in_force.iter().any(|model| model.id == id);
    let mut entry = Map::new();
    entry.insert("id".to_owned(), json!(id));
    if let Some((model, origin)) = public {
        // The entry leaves out all other values. At run time it takes them from the catalog, including the current
        // price.
        entry.insert("kind".to_owned(), json!(model.kind.as_str()));
        return Proposal {
            entry,
            source: Some(Source::from(origin).as_str()),
            is_configured,
            has_catalog_route: has_catalog_route(Some(&model.id)),
            dialect,
        };
    }
    let kind = listed.kind.unwrap_or(Kind::Text);
    entry.insert("kind".to_owned(), json!(kind.as_str()));
    let mut profile = Map::new();
    if let Some(tokens) = listed.context_tokens {
        profile.insert("context_tokens".to_owned(), json!(tokens));
    }
    if let Some(tokens) = listed.output_tokens_max {
        profile.insert("max_output_tokens".to_owned(), json!(tokens));
    }
    if !profile.is_empty() {
        entry.insert("profile".to_owned(), Value::Object(profile));
    }
    Proposal {
        entry,
        source: None,
        is_configured,
        has_catalog_route: false,
        dialect,
    }
}

/// The public id: `<maker>/<model>`. A name that already has a maker keeps it.
fn public_id(preset: Preset, channel: &str, name: &str) -> String {
    let fitting = |c: char| c.is_ascii_alphanumeric() || ID_CHARS.contains(c);
    let name: String = name
        .chars()
        .map(|c| if fitting(c) { c } else { '-' })
        .collect();
    let name = name.trim_matches('/');
    if name.contains('/') {
        return name.to_owned();
    }
    format!("{}/{name}", preset.maker().unwrap_or(channel))
}

fn id_of(model: &Map<String, Value>) -> Option<&str> {
    model.get("id").and_then(Value::as_str)
}

fn routes(model: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let routes = model.get("routes").and_then(Value::as_array);
    routes.into_iter().flatten()
}

/// The preset of the channel that a route names.
fn preset_of<'e>(route: &Value, entries: &'e Entries) -> Option<&'e str> {
    let name = route.get("channel")?;
    let channel = entries
        .channels
        .iter()
        .find(|it| it.get("name") == Some(name));
    channel?.get("preset")?.as_str()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn listed(name: &str) -> ListedModel {
        ListedModel {
            name: name.to_owned(),
            title: None,
            kind: None,
            context_tokens: None,
            output_tokens_max: None,
        }
    }

    fn entries() -> Entries {
        serde_json::from_value(json!({
            "channels": [
                { "name": "main", "preset": "openai" },
                { "name": "other", "preset": "xai" },
            ],
            "models": [
                {
                    "id": "shop/large",
                    "kind": "text",
                    "enabled": false,
                    "price": { "input": "1", "output": "2" },
                    "routes": [{ "channel": "main", "model": "large" }],
                },
                { "id": "xai/plain", "kind": "text", "routes": [] },
            ],
        }))
        .unwrap()
    }

    fn preset(name: &str) -> Preset {
        name.parse().unwrap()
    }

    fn proposed(name: &str, listed: &ListedModel) -> Proposal {
        proposed_beside(&[], name, listed)
    }

    fn proposed_beside(in_force: &[Model], name: &str, listed: &ListedModel) -> Proposal {
        let account = Account {
            preset: preset(name),
            channel: "new",
            protocols: preset(name).protocols(),
        };
        let sources = ProposalSources {
            entries: &entries(),
            in_force,
            catalog: KnownModels::built_in(),
        };
        propose(account, listed, sources)
    }

    #[test]
    fn a_public_id_has_a_maker_and_plain_characters() {
        for (name, listed, id) in [
            ("openai", "large", "openai/large"),
            ("gemini", "large", "google/large"),
            ("openai-compatible", "large", "local/large"),
            ("openai-compatible", "maker/large", "maker/large"),
            ("openai-compatible", "/models/large", "models/large"),
            ("openai", "ft:large:\u{fc}\"x", "openai/ft:large:--x"),
        ] {
            assert_eq!(public_id(preset(name), "local", listed), id);
        }
    }

    #[test]
    fn what_the_configuration_knows_is_proposed_again() {
        let known = proposed("openai", &listed("large"));
        let price = json!({ "input": "1", "output": "2" });
        assert_eq!(
            Value::Object(known.entry),
            json!({ "id": "shop/large", "kind": "text", "price": price })
        );
        assert_eq!(known.source, Some("configuration"));
        assert!(known.is_configured);
        // The same name at another vendor is another model.
        let other = proposed("xai", &listed("large"));
        assert_eq!(other.entry["id"], "xai/large");
        assert!(other.source.is_none() && !other.is_configured);
        let same_id = proposed("xai", &listed("plain"));
        assert!(same_id.is_configured && same_id.source.is_none());
    }

    #[test]
    fn the_catalog_knows_public_models_with_their_prices() {
        let (model, _) = KnownModels::built_in()
            .of_preset(preset("openai"))
            .next()
            .unwrap();
        let name = &model.offer(preset("openai")).unwrap().model;
        let known = proposed("openai", &listed(name));
        let kind = model.kind.as_str();
        assert_eq!(
            Value::Object(known.entry),
            json!({ "id": model.id, "kind": kind })
        );
        assert_eq!(known.source, Some("catalog"));
        assert!(!known.is_configured && known.has_catalog_route);
    }

    #[test]
    fn a_model_that_another_channel_adds_is_configured() {
        let text = r#"
            [[channel]]
            name = "main"
            preset = "openai"
            credential = { env = "KEY" }
            models = "all"
        "#;
        let config = Config::parse(text, Path::new("tollgate.toml")).unwrap();
        let model = config.models.first().unwrap();
        let name = &model.routes.first().unwrap().model;
        let known = proposed_beside(&config.models, "openai", &listed(name));
        assert_eq!(known.entry["id"], model.id);
        assert!(known.is_configured && known.has_catalog_route);
        assert_eq!(known.source, Some("catalog"));
    }

    #[test]
    fn a_model_that_the_vendor_serves_in_one_dialect_tells_it() {
        let preset = preset("openai");
        let mut models = KnownModels::built_in().of_preset(preset);
        let pinned = models.find_map(|(model, _)| {
            let offer = model.offer(preset)?;
            let dialect = pinned_dialect(preset.protocols(), model.kind, offer)?;
            Some((offer, dialect))
        });
        let (offer, dialect) = pinned.unwrap();
        let known = proposed("openai", &listed(&offer.model));
        assert_eq!(known.dialect, Some(dialect));
    }

    #[test]
    fn what_the_upstream_tells_is_kept() {
        let described = ListedModel {
            kind: Some(Kind::Embedding),
            context_tokens: Some(2048),
            output_tokens_max: Some(1),
            ..listed("vectors")
        };
        assert_eq!(
            Value::Object(proposed("gemini", &described).entry),
            json!({
                "id": "google/vectors",
                "kind": "embedding",
                "profile": { "context_tokens": 2048, "max_output_tokens": 1 },
            })
        );
    }
}
