//! `/admin/v1/presets`: the kinds of upstream that a channel can be.

use serde::Serialize;
use upstream::Preset;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::access::Viewer;
use crate::admin::api::error::Refused;
use crate::admin::api::extract::Json;
use crate::admin::api::page::Page;
use crate::admin::api::state::AdminState;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(list_presets))
}

/// A kind of upstream.
#[derive(Debug, Serialize, ToSchema)]
struct PresetView {
    /// As `preset` of a channel names it.
    name: &'static str,
    title: &'static str,
    /// Null if a channel of this kind must name its address.
    #[schema(required)]
    base_url: Option<&'static str>,
    /// Whether a channel needs a credential.
    credential: bool,
    /// The protocols that it speaks unless a channel says otherwise.
    protocols: Vec<&'static str>,
}

/// List the presets.
#[utoipa::path(
    get,
    path = "/presets",
    tag = "channels",
    responses((status = 200, description = "All presets.", body = Page<PresetView>), Refused)
)]
async fn list_presets(_viewer: Viewer) -> Json<Page<PresetView>> {
    let presets = Preset::ALL.into_iter().map(|preset| PresetView {
        name: preset.as_str(),
        title: title(preset),
        base_url: preset.base_url(),
        credential: preset.needs_credential(),
        protocols: preset.protocols().iter().map(|it| it.as_str()).collect(),
    });
    Json(Page::whole(presets.collect()))
}

fn title(preset: Preset) -> &'static str {
    match preset {
        Preset::Openai => "OpenAI",
        Preset::Anthropic => "Anthropic",
        Preset::Gemini => "Google Gemini",
        Preset::Xai => "xAI",
        Preset::Ark => "Volcano Ark",
        Preset::OpenaiCompatible => "OpenAI compatible",
        Preset::Sim => "Simulator",
    }
}
