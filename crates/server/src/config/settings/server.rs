//! The public listener.

use std::net::{Ipv4Addr, SocketAddr};

use upstream::Network;

use crate::config::document::{Section, read_networks, value};

/// `[server]`: the public listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub listen: SocketAddr,
    /// Base of the URLs we hand out; without a trailing slash.
    pub public_url: Option<String>,
    /// The name of this node; random for each process when absent.
    pub node: Option<String>,
    /// Whether paths are served that the contract does not name but current SDKs call.
    pub sdk_aliases: bool,
    /// Origins whose pages may read answers in a browser; `*` stands for all.
    pub cors_origins: Vec<String>,
    /// Peers exempt from the limit of connections for one address.
    pub trusted_proxies: Vec<Network>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8080)),
            public_url: None,
            node: None,
            sdk_aliases: true,
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
        }
    }
}

impl Server {
    pub(crate) fn read(mut section: Section<'_, '_, '_>) -> Self {
        let mut out = Self::default();
        section.set("listen", &mut out.listen, value::socket);
        out.public_url = section.value("public_url", value::web_address);
        out.node = section.value("node", value::label);
        section.flag("sdk_aliases", &mut out.sdk_aliases);
        let origins = section.list("cors_origins", value::web_origin);
        let origins = origins.unwrap_or_default().into_iter();
        out.cors_origins = origins.map(|at| at.value).collect();
        out.trusted_proxies = read_networks(&mut section, "trusted_proxies");
        section.end();
        out
    }
}
