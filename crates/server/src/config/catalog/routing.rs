//! Reads the settings that decide how the routes of a model are chosen.

use std::collections::BTreeMap;

use engine::{RouteOrder, Routing};
use protocol::Kind;

use super::model::EntryParts;
use crate::config::document::{At, Log, Section, nearest, value};

const FALLBACKS_MAX: usize = 4;

/// Reads `order`, `sticky` and `fallbacks`. Fallbacks are checked after all models have been read.
pub(super) fn read_routing(
    section: &mut Section<'_, '_, '_>,
    kind: Option<Kind>,
) -> (Routing, Vec<At<String>>) {
    let orders = RouteOrder::ALL.map(|order| (order.as_str(), order));
    let order = section.value("order", |raw| value::one_of(raw, &orders));
    let order = order.unwrap_or_default();
    let sticky = section.take("sticky", value::flag);
    if let Some(at) = sticky.as_ref().filter(|at| at.value) {
        let fault = if kind.is_some_and(|kind| kind != Kind::Text) {
            Some("only text models have prompts that an upstream caches")
        } else if order == RouteOrder::Latency {
            Some(
                "calls cannot stick to a route and prefer the fastest one; leave out `order` or `sticky`",
            )
        } else {
            None
        };
        if let Some(fault) = fault {
            section
                .log
                .report(Some(at.span.clone()), at.key.as_str(), fault);
        }
    }
    let fallbacks = section.list("fallbacks", value::text).unwrap_or_default();
    let routing = Routing {
        order,
        sticky: sticky.is_some_and(|at| at.value),
        fallbacks: fallbacks.iter().map(|at| at.value.clone()).collect(),
    };
    (routing, fallbacks)
}

/// Checks that every fallback is another text model of this configuration.
pub(super) fn check_fallbacks(entries: &[EntryParts], log: &mut Log<'_>) {
    let known: BTreeMap<&str, Option<Kind>> =
        entries.iter().filter_map(EntryParts::named_kind).collect();
    for entry in entries {
        let Some((id, kind)) = entry.named_kind() else {
            continue;
        };
        for (index, fallback) in entry.fallbacks.iter().enumerate() {
            let before = entry.fallbacks.iter().take(index);
            let fault = match known.get(fallback.value.as_str()) {
                _ if kind.is_some_and(|kind| kind != Kind::Text) => {
                    Some("only text models fall back to others".to_owned())
                }
                _ if index >= FALLBACKS_MAX => Some(format!("at most {FALLBACKS_MAX} models")),
                _ if fallback.value == id => {
                    Some("a model does not fall back to itself".to_owned())
                }
                _ if before.clone().any(|other| other.value == fallback.value) => {
                    Some(format!("`{}` is listed twice", fallback.value))
                }
                Some(None | Some(Kind::Text)) => None,
                Some(Some(_)) => Some(format!("`{}` is not a text model", fallback.value)),
                None => Some(match nearest(&fallback.value, known.keys().copied()) {
                    Some(meant) => {
                        format!("no model `{}`; did you mean `{meant}`?", fallback.value)
                    }
                    None => format!("no model `{}` in this configuration", fallback.value),
                }),
            };
            if let Some(fault) = fault {
                log.report(Some(fallback.span.clone()), fallback.key.as_str(), fault);
            }
        }
    }
}
