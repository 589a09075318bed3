//! Registers open connections, limits their number in total and per client network, and signals them to close.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use upstream::client_network;

use super::http2_streams::OpenStreams;
use super::timers::{ConnectionTimers, WaitLimits};
use crate::limits::ConnectionLimits;

/// All open connections of the public listener.
#[derive(Debug, Default)]
pub(crate) struct OpenConnections {
    next_id: AtomicU64,
    open: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<u64, Entry>,
    count_by_network: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Entry {
    timers: Arc<ConnectionTimers>,
    streams: Arc<OpenStreams>,
    close: Arc<CloseSignal>,
}

impl OpenConnections {
    /// Registers a connection, unless the node or the network of this address has reached its limit.
    pub(crate) fn enter(
        self: &Arc<Self>,
        address: IpAddr,
        timers: &Arc<ConnectionTimers>,
        streams: &Arc<OpenStreams>,
        limits: ConnectionLimits,
    ) -> Option<ConnectionSlot> {
        let mut entries = self.open.lock();
        if entries.by_id.len() >= limits.node_max {
            return None;
        }
        let network = limits.network_max.map(|_| client_network(address));
        if let (Some(network), Some(network_max)) = (network, limits.network_max) {
            let count = entries.count_by_network.entry(network).or_default();
            if *count >= network_max {
                return None;
            }
            *count += 1;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let close = Arc::new(CloseSignal::default());
        let entry = Entry {
            timers: Arc::clone(timers),
            streams: Arc::clone(streams),
            close: Arc::clone(&close),
        };
        entries.by_id.insert(id, entry);
        Some(ConnectionSlot {
            id,
            address,
            network,
            close,
            registry: Arc::clone(self),
        })
    }

    /// Closes connections and ends HTTP/2 streams that have waited longer than allowed.
    pub(crate) fn close_overdue(&self, waits: &WaitLimits) {
        for entry in self.open.lock().by_id.values() {
            if entry.timers.is_overdue(waits) {
                entry.close.send(Close::Now);
            }
            entry.streams.end_overdue(waits.write);
        }
    }

    pub(crate) fn close_all(&self, when: Close) {
        for entry in self.open.lock().by_id.values() {
            entry.close.send(when);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Close {
    AfterRequest,
    Now,
}

/// Signals a connection to close. Both cases share one `Notify`, because the connection polls each `Notify` at every
/// event.
#[derive(Debug, Default)]
struct CloseSignal {
    sent: Notify,
    now: AtomicBool,
}

impl CloseSignal {
    fn send(&self, when: Close) {
        if when == Close::Now {
            self.now.store(true, Ordering::Release);
        }
        self.sent.notify_one();
    }

    async fn received(&self) -> Close {
        self.sent.notified().await;
        if self.now.load(Ordering::Acquire) {
            Close::Now
        } else {
            Close::AfterRequest
        }
    }
}

/// A connection's entry in the registry. Dropping the slot removes the entry. The slot is dropped when the connection
/// ends or, if a session has taken the connection over, when the session ends.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    id: u64,
    address: IpAddr,
    /// The network that the connection is counted for, if any.
    network: Option<IpAddr>,
    close: Arc<CloseSignal>,
    registry: Arc<OpenConnections>,
}

impl ConnectionSlot {
    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    pub(crate) async fn told_to_close(&self) -> Close {
        self.close.received().await
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut entries = self.registry.open.lock();
        entries.by_id.remove(&self.id);
        let Some(network) = self.network else { return };
        if let Some(count) = entries.count_by_network.get_mut(&network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                entries.count_by_network.remove(&network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::coarse_clock::CoarseClock;

    #[test]
    fn addresses_of_one_ipv6_subscriber_are_counted_together() {
        let connections = Arc::new(OpenConnections::default());
        let timers = Arc::new(ConnectionTimers::new(Arc::new(CoarseClock::new())));
        let limits = ConnectionLimits {
            node_max: 10,
            network_max: Some(2),
        };
        let enter = |address: &str| {
            let address = address.parse().unwrap();
            connections.enter(address, &timers, &Arc::default(), limits)
        };
        let slots: Vec<_> = ["2001:db8::1", "2001:db8::2"].map(enter).into();
        assert!(slots.iter().all(Option::is_some));
        assert!(enter("2001:db8::3").is_none());
        assert!(enter("2001:db8:0:1::1").is_some());
        let of_ipv4 = ["192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3"].map(enter);
        assert!(of_ipv4.iter().all(Option::is_some));
        assert!(enter("::ffff:192.0.2.1").is_none());
        drop(slots);
        assert!(enter("2001:db8::3").is_some());
    }

    #[test]
    fn connections_of_a_trusted_proxy_take_no_places_of_its_network() {
        let connections = Arc::new(OpenConnections::default());
        let timers = Arc::new(ConnectionTimers::new(Arc::new(CoarseClock::new())));
        let enter = |address: &str, network_max| {
            let limits = ConnectionLimits {
                node_max: 10,
                network_max,
            };
            let address = address.parse().unwrap();
            connections.enter(address, &timers, &Arc::default(), limits)
        };
        let proxy = || enter("2001:db8::1", None);
        let other = |address: &str| enter(address, Some(2));
        let of_proxy = [proxy(), proxy(), proxy()];
        assert!(of_proxy.iter().all(Option::is_some));
        let of_neighbours = ["2001:db8::2", "2001:db8::3"].map(other);
        assert!(of_neighbours.iter().all(Option::is_some));
        assert!(other("2001:db8::4").is_none());
        drop(of_proxy);
        assert!(other("2001:db8::4").is_none());
        drop(of_neighbours);
        assert!(connections.open.lock().count_by_network.is_empty());
    }
}
