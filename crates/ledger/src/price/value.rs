//! The values of a price card as written in the configuration, before they are checked.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// One value of a price card in TOML or JSON.
///
/// Any shape is accepted here, so that parsing can report all errors of a card at once, each with
/// its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PriceValue {
    /// A text: a decimal price.
    Text(String),
    /// A whole number: the threshold `above_tokens` of long-context prices.
    Whole(u64),
    /// A table: tiers, tools, or long-context prices.
    Table(BTreeMap<String, PriceValue>),
    /// A list: long-context prices, one table for each threshold.
    List(Vec<PriceValue>),
    /// Any other value, such as a float, which has already lost digits. Only a description, such as "a boolean", is
    /// kept for the error message.
    Unfit(&'static str),
}

impl<'de> Deserialize<'de> for PriceValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = PriceValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decimal string or a table of them")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PriceValue, E> {
        Ok(PriceValue::Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<PriceValue, E> {
        Ok(PriceValue::Text(text))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<PriceValue, E> {
        Ok(PriceValue::Whole(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<PriceValue, E> {
        Ok(u64::try_from(number).map_or(PriceValue::Unfit("a negative number"), PriceValue::Whole))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<PriceValue, E> {
        Ok(PriceValue::Unfit("a number"))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<PriceValue, E> {
        Ok(PriceValue::Unfit("a boolean"))
    }

    fn visit_unit<E: de::Error>(self) -> Result<PriceValue, E> {
        Ok(PriceValue::Unfit("null"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<PriceValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(PriceValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<PriceValue, A::Error> {
        let mut table = BTreeMap::new();
        while let Some((name, value)) = members.next_entry::<String, PriceValue>()? {
            if table.contains_key(&name) {
                return Err(de::Error::custom(format_args!("`{name}` stands twice")));
            }
            table.insert(name, value);
        }
        Ok(PriceValue::Table(table))
    }
}
