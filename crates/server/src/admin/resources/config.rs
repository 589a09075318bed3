//! `/admin/v1/config`: the channels and models in force, checked and replaced as a whole.

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::access::{Owner, Viewer};
use crate::admin::api::error::{ApiError, Refused};
use crate::admin::api::extract::Json;
use crate::admin::api::state::AdminState;
use crate::config::Entries;
use crate::gateway::{InForce, ReplaceError};

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(read_config, replace_config))
        .routes(routes!(check_config))
}

/// The entries of the configuration, with only the members that were written there. A credential is shown as the name of its
/// environment variable or file, never as its value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConfigView {
    /// Changes with every change of an entry.
    version: u64,
    /// Where changes are saved: `file` or `store`.
    kept_in: &'static str,
    #[schema(value_type = Vec<Object>)]
    channels: Vec<Map<String, Value>>,
    #[schema(value_type = Vec<Object>)]
    models: Vec<Map<String, Value>>,
}

impl ConfigView {
    fn of(in_force: &InForce) -> Result<Self, ApiError> {
        let entries = in_force.entries().map_err(ReplaceError::from)?;
        Ok(Self {
            version: in_force.version().map_err(ReplaceError::from)?,
            kept_in: in_force.config.admin.config.as_str(),
            channels: entries.channels,
            models: entries.models,
        })
    }
}

/// The entries that replace those in force.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewConfig {
    /// The version that these entries replace.
    version: u64,
    /// A channel without `credential` keeps the one it has. A credential given as text is written to a file, or
    /// refused if `admin.config` is `store`. A credential given by name must be an environment variable that ends in
    /// `_API_KEY`, that `admin.credential_env` allows or that the configuration already names, or a file in the folder
    /// `credentials` beside the configuration.
    #[schema(value_type = Vec<Object>)]
    channels: Vec<Map<String, Value>>,
    #[schema(value_type = Vec<Object>)]
    models: Vec<Map<String, Value>>,
}

/// Entries to check.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProposedConfig {
    #[schema(value_type = Vec<Object>)]
    channels: Vec<Map<String, Value>>,
    #[schema(value_type = Vec<Object>)]
    models: Vec<Map<String, Value>>,
}

/// Problems of checked entries.
#[derive(Debug, Serialize, ToSchema)]
struct ConfigProblems {
    /// Each problem names its place: `model[2].price.input: …`. Empty if the entries can be used.
    problems: Vec<String>,
}

/// Read the channels and models in force.
#[utoipa::path(
    get,
    path = "/config",
    tag = "config",
    responses((status = 200, description = "The entries and their version.", body = ConfigView), Refused)
)]
async fn read_config(
    _viewer: Viewer,
    State(state): State<AdminState>,
) -> Result<Json<ConfigView>, ApiError> {
    ConfigView::of(&state.keeper.in_force()).map(Json)
}

/// Replace the channels and models. They are in force when this answers.
#[utoipa::path(
    put,
    path = "/config",
    tag = "config",
    request_body = NewConfig,
    responses(
        (status = 200, description = "The new entries and their version.", body = ConfigView),
        (status = 409, description = "The version is not the one in force: `version_conflict`; or a channel that is missing still has open tasks: `open_tasks`; or the gateway may not write its file: `config_not_writable`.", body = crate::admin::api::error::ErrorBody),
        (status = 413, description = "The body is too large: `request_too_large`.", body = crate::admin::api::error::ErrorBody),
        Refused,
    )
)]
async fn replace_config(
    Owner(actor): Owner,
    State(state): State<AdminState>,
    Json(new): Json<NewConfig>,
) -> Result<Json<ConfigView>, ApiError> {
    let entries = Entries {
        channels: new.channels,
        models: new.models,
    };
    // The change runs in its own task, so that a client that disconnects does not interrupt it.
    let keeper = Arc::clone(&state.keeper);
    let replacing = tokio::spawn(async move { keeper.replace(new.version, entries, &actor).await });
    let in_force = replacing.await.map_err(|error| {
        tracing::error!(%error, "a change of the configuration has panicked");
        ApiError::internal()
    })??;
    ConfigView::of(&in_force).map(Json)
}

/// Check channels and models without putting them in force.
#[utoipa::path(
    post,
    path = "/config/check",
    tag = "config",
    request_body = ProposedConfig,
    responses(
        (status = 200, description = "All problems.", body = ConfigProblems),
        (status = 413, description = "The body is too large: `request_too_large`.", body = crate::admin::api::error::ErrorBody),
        Refused,
    )
)]
async fn check_config(
    _owner: Owner,
    State(state): State<AdminState>,
    Json(proposed): Json<ProposedConfig>,
) -> Result<Json<ConfigProblems>, ApiError> {
    let entries = Entries {
        channels: proposed.channels,
        models: proposed.models,
    };
    let problems = state.keeper.check(entries).await?;
    Ok(Json(ConfigProblems { problems }))
}

/// What an operator can do if the gateway cannot write its file.
const INSTEAD: &str = "Change the file yourself and reload the gateway, or set `admin.config = \"store\"`, which keeps \
    channels and models in the database.";

impl From<ReplaceError> for ApiError {
    fn from(error: ReplaceError) -> Self {
        let message = error.to_string();
        match error {
            ReplaceError::Version => {
                Self::conflict("version_conflict", message).with_param("version")
            }
            ReplaceError::NoChannel(name) => Self::not_found("channel", name),
            ReplaceError::OpenTasks(..) => {
                Self::conflict("open_tasks", message).with_param("channels")
            }
            ReplaceError::Problems(problems) => {
                let first = problems.first().map(|problem| problem.key.clone());
                let error = Self::malformed(message);
                match first.filter(|key| !key.is_empty()) {
                    Some(key) => error.with_param(key),
                    None => error,
                }
            }
            ReplaceError::Credential(bad) => {
                Self::invalid(format!("channel[{}].credential", bad.index), message)
            }
            ReplaceError::PastedSecret | ReplaceError::NoFile | ReplaceError::Entries(_) => {
                Self::malformed(message)
            }
            ReplaceError::Store(error) => error.into(),
            ReplaceError::File(error) => {
                tracing::warn!(%error, "the configuration file could not be written");
                let message = format!(
                    "The configuration file cannot be written ({}). {INSTEAD}",
                    error.kind()
                );
                Self::conflict("config_not_writable", message)
            }
            ReplaceError::Catalog(_) => {
                tracing::error!(error = message, "the configuration could not be replaced");
                Self::internal()
            }
        }
    }
}
