//! `models = "all"` or a list of ids in a channel: models that need no entry of their own.

use std::collections::BTreeMap;

use engine::Routing;

use super::channel::{self, Channel};
use super::known;
use super::model::{self, Model};
use super::model_choice::ModelChoice;
use super::source::{Source, Sources};
use crate::config::document::{At, Log, nearest};
use crate::known_models::{Day, KnownModel, KnownModels, Origin};

/// Adds the models that channels list to the models with entries. An entry that names its own routes keeps them.
pub(crate) fn add(
    entries: &mut Vec<model::EntryParts>,
    channels: &[channel::EntryParts],
    known: &KnownModels,
    log: &mut Log<'_>,
) {
    let numbered = entries.iter().enumerate();
    let mut indexes: BTreeMap<String, usize> = numbered
        .filter_map(|(index, entry)| Some((entry.id()?.to_owned(), index)))
        .collect();
    for (channel, choice) in channels.iter().filter_map(channel::EntryParts::choice) {
        for (model, origin) in chosen(channel, choice, known, log) {
            let Some(route) = known::route(channel, model) else {
                continue;
            };
            let index = indexes.get(&model.id);
            if let Some(entry) = index.and_then(|index| entries.get_mut(*index)) {
                entry.add_channel_route(channel, route);
            } else {
                indexes.insert(model.id.clone(), entries.len());
                let mut added = model_of(model, origin);
                added.routes.push(route);
                entries.push(model::EntryParts::without_entry(added));
            }
        }
    }
}

/// The models that a channel lists and can serve. A model that the channel cannot serve is reported if the list names
/// its id; `all` and `maker/*` leave it out.
fn chosen<'k>(
    channel: &Channel,
    choice: &At<ModelChoice>,
    known: &'k KnownModels,
    log: &mut Log<'_>,
) -> Vec<(&'k KnownModel, Origin)> {
    let served: Vec<_> = known.of_preset(channel.preset).collect();
    let mut report = |message| log.report(Some(choice.span.clone()), choice.key.as_str(), message);
    if served.is_empty() {
        report(format!(
            "the catalog has no models of preset `{}`; list them as [[model]] entries",
            channel.preset
        ));
        return Vec::new();
    }
    let reachable = |model: &KnownModel| {
        let offer = model.offer(channel.preset);
        offer.is_some_and(|offer| known::is_reachable(channel.protocols(), offer))
    };
    let ModelChoice::Listed(wanted) = &choice.value else {
        let mut all = served;
        all.retain(|(model, _)| reachable(model));
        return all;
    };
    let mut found = Vec::new();
    for name in wanted {
        let maker = name.strip_suffix('*').filter(|maker| maker.ends_with('/'));
        let fits = |model: &KnownModel| match maker {
            Some(maker) => model.id.starts_with(maker) && reachable(model),
            None => model.id == *name,
        };
        let fitting: Vec<_> = served.iter().copied().filter(|(it, _)| fits(it)).collect();
        if fitting.is_empty() {
            let ids = served.iter().map(|(model, _)| model.id.as_str());
            let hint = match nearest(name, ids) {
                Some(meant) => format!("; did you mean `{meant}`?"),
                None => String::new(),
            };
            let preset = channel.preset;
            report(format!(
                "the catalog has no model `{name}` of preset `{preset}`{hint}"
            ));
        }
        for (model, origin) in fitting {
            if !reachable(model) {
                report(format!(
                    "the channel speaks no protocol of `{}`; its `protocols` leave them out",
                    model.id
                ));
            } else if found
                .iter()
                .all(|(other, _): &(&KnownModel, _)| other.id != model.id)
            {
                found.push((model, origin));
            }
        }
    }
    found
}

/// The model of a channel's list that has no entry. Routes and price are added later.
fn model_of(known: &KnownModel, origin: Origin) -> Model {
    let source = Source::from(origin);
    Model {
        id: known.id.clone(),
        kind: known.kind,
        enabled: true,
        created: known.created.map_or(0, Day::unix_seconds),
        routes: Vec::new(),
        routing: Routing::default(),
        price: None,
        profile: known.profile.clone(),
        notes: Vec::new(),
        unfit_channels: Vec::new(),
        sources: Sources {
            kind: source,
            created: known.created.map_or(Source::Default, |_| source),
            routes: Source::Channel,
            price: Source::Default,
            profile: source,
            markup: None,
        },
    }
}
