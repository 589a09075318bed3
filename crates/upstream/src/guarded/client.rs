//! Calls addresses that others name, one connection for each.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;

use bytes::Bytes;
use http::HeaderValue;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::body::BoundedBody;
use super::error::{FetchError, Refusal};
use super::link::{Link, LinkHost};
use super::policy::Policy;
use super::request::{self, Bounds, Post};
use crate::body::Body;
use crate::channel::Channel;
use crate::error::{CallError, Sent, Stage, What};
use crate::timeouts::Timeouts;
use crate::wire::{Conn, Connector, Head, Lookups};

/// How often a fetch is sent on to another place.
const REDIRECTS_MAX: usize = 5;
/// The head of an answer.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// What is read of the answer to a delivery; its words are of no use to us.
const ANSWER_BYTES_READ: u64 = 4 * 1024;
/// Look-ups of names that others give, at once.
const LOOKUPS_MAX: usize = 64;

/// The client for addresses that others name.
///
/// It sends no credential but a channel's own to the channel's own origin, knows no cookies and
/// no proxy, and keeps no connection.
#[derive(Debug)]
pub struct Guarded {
    policy: Policy,
    /// Our own listeners, known once they listen.
    listeners: OnceLock<Vec<SocketAddr>>,
    lookups: Lookups,
}

/// A good answer.
#[derive(Debug)]
pub struct Fetched {
    /// What the other side says it is: a hint, no more.
    pub content_type: Option<HeaderValue>,
    pub body: BoundedBody,
}

/// The deadlines of one call, all redirects together.
#[derive(Clone, Copy)]
struct Deadlines {
    times: Timeouts,
    total: Instant,
}

impl Guarded {
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            listeners: OnceLock::new(),
            lookups: Lookups::new(LOOKUPS_MAX),
        }
    }

    /// Says where we listen ourselves: nobody may reach that through us. Only the first call
    /// counts.
    pub fn set_listeners(&self, listeners: Vec<SocketAddr>) {
        let _ = self.listeners.set(listeners);
    }

    /// Whether a link that someone else is to fetch leads to allowed addresses only.
    pub async fn check(&self, url: &str, times: Timeouts) -> Result<(), FetchError> {
        let link = Link::read(url)?;
        let deadline = Instant::now() + times.connect;
        self.addresses(&link, false, deadline).await.map(drop)
    }

    /// Fetches what a link leads to, over at most five redirects, each judged anew.
    ///
    /// What stands on the origin of `home` is fetched with its credential and without the
    /// judgement of its address, for the operator has named it.
    pub async fn get(
        &self,
        url: &str,
        home: Option<&Channel>,
        bounds: Bounds,
    ) -> Result<Fetched, FetchError> {
        let deadlines = Deadlines::from_now(bounds.times);
        let mut link = Link::read(url)?;
        for _ in 0..=REDIRECTS_MAX {
            let home = home.filter(|channel| is_at(channel, &link));
            let write = |head: &mut Vec<u8>| {
                request::write_get(&link, head);
                if let Some(channel) = home {
                    channel.write_credential(head);
                }
            };
            let is_home = home.is_some();
            let (conn, head) = self
                .exchange(&link, is_home, deadlines, write, Bytes::new())
                .await?;
            if matches!(head.status, 301 | 302 | 303 | 307 | 308)
                && let Some(location) = &head.location
            {
                let location = location.to_str().map_err(|_| Refusal::NotAUrl)?;
                link = link.join(location)?;
                continue;
            }
            if !(200..300).contains(&head.status) {
                return Err(FetchError::Status(head.status));
            }
            let body = Body::new(conn, head.framing, bounds.times.idle, deadlines.total);
            return Ok(Fetched {
                content_type: head.content_type,
                body: BoundedBody::new(body, bounds.bytes_max)?,
            });
        }
        Err(FetchError::Redirects)
    }

    /// Delivers a document and gives the status of the answer. A redirect is an answer like
    /// another: it is not followed.
    pub async fn post(&self, post: &Post<'_>) -> Result<u16, FetchError> {
        let deadlines = Deadlines::from_now(Timeouts {
            connect: post.within,
            first_byte: post.within,
            idle: post.within,
            total: post.within,
        });
        let link = Link::read(post.url)?;
        let write = |head: &mut Vec<u8>| request::write_post(&link, post, head);
        let (conn, head) = self
            .exchange(&link, false, deadlines, write, post.body.clone())
            .await?;
        // A little is read out of courtesy: a close within its answer looks like a failure
        // to some. What becomes of it changes nothing.
        let body = Body::new(conn, head.framing, post.within, deadlines.total);
        if let Ok(mut body) = BoundedBody::new(body, ANSWER_BYTES_READ) {
            while let Some(Ok(_)) = body.next().await {}
        }
        Ok(head.status)
    }

    /// One request and the head of its answer.
    async fn exchange(
        &self,
        link: &Link,
        is_home: bool,
        deadlines: Deadlines,
        write: impl FnOnce(&mut Vec<u8>),
        body: Bytes,
    ) -> Result<(Box<Conn>, Head), FetchError> {
        let times = deadlines.times;
        let deadline = deadlines.at_most(times.connect);
        let addresses = self.addresses(link, is_home, deadline).await?;
        let name = match link.host() {
            LinkHost::Name(name) => name.clone(),
            LinkHost::Address(address) => address.to_string(),
        };
        let connector =
            Connector::to_any(&name, link.port(), link.is_tls()).map_err(|_| Refusal::NotAUrl)?;
        let mut refused = None;
        let check = |tcp: &TcpStream| {
            if is_home {
                return Ok(());
            }
            let (peer, local) = (tcp.peer_addr()?, tcp.local_addr()?);
            refused = self.judge_peer(peer, local.ip()).err();
            refused.map_or(Ok(()), |_| Err(io::ErrorKind::PermissionDenied.into()))
        };
        let connected = connector.connect_to(addresses, deadline, check).await;
        if let Some(refusal) = refused {
            return Err(refusal.into());
        }
        let first_byte = deadlines.at_most(times.first_byte);
        let conn = Conn::new(connected?, first_byte).with_head_max(HEAD_BYTES_MAX);
        let mut conn = Box::new(conn);
        conn.begin(
            |head| {
                write(head);
                head.extend_from_slice(b"\r\n");
            },
            &[body],
            None,
        );
        let head = conn.answer(first_byte, Stage::FirstByte).await?;
        Ok((conn, head))
    }

    /// The addresses behind a link, looked up once, all of them judged.
    async fn addresses(
        &self,
        link: &Link,
        is_home: bool,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, FetchError> {
        if !is_home {
            link.judge_name()?;
            self.judge_host(link)?;
        }
        let addresses = match link.host() {
            LinkHost::Address(address) => vec![SocketAddr::new(*address, link.port())],
            LinkHost::Name(name) => timeout_at(deadline, self.look_up(name, link.port()))
                .await
                .map_err(|_| CallError::new(Sent::No, What::Timeout(Stage::Connect)))??,
        };
        if !is_home {
            self.policy.judge_all(&addresses)?;
        }
        Ok(addresses)
    }

    async fn look_up(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, FetchError> {
        match self.lookups.look_up(name, port).await {
            Ok(addresses) if !addresses.is_empty() => Ok(addresses),
            _ => Err(FetchError::Unresolved),
        }
    }

    fn judge_host(&self, link: &Link) -> Result<(), Refusal> {
        let is_own = |host: &String| match link.host() {
            LinkHost::Name(name) => host == name,
            LinkHost::Address(address) => host.parse() == Ok(*address),
        };
        if self.policy.own_hosts.iter().any(is_own) {
            return Err(Refusal::Address);
        }
        Ok(())
    }

    /// The last look, at the socket itself.
    fn judge_peer(&self, peer: SocketAddr, local: IpAddr) -> Result<(), Refusal> {
        self.policy.judge(peer.ip())?;
        let listeners = self.listeners.get().map_or(&[][..], Vec::as_slice);
        if listeners.iter().any(|own| is_ours(*own, peer, local)) {
            return Err(Refusal::Address);
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

fn is_at(channel: &Channel, link: &Link) -> bool {
    let host = match link.host() {
        LinkHost::Name(name) => name.clone(),
        LinkHost::Address(address) => address.to_string(),
    };
    channel.is_origin(link.is_tls(), &host, link.port())
}

/// Whether a connection has reached a listener of ours. One that listens everywhere is reached
/// by any address of this machine: both ends of the connection are the same then, or loopback.
fn is_ours(own: SocketAddr, peer: SocketAddr, local: IpAddr) -> bool {
    let is_here = peer.ip() == local || peer.ip().is_loopback();
    own.port() == peer.port() && (own.ip() == peer.ip() || (own.ip().is_unspecified() && is_here))
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
