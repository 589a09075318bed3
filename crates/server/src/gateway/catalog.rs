//! Builds the catalog of a configuration.

use engine::{Catalog, CatalogError, Engine};
use store::StoreError;

use crate::config::Plan;

/// Builds the catalog of a plan, completely or not at all, without installing it.
pub(super) async fn build(engine: &Engine, plan: Plan) -> Result<Catalog, CatalogError> {
    for (channel, reason) in &plan.idle {
        tracing::warn!(channel, reason, "a channel cannot be used");
    }
    for (model, reason) in &plan.unlisted {
        tracing::warn!(model, reason, "a model is not listed");
    }
    let before = engine.catalog();
    let disabled: Vec<String> = plan.disabled_channels().map(str::to_owned).collect();
    let catalog = Catalog::build(
        plan.channels,
        &plan.timeouts,
        plan.models,
        &before,
        engine.store(),
    );
    Ok(catalog.await?.with_disabled(disabled))
}

/// The channels that have open tasks but are missing in the plan, with the number of these tasks. A task can be polled
/// only through the channel where it runs (T8).
pub(super) async fn missing_channels(
    engine: &Engine,
    plan: &Plan,
) -> Result<Vec<(String, u64)>, StoreError> {
    let channels = engine.store().task_channels().await?;
    let is_idle = |name: &str| plan.idle.iter().any(|(idle, _)| idle == name);
    let is_usable = |name: &str| plan.channels.iter().any(|channel| channel.name == name);
    let missing = channels
        .into_iter()
        .filter(|(name, _)| !is_idle(name) && !is_usable(name))
        .map(|(name, tasks)| (name.into(), tasks));
    Ok(missing.collect())
}
