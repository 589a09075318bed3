//! `[admin]`: the listener for operators.

use std::net::{Ipv4Addr, SocketAddr};

use crate::config::document::setting::{list, one_of, secret, settings, socket};
use crate::config::document::{SecretSource, Section, Tls, tls, value};

/// Where channels and models are kept that the admin API changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeptIn {
    #[default]
    File,
    Store,
}

impl KeptIn {
    /// The word in the configuration and in answers.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Store => "store",
        }
    }
}

settings! {
    /// The listener for operators: health, metrics, admin API and console.
    pub struct Admin in "admin" {
        /// Where operators reach health, metrics, admin API and console. Keep it off the public network.
        pub listen: SocketAddr = socket("listen", (Ipv4Addr::LOCALHOST, 8081)),
        /// The certificate and key of this listener, as in `[server]`. With `client_ca_file`, clients need a certificate
        /// that one of the authorities in that file has signed.
        pub tls: Option<Tls> = tls(true, r#"{ cert_file = "admin.pem", key_file = "admin-key.pem", client_ca_file = "operators.pem" }"#),
        /// A token of the admin API and the console with the role owner, from the environment or from a file:
        /// `{ file = "admin-token" }`. `tollgate token create` makes others, with and without this one.
        pub token: Option<SecretSource> = secret("token", r#"{ env = "TOLLGATE_ADMIN_TOKEN" }"#),
        /// Where the admin API keeps channels and models that it changes. `file` writes them back to this file.
        /// `store` keeps them in the database, and every node takes them from there within seconds; the entries
        /// of the file then only count until the first change.
        pub config: KeptIn = one_of("config", &[("file", KeptIn::File), ("store", KeptIn::Store)]),
        /// Environment variables that the admin API may name as credentials of channels, beside those that end in
        /// `_API_KEY` and those that this file names: `["MY_VENDOR_TOKEN", "UPSTREAM_*"]`. It may name files in the
        /// folder `credentials` beside this file.
        pub credential_env: Vec<String> = list("credential_env", value::text),
    }
}
