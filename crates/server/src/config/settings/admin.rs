//! `[admin]`: the listener for operators.

use std::net::{Ipv4Addr, SocketAddr};

use crate::config::document::setting::{list, one_of, secret, settings, socket};
use crate::config::document::{SecretSource, Section, Tls, tls, value};

/// Where the admin API saves channels and models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatalogLocation {
    #[default]
    File,
    Store,
}

impl CatalogLocation {
    /// The value of the setting in the configuration and in answers.
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
        /// The address at which operators reach health, metrics, admin API and console. Keep it off the public network.
        pub listen: SocketAddr = socket("listen", (Ipv4Addr::LOCALHOST, 8081)),
        /// The certificate and key of this listener, as in `[server]`. With `client_ca_file`, clients need a certificate
        /// that one of the authorities in that file has signed.
        pub tls: Option<Tls> = tls(true, r#"{ cert_file = "admin.pem", key_file = "admin-key.pem", client_ca_file = "operators.pem" }"#),
        /// A token of the admin API and the console with the role owner, from the environment or from a file: `{ file =
        /// "admin-token" }`. It is optional: `tollgate token create` creates tokens in the database.
        pub token: Option<SecretSource> = secret("token", r#"{ env = "TOLLGATE_ADMIN_TOKEN" }"#),
        /// Where the admin API saves channels and models that it changes. `file` writes them back to this file. `store`
        /// saves them in the database, from which every node loads them within seconds. The entries of the file then
        /// apply only until the first change.
        pub config: CatalogLocation = one_of("config", &[("file", CatalogLocation::File), ("store", CatalogLocation::Store)]),
        /// Environment variables that the admin API may name as credentials of channels, in addition to those that end
        /// in `_API_KEY` and those that this file names: `["MY_VENDOR_TOKEN", "UPSTREAM_*"]`. It may also name files in
        /// the folder `credentials` beside this file.
        pub credential_env: Vec<String> = list("credential_env", value::text),
    }
}
