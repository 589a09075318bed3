//! The client for URLs that clients and upstreams name. Each call uses its own connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::body::BoundedBody;
use super::error::{FetchError, UrlRefusal};
use super::external_url::{ExternalUrl, UrlHost};
use super::policy::{AddressPolicy, is_ours};
use super::request::{self, FetchLimits, Post};
use crate::channel::Channel;
use crate::error::{CallError, CallErrorKind, Sent, TimeoutStage};
use crate::response::Body;
use crate::timeouts::Timeouts;
use crate::wire::{Connection, Connector, Head, Lookups};

const REDIRECTS_MAX: usize = 5;
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The maximum number of bytes that are read of the response to a delivery. Its content is ignored.
const ANSWER_BYTES_READ: u64 = 4 * 1024;
/// The maximum time for reading this body.
const ANSWER_READ_WITHIN: Duration = Duration::from_secs(1);
/// The maximum number of concurrent DNS lookups.
const LOOKUPS_MAX: usize = 64;
/// The part of them that one caller may have.
pub const LOOKUPS_OF_CALLER_MAX: usize = LOOKUPS_MAX / 4;

/// The client for URLs that clients and upstreams name.
///
/// It sends no credential, except that a channel's own credential is sent to the channel's own origin. It has no
/// cookies, no proxy and no connection pool.
#[derive(Debug)]
pub struct Guarded {
    policy: AddressPolicy,
    /// The addresses of our own listeners, set once they listen.
    listeners: Arc<OnceLock<Vec<SocketAddr>>>,
    lookups: Lookups,
}

/// A successful response.
#[derive(Debug)]
pub struct FetchResponse {
    /// The content type that the server declares. It is only a hint.
    pub content_type: Option<HeaderValue>,
    pub body: BoundedBody,
}

/// The deadlines of one call, including its redirects.
#[derive(Clone, Copy)]
struct Deadlines {
    times: Timeouts,
    total: Instant,
}

impl Guarded {
    pub fn new(policy: AddressPolicy) -> Self {
        Self {
            policy,
            listeners: Arc::default(),
            lookups: Lookups::new(LOOKUPS_MAX),
        }
    }

    /// The same client, with a separate limit for DNS lookups.
    #[must_use]
    pub fn with_own_lookups(&self) -> Self {
        Self {
            policy: self.policy.clone(),
            listeners: Arc::clone(&self.listeners),
            lookups: Lookups::new(LOOKUPS_MAX),
        }
    }

    /// The same client for one caller, who may run at most as many DNS lookups at the same time as `share` has permits.
    #[must_use]
    pub fn for_caller(&self, share: Arc<Semaphore>) -> Self {
        Self {
            policy: self.policy.clone(),
            listeners: Arc::clone(&self.listeners),
            lookups: self.lookups.of_caller(share),
        }
    }

    /// Sets the addresses of our own listeners, which must not be reachable through us. Only the first call has an
    /// effect.
    pub fn set_listeners(&self, listeners: Vec<SocketAddr>) {
        let _ = self.listeners.set(listeners);
    }

    /// Which addresses may be called.
    pub fn policy(&self) -> &AddressPolicy {
        &self.policy
    }

    /// The addresses of our own listeners.
    pub fn listeners(&self) -> &[SocketAddr] {
        self.listeners.get().map_or(&[], Vec::as_slice)
    }

    /// Checks a URL that an upstream will fetch: every address that it resolves to must be allowed.
    pub async fn check(&self, url: &str, times: Timeouts) -> Result<(), FetchError> {
        let link = ExternalUrl::read(url)?;
        let deadline = Instant::now() + times.connect;
        self.addresses(&link, false, deadline).await.map(drop)
    }

    /// Fetches a URL and follows at most five redirects, each of which is checked again.
    ///
    /// A URL on the origin of `own_channel` is fetched with that channel's credential and without the address check,
    /// because the operator has configured that origin.
    pub async fn get(
        &self,
        url: &str,
        own_channel: Option<&Channel>,
        bounds: FetchLimits,
    ) -> Result<FetchResponse, FetchError> {
        let deadlines = Deadlines::from_now(bounds.times);
        let mut link = ExternalUrl::read(url)?;
        for _ in 0..=REDIRECTS_MAX {
            let own_channel = own_channel.filter(|channel| is_at(channel, &link));
            let write = |head: &mut Vec<u8>| {
                request::write_get(&link, head);
                if let Some(channel) = own_channel {
                    channel.write_credential(head);
                }
            };
            let is_own_origin = own_channel.is_some();
            let (conn, head) = self
                .exchange(&link, is_own_origin, deadlines, write, Bytes::new())
                .await?;
            if matches!(head.status, 301 | 302 | 303 | 307 | 308)
                && let Some(location) = &head.location
            {
                let location = location.to_str().map_err(|_| UrlRefusal::NotAUrl)?;
                link = link.join(location)?;
                continue;
            }
            if !(200..300).contains(&head.status) {
                return Err(FetchError::Status(head.status));
            }
            let body = Body::new(conn, head.framing, bounds.times.idle, deadlines.total);
            return Ok(FetchResponse {
                content_type: head.content_type,
                body: BoundedBody::new(body, bounds.bytes_max)?,
            });
        }
        Err(FetchError::Redirects)
    }

    /// Delivers a document and returns the status of the response. Redirects are not followed. Once the head of the
    /// response has arrived, its status counts, even if the body cannot be read.
    pub async fn post(&self, post: &Post<'_>) -> Result<u16, FetchError> {
        let deadlines = Deadlines::from_now(Timeouts {
            connect: post.within,
            first_byte: post.within,
            idle: post.within,
            total: post.within,
        });
        let link = ExternalUrl::read(post.url)?;
        let write = |head: &mut Vec<u8>| request::write_post(&link, post, head);
        let (conn, head) = self
            .exchange(&link, false, deadlines, write, post.body.clone())
            .await?;
        // Read a short body, or the start of a body of unknown length, because some servers log a failure if the
        // connection closes early. The result does not matter.
        let read_until = Instant::now() + ANSWER_READ_WITHIN;
        let body = Body::new(conn, head.framing, ANSWER_READ_WITHIN, read_until);
        if let Ok(mut body) = BoundedBody::new(body, ANSWER_BYTES_READ) {
            while let Some(Ok(_)) = body.next().await {}
        }
        Ok(head.status)
    }

    /// Sends a request and reads the head of the response.
    async fn exchange(
        &self,
        link: &ExternalUrl,
        is_own_origin: bool,
        deadlines: Deadlines,
        write: impl FnOnce(&mut Vec<u8>),
        body: Bytes,
    ) -> Result<(Box<Connection>, Head), FetchError> {
        let times = deadlines.times;
        let deadline = deadlines.at_most(times.connect);
        let addresses = self.addresses(link, is_own_origin, deadline).await?;
        let name = match link.host() {
            UrlHost::Name(name) => name.clone(),
            UrlHost::Address(address) => address.to_string(),
        };
        let connector = Connector::for_any_host(&name, link.port(), link.is_tls())
            .map_err(|_| UrlRefusal::NotAUrl)?;
        let mut refused = None;
        let check = |tcp: &TcpStream| {
            if is_own_origin {
                return Ok(());
            }
            let (peer, local) = (tcp.peer_addr()?, tcp.local_addr()?);
            refused = self.check_peer(peer, local.ip()).err();
            refused.map_or(Ok(()), |_| Err(io::ErrorKind::PermissionDenied.into()))
        };
        let connected = connector.connect_to(addresses, deadline, check).await;
        if let Some(refusal) = refused {
            return Err(refusal.into());
        }
        let first_byte = deadlines.at_most(times.first_byte);
        let conn = Connection::new(connected?, first_byte).with_head_max(HEAD_BYTES_MAX);
        let mut conn = Box::new(conn);
        conn.begin(
            |head| {
                write(head);
                head.extend_from_slice(b"\r\n");
            },
            &[body],
            None,
        );
        let head = conn.answer(first_byte, TimeoutStage::FirstByte).await?;
        Ok((conn, head))
    }

    /// Resolves the host of a URL once and checks every address.
    async fn addresses(
        &self,
        link: &ExternalUrl,
        is_own_origin: bool,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, FetchError> {
        if !is_own_origin {
            link.check_name()?;
            self.check_host(link)?;
        }
        let addresses = match link.host() {
            UrlHost::Address(address) => vec![SocketAddr::new(*address, link.port())],
            UrlHost::Name(name) => timeout_at(deadline, self.look_up(name, link.port()))
                .await
                .map_err(|_| {
                    CallError::new(Sent::No, CallErrorKind::Timeout(TimeoutStage::Connect))
                })??,
        };
        if !is_own_origin {
            self.policy.check_addresses(&addresses)?;
        }
        Ok(addresses)
    }

    async fn look_up(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, FetchError> {
        match self.lookups.look_up(name, port).await {
            Ok(addresses) if !addresses.is_empty() => Ok(addresses),
            _ => Err(FetchError::Unresolved),
        }
    }

    fn check_host(&self, link: &ExternalUrl) -> Result<(), UrlRefusal> {
        let is_own = |host: &String| match link.host() {
            UrlHost::Name(name) => host == name,
            UrlHost::Address(address) => host.parse() == Ok(*address),
        };
        if self.policy.own_hosts.iter().any(is_own) {
            return Err(UrlRefusal::Address);
        }
        Ok(())
    }

    /// Checks the address that the socket is actually connected to.
    fn check_peer(&self, peer: SocketAddr, local: IpAddr) -> Result<(), UrlRefusal> {
        self.policy.check_address(peer.ip())?;
        if self
            .listeners()
            .iter()
            .any(|own| is_ours(*own, peer, local))
        {
            return Err(UrlRefusal::Address);
        }
        Ok(())
    }
}

impl Deadlines {
    fn from_now(times: Timeouts) -> Self {
        Self {
            times,
            total: Instant::now() + times.total,
        }
    }

    fn at_most(self, time: std::time::Duration) -> Instant {
        self.total.min(Instant::now() + time)
    }
}

fn is_at(channel: &Channel, link: &ExternalUrl) -> bool {
    let host = match link.host() {
        UrlHost::Name(name) => name.clone(),
        UrlHost::Address(address) => address.to_string(),
    };
    channel.is_origin(link.is_tls(), &host, link.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_listeners_are_known_by_any_address_of_this_machine() {
        for (own, peer, local, ours) in [
            ("127.0.0.1:80", "127.0.0.1:80", "127.0.0.1", true),
            ("127.0.0.1:80", "127.0.0.1:81", "127.0.0.1", false),
            ("127.0.0.1:80", "127.0.0.2:80", "127.0.0.1", false),
            ("0.0.0.0:80", "127.0.0.2:80", "127.0.0.1", true),
            ("0.0.0.0:80", "10.0.0.5:80", "10.0.0.5", true),
            ("[::]:80", "10.0.0.5:80", "10.0.0.5", true),
            ("0.0.0.0:80", "10.0.0.6:80", "10.0.0.5", false),
        ] {
            let (own, peer) = (own.parse().unwrap(), peer.parse().unwrap());
            assert_eq!(
                is_ours(own, peer, local.parse().unwrap()),
                ours,
                "{own} {peer}"
            );
        }
    }
}
