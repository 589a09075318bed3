//! Parses a price card and reports all its errors.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, de};

use super::card::{LongContextPrices, PriceCard, TokenPrices};
use super::error::{CardFault, PriceError};
use super::{Price, PriceKey, PriceValue};

impl PriceCard {
    /// Parses a card and reports all its errors, not only the first.
    pub fn parse(members: &BTreeMap<String, PriceValue>) -> Result<Self, Vec<PriceError>> {
        let mut card = Self::default();
        let mut faults = Faults(Vec::new());
        for (name, value) in members {
            match (PriceKey::from_name(name), name.as_str()) {
                (Some(key), _) if key.has_tiers() => card.read_tiers(key, value, &mut faults),
                (Some(key), _) => {
                    let price = faults.price(name, value);
                    if key.is_token_class() {
                        card.tokens.set(key, price);
                    } else {
                        card.plain[key as usize] = price;
                    }
                }
                (None, "tools") => card.read_tools(value, &mut faults),
                // Parsed last, because long-context prices inherit `input` and `output` from the card.
                (None, "long_context") => {}
                (None, _) => faults.add(name, CardFault::Unknown),
            }
        }
        if let Some(value) = members.get("long_context") {
            card.read_long_context(value, &mut faults);
        }
        if faults.0.is_empty() {
            Ok(card)
        } else {
            Err(faults.0)
        }
    }

    fn read_tiers(&mut self, key: PriceKey, value: &PriceValue, faults: &mut Faults) {
        let PriceValue::Table(table) = value else {
            self.plain[key as usize] = faults.price(key.as_str(), value);
            return;
        };
        if !table.contains_key("default") {
            faults.add(&format!("{key}.default"), CardFault::Missing);
        }
        let mut tiers: Vec<(Box<str>, Price)> = Vec::new();
        for (name, value) in table {
            let path = format!("{key}.{name}");
            let Some(price) = faults.price(&path, value) else {
                continue;
            };
            // `2K` and `2k` are the same tier, so a card with both is an error.
            let tier = name.to_ascii_lowercase().into_boxed_str();
            if name == "default" {
                self.plain[key as usize] = Some(price);
            } else if &*tier == "default" || tiers.iter().any(|(known, _)| *known == tier) {
                faults.add(&path, CardFault::Duplicate);
            } else {
                tiers.push((tier, price));
            }
        }
        tiers.sort();
        if !tiers.is_empty() {
            self.tiers.insert(key, tiers);
        }
    }

    fn read_tools(&mut self, value: &PriceValue, faults: &mut Faults) {
        let PriceValue::Table(table) = value else {
            return faults.shape("tools", "a table of tool names", value);
        };
        for (name, value) in table {
            if let Some(price) = faults.price(&format!("tools.{name}"), value) {
                self.tools.insert(name.clone(), price);
            }
        }
    }

    fn read_long_context(&mut self, value: &PriceValue, faults: &mut Faults) {
        match value {
            PriceValue::Table(table) => self.read_threshold("long_context", table, faults),
            PriceValue::List(list) => {
                for (index, value) in list.iter().enumerate() {
                    let path = format!("long_context[{index}]");
                    match value {
                        PriceValue::Table(table) => self.read_threshold(&path, table, faults),
                        other => faults.shape(&path, "a table", other),
                    }
                }
            }
            other => faults.shape("long_context", "a table or a list of tables", other),
        }
        self.long_context
            .sort_by_key(|threshold| threshold.above_tokens);
    }

    fn read_threshold(
        &mut self,
        path: &str,
        table: &BTreeMap<String, PriceValue>,
        faults: &mut Faults,
    ) {
        let mut above_tokens = None;
        let mut tokens = TokenPrices::default();
        for (name, value) in table {
            let path = format!("{path}.{name}");
            match (name.as_str(), PriceKey::from_name(name)) {
                ("above_tokens", _) => match value {
                    PriceValue::Whole(bound) => above_tokens = Some(*bound),
                    other => faults.shape(&path, "a whole number", other),
                },
                (_, Some(key)) if key.is_token_class() => {
                    tokens.set(key, faults.price(&path, value));
                }
                _ => faults.add(&path, CardFault::Unknown),
            }
        }
        // Above a threshold, only these prices apply, and a missing class falls back to another of these prices
        // (`PriceKey::fallback`). Only a missing `input` or `output` is taken from the card.
        for key in [PriceKey::Input, PriceKey::Output] {
            tokens.set(key, tokens.named(key).or(self.tokens.named(key)));
        }
        let bound_path = format!("{path}.above_tokens");
        match above_tokens {
            None if !table.contains_key("above_tokens") => {
                faults.add(&bound_path, CardFault::Missing);
            }
            None => {}
            Some(bound)
                if self
                    .long_context
                    .iter()
                    .any(|threshold| threshold.above_tokens == bound) =>
            {
                faults.add(&bound_path, CardFault::Duplicate);
            }
            Some(above_tokens) => self.long_context.push(LongContextPrices {
                above_tokens,
                tokens,
            }),
        }
    }
}

/// Parses a card from the configuration. The message lists all errors.
impl<'de> Deserialize<'de> for PriceCard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = BTreeMap::deserialize(deserializer)?;
        Self::parse(&members).map_err(|errors| {
            let errors: Vec<_> = errors.iter().map(PriceError::to_string).collect();
            de::Error::custom(errors.join("; "))
        })
    }
}

struct Faults(Vec<PriceError>);

impl Faults {
    fn add(&mut self, key: &str, fault: CardFault) {
        self.0.push(PriceError::Card {
            key: key.to_owned(),
            fault,
        });
    }

    fn shape(&mut self, key: &str, wanted: &'static str, value: &PriceValue) {
        let found = match value {
            PriceValue::Text(_) => "a text",
            PriceValue::Whole(_) => "a number",
            PriceValue::Table(_) => "a table",
            PriceValue::List(_) => "a list",
            PriceValue::Unfit(found) => found,
        };
        self.add(key, CardFault::Shape { wanted, found });
    }

    fn price(&mut self, key: &str, value: &PriceValue) -> Option<Price> {
        let PriceValue::Text(text) = value else {
            self.shape(key, "a decimal string such as \"1.25\"", value);
            return None;
        };
        match text.parse() {
            Ok(price) => Some(price),
            Err(error) => {
                self.add(key, CardFault::Decimal(error));
                None
            }
        }
    }
}
