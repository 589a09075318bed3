//! Reads the options of `new-api`: the value of quota, and the price ratios.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;
use store::{ForeignRow, ForeignTable};

use super::tables::ReadError;
use crate::import::exact::{Amount, Decimal};

/// The default quota per US dollar.
const QUOTA_PER_UNIT: i64 = 500_000;

/// The options that the database stores. `new-api` has a default for every other option.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) quota_per_unit: i64,
    values: HashMap<String, String>,
}

impl Options {
    pub(super) fn of(table: Option<&ForeignTable>) -> Result<Self, ReadError> {
        let mut values = HashMap::new();
        for row in table.into_iter().flat_map(ForeignTable::rows) {
            if let (Some(key), Some(value)) = (row.text("key"), row.text("value")) {
                values.insert(key.to_owned(), value.to_owned());
            }
        }
        let quota_per_unit = match values.get("QuotaPerUnit") {
            None => QUOTA_PER_UNIT,
            Some(text) => {
                whole_number(text).ok_or_else(|| ReadError::QuotaPerUnit(text.clone()))?
            }
        };
        Ok(Self {
            quota_per_unit,
            values,
        })
    }

    /// Converts quota to credits, rounded down to 12 decimals.
    pub(super) fn credits(&self, quota: i64) -> Option<Amount> {
        Amount::of_parts(quota, self.quota_per_unit)
    }

    /// The quota in a column, and its value in credits. Null counts as 0. `None` if it is not a number.
    pub(super) fn quota(&self, row: ForeignRow<'_>, column: &str) -> Option<(i64, Amount)> {
        let quota = match row.text(column) {
            Some(text) => text.parse().ok()?,
            None => 0,
        };
        Some((quota, self.credits(quota)?))
    }

    /// The numbers of an option by name. `None` if the option is not stored, or is not a JSON object.
    pub(super) fn numbers(&self, option: &str) -> Option<BTreeMap<String, Decimal>> {
        let members: BTreeMap<String, &RawValue> =
            serde_json::from_str(self.values.get(option)?).ok()?;
        let numbers = members.into_iter().filter_map(|(name, number)| {
            Some((name, Decimal::parse(number.get().trim_matches('"'))?))
        });
        Some(numbers.collect())
    }

    pub(super) fn text(&self, option: &str) -> Option<&str> {
        self.values.get(option).map(String::as_str)
    }
}

/// Parses `500000` or `500000.0`.
fn whole_number(text: &str) -> Option<i64> {
    let text = text.trim();
    let text = text.split_once('.').map_or(text, |(whole, zeros)| {
        if zeros.bytes().all(|byte| byte == b'0') {
            whole
        } else {
            text
        }
    });
    text.parse().ok().filter(|number| *number > 0)
}
