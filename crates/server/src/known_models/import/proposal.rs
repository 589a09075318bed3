//! Proposals: the entries of another catalog, before they are compared with the known models.

use std::collections::BTreeMap;

use ledger::{PriceCard, PriceValue};
use protocol::{Kind, Profile};
use upstream::Preset;

use crate::known_models::{Day, KnownModel};

/// The entry of another catalog for a model of one vendor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ForeignModel {
    pub(super) preset: Preset,
    /// The vendor's name for the model.
    pub(super) model: String,
    pub(super) kind: Kind,
    pub(super) created: Option<Day>,
    /// The vendor's prices, as members of a price card.
    pub(super) cost: BTreeMap<String, PriceValue>,
    /// The abilities of the model. Only used if the model is not known yet.
    pub(super) profile: Profile,
    /// `context_tokens` and `max_output_tokens` have the same meaning as ours. For a known model, they are used and
    /// `profile` is ignored.
    pub(super) context_tokens: Option<u64>,
    pub(super) max_output_tokens: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Proposals {
    /// Whole entries, from a catalog in our own format.
    pub(super) whole: Vec<KnownModel>,
    pub(super) foreign: Vec<ForeignModel>,
    /// Entries and prices that are not imported, each with the reason.
    pub(crate) unmapped: Vec<(String, String)>,
}

/// The `long_context` member of a price card: prices that apply beyond a number of input tokens.
pub(super) fn long_context(above_tokens: u64, prices: BTreeMap<String, PriceValue>) -> PriceValue {
    let mut step = prices;
    step.insert("above_tokens".to_owned(), PriceValue::Whole(above_tokens));
    PriceValue::Table(step)
}

/// Parses the members of a price card.
pub(super) fn card(members: &BTreeMap<String, PriceValue>) -> Result<PriceCard, String> {
    PriceCard::parse(members).map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        faults.join("; ")
    })
}
