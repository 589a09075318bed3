//! Checks credentials of Azure, converts its paths to the vendor's, and writes its errors.

use super::convert::{AnswerChange, ConvertedRequest, bearer, header, rewritten_parts};
use super::issued_tokens::{IssuedTokens, Issuer};
use crate::percent::decoded;
use crate::reply::Reply;
use crate::settings::Settings;
use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use serde_json::{Value, json};

/// Checks the credential and converts the request to the vendor's protocol.
pub(super) fn convert(
    parts: &Parts,
    body: &Bytes,
    settings: &Settings,
    issued_tokens: &IssuedTokens,
) -> Result<ConvertedRequest, Reply> {
    let path = parts.uri.path();
    if let Some(rest) = path.strip_prefix("/anthropic") {
        authorise(parts, settings, issued_tokens, "x-api-key")?;
        return Ok(ConvertedRequest {
            parts: rewritten_parts(parts, rest, "x-api-key"),
            body: body.clone(),
            answer_change: AnswerChange::None,
        });
    }
    authorise(parts, settings, issued_tokens, "api-key")?;
    let (rest, deployment) = match path.strip_prefix("/openai/v1") {
        Some(rest) if is_without_version(parts) => (rest, None),
        Some(_) => return Err(not_found()),
        None => {
            let (deployment, rest) = dated(parts)?;
            (rest, deployment)
        }
    };
    let body = match deployment {
        Some(deployment) => with_model(body, &deployment)?,
        None => body.clone(),
    };
    let answer_change = match rest {
        "/chat/completions" => AnswerChange::AzureChat,
        _ => AnswerChange::None,
    };
    Ok(ConvertedRequest {
        parts: rewritten_parts(parts, &format!("/v1{rest}"), "authorization"),
        body,
        answer_change,
    })
}

/// Accepts either the key header or a token, but not both.
fn authorise(
    parts: &Parts,
    settings: &Settings,
    issued_tokens: &IssuedTokens,
    key_header: &str,
) -> Result<(), Reply> {
    match (header(parts, key_header), bearer(parts)) {
        (Some(key), None) if !key.is_empty() && !settings.refuses(key) => Ok(()),
        (None, Some(token)) if issued_tokens.accept(token, Issuer::Azure) => Ok(()),
        (Some(_), _) => Err(failure(
            StatusCode::UNAUTHORIZED,
            &json!({ "error": {
                "code": "401",
                "message": "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.",
            } }),
        )),
        _ => Err(failure(
            StatusCode::UNAUTHORIZED,
            &json!({
                "statusCode": 401,
                "message": "Unauthorized. Access token is missing, invalid, audience is incorrect, or have expired.",
            }),
        )),
    }
}

fn is_without_version(parts: &Parts) -> bool {
    !parts
        .uri
        .query()
        .unwrap_or_default()
        .contains("api-version")
}

/// Splits the path of a call with a dated `api-version` into the deployment, if it has one, and the rest.
fn dated(parts: &Parts) -> Result<(Option<String>, &str), Reply> {
    let query = parts.uri.query().unwrap_or_default();
    let version = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("api-version="));
    let is_date = |version: &str| {
        let date = version.get(..10).unwrap_or_default();
        date.split('-').map(str::len).eq([4, 2, 2])
    };
    if !version.is_some_and(is_date) {
        return Err(not_found());
    }
    let rest = parts.uri.path().strip_prefix("/openai").unwrap_or_default();
    let Some(named) = rest.strip_prefix("/deployments/") else {
        return Ok((None, rest));
    };
    let (deployment, _) = named.split_once('/').ok_or_else(not_found)?;
    let rest = named.get(deployment.len()..).unwrap_or_default();
    Ok((Some(decoded(deployment)), rest))
}

/// Sets the model to the deployment in the path, even if the body names another model.
fn with_model(body: &Bytes, deployment: &str) -> Result<Bytes, Reply> {
    let request = serde_json::from_slice(body).map_err(|_| not_found())?;
    let Value::Object(mut request) = request else {
        return Err(not_found());
    };
    request.insert("model".to_owned(), deployment.into());
    Ok(Value::Object(request).to_string().into())
}

fn not_found() -> Reply {
    let error = json!({ "error": { "code": "404", "message": "Resource not found" } });
    failure(StatusCode::NOT_FOUND, &error)
}

fn failure(status: StatusCode, body: &Value) -> Reply {
    Reply::json(status, body.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_takes_the_model_of_the_deployment() {
        let named = |body: &'static str| with_model(&Bytes::from_static(body.as_bytes()), "mine");
        assert_eq!(
            named(r#"{"model":"other","n":1}"#).ok().as_deref(),
            Some(br#"{"model":"mine","n":1}"#.as_slice())
        );
        for body in ["[]", "1", "null", "no JSON"] {
            assert!(named(body).is_err(), "{body}");
        }
    }
}
