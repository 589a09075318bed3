//! Which models exist, what they cost, and which channels serve them.

use ledger::PriceCard;
use protocol::{Dialect, Kind, Profile};

/// One model as the configuration states it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// The public id, `<maker>/<model>`.
    pub id: String,
    pub kind: Kind,
    pub enabled: bool,
    /// Unix seconds, shown in the catalog.
    pub created: i64,
    pub routes: Vec<RouteSpec>,
    pub price: PriceCard,
    pub profile: Profile,
}

/// One way to reach a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSpec {
    /// The channel's name.
    pub channel: String,
    /// The name the upstream knows the model by; never shown to callers.
    pub model: String,
    /// Lower is tried first.
    pub priority: u32,
    /// Share among routes of equal priority.
    pub weight: u32,
    /// Overrides the dialect the channel would be spoken to in.
    pub dialect: Option<Dialect>,
}

/// The catalog of one configuration.
#[derive(Debug)]
pub struct Catalog;
