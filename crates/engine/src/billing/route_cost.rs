//! Computes what a call costs us on the route that answered it, independently of what its caller pays.

use ledger::{Meter, PriceCard};
use store::{Cost, CostVersion};

/// The cost card of a route, and its stored version.
#[derive(Debug)]
pub struct RouteCost {
    pub card: PriceCard,
    pub version: CostVersion,
}

impl RouteCost {
    /// Our cost of this usage: the card's price, with the same single rounding. `None` if the card has no price for
    /// some of the usage, because an unknown cost must not look like a small one.
    pub fn of(&self, meter: &Meter) -> Option<Box<Cost>> {
        if self.card.unpriced_tools(meter).next().is_some() {
            return None;
        }
        let amount = self.card.price(meter).ok()?;
        let version = self.version;
        Some(Box::new(Cost { amount, version }))
    }
}
