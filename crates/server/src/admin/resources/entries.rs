//! `/admin/v1/wallets/{id}/entries`: books manual entries, and lists entries.

use axum::extract::State;
use http::StatusCode;
use ledger::{ManualKind, Micro};
use serde::Deserialize;
use store::{NewEntry, Role, StoreError};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::wallets::wallet_id;
use crate::admin::access::{Support, Viewer};
use crate::admin::api::amount::Credits;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::{Json, Path, Query};
use crate::admin::api::page::{Cursor, Page, PageLimit, cursor_position};
use crate::admin::api::state::AdminState;
use crate::operations::views::EntryView;

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(list_entries, book_entry))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// The number of rows, 1 to 500.
    #[serde(default)]
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500, default = 50)]
    limit: PageLimit,
    /// `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<Cursor>,
}

/// List the entries of a wallet, newest first, with the balance after each.
#[utoipa::path(
    get,
    path = "/wallets/{id}/entries",
    tag = "wallets",
    params(("id" = String, Path, description = "The wallet's id."), ListQuery),
    responses(
        (status = 200, description = "A page of entries.", body = Page<EntryView>),
        (status = 404, description = "There is no such wallet: `not_found`.", body = ErrorBody),
        Refused
    )
)]
async fn list_entries(
    _viewer: Viewer,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<EntryView>>, ApiError> {
    let (wallet, limit) = (wallet_id(&id)?, query.limit);
    let before = cursor_position(query.cursor.as_ref())?;
    let store = state.store();
    let entries = store
        .latest_entries(wallet, before, limit.and_one())
        .await?;
    Ok(Json(Page::of(
        entries,
        limit,
        |entry| entry.entry.seq,
        EntryView::from,
    )))
}

/// The kind of a manual entry.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Adds paid credits, which repay the credit line first.
    TopUp,
    /// Adds gift credits, which never repay debt.
    Gift,
    /// Takes paid credits.
    Debit,
    /// Takes paid credits because their money is paid back.
    Refund,
    /// Corrects the books. The amount may be negative.
    Adjustment,
}

impl Kind {
    fn get(self) -> ManualKind {
        match self {
            Self::TopUp => ManualKind::TopUp,
            Self::Gift => ManualKind::Gift,
            Self::Debit => ManualKind::Debit,
            Self::Refund => ManualKind::Refund,
            Self::Adjustment => ManualKind::Adjustment,
        }
    }

    fn role(self) -> Role {
        match self {
            Self::TopUp => Role::Support,
            Self::Gift | Self::Debit | Self::Refund => Role::Operator,
            Self::Adjustment => Role::Owner,
        }
    }
}

/// Credits to move.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewEntry)]
struct BookBody {
    kind: Kind,
    /// Above zero, except that an adjustment may be negative.
    amount: Credits,
    /// Unique among the wallet's entries, such as the id of the payment. The same reference with the same kind and
    /// amount returns the entry that exists.
    reference: String,
    /// The reason, for people.
    note: Option<String>,
    /// The top-up that a refund takes back: its reference, or the number of its entry. The refunds of a top-up never
    /// exceed it.
    refund_of: Option<String>,
}

/// Add or take credits of a wallet. `top_up` needs the role support, `adjustment` owner, the others operator.
#[utoipa::path(
    post,
    path = "/wallets/{id}/entries",
    tag = "wallets",
    params(("id" = String, Path, description = "The wallet's id.")),
    request_body = BookBody,
    responses(
        (status = 200, description = "The entry with the same reference, kind and amount. Nothing was booked.", body = EntryView),
        (status = 201, description = "The new entry.", body = EntryView),
        (status = 404, description = "There is no such wallet: `not_found`.", body = ErrorBody),
        (status = 409, description = "The reference belongs to another entry: `reference_conflict`.", body = ErrorBody),
        (status = 413, description = "The body is too large: `request_too_large`.", body = ErrorBody),
        Refused
    )
)]
async fn book_entry(
    Support(actor): Support,
    State(state): State<AdminState>,
    Path(id): Path<String>,
    Json(body): Json<BookBody>,
) -> Result<(StatusCode, Json<EntryView>), ApiError> {
    let needed = body.kind.role();
    if actor.role < needed {
        return Err(ApiError::role_not_sufficient(needed));
    }
    let wallet = wallet_id(&id)?;
    let kind = body.kind.get();
    let Credits(amount) = body.amount;
    check(kind, amount, &body)?;
    let new = NewEntry {
        kind,
        amount,
        reference: Some(body.reference),
        refund_of: body.refund_of,
        note: body.note.unwrap_or_default(),
    };
    let booked = state.store().book_entry(wallet, new, &actor).await;
    let booked = booked.map_err(refused)?;
    let entry = state.store().find_entry(wallet, booked.seq).await?;
    let entry = entry.ok_or_else(ApiError::internal)?;
    let status = if booked.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(EntryView::from(entry))))
}

/// Checks the amount and `refund_of` here, so that the error names the invalid member.
fn check(kind: ManualKind, amount: Micro, body: &BookBody) -> Result<(), ApiError> {
    let is_adjustment = kind == ManualKind::Adjustment;
    if amount == Micro::ZERO || (amount.is_negative() && !is_adjustment) {
        let message = if is_adjustment {
            "The amount must not be zero."
        } else {
            "The amount must be above zero."
        };
        return Err(ApiError::invalid("amount", message));
    }
    if body.refund_of.is_some() && kind != ManualKind::Refund {
        return Err(ApiError::invalid(
            "refund_of",
            "Only a refund names a top-up.",
        ));
    }
    Ok(())
}

fn refused(error: StoreError) -> ApiError {
    match &error {
        StoreError::NotFound { what: "top-up", id } => {
            ApiError::invalid("refund_of", format!("The wallet has no top-up `{id}`."))
        }
        StoreError::ReferenceConflict { .. } | StoreError::Invalid(_) => {
            ApiError::from(error).with_param("reference")
        }
        StoreError::NotCovered { .. } | StoreError::Overflow => {
            ApiError::from(error).with_param("amount")
        }
        _ => ApiError::from(error),
    }
}
