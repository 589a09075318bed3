//! `/admin/v1/keys`: API keys, their limits and their secrets.

#![allow(
    clippy::option_option,
    reason = "in a change, an absent member, null and a value mean three things"
)]

use axum::body::HttpBody as _;
use axum::extract::{FromRequest as _, Request, State};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use ledger::{Micro, UnixMs};
use serde::{Deserialize, Deserializer};
use store::{
    Calendar, KeyChange, KeyId, KeyLimits, KeyQuery, KeyWindow, ModelList, PeriodLength, Store,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::filter;
use crate::admin::access::{Operator, Viewer};
use crate::admin::api::amount::Credits;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::{Json, Path, Query};
use crate::admin::api::object::Object;
use crate::admin::api::page::{Cursor, Page, PageLimit, cursor_position};
use crate::admin::api::state::AdminState;
use crate::operations::keys::{self, KeyDraft};
use crate::operations::views::{KeyView, NewKeyView};

/// The maximum time for which an old secret stays valid: a year.
const OVERLAP_SECONDS_MAX: u32 = 366 * 24 * 3600;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list_keys, create_key))
        .routes(routes!(get_key, update_key))
        .routes(routes!(rotate_key))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// A part of the key's name or of its wallet's name, or the beginning of its id or secret, case-insensitive.
    q: Option<String>,
    /// The id or the name of a wallet.
    wallet: Option<String>,
    /// One of the key's tags.
    tag: Option<String>,
    /// The number of rows, 1 to 500.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 50)]
    limit: PageLimit,
    /// `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor>,
}

/// A new key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KeyCreation)]
struct CreateKey {
    /// The id or the name of the wallet that pays.
    wallet: String,
    name: Option<String>,
    /// The total amount that the key may spend; no limit if left out.
    limit: Option<Credits>,
    /// The amount that the key may spend in each calendar period.
    #[schema(value_type = Option<WindowBody>)]
    window: Option<Object<WindowBody>>,
    /// Requests per minute.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 4_294_967_295_i64)]
    rpm: Option<u32>,
    /// Tokens per minute.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 4_294_967_295_i64)]
    tpm: Option<u32>,
    /// Requests in flight.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 4_294_967_295_i64)]
    concurrency: Option<u32>,
    /// In Unix milliseconds.
    expires_at: Option<i64>,
    /// Models that the key may call: ids and `maker/*`. All models if empty or left out.
    models: Option<Vec<String>>,
    /// Labels by which people find the key.
    tags: Option<Vec<String>>,
}

/// A change to a key. Members that are left out keep their values, and null removes a limit.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KeyChange)]
struct UpdateKey {
    #[serde(default, deserialize_with = "nullable")]
    name: Option<Option<String>>,
    enabled: Option<bool>,
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<Credits>)]
    limit: Option<Option<Credits>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<WindowBody>)]
    window: Option<Option<Object<WindowBody>>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 4_294_967_295_i64)]
    rpm: Option<Option<u32>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 4_294_967_295_i64)]
    tpm: Option<Option<u32>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 4_294_967_295_i64)]
    concurrency: Option<Option<u32>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<i64>)]
    expires_at: Option<Option<i64>>,
    /// Replaces the whole list. Empty or null allows every model.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<Vec<String>>)]
    models: Option<Option<Vec<String>>>,
    /// Replaces all tags.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<Vec<String>>)]
    tags: Option<Option<Vec<String>>>,
}

/// A spending limit for each day, week or month.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WindowSetting)]
struct WindowBody {
    amount: Credits,
    per: PerBody,
    /// The IANA name of the time zone whose midnight begins a period; UTC if left out.
    #[schema(example = "Europe/Berlin")]
    time_zone: Option<String>,
}

/// The length of a period. Weeks begin on Monday.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = WindowPeriod)]
enum PerBody {
    Day,
    Week,
    Month,
}

/// How long the old secret stays valid.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = KeyRotation)]
struct RotateKey {
    /// The number of seconds for which the old secret works beside the new one. If left out, it stops working at once, on other nodes within 5 seconds.
    #[schema(maximum = 31_622_400)]
    overlap_seconds: Option<u32>,
}

/// Deserializes a member that is present, even if it is null. An absent member is `None`, and null is `Some(None)`.
pub(super) fn nullable<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// List keys, newest first.
#[utoipa::path(
    get,
    path = "/keys",
    tag = "keys",
    params(ListQuery),
    responses((status = 200, description = "A page of keys.", body = Page<KeyView>), Refused)
)]
async fn list_keys(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<KeyView>>, ApiError> {
    let wallet = filter::wallet(state.store(), query.wallet).await?;
    let limit = query.limit;
    let rows = state.store().search_keys(KeyQuery {
        wallet,
        text: filter::text(query.q)?,
        tag: filter::non_empty(query.tag),
        after: cursor_position::<CursorKey>(query.cursor.as_ref())?.map(|key| key.0),
        count_max: Some(limit.and_one()),
    });
    let rows = rows.await?;
    Ok(Json(Page::of(
        rows,
        limit,
        |row| row.id,
        |row| KeyView::from(&row),
    )))
}

/// The key after which a page begins.
struct CursorKey(KeyId);

impl<'de> Deserialize<'de> for CursorKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        KeyId::parse(&text)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

/// Create a key. Its secret is in the answer and never shown again.
#[utoipa::path(
    post,
    path = "/keys",
    tag = "keys",
    request_body = CreateKey,
    responses(
        (status = 201, description = "The key with its secret.", body = NewKeyView),
        (status = 404, description = "There is no such wallet: `not_found`.", body = ErrorBody),
        (status = 413, description = "The body is too large: `request_too_large`.", body = ErrorBody),
        Refused,
    )
)]
async fn create_key(
    Operator(actor): Operator,
    State(state): State<AdminState>,
    Json(body): Json<CreateKey>,
) -> Result<(StatusCode, Json<NewKeyView>), ApiError> {
    let found = state.store().find_wallet(&body.wallet).await?;
    let wallet = found
        .ok_or_else(|| ApiError::not_found("wallet", body.wallet.as_str()).with_param("wallet"))?;
    let draft = KeyDraft {
        wallet: wallet.id,
        name: body.name,
        limits: KeyLimits {
            limit: amount("limit", body.limit)?,
            window: body.window.map(window).transpose()?,
            models: models(body.models)?,
            rpm: count("rpm", body.rpm)?,
            tpm: count("tpm", body.tpm)?,
            concurrency: count("concurrency", body.concurrency)?,
            expires_at: body.expires_at.map(UnixMs::new),
        },
        tags: body.tags.unwrap_or_default(),
    };
    let (row, secret) = keys::create(state.store(), draft, &actor).await?;
    let key = KeyView::from(&row);
    Ok((StatusCode::CREATED, Json(NewKeyView { key, secret })))
}

/// Show a key.
#[utoipa::path(
    get,
    path = "/keys/{id}",
    tag = "keys",
    params(("id" = String, Path, description = "The key's id.")),
    responses(
        (status = 200, description = "The key.", body = KeyView),
        (status = 404, description = "There is no such key: `not_found`.", body = ErrorBody),
        Refused,
    )
)]
async fn get_key(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<Json<KeyView>, ApiError> {
    show(state.store(), key_id(&id)?).await
}

/// Change a key, effective at the next call. Null removes a limit.
#[utoipa::path(
    patch,
    path = "/keys/{id}",
    tag = "keys",
    params(("id" = String, Path, description = "The key's id.")),
    request_body = UpdateKey,
    responses(
        (status = 200, description = "The key after the change.", body = KeyView),
        (status = 404, description = "There is no such key: `not_found`.", body = ErrorBody),
        (status = 413, description = "The body is too large: `request_too_large`.", body = ErrorBody),
        Refused,
    )
)]
async fn update_key(
    Operator(actor): Operator,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    Json(body): Json<UpdateKey>,
) -> Result<Json<KeyView>, ApiError> {
    let id = key_id(&id)?;
    let change = body.read()?;
    if change == KeyChange::default() {
        return show(state.store(), id).await;
    }
    let row = state.store().update_key(id, change, &actor).await?;
    Ok(Json(KeyView::from(&row)))
}

/// Give a key a new secret. It is in the answer and never shown again.
///
/// A key has at most one old secret. If an overlap is still running, this ends it: the older secret stops working at
/// once.
#[utoipa::path(
    post,
    path = "/keys/{id}/rotate",
    tag = "keys",
    params(("id" = String, Path, description = "The key's id.")),
    request_body = Option<RotateKey>,
    responses(
        (status = 200, description = "The key with its new secret.", body = NewKeyView),
        (status = 404, description = "There is no such key: `not_found`.", body = ErrorBody),
        (status = 413, description = "The body is too large: `request_too_large`.", body = ErrorBody),
        Refused,
    )
)]
async fn rotate_key(
    Operator(actor): Operator,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Json<NewKeyView>, ApiError> {
    let id = key_id(&id)?;
    // A body without a content type is refused. Otherwise the overlap in it would be silently ignored.
    let has_body = !request.body().is_end_stream();
    let body = if has_body || request.headers().contains_key(CONTENT_TYPE) {
        Json::<RotateKey>::from_request(request, &()).await?.0
    } else {
        RotateKey::default()
    };
    let overlap = body.overlap_seconds.unwrap_or(0);
    if overlap > OVERLAP_SECONDS_MAX {
        let message = format!("An overlap is at most {OVERLAP_SECONDS_MAX} seconds.");
        return Err(ApiError::invalid("overlap_seconds", message));
    }
    let until = engine::clock::now().plus_ms(i64::from(overlap) * 1_000);
    let until = (overlap > 0).then_some(until);
    let (row, secret) = keys::rotate(state.store(), id, until, &actor).await?;
    let key = KeyView::from(&row);
    Ok(Json(NewKeyView { key, secret }))
}

async fn show(store: &Store, id: KeyId) -> Result<Json<KeyView>, ApiError> {
    let found = store.find_key(&id).await?;
    let row = found.ok_or_else(|| ApiError::not_found("key", id))?;
    Ok(Json(KeyView::from(&row)))
}

/// Parses the id in a path. An invalid id is answered like an unknown key.
fn key_id(id: &str) -> Result<KeyId, ApiError> {
    KeyId::parse(id).map_err(|_| ApiError::not_found("key", id))
}

impl UpdateKey {
    fn read(self) -> Result<KeyChange, ApiError> {
        Ok(KeyChange {
            name: self.name,
            enabled: self.enabled,
            limit: changed(self.limit, |limit| amount("limit", limit))?,
            window: changed(self.window, |body| body.map(window).transpose())?,
            models: changed(self.models, models)?,
            tags: self.tags.map(Option::unwrap_or_default),
            rpm: changed(self.rpm, |rpm| count("rpm", rpm))?,
            tpm: changed(self.tpm, |tpm| count("tpm", tpm))?,
            concurrency: changed(self.concurrency, |limit| count("concurrency", limit))?,
            expires_at: self.expires_at.map(|at| at.map(UnixMs::new)),
        })
    }
}

fn changed<T, U>(
    member: Option<Option<T>>,
    read: impl FnOnce(Option<T>) -> Result<Option<U>, ApiError>,
) -> Result<Option<Option<U>>, ApiError> {
    member.map(read).transpose()
}

fn amount(param: &str, credits: Option<Credits>) -> Result<Option<Micro>, ApiError> {
    match credits {
        Some(Credits(amount)) if amount.is_negative() => {
            Err(ApiError::invalid(param, "An amount is not below zero."))
        }
        credits => Ok(credits.map(|Credits(amount)| amount)),
    }
}

fn count(param: &str, limit: Option<u32>) -> Result<Option<u32>, ApiError> {
    match limit {
        Some(0) => {
            let message = "A limit is above zero; null lifts it.";
            Err(ApiError::invalid(param, message))
        }
        limit => Ok(limit),
    }
}

fn models(patterns: Option<Vec<String>>) -> Result<Option<ModelList>, ApiError> {
    let list = ModelList::new(patterns.unwrap_or_default());
    list.map_err(|error| ApiError::invalid("models", format!("{error}.")))
}

fn window(Object(body): Object<WindowBody>) -> Result<KeyWindow, ApiError> {
    let WindowBody {
        amount: Credits(amount),
        per,
        time_zone,
    } = body;
    let per = match per {
        PerBody::Day => PeriodLength::Day,
        PerBody::Week => PeriodLength::Week,
        PerBody::Month => PeriodLength::Month,
    };
    let zone = time_zone.as_deref().unwrap_or("UTC");
    let calendar = Calendar::new(per, zone)
        .map_err(|error| ApiError::invalid("window.time_zone", format!("{error}.")))?;
    if amount.is_negative() {
        let message = "An amount is not below zero.";
        return Err(ApiError::invalid("window.amount", message));
    }
    Ok(KeyWindow { amount, calendar })
}
