//! The listener for operators.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use crate::config::document::{SecretSource, Section, read_source, value};

/// `[admin]`: health, metrics, console and admin API, on a listener of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    pub listen: SocketAddr,
    /// Without a token the admin API and the console are off; health and metrics are on.
    pub token: Option<SecretSource>,
}

impl Default for Admin {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8081)),
            token: None,
        }
    }
}

impl Admin {
    pub(crate) fn read(mut section: Section<'_, '_, '_>, folder: &Path) -> Self {
        let mut out = Self::default();
        section.set("listen", &mut out.listen, value::socket);
        out.token = read_source(&mut section, "token", folder);
        section.end();
        out
    }
}
