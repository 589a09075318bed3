//! What our own fetches may reach.

use upstream::Network;

use super::super::network::read_networks;
use super::super::tree::Section;

/// `[outbound]`: what our own fetches and callbacks may reach.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outbound {
    /// Ranges exempt from the address policy.
    pub allow: Vec<Network>,
}

impl Outbound {
    pub(in super::super) fn read(mut section: Section<'_, '_, '_>) -> Self {
        let allow = read_networks(&mut section, "allow");
        section.end();
        Self { allow }
    }
}
