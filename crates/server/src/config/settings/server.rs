//! `[server]`: the public listener.

use std::net::{Ipv4Addr, SocketAddr};

use upstream::Network;

use crate::config::document::setting::{flag, list, optional, settings, socket};
use crate::config::document::{Section, Tls, tls, value};

settings! {
    /// The public listener.
    pub struct Server in "server" {
        /// The address at which callers reach the gateway.
        pub listen: SocketAddr = socket("listen", (Ipv4Addr::UNSPECIFIED, 8080)),
        /// The certificate and key of the public listener (PEM), which then serves HTTPS: TLS 1.2 and 1.3, HTTP/2 and
        /// HTTP/1.1. They are reloaded when the files change. Without this setting the listener serves HTTP, for use
        /// behind a proxy.
        pub tls: Option<Tls> = tls(false, r#"{ cert_file = "gateway.pem", key_file = "gateway-key.pem" }"#),
        /// The base of the media URLs in answers: the address that callers use. If left out, it is `http://LISTEN`
        /// (`https://` with `tls`); the URLs of a gateway that listens on all addresses then work only on its own
        /// machine.
        pub public_url: Option<String> =
            optional("public_url", value::web_address, r#""https://gateway.example.com""#),
        /// The name of this node; random for each process if left out.
        pub node: Option<String> = optional("node", value::label, r#""gateway-1""#),
        /// Whether to serve paths that current SDKs call but the API does not define, such as `/v1/interactions` and
        /// `/v1/messages/count_tokens`.
        pub sdk_aliases: bool = flag("sdk_aliases", true),
        /// Whether browsers get a page about the gateway at `/`: first steps, errors, and with a key the models, the
        /// balance and a playground. Other clients get JSON there.
        pub page: bool = flag("page", true),
        /// Whether that page also lists the models and their prices to visitors without a key.
        pub page_models: bool = flag("page_models", false),
        /// Origins of web pages that may read answers in a browser (CORS), such as
        /// `["https://app.example.com"]`, or `["*"]` for all. Such a page contains an API key, which everybody who
        /// opens the page can read.
        pub cors_origins: Vec<String> = list("cors_origins", value::web_origin),
        /// Address ranges of proxies, which are exempt from `connections_per_address`.
        pub trusted_proxies: Vec<Network> = list("trusted_proxies", value::network),
    }
}
