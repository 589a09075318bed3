//! `[outbound]`: the addresses that our fetches and callbacks may reach.

use upstream::Network;

use crate::config::document::setting::{flag, list, settings};
use crate::config::document::{Section, value};

settings! {
    /// The addresses that our fetches and callbacks may reach.
    pub struct Outbound in "outbound" {
        /// Address ranges that our fetches and callbacks may reach although the address policy refuses them, such as
        /// `["127.0.0.0/8"]` in tests.
        pub allow: Vec<Network> = list("allow", value::network),
        /// Whether this network reaches IPv4 addresses through `64:ff9b::/96`.
        pub nat64: bool = flag("nat64", false),
    }
}
