//! A bearer token, and the errors of requesting one.

use std::time::Duration;

use http::HeaderValue;
use serde::Deserialize;
use tokio::time::Instant;

use crate::header_line::write_line;
use crate::secret::Secret;

/// A token with at least this lifetime is renewed after half of its lifetime, unless the endpoint names a time of
/// renewal.
const LONG_LIFE: Duration = Duration::from_secs(7_200);
/// The shortest lifetime of a token. Shorter lifetimes are raised to this value.
const LIFE_MIN: Duration = Duration::from_secs(1);
/// The longest lifetime of a token: a day. Vendors grant an hour or two. The limit also keeps clock arithmetic from
/// overflowing.
const LIFE_MAX_SECS: u64 = 86_400;

#[derive(Debug)]
pub(crate) struct Token {
    text: Secret,
    line: Box<[u8]>,
    pub(super) renew_at: Instant,
    pub(super) expires_at: Instant,
    pub(super) issued_at: Instant,
}

/// The reason why there is no token. The message is for operators and never contains the credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The same request may succeed later.
    #[error("the token endpoint gave no token: {0}")]
    Transient(String),
    /// The credential was refused, so an operator must act.
    #[error("the token endpoint refuses the credential: {0}")]
    Final(String),
}

#[derive(Deserialize)]
struct Answer {
    access_token: Option<String>,
    #[serde(default)]
    expires_in: Seconds,
    #[serde(default)]
    refresh_in: Seconds,
    error: Option<String>,
    error_description: Option<String>,
}

/// A number of seconds, which some endpoints write as a string.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(from = "Number")]
struct Seconds(Option<u64>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(u64),
    Text(String),
    Other(serde::de::IgnoredAny),
}

impl From<Number> for Seconds {
    fn from(number: Number) -> Self {
        Self(match number {
            Number::Plain(seconds) => Some(seconds),
            Number::Text(text) => text.trim().parse().ok(),
            Number::Other(_) => None,
        })
    }
}

impl Token {
    /// Reads the answer of a token endpoint. Unless the endpoint names a time of renewal, a token with a lifetime below
    /// `LONG_LIFE` is renewed `margin` before its expiry, but not before half of its lifetime is over.
    pub(super) fn read(
        status: u16,
        body: &[u8],
        asked_at: Instant,
        margin: Duration,
    ) -> Result<Self, TokenError> {
        let answer: Answer = serde_json::from_slice(body).map_err(|_| {
            let problem = format!("status {status} without a JSON object");
            if is_transient(status, None) || (200..400).contains(&status) {
                TokenError::Transient(problem)
            } else {
                TokenError::Final(problem)
            }
        })?;
        let Some(text) = answer.access_token.filter(|_| status == 200) else {
            return Err(refusal(status, answer.error, answer.error_description));
        };
        let Ok(value) = HeaderValue::try_from(format!("Bearer {text}")) else {
            let problem = "the token has characters that a header cannot carry".to_owned();
            return Err(TokenError::Transient(problem));
        };
        // If the answer has no lifetime, an hour is assumed.
        let life = answer.expires_in.0.unwrap_or(3_600).min(LIFE_MAX_SECS);
        let life = Duration::from_secs(life).max(LIFE_MIN);
        let renew_in = match answer.refresh_in.0 {
            Some(seconds) => Duration::from_secs(seconds).min(life),
            None if life >= LONG_LIFE => life / 2,
            None => life.saturating_sub(margin.min(life / 2)),
        };
        let mut header = Vec::new();
        write_line(&mut header, "authorization", &value);
        Ok(Self {
            text: Secret::new(&text),
            line: header.into(),
            renew_at: asked_at + renew_in,
            expires_at: asked_at + life,
            issued_at: asked_at,
        })
    }

    /// The header line that carries the token.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    pub(crate) fn text(&self) -> &str {
        self.text.expose()
    }
}

fn refusal(status: u16, error: Option<String>, description: Option<String>) -> TokenError {
    let error = error.unwrap_or_else(|| "no reason".to_owned());
    let transient = is_transient(status, Some(&error));
    // The description is prose from the vendor and may have several lines.
    let description: String = description.unwrap_or_default().chars().take(300).collect();
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let separator = if description.is_empty() { "" } else { ": " };
    let problem = format!("status {status}, {error}{separator}{description}");
    if transient {
        TokenError::Transient(problem)
    } else {
        TokenError::Final(problem)
    }
}

fn is_transient(status: u16, error: Option<&str>) -> bool {
    matches!(status, 408 | 429 | 500..=599)
        || matches!(
            error,
            Some("internal_failure" | "server_error" | "temporarily_unavailable")
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: Duration = Duration::from_secs(225);

    #[tokio::test]
    async fn a_token_is_renewed_ahead_of_its_end() {
        let now = Instant::now();
        for (members, renew_s, life_s) in [
            (r#""expires_in":3599"#, 3_374, 3_599),
            (r#""expires_in":"3599""#, 3_374, 3_599),
            (r#""expires_in":4"#, 2, 4),
            (r#""expires_in":0"#, 0, 1),
            (r#""expires_in":3600,"refresh_in":1800"#, 1_800, 3_600),
            (r#""expires_in":10000"#, 5_000, 10_000),
            (r#""expires_in":99999999999999"#, 43_200, 86_400),
            (r#""token_type":"Bearer""#, 3_375, 3_600),
            (r#""expires_in":null"#, 3_375, 3_600),
        ] {
            let body = format!(r#"{{"access_token":"t0k",{members}}}"#);
            let token = Token::read(200, body.as_bytes(), now, MARGIN).unwrap();
            assert_eq!(token.line(), b"authorization: Bearer t0k\r\n");
            let seconds = |at: Instant| (at - now).as_secs();
            assert_eq!(
                (seconds(token.renew_at), seconds(token.expires_at)),
                (renew_s, life_s),
                "{members}"
            );
        }
    }

    #[tokio::test]
    async fn refusals_say_whether_they_are_final() {
        for (status, body, is_final) in [
            (
                400,
                r#"{"error":"invalid_grant","error_description":"Bad\r\n key"}"#,
                true,
            ),
            (401, r#"{"error":"invalid_client"}"#, true),
            (400, r#"{"error":"temporarily_unavailable"}"#, false),
            (429, "{}", false),
            (503, "down", false),
            (404, "<html>", true),
            (302, "", false),
            (200, "{}", true),
            (200, r#"{"access_token":"a\nb"}"#, false),
        ] {
            let refused = Token::read(status, body.as_bytes(), Instant::now(), MARGIN).unwrap_err();
            assert_eq!(
                matches!(refused, TokenError::Final(_)),
                is_final,
                "{refused}"
            );
            assert!(!refused.to_string().contains(['\r', '\n']));
        }
    }
}
