//! Implements the clouds' token endpoints. They check the client's credential, and remember the tokens that they have
//! issued.

use super::google_account;
use crate::fault::{Script, Status, SubstituteReply};
use crate::reply::{Reply, html_page};
use crate::seed::Seed;
use crate::settings::Settings;
use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The model name under which calls of token endpoints are logged, and under which their faults are queued.
pub(crate) const TOKEN_MODEL: &str = "token";
const LIFE: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Issuer {
    Azure,
    Google,
}

/// The issued tokens, each with its issuer and expiry time.
#[derive(Debug, Default)]
pub(crate) struct IssuedTokens(Mutex<HashMap<String, (Issuer, Instant)>>);

impl IssuedTokens {
    /// Whether this issuer has issued the token and the token has not expired.
    pub(super) fn accept(&self, token: &str, issuer: Issuer) -> bool {
        let known = self.0.lock().get(token).copied();
        known.is_some_and(|(by, until)| by == issuer && Instant::now() < until)
    }

    /// Answers a call of a token endpoint, or sends the reply that the script substitutes. `None` for other paths.
    pub(super) fn answer(
        &self,
        parts: &Parts,
        body: &Bytes,
        settings: &Settings,
        script: &Script,
        number: u64,
    ) -> Option<Reply> {
        let (issuer, life) = endpoint(parts.uri.path())?;
        match &script.substitute {
            Some(SubstituteReply::Status(status)) => return Some(scripted_error(status)),
            Some(SubstituteReply::ErrorIn200) => return Some(unavailable(StatusCode::OK)),
            Some(SubstituteReply::HtmlPage) => return Some(html_page()),
            Some(SubstituteReply::EmptyObject) => return Some(Reply::json(StatusCode::OK, "{}")),
            Some(SubstituteReply::Refusal(refusal)) => return Some(refusal.reply(TOKEN_MODEL)),
            // These faults keep the head of the true answer; `BodySteps` replaces the body. `Swapped` has no effect,
            // because token endpoints have no streams.
            Some(
                SubstituteReply::Swapped | SubstituteReply::Garbage | SubstituteReply::EndlessLine,
            )
            | None => {}
        }
        let form = form(body);
        let checked = match issuer {
            Issuer::Azure => check_client(&form, settings),
            Issuer::Google => check_assertion(&form),
        };
        Some(match checked {
            Ok(()) => self.issue(issuer, life, number),
            Err((error, why)) => {
                let body = json!({ "error": error, "error_description": why });
                Reply::json(StatusCode::BAD_REQUEST, body.to_string())
            }
        })
    }

    fn issue(&self, issuer: Issuer, life: Duration, number: u64) -> Reply {
        let token = format!(
            "sim-token-{}",
            Seed::of(&[b"token", &number.to_le_bytes()]).letters(40)
        );
        let until = Instant::now() + life;
        self.0.lock().insert(token.clone(), (issuer, until));
        let body = match issuer {
            Issuer::Azure => json!({
                "token_type": "Bearer",
                "expires_in": life.as_secs(),
                "ext_expires_in": life.as_secs(),
                "access_token": token,
            }),
            // Google's endpoint has been observed to send this number as a string.
            Issuer::Google => json!({
                "access_token": token,
                "expires_in": life.as_secs().to_string(),
                "token_type": "Bearer",
            }),
        };
        Reply::json(StatusCode::OK, body.to_string())
    }
}

fn scripted_error(status: &Status) -> Reply {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::BAD_GATEWAY);
    unavailable(code).with_status_headers(status.retry_after_s)
}

fn unavailable(status: StatusCode) -> Reply {
    let body = json!({ "error": "temporarily_unavailable", "error_description": "scripted" });
    Reply::json(status, body.to_string())
}

/// Whether a path belongs to a token endpoint.
pub(super) fn is_endpoint(path: &str) -> bool {
    endpoint(path).is_some()
}

/// The issuer and the lifetime of tokens at a token endpoint.
fn endpoint(path: &str) -> Option<(Issuer, Duration)> {
    if let Some(tenant) = path.strip_suffix("/oauth2/v2.0/token") {
        return Some((Issuer::Azure, lifetime(tenant.trim_start_matches('/'))));
    }
    let rest = path.strip_prefix("/token")?;
    (rest.is_empty() || rest.starts_with('/'))
        .then(|| (Issuer::Google, lifetime(rest.trim_start_matches('/'))))
}

fn lifetime(name: &str) -> Duration {
    let seconds = name
        .strip_prefix("life-")
        .and_then(|text| text.parse().ok());
    seconds.map_or(LIFE, Duration::from_secs)
}

/// The decoded names and values of a URL-encoded form.
fn form(body: &[u8]) -> HashMap<String, String> {
    let text = String::from_utf8_lossy(body);
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    let decoded = |text: &str| crate::percent::decoded(&text.replace('+', " "));
    pairs
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

type CheckResult = Result<(), (&'static str, String)>;

fn check_client(form: &HashMap<String, String>, settings: &Settings) -> CheckResult {
    let text = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    if text("grant_type") != "client_credentials" {
        return Err((
            "unsupported_grant_type",
            "AADSTS70003: unsupported grant".to_owned(),
        ));
    }
    let client = text("client_id");
    if client.is_empty()
        || text("client_secret").is_empty()
        || settings.refuses(text("client_secret"))
    {
        let why = format!("AADSTS7000215: Invalid client secret provided for app '{client}'.");
        return Err(("invalid_client", why));
    }
    if !text("scope").starts_with("https://") || !text("scope").ends_with("/.default") {
        return Err((
            "invalid_scope",
            "AADSTS1002012: the scope is not valid".to_owned(),
        ));
    }
    Ok(())
}

fn check_assertion(form: &HashMap<String, String>) -> CheckResult {
    let text = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    if text("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
        return Err(("unsupported_grant_type", "Invalid grant_type".to_owned()));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map(|since| since.as_secs()).unwrap_or_default();
    google_account::check(text("assertion"), now).map_err(|why| ("invalid_grant", why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_token_endpoints_say_how_long_tokens_live() {
        for (path, expected) in [
            ("/contoso/oauth2/v2.0/token", Some((Issuer::Azure, 3600))),
            ("/life-3/oauth2/v2.0/token", Some((Issuer::Azure, 3))),
            ("/token", Some((Issuer::Google, 3600))),
            ("/token/life-2", Some((Issuer::Google, 2))),
            ("/tokens", None),
            ("/v1/chat/completions", None),
        ] {
            let found = endpoint(path).map(|(issuer, life)| (issuer, life.as_secs()));
            assert_eq!(found, expected, "{path}");
        }
    }
}
