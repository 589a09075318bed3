//! Checks whether a model can serve a text call, before money moves.

use std::sync::Arc;

use protocol::native::{Head, LongCache};
use protocol::{BuiltInProfile, Dialect, Failure, Kind, Tool, Tools};

use crate::catalog::{Model, Route};

/// Refuses requests that the model cannot serve on this endpoint.
pub(crate) fn check(model: &Model, dialect: Dialect, head: &Head) -> Result<(), Failure> {
    // Native image models are called through Generate Content, which can carry pictures.
    let carries_pictures = dialect == Dialect::Generate;
    match model.kind {
        Kind::Text => {}
        Kind::Image if carries_pictures && is_native(model) => {}
        Kind::Image | Kind::Embedding | Kind::Video | Kind::Audio => {
            return Err(Failure::model_not_supported(format!(
                "The model `{}` does not generate text.",
                model.id
            )));
        }
    }
    if model.profile.image_output == Some(true) && !carries_pictures {
        return Err(Failure::model_not_supported(format!(
            "The model `{}` outputs images, which this endpoint cannot carry.",
            model.id
        )));
    }
    // Other dialects drop the sampling parameters and list them; Messages refuses them (`docs/api/messages.md`).
    if model.profile.fixed_sampling == Some(true)
        && dialect == Dialect::Messages
        && let Some(member) = head.sampling.first().copied()
    {
        return Err(Failure::unsupported_parameter(
            member,
            format!("The model `{}` has fixed sampling.", model.id),
        ));
    }
    Ok(())
}

/// Refuses a request for the one-hour cache if only the cheaper short cache has a price. Requests of chat are not
/// refused: most of its upstreams ignore `cache_control`.
pub(crate) fn refuse_unpriced_long_cache(
    model: &Model,
    head: &Head,
    dialect_for: impl Fn(&Route) -> Option<Dialect>,
) -> Result<(), Failure> {
    let keeps_cache = |route: &Arc<Route>| dialect_for(route) == Some(Dialect::Messages);
    if head.long_cache == LongCache::CountedApart
        && model.routes.iter().any(keeps_cache)
        && model.price.underprices_long_cache_writes()
    {
        return Err(Failure::unsupported_parameter(
            "cache_control",
            format!(
                "The model `{}` does not offer caches with a `ttl` beyond `5m`.",
                model.id
            ),
        ));
    }
    Ok(())
}

/// Whether a model makes pictures on a text endpoint.
pub(crate) fn makes_pictures(model: &Model) -> bool {
    model.kind == Kind::Image || model.profile.image_output == Some(true)
}

/// Whether an image model is called through Generate Content. Models of other families have their own endpoints, even
/// if their channels speak Generate Content.
fn is_native(model: &Model) -> bool {
    matches!(model.profile.base, None | Some(BuiltInProfile::NativeImage))
}

/// Refuses built-in tools that the model has no price for, and tools that the gateway does not know. Converted text
/// requests need no such check, because the conversion drops built-in tools.
pub(crate) fn refuse_unpriced_tools(model: &Model, offered: Tools) -> Result<(), Failure> {
    if offered.has_unknown() {
        let id = &model.id;
        let message =
            format!("The model `{id}` is offered here only with tools that have a price.");
        return Err(Failure::unsupported_parameter("tools", message));
    }
    let unpriced = |tool: &Tool| !model.price.prices_tool(tool.as_str());
    match offered.iter().find(unpriced) {
        None => Ok(()),
        Some(tool) => Err(Failure::unsupported_parameter(
            "tools",
            format!(
                "The built-in tool `{}` of the model `{}` is not offered here.",
                tool.as_str(),
                model.id
            ),
        )),
    }
}
