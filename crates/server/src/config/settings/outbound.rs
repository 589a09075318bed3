//! What our own fetches may reach.

use upstream::Network;

use crate::config::document::{Section, read_networks};

/// `[outbound]`: what our own fetches and callbacks may reach.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outbound {
    /// Ranges exempt from the address policy.
    pub allow: Vec<Network>,
    /// Whether this network reaches IPv4 through `64:ff9b::/96`.
    pub nat64: bool,
}

impl Outbound {
    pub(crate) fn read(mut section: Section<'_, '_, '_>) -> Self {
        let mut out = Self {
            allow: read_networks(&mut section, "allow"),
            ..Self::default()
        };
        section.flag("nat64", &mut out.nat64);
        section.end();
        out
    }
}
