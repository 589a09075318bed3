//! Finds the models for speech and transcripts.

use ledger::PriceKey;
use protocol::{Failure, Kind};
use store::KeyHead;
use upstream::Protocol;

use crate::call::route_plan::RoutePlan;
use crate::engine::Engine;

/// Finds an audio model that the key may call and that has the required price, and plans its
/// routes.
pub(crate) fn find(
    engine: &Engine,
    id: &str,
    key: &KeyHead,
    price: Option<PriceKey>,
) -> Result<RoutePlan, Failure> {
    let catalog = engine.catalog();
    let model = catalog.find(id, key)?;
    if model.kind != Kind::Audio {
        return Err(Failure::model_not_supported(format!(
            "The model `{id}` neither speaks nor listens."
        )));
    }
    // A model serves only what it has a price for.
    if price.is_some_and(|key| model.price.unit_price(key).is_none()) {
        return Err(model.unreachable());
    }
    RoutePlan::new(model, |route| route.channel.speaks(Protocol::Voice))
}
