//! Opens a connection to an upstream: DNS lookup, TCP and TLS within one deadline.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use rustls::pki_types::{InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::lookup::Lookups;
use super::memory::MemoryDialer;
use super::stream::Stream;
use crate::address::Address;
use crate::error::{CallError, CallErrorKind, ChannelError, Sent, TimeoutStage};
use crate::guarded::AddressPolicy;

/// The maximum number of concurrent lookups of one upstream's name. An upstream whose name server
/// does not answer must not use up the threads that other upstreams need.
const LOOKUPS_MAX: usize = 16;

/// The destination, and the certificates to trust.
#[derive(Clone)]
pub(crate) struct Connector {
    host: Box<str>,
    port: u16,
    lookups: Lookups,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// Set if the upstream runs in this process. The other members are then unused.
    memory: Option<MemoryDialer>,
    /// The address policy, for a host that is not configured yet.
    policy: Option<Arc<AddressPolicy>>,
}

impl Connector {
    pub(crate) fn new(address: &Address) -> Result<Self, ChannelError> {
        Self::trusting(address, &PUBLIC_ROOTS)
    }

    fn trusting(address: &Address, config: &Arc<ClientConfig>) -> Result<Self, ChannelError> {
        Self::for_host(&address.host, address.port, address.tls.then_some(config))
            .map_err(|_| ChannelError::BaseUrl(address.authority.clone(), "has a bad host name"))
    }

    /// Creates a connector for a host that does not belong to a channel. Fails if the host is not a
    /// valid name for a certificate.
    pub(crate) fn for_any_host(
        host: &str,
        port: u16,
        tls: bool,
    ) -> Result<Self, InvalidDnsNameError> {
        Self::for_host(host, port, tls.then_some(&PUBLIC_ROOTS))
    }

    fn for_host(
        host: &str,
        port: u16,
        tls: Option<&Arc<ClientConfig>>,
    ) -> Result<Self, InvalidDnsNameError> {
        let tls = tls.map(|config| {
            let name = ServerName::try_from(host)?.to_owned();
            Ok((TlsConnector::from(config.clone()), name))
        });
        Ok(Self {
            host: host.into(),
            port,
            lookups: Lookups::new(LOOKUPS_MAX),
            tls: tls.transpose()?,
            memory: None,
            policy: None,
        })
    }

    /// Makes the connector connect within this process.
    pub(crate) fn via_memory(mut self, memory: MemoryDialer) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Makes the connector refuse addresses that the policy does not allow.
    pub(crate) fn guarded_by(self, policy: AddressPolicy) -> Self {
        Self {
            policy: Some(Arc::new(policy)),
            ..self
        }
    }

    /// Opens a connection. If this fails, no byte of a request was sent.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<Stream, CallError> {
        within(deadline, self.open(deadline)).await
    }

    async fn open(&self, deadline: Instant) -> io::Result<Stream> {
        if let Some(memory) = &self.memory {
            return Ok(Stream::Memory(memory.connect().await?));
        }
        let addresses = self.lookups.look_up(&self.host, self.port).await?;
        let Some(policy) = &self.policy else {
            let tcp = first_to_answer(addresses, deadline).await?;
            return self.secure(tcp).await;
        };
        let refused = |refusal| io::Error::new(io::ErrorKind::PermissionDenied, refusal);
        policy
            .check_host(&self.host)
            .and_then(|()| policy.check_addresses(&addresses))
            .map_err(refused)?;
        // The connection goes to the checked addresses, without another lookup.
        let tcp = first_to_answer(addresses, deadline).await?;
        policy
            .check_connected(tcp.peer_addr()?, tcp.local_addr()?.ip())
            .map_err(refused)?;
        self.secure(tcp).await
    }

    /// Opens a connection to one of these addresses, without a lookup. `check` can reject the
    /// socket before anything is sent on it.
    pub(crate) async fn connect_to(
        &self,
        addresses: Vec<SocketAddr>,
        deadline: Instant,
        check: impl FnOnce(&TcpStream) -> io::Result<()>,
    ) -> Result<Stream, CallError> {
        let open = async {
            let tcp = first_to_answer(addresses, deadline).await?;
            check(&tcp)?;
            self.secure(tcp).await
        };
        within(deadline, open).await
    }

    async fn secure(&self, tcp: TcpStream) -> io::Result<Stream> {
        // Head and body of a request are sent in one write, so Nagle's algorithm would only add
        // delay.
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
            .finish_non_exhaustive()
    }
}

async fn within(
    deadline: Instant,
    open: impl Future<Output = io::Result<Stream>>,
) -> Result<Stream, CallError> {
    match timeout_at(deadline, open).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(CallError::because(Sent::No, CallErrorKind::Connect, error)),
        Err(_) => Err(CallError::new(
            Sent::No,
            CallErrorKind::Timeout(TimeoutStage::Connect),
        )),
    }
}

/// Tries the addresses in order. Each gets an equal share of the remaining time, so that an address
/// that drops packets does not use up the time of the other addresses.
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

/// Trusts the public certificate authorities. The crypto provider is explicit, because another
/// crate could change the process-wide default.
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use bytes::Bytes;
    use rustls::ServerConfig;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tokio_rustls::server::TlsStream;

    use super::*;
    use crate::guarded::UrlRefusal;
    use crate::wire::{Connection, ExchangeError, Framing};

    // A test root and a certificate that it signed for `localhost` and `127.0.0.1`, made with
    // openssl, valid for a hundred years.
    const ROOT: &[u8] = include_bytes!("../../fixtures/tls/root.der");
    const LEAF: &[u8] = include_bytes!("../../fixtures/tls/leaf.der");
    const LEAF_KEY: &[u8] = include_bytes!("../../fixtures/tls/leaf-key.der");

    fn test_roots() -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(ROOT)).unwrap();
        config(roots)
    }

    async fn accept(listener: &TcpListener) -> io::Result<TlsStream<TcpStream>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(LEAF_KEY));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(LEAF)], key)
            .unwrap();
        let (tcp, _) = listener.accept().await?;
        TlsAcceptor::from(Arc::new(config)).accept(tcp).await
    }

    async fn listener() -> (TcpListener, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    #[tokio::test]
    async fn a_call_goes_over_tls_to_a_trusted_upstream() {
        for host in ["localhost", "127.0.0.1"] {
            let (listener, port) = listener().await;
            let address = Address::parse(&format!("https://{host}:{port}/v1")).unwrap();
            let connector = Connector::trusting(&address, &test_roots()).unwrap();
            let server = async {
                let mut tls = accept(&listener).await.unwrap();
                let mut request = vec![0; "head body".len()];
                tls.read_exact(&mut request).await.unwrap();
                assert_eq!(request, b"head body");
                tls.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
                    .await
                    .unwrap();
                tls.flush().await.unwrap();
            };
            let client = async {
                let mut conn = Connection::new(connector.connect(soon()).await.unwrap(), soon());
                conn.begin(
                    |head| head.extend_from_slice(b"head "),
                    &[Bytes::from_static(b"body")],
                    None,
                );
                let head = poll_fn(|cx| conn.poll_answer(cx)).await.unwrap();
                assert_eq!(head.framing, Framing::Length(5));
                while conn.buf.len() < 5 {
                    poll_fn(|cx| conn.poll_fill(cx)).await.unwrap();
                }
                assert_eq!(conn.buf, "hello");
            };
            tokio::join!(server, client);
        }
    }

    #[tokio::test]
    async fn a_guarded_connector_does_not_reach_addresses_that_are_not_public() {
        for host in ["127.0.0.1", "localhost"] {
            let (listener, port) = listener().await;
            let address = Address::parse(&format!("http://{host}:{port}/v1")).unwrap();
            let connector = Connector::new(&address).unwrap();
            let guarded = connector.clone().guarded_by(AddressPolicy::default());
            let error = guarded.connect(soon()).await.unwrap_err();
            assert_eq!((error.sent, error.kind), (Sent::No, CallErrorKind::Connect));
            let refusal = UrlRefusal::cause_of(&error);
            assert_eq!(refusal, Some(UrlRefusal::Address), "{error:?}");
            // No guarded connection arrived: the first connection to be accepted is the unguarded
            // one.
            let (accepted, connected) = tokio::join!(listener.accept(), connector.connect(soon()));
            assert!(accepted.is_ok() && connected.is_ok(), "{host}");
        }
    }

    #[tokio::test]
    async fn an_upstream_that_nobody_vouches_for_gets_nothing() {
        for (host, roots) in [("localhost", &*PUBLIC_ROOTS), ("127.0.0.2", &test_roots())] {
            let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let address = Address::parse(&format!("https://{host}:{port}/v1")).unwrap();
            let connector = Connector::trusting(&address, roots).unwrap();
            let (accepted, connected) = tokio::join!(accept(&listener), connector.connect(soon()));
            let error = connected.unwrap_err();
            assert_eq!(
                (error.sent, error.kind),
                (Sent::No, CallErrorKind::Connect),
                "{host}"
            );
            assert!(accepted.is_err(), "{host}");
        }
    }

    /// Without a TLS close notification, a truncated response cannot be distinguished from a
    /// complete one.
    #[tokio::test]
    async fn a_tls_connection_that_just_stops_is_not_a_regular_end() {
        let (listener, port) = listener().await;
        let address = Address::parse(&format!("https://localhost:{port}/v1")).unwrap();
        let connector = Connector::trusting(&address, &test_roots()).unwrap();
        let server = async {
            let mut tls = accept(&listener).await.unwrap();
            tls.read_exact(&mut [0]).await.unwrap();
            tls.write_all(b"HTTP/1.0 200 OK\r\n\r\nhalf").await.unwrap();
            tls.flush().await.unwrap();
            let (mut tcp, _) = tls.into_inner();
            tcp.shutdown().await.unwrap();
        };
        let client = async {
            let mut conn = Connection::new(connector.connect(soon()).await.unwrap(), soon());
            conn.begin(|head| head.push(b'x'), &[], None);
            poll_fn(|cx| conn.poll_answer(cx)).await.unwrap();
            loop {
                match poll_fn(|cx| conn.poll_fill(cx)).await {
                    Ok(0) => panic!("a clean end"),
                    Ok(_) => {}
                    Err(error) => break error,
                }
            }
        };
        let ((), error) = tokio::join!(server, client);
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn a_tls_connection_closed_while_resting_is_noticed_before_anything_leaves() {
        let (listener, port) = listener().await;
        let address = Address::parse(&format!("https://localhost:{port}/v1")).unwrap();
        let connector = Connector::trusting(&address, &test_roots()).unwrap();
        let server = async {
            let mut tls = accept(&listener).await.unwrap();
            tls.shutdown().await.unwrap();
        };
        let ((), stream) = tokio::join!(server, connector.connect(soon()));
        let mut conn = Connection::new(stream.unwrap(), soon());
        conn.prepare_for_reuse();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        conn.begin(|head| head.push(b'x'), &[], None);
        let fault = poll_fn(|cx| conn.poll_answer(cx)).await.unwrap_err();
        assert!(matches!(fault, ExchangeError::Unsent(_)), "{fault:?}");
    }

    #[tokio::test]
    async fn the_next_address_is_tried_when_one_refuses() {
        let (listener, port) = listener().await;
        let (closed, closed_port) = self::listener().await;
        drop(closed);
        let addresses = [closed_port, port].map(|port| ([127, 0, 0, 1], port).into());
        let tcp = first_to_answer(addresses.to_vec(), soon()).await.unwrap();
        assert_eq!(tcp.peer_addr().unwrap(), listener.local_addr().unwrap());

        let error = first_to_answer(vec![], soon()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
