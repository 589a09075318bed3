//! Applies the proposals of a source to the known models.

use std::collections::BTreeMap;

use ledger::{PriceCard, PriceKey, PriceValue};
use protocol::Kind;
use serde_json::json;
use upstream::{Preset, Protocol};

use super::diff::{Change, changes};
use super::proposal::{ForeignModel, Proposals, card};
use crate::known_models::{KnownModel, KnownModels, Offer};

#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// The entries that are new or differ.
    pub(crate) entries: Vec<KnownModel>,
    pub(crate) changes: Vec<Change>,
    /// Entries and prices of the source that are not imported, each with the reason.
    pub(crate) unmapped: Vec<(String, String)>,
    /// The number of models of the source that do not differ.
    pub(crate) unchanged: usize,
    /// The number of unknown models of the source that are skipped, because `all` is not set.
    pub(crate) unknown: usize,
}

/// Compares proposals with the known models. Unknown models are added only with `all`. `source` is recorded in the
/// entries that change, except for whole entries, which name their own source.
pub(crate) fn merge(known: &KnownModels, proposals: Proposals, all: bool, source: &str) -> Merged {
    let mut merged = Merged {
        unmapped: proposals.unmapped,
        ..Merged::default()
    };
    let mut entries: BTreeMap<String, KnownModel> = BTreeMap::new();
    for model in proposals.whole {
        if known.find(&model.id).is_some() || all {
            entries.insert(model.id.clone(), model);
        } else {
            merged.unknown += 1;
        }
    }
    let mut proposed = proposals.foreign;
    // Apply the proposals of makers first. They may change the list price, and the prices of other vendors are compared
    // with the list price.
    proposed.sort_by_key(|foreign| !is_of_maker(known, foreign));
    for foreign in proposed {
        let name = format!("{}: {}", foreign.preset, foreign.model);
        let entry = known_entry(known, &entries, &foreign);
        let applied = match entry {
            Some(entry) => applied(entry, &foreign, source),
            None if all => new_entry(known, &entries, &foreign, source),
            None => {
                merged.unknown += 1;
                continue;
            }
        };
        match applied {
            Ok(entry) => {
                entries.insert(entry.id.clone(), entry);
            }
            Err(reason) => merged.unmapped.push((name, reason)),
        }
    }
    for (id, entry) in entries {
        let before = known.find(&id).map(|(model, _)| model);
        let changes = changes(before, &entry);
        if changes.is_empty() {
            merged.unchanged += 1;
        } else {
            merged.changes.extend(changes);
            merged.entries.push(entry);
        }
    }
    merged
}

/// The entry of the model with this vendor's name, including changes that were already applied to it.
fn known_entry(
    known: &KnownModels,
    entries: &BTreeMap<String, KnownModel>,
    foreign: &ForeignModel,
) -> Option<KnownModel> {
    let found = find(known, foreign)?;
    Some(entries.get(&found.id).unwrap_or(found).clone())
}

fn find<'k>(known: &'k KnownModels, foreign: &ForeignModel) -> Option<&'k KnownModel> {
    let mut models = known.of_preset(foreign.preset).map(|(model, _)| model);
    models.find(|model| {
        let offer = model.offer(foreign.preset);
        offer.is_some_and(|offer| offer.model == foreign.model)
    })
}

/// Whether a proposal comes from the first vendor of a known model, which counts as its maker.
fn is_of_maker(known: &KnownModels, foreign: &ForeignModel) -> bool {
    let first = find(known, foreign).and_then(|model| model.vendors.first());
    first.is_some_and(|offer| offer.preset == foreign.preset)
}

/// Applies the prices and limits of a proposal to an entry. Values that the proposal lacks are kept.
fn applied(
    mut entry: KnownModel,
    foreign: &ForeignModel,
    source: &str,
) -> Result<KnownModel, String> {
    if entry.kind != foreign.kind {
        return Err(format!(
            "is known as a model of kind {}",
            entry.kind.as_str()
        ));
    }
    let place = entry
        .vendors
        .iter()
        .position(|it| it.preset == foreign.preset);
    let before = entry.cost(foreign.preset).clone();
    let after = with_members(&before, &foreign.cost)?;
    check_order(&after)?;
    // The first vendor counts as the maker, whose price is the list price. Other vendors have their own cost, and
    // their limits are not those of the model.
    let is_maker = place.is_none_or(|place| place == 0);
    let own = place.and_then(|place| entry.vendors.get_mut(place));
    if let Some(offer) = own.filter(|offer| !is_maker || offer.cost.is_some()) {
        if after != before {
            offer.cost = Some(after);
            offer.source = Some(source.to_owned());
            offer.unsure = None;
        }
    } else {
        entry.price = after;
    }
    if !is_maker {
        return Ok(entry);
    }
    source.clone_into(&mut entry.source);
    if let Some(tokens) = foreign.context_tokens {
        entry.profile.context_tokens = Some(tokens);
    }
    if let Some(tokens) = foreign.max_output_tokens {
        entry.profile.max_output_tokens = Some(tokens);
    }
    if foreign
        .created
        .is_some_and(|day| entry.created != Some(day))
    {
        entry.created = foreign.created;
        entry.created_unsure = None;
    }
    Ok(entry)
}

/// The new entry of an unknown model, or the entry of a known model with this vendor added.
fn new_entry(
    known: &KnownModels,
    entries: &BTreeMap<String, KnownModel>,
    foreign: &ForeignModel,
    source: &str,
) -> Result<KnownModel, String> {
    let cost = card(&foreign.cost)?;
    cost.billable_as(foreign.kind.as_str())
        .map_err(|missing| missing.join("; "))?;
    check_order(&cost)?;
    let profile = &foreign.profile;
    if foreign.kind == Kind::Text
        && profile
            .max_output_tokens
            .or(profile.context_tokens)
            .is_none()
    {
        return Err("no upper bound: neither an output limit nor a window is stated".to_owned());
    }
    let protocols = protocols(foreign.preset, foreign.kind);
    if protocols.is_empty() {
        return Err(format!(
            "the preset speaks no protocol for {} models",
            foreign.kind.as_str()
        ));
    }
    let mut offer = Offer {
        preset: foreign.preset,
        model: foreign.model.clone(),
        protocols,
        cost: None,
        source: Some(source.to_owned()),
        unsure: None,
    };
    let id = public_id(foreign)?;
    let entry = entries
        .get(&id)
        .or_else(|| known.find(&id).map(|(model, _)| model));
    if let Some(entry) = entry {
        if entry.kind != foreign.kind || entry.offer(foreign.preset).is_some() {
            return Err(format!("{id} is known as another model"));
        }
        let mut entry = entry.clone();
        offer.cost = (entry.price != cost).then_some(cost);
        entry.vendors.push(offer);
        return Ok(entry);
    }
    // The source of the entry is also the source of the first vendor.
    offer.source = None;
    Ok(KnownModel {
        id,
        kind: foreign.kind,
        created: foreign.created,
        created_unsure: None,
        price: cost,
        profile: profile.clone(),
        vendors: vec![offer],
        next_price: None,
        retires: None,
        source: source.to_owned(),
        unsure: Some("imported; not checked against the vendor".to_owned()),
    })
}

/// The protocol of a new offer: the preset's first text protocol or, for other kinds, its first one with embeddings.
/// Empty if the preset has none.
fn protocols(preset: Preset, kind: Kind) -> Vec<Protocol> {
    let spoken = preset.protocols().iter().copied();
    match kind {
        Kind::Text => spoken.filter(|it| it.dialect().is_some()).take(1).collect(),
        _ => spoken
            .filter(|it| matches!(it, Protocol::Embeddings | Protocol::Generate))
            .take(1)
            .collect(),
    }
}

fn public_id(foreign: &ForeignModel) -> Result<String, String> {
    let id = match (foreign.model.contains('/'), foreign.preset.maker()) {
        (true, _) => foreign.model.clone(),
        (false, Some(maker)) => format!("{maker}/{}", foreign.model),
        (false, None) => return Err("its maker is not known".to_owned()),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:@+~/".contains(c);
    let is_sound = id.chars().all(plain) && !id.split('/').any(str::is_empty) && !id.contains("..");
    if is_sound {
        Ok(id)
    } else {
        Err(format!("{id:?} cannot be a model id"))
    }
}

/// Replaces some members of a price card.
fn with_members(
    before: &PriceCard,
    members: &BTreeMap<String, PriceValue>,
) -> Result<PriceCard, String> {
    let mut all: BTreeMap<String, PriceValue> =
        serde_json::from_value(json!(before)).map_err(|fault| fault.to_string())?;
    all.extend(members.clone());
    card(&all)
}

/// Refuses cards in which cached tokens cost more than uncached ones, because their figures probably do not belong
/// together.
fn check_order(card: &PriceCard) -> Result<(), String> {
    let (cached, input) = (PriceKey::CachedInput, PriceKey::Input);
    match (card.unit_price(cached), card.unit_price(input)) {
        (Some(cached), Some(input)) if cached > input => Err(format!(
            "cached input would cost {cached}, more than input with {input}"
        )),
        _ => Ok(()),
    }
}
