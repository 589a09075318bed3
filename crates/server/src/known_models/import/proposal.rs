//! What another catalog says, before it is compared with what is known.

use std::collections::BTreeMap;

use ledger::{PriceCard, PriceValue};
use protocol::{Kind, Profile};
use upstream::Preset;

use crate::known_models::{Day, KnownModel};

/// What a foreign catalog says about a model of one vendor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Foreign {
    pub(super) preset: Preset,
    /// The vendor's name of the model.
    pub(super) model: String,
    pub(super) kind: Kind,
    pub(super) created: Option<Day>,
    /// What the vendor charges, as members of a price card.
    pub(super) cost: BTreeMap<String, PriceValue>,
    /// What the model can do, for models that are not known yet.
    pub(super) profile: Profile,
    /// Limits that are comparable with ours, for models that are known.
    pub(super) context_tokens: Option<u64>,
    pub(super) max_output_tokens: Option<u64>,
}

/// What a source proposes.
#[derive(Debug, Default)]
pub(crate) struct Proposals {
    /// Whole entries, from a catalog of our own form.
    pub(super) whole: Vec<KnownModel>,
    pub(super) foreign: Vec<Foreign>,
    /// What could not be mapped, and why.
    pub(crate) unmapped: Vec<(String, String)>,
}

/// Prices of the token classes beyond a number of input tokens, as a member of a card.
pub(super) fn long_context(above_tokens: u64, prices: BTreeMap<String, PriceValue>) -> PriceValue {
    let mut step = prices;
    step.insert("above_tokens".to_owned(), PriceValue::Whole(above_tokens));
    PriceValue::Table(step)
}

/// The members as a card.
pub(super) fn card(members: &BTreeMap<String, PriceValue>) -> Result<PriceCard, String> {
    PriceCard::parse(members).map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        faults.join("; ")
    })
}
