//! The key file of a service account: signs an assertion and exchanges it for a token.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::sign::SigningKey;
use serde::{Deserialize, Serialize};
use url::form_urlencoded::Serializer;

use super::token::TokenError;
use crate::error::ChannelError;
use crate::secret::Secret;

/// The audience of the assertion. It does not depend on the address in the key file.
const AUDIENCE: &str = "https://oauth2.googleapis.com/token";
/// The lifetime of an assertion, the longest that the vendor allows.
const LIFE_SECS: u64 = 3_600;
/// How long before its expiry a token is renewed. The vendor's caches renew theirs four minutes before expiry, so an
/// earlier request would return the same token.
pub(super) const MARGIN: Duration = Duration::from_secs(225);
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// The members of a key file that are used.
#[derive(Deserialize)]
struct KeyFile {
    client_email: String,
    private_key: String,
    private_key_id: String,
    token_uri: Option<String>,
}

#[derive(Serialize)]
struct Header<'a> {
    typ: &'static str,
    alg: &'static str,
    kid: &'a str,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'static str,
    iat: u64,
    exp: u64,
    scope: &'a str,
}

pub(super) struct ServiceAccount {
    email: String,
    key_id: String,
    key: Arc<dyn SigningKey>,
    scope: String,
}

impl ServiceAccount {
    /// Reads a key file. Also returns the URL of the token endpoint.
    pub(super) fn read(file: &Secret, scope: String) -> Result<(Self, String), ChannelError> {
        let file: KeyFile = serde_json::from_str(file.expose()).map_err(|_| {
            ChannelError::ServiceAccount(
                "is not a JSON object with client_email, private_key and private_key_id",
            )
        })?;
        let der = PrivateKeyDer::from_pem_slice(file.private_key.as_bytes())
            .map_err(|_| ChannelError::ServiceAccount("has a private_key that is not PEM"))?;
        let key = any_supported_type(&der).ok();
        let key = key.filter(|key| key.choose_scheme(&[SCHEME]).is_some());
        let key = key.ok_or(ChannelError::ServiceAccount(
            "has a private_key that is no RSA key of at least 2048 bits",
        ))?;
        let account = Self {
            email: file.client_email,
            key_id: file.private_key_id,
            key,
            scope,
        };
        let url = file.token_uri.unwrap_or_else(|| AUDIENCE.to_owned());
        Ok((account, url))
    }

    /// The body of a token request that is sent at `now`.
    pub(super) fn form(&self, now: SystemTime) -> Result<String, TokenError> {
        let assertion = self
            .assertion(now)
            .ok_or_else(|| TokenError::Transient("the assertion could not be signed".to_owned()))?;
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", GRANT_TYPE);
        form.append_pair("assertion", &assertion);
        Ok(form.finish())
    }

    fn assertion(&self, now: SystemTime) -> Option<String> {
        let issued = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
        let header = Header {
            typ: "JWT",
            alg: "RS256",
            kid: &self.key_id,
        };
        let claims = Claims {
            iss: &self.email,
            aud: AUDIENCE,
            iat: issued,
            exp: issued + LIFE_SECS,
            scope: &self.scope,
        };
        let header = serde_json::to_vec(&header).ok()?;
        let claims = serde_json::to_vec(&claims).ok()?;
        let mut token = URL_SAFE_NO_PAD.encode(header);
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self
            .key
            .choose_scheme(&[SCHEME])?
            .sign(token.as_bytes())
            .ok()?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        Some(token)
    }
}

const SCHEME: SignatureScheme = SignatureScheme::RSA_PKCS1_SHA256;

impl fmt::Debug for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAccount")
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

/// Words of a key file that identify the account and must never reach a client.
pub(crate) fn names_of(file: &Secret) -> Vec<String> {
    #[derive(Deserialize)]
    struct Names {
        client_email: Option<String>,
        client_id: Option<String>,
        project_id: Option<String>,
    }
    let Ok(names) = serde_json::from_str::<Names>(file.expose()) else {
        return Vec::new();
    };
    let user = names.client_email.as_deref();
    let user = user.and_then(|email| email.split_once('@'));
    let user = user.map(|(user, _)| user.to_owned());
    let names = [user, names.client_email, names.client_id, names.project_id];
    names.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key that was created for this test.
    const KEY: &str = include_str!("test_key.pem");

    fn file(key: &str) -> Secret {
        let file = serde_json::json!({
            "type": "service_account",
            "project_id": "shop-1",
            "private_key_id": "k1",
            "private_key": key,
            "client_email": "gateway@shop-1.iam.gserviceaccount.com",
            "client_id": "1234567",
        });
        Secret::new(&file.to_string())
    }

    #[test]
    fn the_assertion_has_the_parts_of_a_signed_jwt() {
        let scope = "https://www.googleapis.com/auth/cloud-platform";
        let (account, url) = ServiceAccount::read(&file(KEY), scope.to_owned()).unwrap();
        assert_eq!(url, AUDIENCE);
        let at = UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        let form = account.form(at).unwrap();
        let start = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
        let assertion = form.strip_prefix(start).unwrap();
        let parts: Vec<_> = assertion.split('.').collect();
        let [header, claims, signature] = parts.as_slice() else {
            panic!("{assertion}")
        };
        let decode = |part: &str| String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        assert_eq!(decode(header), r#"{"typ":"JWT","alg":"RS256","kid":"k1"}"#);
        assert_eq!(
            decode(claims),
            format!(
                r#"{{"iss":"gateway@shop-1.iam.gserviceaccount.com","aud":"{AUDIENCE}","iat":1767323045,"exp":1767326645,"scope":"{scope}"}}"#
            )
        );
        assert_eq!(signature.len(), 342);
    }

    #[test]
    fn a_key_file_that_cannot_be_used_is_refused_without_being_repeated() {
        let no_pem = file("not a key");
        let wrong_pem = file("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
        for (file, why) in [
            (Secret::new("{}"), "is not a JSON object"),
            (Secret::new("[1]"), "is not a JSON object"),
            (no_pem, "not PEM"),
            (wrong_pem, "no RSA key"),
        ] {
            let error = ServiceAccount::read(&file, String::new()).unwrap_err();
            let shown = error.to_string();
            assert!(shown.contains(why), "{shown}");
            assert!(!shown.contains("AAAA"));
        }
    }

    #[test]
    fn the_names_of_the_account_are_known() {
        assert_eq!(
            names_of(&file(KEY)),
            [
                "gateway",
                "gateway@shop-1.iam.gserviceaccount.com",
                "1234567",
                "shop-1"
            ]
        );
        assert!(names_of(&Secret::new("sk-plain")).is_empty());
    }
}
