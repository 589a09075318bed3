//! Writes a price card in its canonical form.
//!
//! The store saves each version of a card in this form and compares versions as text. So equal cards must give equal
//! bytes: keys in a fixed order, trimmed decimals, a default without other tiers as a plain value, long-context prices
//! ascending and always as a list.

use std::fmt::Display;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::card::{LongContextPrices, PriceCard};
use super::{Price, PriceKey};

impl Serialize for PriceCard {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        for key in PriceKey::ALL {
            let named = if key.is_token_class() {
                self.tokens.named(key)
            } else {
                self.plain[key as usize]
            };
            let Some(price) = named else { continue };
            match self.tiers.get(&key) {
                None => members.serialize_entry(key.as_str(), &AsText(price))?,
                Some(tiers) => {
                    members.serialize_entry(
                        key.as_str(),
                        &Tiers {
                            default: price,
                            tiers,
                        },
                    )?;
                }
            }
        }
        if !self.long_context.is_empty() {
            members.serialize_entry("long_context", &self.long_context)?;
        }
        if !self.tools.is_empty() {
            members.serialize_entry("tools", &Tools(self))?;
        }
        members.end()
    }
}

impl Serialize for LongContextPrices {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("above_tokens", &self.above_tokens)?;
        for key in PriceKey::ALL {
            if let Some(price) = self.tokens.named(key) {
                members.serialize_entry(key.as_str(), &AsText(price))?;
            }
        }
        members.end()
    }
}

struct Tiers<'a> {
    default: Price,
    tiers: &'a [(Box<str>, Price)],
}

impl Serialize for Tiers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let default = std::iter::once(("default", AsText(self.default)));
        let tiers = self
            .tiers
            .iter()
            .map(|(name, price)| (&**name, AsText(*price)));
        serializer.collect_map(default.chain(tiers))
    }
}

struct Tools<'a>(&'a PriceCard);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .tools
                .iter()
                .map(|(name, price)| (name, AsText(*price))),
        )
    }
}

struct AsText<T>(T);

impl<T: Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}
