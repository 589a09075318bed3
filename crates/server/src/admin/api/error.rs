//! Errors of the admin API, and the envelope in which they are sent.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use protocol::failure::{RETRY_SOON, retry_after_seconds};
use serde::Serialize;
use store::StoreError;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

/// Why a request was refused. Middleware adds the request id and writes the envelope (`api/answer.rs`).
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// The member, query parameter or header that is wrong.
    pub(crate) param: Option<String>,
    /// The number of seconds after which a retry may succeed.
    pub(crate) retry_after_s: Option<u32>,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            param: None,
            retry_after_s: None,
        }
    }

    /// The value of a member, query parameter or header is not valid.
    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            param: Some(param.into()),
            ..Self::malformed(message)
        }
    }

    /// The request is not valid. [`Self::with_param`] adds the member that is wrong, if there is one.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// The request has neither a valid token nor a valid session.
    pub(crate) fn invalid_token() -> Self {
        let message = "The admin token is missing or not valid.";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_admin_token", message)
    }

    pub(crate) fn role_not_sufficient(needed: store::Role) -> Self {
        let message = format!("This needs the role {needed} or a higher one.");
        Self::new(StatusCode::FORBIDDEN, "role_not_sufficient", message)
    }

    /// A browser's request that another site may have caused.
    pub(crate) fn forged(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "cross_site_request", message)
    }

    /// The object does not exist: `not_found("wallet", id)`.
    pub(crate) fn not_found(what: &str, id: impl std::fmt::Display) -> Self {
        let message = format!("There is no {what} `{id}`.");
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn unknown_path() -> Self {
        let message = "There is no such endpoint.";
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The path exists, but not with this method. The router adds the `allow` header.
    pub(crate) fn method_not_allowed() -> Self {
        let message =
            "This endpoint does not have this method; the header `allow` names those it has.";
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            message,
        )
    }

    /// The request conflicts with stored data. The code says how, such as `reference_conflict`.
    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    pub(crate) fn too_large(bytes_max: usize) -> Self {
        let message = format!("The body is larger than {bytes_max} bytes.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", message)
    }

    /// Too many requests, or too many wrong tokens.
    pub(crate) fn too_many(message: impl Into<String>, wait: Duration) -> Self {
        Self {
            retry_after_s: Some(retry_after_seconds(wait)),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limit_exceeded",
                message,
            )
        }
    }

    pub(crate) fn unavailable() -> Self {
        let message = "The database cannot be used at present. Try again.";
        Self {
            retry_after_s: Some(retry_after_seconds(RETRY_SOON)),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
        }
    }

    /// The search was ended because it took too long.
    pub(crate) fn too_slow(limit: std::time::Duration) -> Self {
        let message = format!(
            "The search took longer than {} seconds and was ended. Narrow it by a filter or a shorter time.",
            limit.as_secs()
        );
        Self {
            message,
            ..Self::unavailable()
        }
    }

    /// An internal error. The reason is in the log.
    pub(crate) fn internal() -> Self {
        let message = "Something went wrong in the gateway; its log has the reason.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
    }

    /// Names the member or parameter that caused the error.
    pub(crate) fn with_param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { what, id } => Self::not_found(what, id),
            StoreError::Taken { .. } => Self::conflict("name_taken", error.to_string()),
            StoreError::ReferenceConflict { .. } => {
                Self::conflict("reference_conflict", error.to_string())
            }
            StoreError::Invalid(message) => Self::malformed(message),
            StoreError::Overflow | StoreError::NotCovered { .. } => {
                Self::malformed(error.to_string())
            }
            StoreError::TooSlow { limit } => Self::too_slow(limit),
            StoreError::Unavailable | StoreError::Away(_) => {
                tracing::warn!(%error, "the store could not answer the admin API");
                Self::unavailable()
            }
            StoreError::Database(_) => {
                tracing::error!(%error, "the database refused a request of the admin API");
                Self::internal()
            }
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    pub(crate) error: ErrorDetail,
}

/// The cause of an error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorDetail {
    /// A stable identifier for programs.
    pub(crate) code: &'static str,
    /// A sentence for people.
    pub(crate) message: String,
    /// The member, query parameter or header that is wrong.
    #[schema(required)]
    pub(crate) param: Option<String>,
    /// The same as the header `x-request-id`.
    pub(crate) request_id: String,
}

/// The errors that every operation can answer, for `responses(...)` of its description.
#[derive(Debug)]
pub(crate) struct Refused;

impl IntoResponses for Refused {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let refused = [
            ("400", "The request is not valid: `invalid_request`."),
            ("401", "No valid token or session: `invalid_admin_token`."),
            (
                "403",
                "The role is too low: `role_not_sufficient`; or another site may have caused the request of a browser: `cross_site_request`.",
            ),
            (
                "429",
                "Too many requests or wrong tokens: `rate_limit_exceeded`, with `retry-after`.",
            ),
            ("500", "A fault of the gateway: `internal_error`."),
            (
                "503",
                "The database cannot be used at present, or a search took too long: `unavailable`.",
            ),
        ];
        refused
            .map(|(status, why)| (status.to_owned(), refusal(why)))
            .into()
    }
}

fn refusal(why: &str) -> RefOr<utoipa::openapi::Response> {
    let body = Ref::from_schema_name("ErrorBody");
    let content = ContentBuilder::new().schema(Some(body)).build();
    let response = ResponseBuilder::new()
        .description(why)
        .content("application/json", content);
    RefOr::T(response.build())
}
