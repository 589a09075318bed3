//! `/admin/v1/tokens`: lists, creates and revokes tokens of the admin API.

use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use store::{Role, TokenCursor, TokenId, TokenQuery};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::access::Owner;
use crate::admin::api::error::{ApiError, ErrorBody, Refused};
use crate::admin::api::extract::{Json, Path, Query};
use crate::admin::api::page::{Page, PageQuery, cursor_position};
use crate::admin::api::state::AdminState;
use crate::operations::tokens;
use crate::operations::views::{NewTokenView, TokenView};

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list_tokens, create_token))
        .routes(routes!(revoke_token))
}

/// List tokens, oldest first, including revoked ones.
#[utoipa::path(
    get,
    path = "/tokens",
    tag = "tokens",
    params(PageQuery),
    responses((status = 200, description = "A page of tokens.", body = Page<TokenView>), Refused)
)]
async fn list_tokens(
    _owner: Owner,
    State(state): State<AdminState>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Page<TokenView>>, ApiError> {
    let limit = query.limit;
    let rows = state.store().tokens(TokenQuery {
        after: cursor_position(query.cursor.as_ref())?.map(TokenCursor),
        limit: limit.and_one(),
    });
    let rows = rows.await?;
    Ok(Json(Page::of(
        rows,
        limit,
        |row| row.cursor.0,
        TokenView::from,
    )))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateToken {
    /// A name for people, which the audit shows. 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    role: RoleName,
}

/// The role of a token. Each role includes those before it.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum RoleName {
    Viewer,
    Support,
    Operator,
    Owner,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Viewer => Self::Viewer,
            RoleName::Support => Self::Support,
            RoleName::Operator => Self::Operator,
            RoleName::Owner => Self::Owner,
        }
    }
}

/// Create a token. Its secret is in the answer, and never shown again.
#[utoipa::path(
    post,
    path = "/tokens",
    tag = "tokens",
    request_body = CreateToken,
    responses(
        (status = 201, description = "The token, with its secret.", body = NewTokenView),
        (status = 413, description = "The body is larger than 1 MiB: `request_too_large`.", body = ErrorBody),
        Refused
    )
)]
async fn create_token(
    Owner(actor): Owner,
    State(state): State<AdminState>,
    Json(new): Json<CreateToken>,
) -> Result<(StatusCode, Json<NewTokenView>), ApiError> {
    let created = tokens::create(state.store(), new.name, new.role.into(), &actor).await;
    let (row, secret) = created.map_err(|error| ApiError::from(error).with_param("name"))?;
    let view = NewTokenView {
        token: row.into(),
        secret,
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Revoke a token and end its sessions. Revoking it again changes nothing.
#[utoipa::path(
    delete,
    path = "/tokens/{id}",
    tag = "tokens",
    params(("id" = String, Path, description = "The id of the token, `tok_...`.")),
    responses(
        (status = 204, description = "The token is revoked."),
        (status = 404, description = "There is no such token: `not_found`.", body = ErrorBody),
        Refused
    )
)]
async fn revoke_token(
    Owner(actor): Owner,
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    let id = TokenId::parse(&id).map_err(|_| ApiError::not_found("token", &id))?;
    state.store().revoke_token(id, &actor).await?;
    Ok(StatusCode::NO_CONTENT)
}
