//! `price = { … }`: the price card of a model.

use std::collections::BTreeMap;
use std::ops::Range;

use ledger::{CardFault, PriceCard, PriceError, PriceKey, PriceValue};
use protocol::Tool;
use toml::Spanned;
use toml::de::DeValue;

use crate::config::document::{Section, kind_of, nearest};

/// Reads a price card and reports each problem at its place.
pub(crate) fn read_price(
    section: &mut Section<'_, '_, '_>,
    key: &'static str,
) -> Option<PriceCard> {
    let raw = section.raw(key)?;
    let path = section.path_of(key);
    let PriceValue::Table(mut members) = value_of(raw.get_ref()) else {
        let message = format!("must be a table, found {}", kind_of(raw.get_ref()));
        section.log.report(Some(raw.span()), path, message);
        return None;
    };
    if let Some(PriceValue::Table(tools)) = members.get_mut("tools") {
        for (name, fault) in name_tools(tools) {
            let span = span_of(raw, &format!("tools.{name}"));
            section
                .log
                .report(Some(span), format!("{path}.tools.{name}"), fault);
        }
    }
    match PriceCard::parse(&members) {
        Ok(card) => Some(card),
        Err(faults) => {
            for fault in faults {
                let (span, key, message) = problem_of(raw, &path, &fault);
                section.log.report(Some(span), key, message);
            }
            None
        }
    }
}

/// Replaces vendors' names of tools with the names under which tools are metered. Returns a fault for each unknown
/// tool, because its price would never be charged, and for each tool that is priced twice.
fn name_tools(tools: &mut BTreeMap<String, PriceValue>) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    for (name, value) in std::mem::take(tools) {
        let Some(tool) = Tool::of(&name) else {
            let known = Tool::ALL.map(Tool::as_str);
            let fault = match nearest(&name, known) {
                Some(meant) => format!("is no built-in tool; did you mean `{meant}`?"),
                None => format!("is no built-in tool; they are {}", known.join(", ")),
            };
            faults.push((name, fault));
            continue;
        };
        if tools.insert(tool.as_str().to_owned(), value).is_some() {
            let fault = format!(
                "is another name of `{}`, which has a price already",
                tool.as_str()
            );
            faults.push((name, fault));
        }
    }
    faults
}

/// The position, the full path and the message of a problem.
fn problem_of(
    card: &Spanned<DeValue<'_>>,
    path: &str,
    fault: &PriceError,
) -> (Range<usize>, String, String) {
    let PriceError::Card { key, fault } = fault else {
        return (card.span(), path.to_owned(), fault.to_string());
    };
    let message = match fault {
        CardFault::Unknown => {
            let name = key.rsplit('.').next().unwrap_or(key);
            let known = PriceKey::ALL.map(PriceKey::as_str);
            let others = ["tools", "long_context", "above_tokens"];
            match nearest(name, known.into_iter().chain(others)) {
                Some(meant) => format!("is not a price key; did you mean `{meant}`?"),
                None => fault.to_string(),
            }
        }
        other => other.to_string(),
    };
    (span_of(card, key), format!("{path}.{key}"), message)
}

/// The position of a member such as `long_context[1].output`. If the member is missing, the position of its parent.
fn span_of(card: &Spanned<DeValue<'_>>, path: &str) -> Range<usize> {
    let mut at = card;
    for step in path.split(['.', '[']) {
        let next = match (at.get_ref(), step.strip_suffix(']')) {
            (DeValue::Array(items), Some(index)) => {
                index.parse().ok().and_then(|index: usize| items.get(index))
            }
            (DeValue::Table(table), _) => table.get(step),
            _ => None,
        };
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    at.span()
}

fn value_of(value: &DeValue<'_>) -> PriceValue {
    match value {
        DeValue::String(text) => PriceValue::Text(text.as_ref().to_owned()),
        DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix())
            .map_or(PriceValue::Unfit("a number"), PriceValue::Whole),
        DeValue::Array(items) => {
            PriceValue::List(items.iter().map(|item| value_of(item.get_ref())).collect())
        }
        DeValue::Table(table) => PriceValue::Table(
            table
                .iter()
                .map(|(key, value)| (key.get_ref().as_ref().to_owned(), value_of(value.get_ref())))
                .collect(),
        ),
        other @ (DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_)) => {
            PriceValue::Unfit(kind_of(other))
        }
    }
}
