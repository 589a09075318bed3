//! The forms of credentials that a preset can have.

use serde::Deserialize;

use super::account::Account;
use super::signer::{ACCESS_KEY_ID, REGION, SESSION_TOKEN};
use crate::secret::Secret;

/// The form of a channel's credential, which determines how requests are authorised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CredentialForm {
    /// A key that is sent unchanged.
    Key,
    /// The secret of an application, which is exchanged for tokens by the client credentials grant
    /// of OAuth 2.
    ClientCredentials,
    /// The key file of a service account. It signs assertions, which are exchanged for tokens.
    ServiceAccount,
    /// The secret of an access key, which signs requests.
    AccessKey,
}

impl CredentialForm {
    /// The account settings that a credential of this form uses.
    pub(crate) fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Key | Self::ServiceAccount => &[],
            Self::ClientCredentials => &["client_id"],
            Self::AccessKey => &[ACCESS_KEY_ID, REGION, SESSION_TOKEN],
        }
    }

    /// Whether an account setting is a secret, whose value must not be written in a configuration
    /// file.
    pub(crate) fn is_secret(setting: &str) -> bool {
        setting == SESSION_TOKEN
    }

    /// The values of the account settings that are secrets.
    pub(crate) fn secrets_of(account: &Account) -> impl Iterator<Item = &str> {
        let names = account.names().filter(|name| Self::is_secret(name));
        names.filter_map(|name| account.get(name))
    }

    fn matches(self, account: &Account, credential: &Secret) -> bool {
        match self {
            Self::Key => true,
            // A key file is a JSON object.
            Self::ServiceAccount => credential.expose().starts_with('{'),
            Self::AccessKey => account.has(ACCESS_KEY_ID),
            Self::ClientCredentials => {
                let mut settings = self.settings().iter();
                settings.any(|name| account.has(name))
            }
        }
    }

    /// Finds which of a preset's forms a credential has. A credential that matches no other form is
    /// a key.
    pub(crate) fn of(forms: &[Self], account: &Account, credential: &Secret) -> Option<Self> {
        let matching = |form: &&Self| form.matches(account, credential);
        let special = forms
            .iter()
            .filter(|form| **form != Self::Key)
            .find(matching);
        special.or_else(|| forms.iter().find(matching)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_from_the_credential_and_the_account() {
        use CredentialForm::{ClientCredentials, Key, ServiceAccount};
        let with_client: Account = [("client_id".to_owned(), Secret::new("c"))]
            .into_iter()
            .collect();
        let none = Account::default();
        for (forms, account, credential, form) in [
            (&[Key][..], &none, "sk", Some(Key)),
            (&[Key], &none, "{}", Some(Key)),
            (&[Key, ClientCredentials], &none, "k", Some(Key)),
            (
                &[Key, ClientCredentials],
                &with_client,
                "k",
                Some(ClientCredentials),
            ),
            (&[ServiceAccount], &none, "{}", Some(ServiceAccount)),
            (&[ServiceAccount], &none, "k", None),
            (&[ServiceAccount, Key], &none, "k", Some(Key)),
        ] {
            let credential = Secret::new(credential);
            assert_eq!(CredentialForm::of(forms, account, &credential), form);
        }
    }
}
