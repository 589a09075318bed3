//! Converts TOML values to JSON, and back.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, Datetime, InlineTable, Item, Table, TableLike, Value};

/// The only member whose value is a date in TOML. In JSON, which has no dates, it is a string.
const DATE_MEMBER: &str = "created";

/// An item as JSON. A date becomes its text.
pub(super) fn to_json(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Value(value) => value_to_json(value),
        Item::Table(table) => Json::Object(table_to_json(table)),
        Item::ArrayOfTables(tables) => tables
            .iter()
            .map(|table| Json::Object(table_to_json(table)))
            .collect(),
    }
}

pub(super) fn table_to_json(table: &dyn TableLike) -> Map<String, Json> {
    let members = table.iter().filter(|(_, item)| !item.is_none());
    members
        .map(|(key, item)| (key.to_owned(), to_json(item)))
        .collect()
}

fn value_to_json(value: &Value) -> Json {
    match value {
        Value::String(text) => Json::String(text.value().clone()),
        Value::Integer(number) => Json::from(*number.value()),
        Value::Float(number) => Json::from(*number.value()),
        Value::Boolean(flag) => Json::Bool(*flag.value()),
        Value::Datetime(time) => Json::String(time.value().to_string()),
        Value::Array(items) => items.iter().map(value_to_json).collect(),
        Value::InlineTable(table) => Json::Object(table_to_json(table)),
    }
}

/// Converts a member to TOML, with tables and lists on one line. `None` for null, which TOML does not have; the member
/// is left out.
pub(super) fn to_item(key: &str, json: &Json) -> Option<Item> {
    if let Json::String(text) = json
        && key == DATE_MEMBER
        && let Ok(date) = text.parse::<Datetime>()
    {
        return Some(Item::Value(date.into()));
    }
    to_value(json).map(Item::Value)
}

fn to_value(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::from(number),
            None => Value::from(number.as_f64()?),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::Array(items.iter().filter_map(to_value).collect::<Array>()),
        Json::Object(members) => {
            let mut table = InlineTable::new();
            for (key, json) in members {
                if let Some(value) = to_value(json) {
                    table.insert(key, value);
                }
            }
            Value::InlineTable(table)
        }
    })
}

/// Creates the table of a new entry, with its members in the given order.
pub(super) fn to_table(members: &Map<String, Json>, order: &[&str]) -> Table {
    let mut table = Table::new();
    let rank = |key: &str| order.iter().position(|known| *known == key);
    let mut keys: Vec<_> = members.keys().collect();
    keys.sort_by_key(|key| rank(key).unwrap_or(order.len()));
    for key in keys {
        if let Some(item) = members.get(key).and_then(|json| to_item(key, json)) {
            table.insert(key, item);
        }
    }
    table
}
