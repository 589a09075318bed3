//! Writes a catalog file.

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value, value};

use super::entry::KnownModel;

const HEAD: &str = "# Known models that replace those of the program, written by `tollgate catalog import`.\n\
                    # The form is that of catalog/models.toml; entries may be changed and removed.\n\n";

/// The order of the members of an entry.
const ORDER: [&str; 11] = [
    "id",
    "kind",
    "created",
    "created_unsure",
    "price",
    "profile",
    "vendors",
    "next_price",
    "retires",
    "source",
    "unsure",
];

/// The text of a file with these entries. `date` is also its version.
pub(crate) fn write_file(models: &[KnownModel], date: &str) -> String {
    let mut document = DocumentMut::new();
    document["version"] = value(date);
    document["date"] = value(date);
    let mut tables = ArrayOfTables::new();
    for model in models {
        let mut table = Table::new();
        if let Ok(serde_json::Value::Object(members)) = serde_json::to_value(model) {
            for name in ORDER {
                if let Some(member) = members.get(name).and_then(to_toml) {
                    table.insert(name, Item::Value(member));
                }
            }
        }
        tables.push(table);
    }
    document["model"] = Item::ArrayOfTables(tables);
    format!("{HEAD}{document}")
}

/// Converts a value to TOML, on one line. `None` for null, which TOML does not have.
fn to_toml(json: &serde_json::Value) -> Option<Value> {
    use serde_json::Value as Json;
    Some(match json {
        Json::Null => return None,
        Json::Bool(flag) => Value::from(*flag),
        // Prices are strings, so all numbers are counts.
        Json::Number(number) => Value::from(number.as_i64()?),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::Array(items.iter().filter_map(to_toml).collect::<Array>()),
        Json::Object(members) => {
            let mut table = InlineTable::new();
            for (name, member) in members {
                if let Some(member) = to_toml(member) {
                    table.insert(name, member);
                }
            }
            Value::InlineTable(table)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::list::{KnownModels, Origin};
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let known = KnownModels::built_in();
        let models: Vec<_> = known.iter().map(|(model, _)| model.clone()).collect();
        let text = write_file(&models, "2026-11-17");
        let again = KnownModels::parse(&text, Origin::BuiltIn).unwrap();
        let again: Vec<_> = again.iter().map(|(model, _)| model.clone()).collect();
        assert_eq!(again, models);
    }
}
