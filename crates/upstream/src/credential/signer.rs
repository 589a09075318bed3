//! Signs requests with an access key (Signature Version 4).
//!
//! Only headers that no proxy changes are signed: host, content type, date and session token. The signature also covers
//! the body, and the path exactly as it is sent.

use std::fmt;
use std::fmt::Write as _;
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use bytes::Bytes;
use http::HeaderValue;
use sha2::{Digest as _, Sha256};

use super::account::Account;
use crate::error::ChannelError;
use crate::header_line::write_line;
use crate::secret::Secret;

/// The account settings of an access key, in addition to its secret.
pub(crate) const ACCESS_KEY_ID: &str = "access_key_id";
pub(crate) const REGION: &str = "region";
/// Only temporary access keys have this setting.
pub(crate) const SESSION_TOKEN: &str = "session_token";

/// Bodies above this size are hashed on a blocking thread, because hashing them takes more than a millisecond.
const HASHED_BYTES_MAX: usize = 1 << 20;

/// An access key for one service in one region.
pub(crate) struct Signer {
    credentials: Credentials,
    region: String,
    service: String,
}

/// The hash of a body. The signature covers it.
#[derive(Clone, Debug)]
pub(crate) struct BodyHash(String);

impl Signer {
    pub(super) fn new(
        account: &Account,
        secret: &Secret,
        service: &str,
    ) -> Result<Self, ChannelError> {
        let required = |name: &str| {
            let value = account.get(name);
            value.ok_or_else(|| ChannelError::NoSetting(name.to_owned()))
        };
        let credentials = Credentials::new(
            required(ACCESS_KEY_ID)?,
            secret.expose(),
            account.get(SESSION_TOKEN).map(str::to_owned),
            None,
            "channel",
        );
        let signer = Self {
            credentials,
            region: required(REGION)?.to_owned(),
            service: service.to_owned(),
        };
        // Signs a sample, so that an unusable access key is refused when the channel is created, not at its first call.
        let request = b"GET / HTTP/1.1\r\nhost: a\r\n";
        let trial = signer.sign(request, &BodyHash::of(&[]), SystemTime::UNIX_EPOCH);
        trial.ok_or(ChannelError::Credential)?;
        Ok(signer)
    }

    /// The header lines that carry the signature of a request. `head` contains its request line and other headers.
    pub(super) fn sign(&self, head: &[u8], body: &BodyHash, now: SystemTime) -> Option<Vec<u8>> {
        // A client's header may contain bytes that are not UTF-8. Such a header is not signed.
        let lines = head.split(|byte| *byte == b'\n');
        let mut lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
        let mut request_line = lines.next()?.split(' ');
        let (method, target) = (request_line.next()?, request_line.next()?);
        let headers = lines.filter_map(|line| line.trim_end().split_once(": "));
        let signed = headers.filter(|(name, _)| matches!(*name, "host" | "content-type"));
        let body = SignableBody::Precomputed(body.0.clone());
        let request = SignableRequest::new(method, target, signed, body).ok()?;
        self.lines(request, now)
    }

    fn lines(&self, request: SignableRequest<'_>, now: SystemTime) -> Option<Vec<u8>> {
        let identity = self.credentials.clone().into();
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(&self.service)
            .time(now)
            .settings(SigningSettings::default())
            .build()
            .ok()?;
        let (instructions, _) = sign(request, &params.into()).ok()?.into_parts();
        let (headers, _) = instructions.into_parts();
        let mut lines = Vec::new();
        for header in headers {
            if let Ok(value) = HeaderValue::from_str(header.value()) {
                write_line(&mut lines, header.name(), &value);
            }
        }
        Some(lines)
    }
}

impl BodyHash {
    fn of(body: &[Bytes]) -> Self {
        let mut hasher = Sha256::new();
        for piece in body {
            hasher.update(piece);
        }
        let digest = hasher.finalize();
        let mut text = String::with_capacity(64);
        for byte in digest {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// Hashes a body that is sent in these pieces.
    pub(super) async fn compute(body: &[Bytes]) -> Self {
        let bytes: usize = body.iter().map(Bytes::len).sum();
        if bytes <= HASHED_BYTES_MAX {
            return Self::of(body);
        }
        let pieces = body.to_vec();
        let hashed = tokio::task::spawn_blocking(move || Self::of(&pieces));
        // The blocking pool refuses the work only if the runtime is shutting down.
        hashed.await.unwrap_or_else(|_| Self::of(body))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer")
            .field("region", &self.region)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Compares our signatures with those of the vendor's own library (`conformance/signatures` compares more of them).
    #[test]
    fn signatures_are_those_of_the_vendors_library() {
        let body = r#"{"messages":[{"role":"user","content":[{"text":"Hi"}]}]}"#;
        let arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fabcdef123456";
        let runtime = "bedrock-runtime.us-east-1.amazonaws.com";
        for (service, host, path, token, signature) in [
            (
                "bedrock",
                runtime,
                "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse".to_owned(),
                None,
                "65844f67b96ec065771499b63133c081f5aa3e77ae7b477abc8e5c1f1f8bd3ff",
            ),
            (
                "bedrock",
                runtime,
                "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse".to_owned(),
                None,
                "6eb8f78325c23894efd83bdbc50ee74ed2f980b145bb4c53d785d819cea86e23",
            ),
            (
                "bedrock",
                runtime,
                format!("/model/{arn}/converse"),
                Some("SESSIONTOKEN"),
                "1f858dd7394d35da4ef13430e13e96ade0eba6f4906745b89608b4003eeb1d31",
            ),
            (
                "bedrock-mantle",
                "bedrock-mantle.us-east-1.api.aws",
                "/anthropic/v1/messages".to_owned(),
                None,
                "bbdf3338432aca61347bccbcd3ee2330877efe732aa0c5937d3b784b79375ae0",
            ),
        ] {
            let signer = signer(service, token);
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: x\r\nanthropic-beta: caf\u{e9}\r\naccept: application/json\r\n\
                 content-type: application/json\r\ncontent-length: 56\r\n"
            );
            // The hash does not depend on how the body is split.
            let pieces =
                [&body[..7], "", &body[7..]].map(|it| Bytes::copy_from_slice(it.as_bytes()));
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
            let head: Vec<u8> = head.chars().map(|c| u8::try_from(c).unwrap()).collect();
            let lines = signer.sign(&head, &BodyHash::of(&pieces), now).unwrap();
            let lines = String::from_utf8(lines).unwrap();
            assert!(
                lines.contains("x-amz-date: 20260102T030405Z\r\n"),
                "{lines}"
            );
            assert!(
                lines.contains(&format!("Signature={signature}\r\n")),
                "{path}: {lines}"
            );
            let sent = token.map(|token| format!("x-amz-security-token: {token}\r\n"));
            assert!(sent.is_none_or(|line| lines.contains(&line)), "{lines}");
        }
    }

    #[test]
    fn what_a_key_lacks_is_told() {
        let secret = Secret::new("s");
        let account = |names: &[&str]| -> Account {
            let pairs = names
                .iter()
                .map(|name| ((*name).to_owned(), Secret::new("x")));
            pairs.collect()
        };
        for (names, missing) in [(&[REGION][..], ACCESS_KEY_ID), (&[ACCESS_KEY_ID], REGION)] {
            let refused = Signer::new(&account(names), &secret, "bedrock").unwrap_err();
            assert_eq!(refused, ChannelError::NoSetting(missing.to_owned()));
        }
    }

    #[tokio::test]
    async fn large_bodies_have_the_same_hash() {
        let pieces: Vec<_> = (0..9).map(|_| Bytes::from(vec![7; 300_000])).collect();
        assert_eq!(BodyHash::compute(&pieces).await.0, BodyHash::of(&pieces).0);
    }

    #[test]
    fn a_signer_shows_no_secret() {
        let shown = format!("{:?}", signer("bedrock", Some("SESSIONTOKEN")));
        assert_eq!(
            shown,
            r#"Signer { region: "us-east-1", service: "bedrock", .. }"#
        );
    }

    fn signer(service: &str, token: Option<&str>) -> Signer {
        let mut settings = vec![(ACCESS_KEY_ID, "AKIDEXAMPLE"), (REGION, "us-east-1")];
        settings.extend(token.map(|token| (SESSION_TOKEN, token)));
        let pairs = settings.into_iter();
        let account = pairs
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .collect();
        let secret = Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        Signer::new(&account, &secret, service).unwrap()
    }
}
