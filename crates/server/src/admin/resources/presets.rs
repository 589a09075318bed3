//! `/admin/v1/presets`: the known kinds of upstreams.

use serde::Serialize;
use upstream::{AccountSetting, Preset, SettingNeed};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::access::Viewer;
use crate::admin::api::error::{ApiError, Refused};
use crate::admin::api::extract::{Json, Query};
use crate::admin::api::page::{Page, ShortListQuery};
use crate::admin::api::state::AdminState;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(list_presets))
}

/// A kind of upstream.
#[derive(Debug, Serialize, ToSchema)]
struct PresetView {
    /// The value of `preset` in a channel.
    name: &'static str,
    title: &'static str,
    /// Null if a channel of this kind must name its address.
    #[schema(required)]
    base_url: Option<&'static str>,
    /// Whether a channel needs a credential.
    credential: bool,
    /// The protocols of a channel that does not name its own.
    protocols: Vec<&'static str>,
    /// The settings that `account` of a channel may have.
    account: Vec<AccountSettingView>,
}

/// An account setting of a preset.
#[derive(Debug, Serialize, ToSchema)]
struct AccountSettingView {
    name: &'static str,
    /// When it is needed: `always`, `address` (unless the channel has a `base_url`) or `credential` (if the kind of
    /// credential uses it).
    needed: &'static str,
    /// The value if a channel does not set it.
    #[schema(required)]
    default: Option<&'static str>,
    /// Whether the value must name an environment variable or a file.
    secret: bool,
}

/// List the presets.
#[utoipa::path(
    get,
    path = "/presets",
    tag = "channels",
    params(ShortListQuery),
    responses((status = 200, description = "All presets.", body = Page<PresetView>), Refused)
)]
async fn list_presets(
    _viewer: Viewer,
    Query(query): Query<ShortListQuery>,
) -> Result<Json<Page<PresetView>>, ApiError> {
    let presets = Preset::all().map(|preset| PresetView {
        name: preset.as_str(),
        title: preset.title(),
        base_url: preset.base_url(),
        credential: preset.needs_credential(),
        protocols: preset.protocols().iter().map(|it| it.as_str()).collect(),
        account: preset.account_settings().into_iter().map(view).collect(),
    });
    let page = Page::of_list(presets.collect(), &query, |preset| preset.name)?;
    Ok(Json(page))
}

fn view(setting: AccountSetting) -> AccountSettingView {
    AccountSettingView {
        name: setting.name,
        needed: match setting.need {
            SettingNeed::Always => "always",
            SettingNeed::ForAddress => "address",
            SettingNeed::ForCredential => "credential",
        },
        default: setting.default,
        secret: setting.is_secret,
    }
}
