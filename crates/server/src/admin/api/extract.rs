//! Reads the path, query and body of a request into types. The [`ApiError`] of an invalid request names the member or
//! parameter that is wrong.
//!
//! Types of bodies and queries carry `#[serde(deny_unknown_fields)]`, so that a misspelt member is refused.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ApiError;
use super::nul::{escapes_nul, names_nul};
use super::object::Object;

pub(crate) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The time within which a body must arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// A JSON body of a request or an answer.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        if !is_json(&parts) {
            let message = "The body must be JSON, with `content-type: application/json`.";
            return Err(ApiError::invalid("content-type", message));
        }
        let body = read(&parts, body, BODY_TIME_MAX).await?;
        if escapes_nul(&body) {
            return Err(ApiError::malformed("The body must not contain NUL."));
        }
        let mut json = serde_json::Deserializer::from_slice(&body);
        let read = serde_path_to_error::deserialize(&mut json);
        let Object(value) = read.map_err(|error| {
            let path = error.path().to_string();
            let error = ApiError::malformed(format!("The body is not valid: {}.", error.inner()));
            match path.as_str() {
                "." => error,
                _ => error.with_param(path),
            }
        })?;
        json.end()
            .map_err(|error| ApiError::malformed(format!("The body is not valid: {error}.")))?;
        Ok(Self(value))
    }
}

fn is_json(parts: &Parts) -> bool {
    let Some(kind) = parts.headers.get(CONTENT_TYPE) else {
        return false;
    };
    let kind = kind.to_str().unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

async fn read(parts: &Parts, body: Body, time_max: Duration) -> Result<bytes::Bytes, ApiError> {
    let announced = parts
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > BODY_BYTES_MAX) {
        return Err(ApiError::too_large(BODY_BYTES_MAX));
    }
    let collect = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(time_max, collect).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(ApiError::too_large(BODY_BYTES_MAX))
        }
        Ok(Err(_)) => Err(ApiError::malformed("The body could not be read.")),
        Err(_) => Err(ApiError::malformed("The body took too long to arrive.")),
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        if names_nul(query) {
            return Err(ApiError::malformed("The query must not contain NUL."));
        }
        let pairs = serde_urlencoded::Deserializer::new(form(query));
        let value = serde_path_to_error::deserialize(pairs).map_err(|error| {
            let path = error.path().to_string();
            let error = ApiError::malformed(format!("The query is not valid: {}.", error.inner()));
            match path.as_str() {
                "." => error,
                _ => error.with_param(path),
            }
        })?;
        Ok(Self(value))
    }
}

fn form(query: &str) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(query.as_bytes())
}

/// A part of the path, such as an id. A text with NUL or that is not UTF-8 is answered like an unknown id.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let has_nul = names_nul(parts.uri.path());
        let read = axum::extract::Path::from_request_parts(parts, state).await;
        let (Ok(axum::extract::Path(value)), false) = (read, has_nul) else {
            let last = parts.uri.path().rsplit('/').next().unwrap_or_default();
            return Err(ApiError::not_found("such thing as", last));
        };
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_that_does_not_end_is_refused() {
        let (parts, ()) = http::Request::new(()).into_parts();
        let endless =
            Body::from_stream(futures_util::stream::pending::<Result<Vec<u8>, axum::Error>>());
        let refused = read(&parts, endless, Duration::from_millis(20)).await;
        assert_eq!(refused.unwrap_err().code, "invalid_request");
    }
}
