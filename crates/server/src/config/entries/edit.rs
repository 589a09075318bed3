//! Replaces entries in the text of a configuration file, and leaves everything else unchanged.

use serde_json::{Map, Value as Json};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table};

use super::convert::{table_to_json, to_item, to_json, to_table};

/// Describes one of the two lists of entries.
pub(super) struct List {
    /// The name of the list in the file.
    pub(super) key: &'static str,
    /// The member that identifies an entry.
    pub(super) id: &'static str,
    /// The order of the members of a new entry.
    order: &'static [&'static str],
}

pub(super) const CHANNELS: List = List {
    key: "channel",
    id: "name",
    order: &[
        "name",
        "preset",
        "enabled",
        "base_url",
        "account",
        "credential",
        "protocols",
        "models",
        "markup",
    ],
};

pub(super) const MODELS: List = List {
    key: "model",
    id: "id",
    order: &[
        "id",
        "kind",
        "created",
        "enabled",
        "routes",
        "order",
        "sticky",
        "fallbacks",
        "price",
        "profile",
    ],
};

/// The entries of a list, as JSON.
pub(super) fn read(document: &DocumentMut, list: &List) -> Vec<Map<String, Json>> {
    match document.get(list.key).map(to_json) {
        Some(Json::Array(items)) => items
            .into_iter()
            .filter_map(|item| match item {
                Json::Object(members) => Some(members),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Replaces the entries of a list. An existing entry keeps its comments and the formatting of its unchanged members.
pub(super) fn write(document: &mut DocumentMut, list: &List, entries: &[Map<String, Json>]) {
    let mut before: Vec<Table> = match document.remove(list.key) {
        Some(Item::ArrayOfTables(tables)) => tables.into_iter().collect(),
        // A list in inline form is rewritten as tables.
        Some(other) => tables_of(&other, list),
        None => Vec::new(),
    };
    if entries.is_empty() {
        return;
    }
    // Tables are printed in the order of their positions. The entries take the old positions in order. If there are
    // more entries than positions, the rest share the last position and are printed in their own order.
    let mut positions: Vec<isize> = before.iter().filter_map(Table::position).collect();
    positions.sort_unstable();
    let mut positions = positions.into_iter();
    let mut previous = None;
    let mut written = ArrayOfTables::new();
    for entry in entries {
        let kept = before
            .iter()
            .position(|table| id_of(&table_to_json(table), list) == id_of(entry, list));
        let mut table = match kept {
            Some(index) => {
                let mut table = before.remove(index);
                update(&mut table, entry);
                table
            }
            None => new_table(entry, list),
        };
        previous = positions.next().or(previous);
        follow_parent(&mut table);
        table.set_position(previous.or_else(|| Some(end_of(document))));
        written.push(table);
    }
    document.insert(list.key, Item::ArrayOfTables(written));
}

/// Clears the positions of the tables inside an entry, so that they are printed with the entry. With their old
/// positions, they would be printed below another entry, and a credential would belong to the wrong channel.
fn follow_parent(table: &mut Table) {
    for (_, item) in table.iter_mut() {
        let nested: Vec<&mut Table> = match item {
            Item::Table(table) => vec![table],
            Item::ArrayOfTables(tables) => tables.iter_mut().collect(),
            Item::None | Item::Value(_) => Vec::new(),
        };
        for table in nested {
            table.set_position(None);
            follow_parent(table);
        }
    }
}

fn id_of(entry: &Map<String, Json>, list: &List) -> Option<String> {
    entry.get(list.id).and_then(Json::as_str).map(str::to_owned)
}

fn tables_of(item: &Item, list: &List) -> Vec<Table> {
    let Json::Array(items) = to_json(item) else {
        return Vec::new();
    };
    let entries = items.iter().filter_map(Json::as_object);
    entries.map(|entry| to_table(entry, list.order)).collect()
}

fn new_table(entry: &Map<String, Json>, list: &List) -> Table {
    let mut table = to_table(entry, list.order);
    table.decor_mut().set_prefix("\n");
    table
}

fn update(table: &mut Table, entry: &Map<String, Json>) {
    let absent: Vec<String> = table
        .iter()
        .map(|(key, _)| key.to_owned())
        .filter(|key| entry.get(key).is_none_or(Json::is_null))
        .collect();
    for key in absent {
        table.remove(&key);
    }
    for (key, json) in entry {
        if table.get(key).is_some_and(|item| to_json(item) == *json) {
            continue;
        }
        match to_item(key, json) {
            // Replacing only the value keeps the comments around the member's name.
            Some(item) => match table.get_mut(key) {
                Some(place) => *place = item,
                None => drop(table.insert(key, item)),
            },
            None => drop(table.remove(key)),
        }
    }
}

/// A position after every table of the document.
fn end_of(document: &DocumentMut) -> isize {
    fn last(table: &Table) -> isize {
        let nested = table.iter().map(|(_, item)| match item {
            Item::Table(table) => last(table),
            Item::ArrayOfTables(tables) => tables.iter().map(last).max().unwrap_or(0),
            Item::None | Item::Value(_) => 0,
        });
        let nested = nested.max().unwrap_or(0);
        nested.max(table.position().unwrap_or(0))
    }
    last(document.as_table()) + 1
}
