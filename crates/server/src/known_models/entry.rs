//! The entry of a known model in the catalog files.

use std::fmt::{self, Display};
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use ledger::PriceCard;
use protocol::{Kind, Profile};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use upstream::{Preset, Protocol};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownModel {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// When the vendor published it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<Day>,
    /// Why the day is uncertain or missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created_unsure: Option<String>,
    /// The list price, in US dollars.
    pub(crate) price: PriceCard,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub(crate) profile: Profile,
    /// The vendors that serve it. The first one counts as the maker: its price is the list price.
    pub(crate) vendors: Vec<Offer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_price: Option<NextPrice>,
    /// The announced day on which the vendor retires the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retires: Option<Day>,
    /// The page that the figures were taken from.
    pub(crate) source: String,
    /// What is uncertain about the figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unsure: Option<String>,
}

impl KnownModel {
    /// The offer of the vendor behind this preset.
    pub(crate) fn offer(&self, preset: Preset) -> Option<&Offer> {
        self.vendors.iter().find(|offer| offer.preset == preset)
    }

    /// The cost for a channel of this preset: the vendor's own price, or the list price.
    pub(crate) fn cost(&self, preset: Preset) -> &PriceCard {
        let own = self.offer(preset).and_then(|offer| offer.cost.as_ref());
        own.unwrap_or(&self.price)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Offer {
    #[serde(deserialize_with = "from_text", serialize_with = "to_text")]
    pub(crate) preset: Preset,
    /// The vendor's name for the model.
    pub(crate) model: String,
    /// The protocols in which the vendor serves it, best first.
    pub(crate) protocols: Vec<Protocol>,
    /// The price of this vendor, if it is not the list price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<PriceCard>,
    /// The source of these values, if it is not that of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// What is uncertain about these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unsure: Option<String>,
}

/// An announced price, and the day from which it applies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NextPrice {
    pub(crate) from: Day,
    pub(crate) price: PriceCard,
}

/// A day in the form `2026-11-15`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(Date);

impl Day {
    /// The start of the day in UTC, in Unix seconds.
    pub(crate) fn unix_seconds(self) -> i64 {
        let start = self.0.to_zoned(TimeZone::UTC);
        start.map_or(0, |start| start.timestamp().as_second())
    }
}

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|_| format!("{text:?} is not a date such as 2026-11-15"))
    }
}

impl Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        to_text(self, serializer)
    }
}

fn from_text<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(de::Error::custom)
}

fn to_text<S: Serializer, T: Display>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn is_empty(profile: &Profile) -> bool {
    *profile == Profile::default()
}
