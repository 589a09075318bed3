//! The client credentials grant of OAuth 2: exchanges an application's id and secret for a token.

use std::time::Duration;

use url::form_urlencoded::Serializer;

use super::account::Account;
use crate::error::ChannelError;
use crate::secret::Secret;

/// How long before its expiry a token is renewed.
pub(super) const MARGIN: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct ClientCredentials {
    client_id: String,
    secret: Secret,
    scope: String,
}

impl ClientCredentials {
    pub(super) fn new(
        account: &Account,
        secret: Secret,
        scope: String,
    ) -> Result<Self, ChannelError> {
        let client_id = account.get("client_id");
        let client_id = client_id.ok_or_else(|| ChannelError::NoSetting("client_id".to_owned()))?;
        Ok(Self {
            client_id: client_id.to_owned(),
            secret,
            scope,
        })
    }

    /// The body of a token request.
    pub(super) fn form(&self) -> String {
        Serializer::new(String::new())
            .append_pair("grant_type", "client_credentials")
            .append_pair("client_id", &self.client_id)
            .append_pair("client_secret", self.secret.expose())
            .append_pair("scope", &self.scope)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_is_a_form() {
        let account = [("client_id".to_owned(), Secret::new("app 1"))];
        let account: Account = account.into_iter().collect();
        let scope = "https://cognitiveservices.azure.com/.default".to_owned();
        let client = ClientCredentials::new(&account, Secret::new("a&b=c~"), scope).unwrap();
        assert_eq!(
            client.form(),
            "grant_type=client_credentials&client_id=app+1&client_secret=a%26b%3Dc%7E\
             &scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default"
        );
        assert!(!format!("{client:?}").contains("a&b"));
    }
}
