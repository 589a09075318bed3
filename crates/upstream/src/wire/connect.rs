//! Opens a connection to an upstream: name, TCP, TLS, within one deadline.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::stream::Stream;
use crate::address::Address;
use crate::error::{CallError, ChannelError, Sent, Stage, What};

/// Where to connect, and how to trust what answers there.
#[derive(Clone)]
pub(crate) struct Connector {
    host: Box<str>,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Connector {
    pub(crate) fn new(address: &Address) -> Result<Self, ChannelError> {
        Self::trusting(address, &PUBLIC_ROOTS)
    }

    fn trusting(address: &Address, config: &Arc<ClientConfig>) -> Result<Self, ChannelError> {
        let tls = address.tls.then(|| {
            let name = ServerName::try_from(address.host.clone()).map_err(|_| {
                ChannelError::BaseUrl(address.authority.clone(), "has a bad host name")
            })?;
            Ok((TlsConnector::from(config.clone()), name))
        });
        Ok(Self {
            host: address.host.as_str().into(),
            port: address.port,
            tls: tls.transpose()?,
        })
    }

    /// A new connection. Nothing of a request has left when this fails.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<Stream, CallError> {
        match timeout_at(deadline, self.open(deadline)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(CallError::because(Sent::No, What::Connect, error)),
            Err(_) => Err(CallError::new(Sent::No, What::Timeout(Stage::Connect))),
        }
    }

    async fn open(&self, deadline: Instant) -> io::Result<Stream> {
        let addresses = tokio::net::lookup_host((&*self.host, self.port)).await?;
        let tcp = first_to_answer(addresses.collect(), deadline).await?;
        // Head and body of a request leave in one write; nothing is gained by waiting.
        tcp.set_nodelay(true)?;
        match &self.tls {
            None => Ok(Stream::Plain(tcp)),
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), tcp).await?;
                Ok(Stream::Tls(Box::new(stream)))
            }
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("tls", &self.tls.is_some())
            .finish()
    }
}

/// Tries the addresses in their order. Each has an equal share of the time that is left,
/// so that one that swallows packets does not use up the time of the others.
async fn first_to_answer(addresses: Vec<SocketAddr>, deadline: Instant) -> io::Result<TcpStream> {
    let mut error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut left = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    for address in addresses {
        let now = Instant::now();
        let share = deadline.saturating_duration_since(now) / left.max(1);
        left = left.saturating_sub(1);
        match timeout_at(now + share, TcpStream::connect(address)).await {
            Ok(Ok(tcp)) => return Ok(tcp),
            Ok(Err(refused)) => error = refused,
            Err(_) => error = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(error)
}

/// The public certificate authorities, with the provider named: no process-wide default
/// that another crate could change.
static PUBLIC_ROOTS: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    config(roots)
});

fn config(roots: RootCertStore) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has a cipher suite for every default version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}
