//! `/admin/v1/channels/discover` and `/try`: test an upstream account before it is saved.
//!
//! The request body contains the credential. It is used only for this request and neither stored nor logged, so the
//! types that hold it do not implement `Debug`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::extract::State;
use engine::{ProbeOutcome, ask_for_models};
use protocol::{Dialect, Kind, ListedModel, ModelList, UnknownDialect};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{Actor, AuditAction};
use upstream::{Channel, ChannelError, ChannelSpec, Preset, Protocol, Secret, UnknownName};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::channels::ProbeView;
use crate::admin::access::Owner;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::Json;
use crate::admin::api::object::Object;
use crate::admin::api::state::AdminState;
use crate::config::on_one_line;
use crate::gateway::ReplaceError;
use crate::known_models::KnownModels;
use crate::operations::proposed_models::{Account, ProposalSources, models_of_catalog, propose};

/// The maximum length of the name of a model to try.
const MODEL_BYTES_MAX: usize = 256;
/// The maximum length of a credential. Keys of vendors have a few hundred bytes, service accounts a few thousand.
const CREDENTIAL_BYTES_MAX: usize = 8 << 10;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(discover_models))
        .routes(routes!(try_channel))
}

/// An upstream account that is not saved.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProposedChannel {
    /// The name that the channel will have. It is used as the maker of models whose id has none.
    name: Option<String>,
    preset: String,
    /// The address of the upstream. If absent, that of the preset.
    base_url: Option<String>,
    /// The vendor's key. It is used for this call only.
    credential: Option<String>,
    /// Values that the preset needs in addition to the credential, such as a project.
    #[serde(default)]
    account: BTreeMap<String, String>,
    /// The protocols that the channel speaks. If absent, those of the preset.
    protocols: Option<Vec<String>>,
}

/// A call to make through an account that is not saved.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChannelTrial {
    #[schema(value_type = ProposedChannel)]
    channel: Object<ProposedChannel>,
    /// The upstream's name for the model.
    model: String,
    /// The kind of the model. If absent, `text`.
    kind: Option<TrialKind>,
    /// The dialect of a text model, as in the answer of `/channels/discover`. If absent, the channel's first one.
    dialect: Option<String>,
}

/// The kinds of models that have a small call.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum TrialKind {
    Text,
    Embedding,
}

/// The models that an upstream lists.
#[derive(Debug, Serialize, ToSchema)]
struct DiscoveryView {
    ok: bool,
    /// The status of the upstream's answer.
    #[schema(required)]
    status: Option<u16>,
    message: String,
    total_ms: u64,
    /// Whether `data` has all models of the account.
    complete: bool,
    /// The models of the account. If `ok` is false, the models of this preset that the catalog knows.
    data: Vec<DiscoveredModel>,
}

/// A model of the account.
#[derive(Debug, Serialize, ToSchema)]
struct DiscoveredModel {
    /// The upstream's name for the model.
    id: String,
    #[schema(required)]
    title: Option<String>,
    /// A proposed `[[model]]` entry without routes. It leaves out what the catalog knows.
    #[schema(value_type = Object)]
    entry: Map<String, Value>,
    /// Where its price comes from: `configuration`, `catalog` or `catalog-file`. Null if no price is known.
    #[schema(required)]
    source: Option<&'static str>,
    /// Whether the configuration already has a model with this id. If so, saving adds a route to it.
    configured: bool,
    /// Whether the channel can serve the model without an entry, if the channel's `models` list names the id of
    /// `entry`.
    by_id: bool,
    /// The dialect in which the vendor serves it. Null if there are several, or if that is not known.
    #[schema(required)]
    dialect: Option<&'static str>,
}

/// Ask a vendor which models an account can call, before it is saved.
#[utoipa::path(
    post,
    path = "/channels/discover",
    tag = "channels",
    request_body = ProposedChannel,
    responses(
        (status = 200, description = "What the upstream said; `ok` is false if that was no list.", body = DiscoveryView),
        (status = 413, description = "The body is too large: `request_too_large`.", body = ErrorBody),
        Refused,
    )
)]
async fn discover_models(
    Owner(actor): Owner,
    State(state): State<AdminState>,
    Json(proposed): Json<ProposedChannel>,
) -> Result<Json<DiscoveryView>, ApiError> {
    let channel = proposed.build(&state, "")?;
    note(&state, "channel.discover", &channel, None, &actor).await?;
    let answer = ask_for_models(&channel).await;
    let in_force = state.keeper.in_force();
    let entries = in_force.entries().map_err(ReplaceError::from)?;
    let known = in_force.config.catalog.known_models();
    let known = known.unwrap_or_else(|fault| {
        tracing::warn!(fault, "the catalog's file cannot be used");
        Cow::Borrowed(KnownModels::built_in())
    });
    let spec = channel.spec();
    let account = Account {
        preset: spec.preset,
        channel: channel.name(),
        protocols: spec
            .protocols
            .as_deref()
            .unwrap_or_else(|| spec.preset.protocols()),
    };
    let sources = ProposalSources {
        entries: &entries,
        in_force: &in_force.config.models,
        catalog: &known,
    };
    let is_ok = answer.list.is_some();
    let list = answer.list.unwrap_or_else(|| ModelList {
        models: models_of_catalog(account, &known).collect(),
        is_complete: false,
    });
    let view = |listed: ListedModel| {
        let proposal = propose(account, &listed, sources);
        DiscoveredModel {
            id: listed.name,
            title: listed.title,
            entry: proposal.entry,
            source: proposal.source,
            configured: proposal.is_configured,
            by_id: proposal.has_catalog_route,
            dialect: proposal.dialect.map(Dialect::as_str),
        }
    };
    Ok(Json(DiscoveryView {
        ok: is_ok,
        status: answer.status,
        message: answer.message,
        total_ms: u64::try_from(answer.total.as_millis()).unwrap_or(u64::MAX),
        complete: list.is_complete,
        data: list.models.into_iter().map(view).collect(),
    }))
}

/// Send one small call through an account that is not saved. Nobody is charged for it.
#[utoipa::path(
    post,
    path = "/channels/try",
    tag = "channels",
    request_body = ChannelTrial,
    responses(
        (status = 200, description = "How the call went.", body = ProbeView),
        (status = 413, description = "The body is too large: `request_too_large`.", body = ErrorBody),
        Refused,
    )
)]
async fn try_channel(
    Owner(actor): Owner,
    State(state): State<AdminState>,
    Json(trial): Json<ChannelTrial>,
) -> Result<Json<ProbeView>, ApiError> {
    let model = trial.model;
    if model.is_empty() || model.len() > MODEL_BYTES_MAX || model.chars().any(char::is_control) {
        let message = format!("The model must be a name of 1 to {MODEL_BYTES_MAX} bytes.");
        return Err(ApiError::invalid("model", message));
    }
    let channel = trial.channel.0.build(&state, "channel.")?;
    let kind = match trial.kind {
        None | Some(TrialKind::Text) => Kind::Text,
        Some(TrialKind::Embedding) => Kind::Embedding,
    };
    let dialect = trial.dialect.map(|name| name.parse()).transpose();
    let dialect: Option<Dialect> = dialect.map_err(|error: UnknownDialect| {
        ApiError::invalid("dialect", format!("The dialect {error}."))
    })?;
    note(&state, "channel.try", &channel, Some(&model), &actor).await?;
    let engine = &state.engine;
    let outcome: ProbeOutcome = engine.try_channel(&channel, kind, dialect, &model).await;
    Ok(Json(outcome.into()))
}

/// Writes the audit row before the call, so that no use of a vendor's key goes unrecorded.
async fn note(
    state: &AdminState,
    action: &'static str,
    channel: &Channel,
    model: Option<&str>,
    actor: &Actor,
) -> Result<(), ApiError> {
    let spec = channel.spec();
    let details = json!({
        "preset": spec.preset.as_str(),
        "base_url": channel.base_url(),
        "model": model,
    });
    let action = AuditAction {
        action,
        target: channel.name().to_owned(),
        before: None,
        after: Some(details.to_string()),
    };
    Ok(state.store().note_action(action, actor).await?)
}

impl ProposedChannel {
    /// Checks the members and builds the channel. `prefix` is the prefix of their names in error messages.
    fn build(self, state: &AdminState, prefix: &str) -> Result<Channel, ApiError> {
        let invalid =
            |member: &str, message: String| ApiError::invalid(format!("{prefix}{member}"), message);
        let preset: Preset = self
            .preset
            .parse()
            .map_err(|error: UnknownName| invalid("preset", format!("The preset {error}.")))?;
        let name = self.name.unwrap_or_else(|| preset.as_str().to_owned());
        if !is_label(&name) {
            let message = "The name must be 1 to 64 letters, digits and any of `-_.`.".to_owned();
            return Err(invalid("name", message));
        }
        let credential = self.credential.as_deref().map(on_one_line);
        let credential = credential.as_deref().map(Secret::new);
        if credential.is_none() && preset.needs_credential() {
            let message = format!("Upstreams of the preset {preset} need a credential.");
            return Err(invalid("credential", message));
        }
        if self
            .credential
            .is_some_and(|it| it.len() > CREDENTIAL_BYTES_MAX)
        {
            let message = format!("The credential is longer than {CREDENTIAL_BYTES_MAX} bytes.");
            return Err(invalid("credential", message));
        }
        let known = preset.account_settings();
        let mut account = Vec::with_capacity(self.account.len());
        for (name, value) in self.account {
            if !known.iter().any(|setting| setting.name == name) {
                let message = format!("The preset {preset} has no account setting {name:?}.");
                return Err(invalid("account", message));
            }
            if value.len() > CREDENTIAL_BYTES_MAX {
                let message =
                    format!("The value of {name} is longer than {CREDENTIAL_BYTES_MAX} bytes.");
                return Err(invalid("account", message));
            }
            account.push((name, Secret::new(&value)));
        }
        let protocols = self.protocols.map(|names| {
            let protocols = names.iter().map(|name| name.parse());
            protocols.collect::<Result<Vec<Protocol>, UnknownName>>()
        });
        let protocols = protocols.transpose();
        let spec = ChannelSpec {
            name,
            preset,
            base_url: self.base_url,
            credential,
            account: account.into_iter().collect(),
            protocols: protocols
                .map_err(|error| invalid("protocols", format!("The protocol {error}.")))?,
            private_network: false,
            keeps_output_limit: None,
            client_gone_drain: None,
            counts_tokens: None,
            sends_traceparent: false,
        };
        state.engine.proposed_channel(spec).map_err(|error| {
            let member = match error {
                ChannelError::NoBaseUrl | ChannelError::BaseUrl(..) => "base_url",
                ChannelError::EmptyCredential
                | ChannelError::Credential
                | ChannelError::CredentialForm
                | ChannelError::ServiceAccount(_)
                | ChannelError::TokenUrl(..) => "credential",
                ChannelError::NoSetting(_) | ChannelError::Setting(..) => "account",
                ChannelError::NoProtocols => "protocols",
            };
            invalid(member, format!("The channel cannot be used: {error}."))
        })
    }
}

fn is_label(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}
