//! Checks AWS signatures, version 4. This code follows the vendor's specification and does not use the library with
//! which the gateway signs.

use super::refusal::refusal;
use crate::date::iso_8601;
use crate::reply::Reply;
use crate::settings::{AccessKey, Settings};
use hmac::{Hmac, KeyInit, Mac};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The largest accepted error of a caller's clock, in seconds.
const SKEW_MAX_S: u64 = 300;

/// Checks the signature of a request. Returns the request with the id of the key in place of the signature, or `None`
/// if the request is not signed.
pub(crate) fn check_signature(
    parts: &Parts,
    body: &[u8],
    settings: &Settings,
    unix_s: u64,
) -> Result<Option<Parts>, Reply> {
    let Some(header) = text(&parts.headers, "authorization") else {
        return Ok(None);
    };
    if !header.starts_with("AWS4-") {
        return Ok(None);
    }
    let authorization = Authorization::read(header).ok_or_else(|| {
        let message =
            "Authorization header requires 'Credential', 'SignedHeaders' and 'Signature'.";
        refusal(
            StatusCode::BAD_REQUEST,
            "IncompleteSignatureException",
            message,
        )
    })?;
    let key = settings
        .access_keys
        .iter()
        .find(|key| key.id == authorization.key_id)
        .ok_or_else(|| {
            let message = "The security token included in the request is invalid.";
            refusal(
                StatusCode::FORBIDDEN,
                "UnrecognizedClientException",
                message,
            )
        })?;
    check_scope(&authorization, parts, key)?;
    check_time(&authorization, &parts.headers, unix_s)?;
    check_token(&authorization, &parts.headers, key)?;
    let expected = signature(&authorization, parts, body, key);
    if expected != authorization.signature {
        let message = format!(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret \
             Access Key and signing method. The Canonical String for this request should have been\n'{}'",
            canonical_request(&authorization, parts, body)
        );
        return Err(invalid(&message));
    }
    let mut checked = parts.clone();
    if let Ok(bearer) = HeaderValue::try_from(format!("Bearer {}", key.id)) {
        checked.headers.insert(AUTHORIZATION, bearer);
    }
    Ok(Some(checked))
}

struct Authorization<'a> {
    key_id: &'a str,
    day: &'a str,
    region: &'a str,
    service: &'a str,
    signed: &'a str,
    signature: &'a str,
}

impl<'a> Authorization<'a> {
    fn read(header: &'a str) -> Option<Self> {
        let members = header.strip_prefix(ALGORITHM)?;
        let member = |name: &str| {
            let mut all = members.split(',').map(str::trim);
            all.find_map(|member| member.strip_prefix(name)?.strip_prefix('='))
        };
        let mut scope = member("Credential")?.split('/');
        let authorization = Self {
            key_id: scope.next()?,
            day: scope.next()?,
            region: scope.next()?,
            service: scope.next()?,
            signed: member("SignedHeaders")?,
            signature: member("Signature")?,
        };
        (scope.next()? == "aws4_request" && scope.next().is_none()).then_some(authorization)
    }

    fn scope(&self) -> String {
        format!("{}/{}/{}/aws4_request", self.day, self.region, self.service)
    }

    fn has_signed(&self, name: &str) -> bool {
        self.signed.split(';').any(|signed| signed == name)
    }
}

fn check_scope(
    authorization: &Authorization<'_>,
    parts: &Parts,
    key: &AccessKey,
) -> Result<(), Reply> {
    let service = if parts.uri.path().starts_with("/anthropic/") {
        "bedrock-mantle"
    } else {
        "bedrock"
    };
    if authorization.service != service {
        let message = format!("Credential should be scoped to correct service: '{service}'.");
        return Err(invalid(&message));
    }
    if authorization.region != key.region {
        return Err(invalid("Credential should be scoped to a valid region."));
    }
    Ok(())
}

fn check_time(
    authorization: &Authorization<'_>,
    headers: &HeaderMap,
    unix_s: u64,
) -> Result<(), Reply> {
    let date = text(headers, "x-amz-date").unwrap_or_default();
    // All dates have the same format, so comparing them as strings compares the times.
    let oldest = compact_date(unix_s.saturating_sub(SKEW_MAX_S));
    let newest = compact_date(unix_s + SKEW_MAX_S);
    if date < oldest.as_str() {
        let now = compact_date(unix_s);
        let message =
            format!("Signature expired: {date} is now earlier than {oldest} ({now} - 5 min.)");
        return Err(invalid(&message));
    }
    if date > newest.as_str() {
        let now = compact_date(unix_s);
        let message = format!(
            "Signature not yet current: {date} is still later than {newest} ({now} + 5 min.)"
        );
        return Err(invalid(&message));
    }
    if !date.starts_with(authorization.day)
        || !authorization.has_signed("x-amz-date")
        || !authorization.has_signed("host")
    {
        return Err(invalid(
            "'Host' and 'X-Amz-Date' must be signed, of the day of the credential.",
        ));
    }
    Ok(())
}

fn check_token(
    authorization: &Authorization<'_>,
    headers: &HeaderMap,
    key: &AccessKey,
) -> Result<(), Reply> {
    const NAME: &str = "x-amz-security-token";
    let sent = text(headers, NAME);
    if sent != key.session_token.as_deref() {
        let message = "The security token included in the request is expired";
        return Err(refusal(
            StatusCode::FORBIDDEN,
            "ExpiredTokenException",
            message,
        ));
    }
    if sent.is_some() && !authorization.has_signed(NAME) {
        return Err(invalid("'X-Amz-Security-Token' must be a signed header."));
    }
    Ok(())
}

fn invalid(message: &str) -> Reply {
    refusal(StatusCode::FORBIDDEN, "InvalidSignatureException", message)
}

fn signature(
    authorization: &Authorization<'_>,
    parts: &Parts,
    body: &[u8],
    key: &AccessKey,
) -> String {
    let date = text(&parts.headers, "x-amz-date").unwrap_or_default();
    let canonical = Sha256::digest(canonical_request(authorization, parts, body));
    let to_sign = format!(
        "{ALGORITHM}\n{date}\n{}\n{}",
        authorization.scope(),
        hex(&canonical)
    );
    let secret = format!("AWS4{}", key.secret);
    let steps = [
        authorization.day,
        authorization.region,
        authorization.service,
        "aws4_request",
        &to_sign,
    ];
    let signed = steps
        .iter()
        .fold(secret.into_bytes(), |key, text| authenticated(&key, text));
    hex(&signed)
}

fn canonical_request(authorization: &Authorization<'_>, parts: &Parts, body: &[u8]) -> String {
    let mut query: Vec<(String, String)> = parts
        .uri
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    query.sort();
    let query: Vec<_> = query
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut headers = String::new();
    for name in authorization.signed.split(';') {
        let values = parts.headers.get_all(name).iter();
        let values: Vec<_> = values
            .filter_map(|value| value.to_str().ok())
            .map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let _ = writeln!(headers, "{name}:{}", values.join(","));
    }
    format!(
        "{}\n{}\n{}\n{headers}\n{}\n{}",
        parts.method,
        encoded_again(parts.uri.path()),
        query.join("&"),
        authorization.signed,
        hex(&Sha256::digest(body))
    )
}

/// Percent-encodes the path a second time, because the path in the request is already encoded.
fn encoded_again(path: &str) -> String {
    let mut encoded = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn authenticated(key: &[u8], text: &str) -> Vec<u8> {
    // HMAC takes keys of any length, so this does not fail.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Formats a time as `20260102T030405Z`.
fn compact_date(unix_s: u64) -> String {
    iso_8601(unix_s).replace(['-', ':'], "")
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests;
