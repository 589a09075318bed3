//! `[admin]`: the listener for operators.

use std::net::{Ipv4Addr, SocketAddr};

use crate::config::document::setting::{secret, settings, socket};
use crate::config::document::{SecretSource, Section};

settings! {
    /// The listener for operators: health, metrics, admin API and console.
    pub struct Admin in "admin" {
        /// Where operators reach health, metrics, admin API and console. Keep it off the public network.
        pub listen: SocketAddr = socket("listen", (Ipv4Addr::LOCALHOST, 8081)),
        /// A token of the admin API and the console with the role owner, from the environment or from a file:
        /// `{ file = "admin-token" }`. `tollgate token create` makes others, with and without this one.
        pub token: Option<SecretSource> = secret("token", r#"{ env = "TOLLGATE_ADMIN_TOKEN" }"#),
    }
}
