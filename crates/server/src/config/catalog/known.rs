//! Derives values that an entry leaves out from the catalog of known models.

use engine::{RouteLimits, RouteSpec};
use ledger::{Markup, PriceCard, PriceKey};
use protocol::{Dialect, Kind};
use upstream::Protocol;

use super::channel::{Channel, ChannelsByName};
use crate::known_models::{KnownModel, Offer};

/// The route of a known model through a channel whose preset serves it.
pub(crate) fn route(channel: &Channel, known: &KnownModel) -> Option<RouteSpec> {
    let offer = known.offer(channel.preset)?;
    Some(RouteSpec {
        channel: channel.name.clone(),
        model: offer.model.clone(),
        priority: 0,
        weight: 1,
        dialect: pinned_dialect(channel.protocols(), known.kind, offer),
        limits: RouteLimits::default(),
        cost: Some(known.cost(channel.preset).clone()),
    })
}

/// The dialect that routes of a text model must use. `None` if the vendor serves the model in every dialect that the
/// channel speaks.
pub(crate) fn pinned_dialect(spoken: &[Protocol], kind: Kind, offer: &Offer) -> Option<Dialect> {
    let serves = |it: &Protocol| it.dialect().is_none() || offer.protocols.contains(it);
    let serves_all = spoken.iter().all(serves);
    if kind != Kind::Text || serves_all {
        return None;
    }
    let fitting = |it: &&_| spoken.contains(it);
    offer.protocols.iter().find(fitting)?.dialect()
}

/// Whether a channel speaks one of the protocols in which the vendor serves a model.
pub(crate) fn is_reachable(spoken: &[Protocol], offer: &Offer) -> bool {
    offer.protocols.iter().any(|it| spoken.contains(it))
}

/// The price of a model whose entry has none.
#[derive(Debug)]
pub(crate) struct KnownPrice {
    pub(crate) price: PriceCard,
    /// The markup of the first channel.
    pub(crate) markup: Option<Markup>,
    /// Notes about the price, for the operator.
    pub(crate) notes: Vec<String>,
}

/// The cost at the first channel of the routes, times the channel's markup. Without a valid channel, the list price.
/// `Err` says what is wrong.
pub(crate) fn price(
    known: &KnownModel,
    routes: &[RouteSpec],
    channels: &ChannelsByName<'_>,
) -> Result<KnownPrice, String> {
    let channel_of = |route: &RouteSpec| channels.get(route.channel.as_str()).copied().flatten();
    let price_at = |channel: &Channel| {
        let markup = channel.markup.unwrap_or(Markup::NONE);
        let price = known.cost(channel.preset).marked_up(markup);
        price.map_err(|_| format!("a price of {} is too large with this markup", known.id))
    };
    let Some(first) = routes.iter().find_map(channel_of) else {
        return Ok(KnownPrice {
            price: known.price.clone(),
            markup: None,
            notes: price_notes(known),
        });
    };
    let price = price_at(first)?;
    let mut notes = Vec::new();
    for channel in routes.iter().filter_map(channel_of) {
        if price_at(channel)? != price {
            notes.push(format!(
                "has the price of channel `{}`; channel `{}` has another cost or markup",
                first.name, channel.name
            ));
        }
    }
    notes.extend(price_notes(known));
    let unsure = known.offer(first.preset).and_then(|it| it.unsure.as_ref());
    notes.extend(unsure.map(|unsure| format!("not certain at `{}`: {unsure}", first.preset)));
    Ok(KnownPrice {
        price,
        markup: first.markup,
        notes,
    })
}

/// Notes about a known model and its price, for the operator.
fn price_notes(known: &KnownModel) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(unsure) = &known.unsure {
        notes.push(format!("its figures are not certain: {unsure}"));
    }
    if let Some(next) = &known.next_price {
        notes.push(format!(
            "its vendor has announced another price from {}",
            next.from
        ));
    }
    if let Some(day) = known.retires {
        notes.push(format!("its vendor ends it on {day}"));
    }
    notes
}

/// Removes cost cards that lack a unit of the price, because calls that use that unit would have no known cost.
pub(crate) fn drop_unfit_costs(price: &PriceCard, routes: &mut [RouteSpec]) {
    for route in routes {
        let lacks = |cost: &PriceCard| {
            let mut keys = PriceKey::ALL.into_iter();
            keys.any(|key| price.unit_price(key).is_some() && cost.unit_price(key).is_none())
        };
        if route.cost.as_ref().is_some_and(lacks) {
            route.cost = None;
        }
    }
}
