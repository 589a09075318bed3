//! Lists the differences between two entries of a model, value by value.

use std::collections::BTreeMap;

use ledger::Price;
use serde_json::Value;

use crate::known_models::KnownModel;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) id: String,
    /// The path of the value, such as `price.input`.
    pub(crate) what: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    pub(crate) direction: Direction,
}

/// The kind of a change, above all whether a price rises or falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The model was not known before.
    New,
    Dearer,
    Cheaper,
    /// A price was added or removed.
    PriceSet,
    Other,
}

impl Direction {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Dearer => "dearer",
            Self::Cheaper => "cheaper",
            Self::PriceSet => "price",
            Self::Other => "",
        }
    }
}

/// The values that differ. For a new model, these are all values.
pub(crate) fn changes(before: Option<&KnownModel>, after: &KnownModel) -> Vec<Change> {
    let (old, new) = (before.map(values).unwrap_or_default(), values(after));
    let mut paths: Vec<_> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    let differing = paths
        .into_iter()
        .filter(|path| old.get(*path) != new.get(*path));
    differing
        .map(|path| {
            let (before_value, after_value) = (old.get(path), new.get(path));
            Change {
                id: after.id.clone(),
                what: path.clone(),
                before: before_value.cloned(),
                after: after_value.cloned(),
                direction: match before {
                    None => Direction::New,
                    Some(_) => direction(path, before_value, after_value),
                },
            }
        })
        .collect()
}

fn direction(path: &str, before: Option<&String>, after: Option<&String>) -> Direction {
    let is_price = path.starts_with("price.") || path.contains(".cost.");
    if !is_price || path.ends_with("above_tokens") {
        return Direction::Other;
    }
    let price = |text: Option<&String>| text.and_then(|text| text.parse::<Price>().ok());
    match (price(before), price(after)) {
        (Some(before), Some(after)) if after > before => Direction::Dearer,
        (Some(before), Some(after)) if after < before => Direction::Cheaper,
        _ => Direction::PriceSet,
    }
}

/// All values of an entry by path, except for its id and its sources.
fn values(model: &KnownModel) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    if let Ok(Value::Object(members)) = serde_json::to_value(model) {
        for (name, value) in members {
            if name != "id" {
                flatten(&value, name, &mut values);
            }
        }
    }
    values.retain(|path, _| path != "source" && !path.ends_with(".source"));
    values
}

fn flatten(value: &Value, path: String, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                flatten(value, format!("{path}.{name}"), into);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, value) in items.iter().enumerate() {
                flatten(value, format!("{path}[{index}]"), into);
            }
        }
        Value::Array(items) => {
            let items: Vec<_> = items
                .iter()
                .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
                .collect();
            into.insert(path, items.join(" "));
        }
        Value::String(text) => {
            into.insert(path, text.clone());
        }
        other => {
            into.insert(path, other.to_string());
        }
    }
}
