//! State that all connections share, and state that the requests of one connection share.

use std::sync::Arc;

use engine::{Engine, LastKey, Tally, Traceparent};
use http::{HeaderMap, HeaderName};
use store::KeyId;
use tokio_util::task::TaskTracker;

use super::registry::ConnectionSlot;
use super::timers::ConnectionTimers;
use crate::callers_page::CallersPage;
use crate::framing::RefusedRequests;
use crate::limits::Limits;
use crate::response::Cors;

#[derive(Debug)]
pub(crate) struct ListenerState {
    pub(crate) engine: Arc<Engine>,
    pub(crate) limits: Limits,
    /// The origins whose pages may read answers in a browser, if there are any.
    pub(crate) cors: Option<Cors>,
    /// The page for callers, unless it is switched off.
    pub(crate) page: Option<CallersPage>,
    /// Sessions that have taken over their connections. The node waits for them when it stops.
    pub(crate) sessions: TaskTracker,
}

/// One connection of the public listener.
///
/// Its requests and sessions hold an `Arc` of this type, not of [`ListenerState`], because a reference count that all
/// threads change would move between the caches of all cores.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) listener: Arc<ListenerState>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) timers: Arc<ConnectionTimers>,
    pub(crate) refused: Arc<RefusedRequests>,
    pub(crate) slot: ConnectionSlot,
    pub(crate) last_key: LastKey,
    /// The key of all requests of a connection from inside the process. Such a connection sends no secret.
    pub(crate) known_key: Option<KeyId>,
    /// Whether the caller's `traceparent` is honoured.
    pub(crate) continues_traces: bool,
}

impl Connection {
    /// The caller's span from the `traceparent` of a request, if the caller's header is honoured.
    pub(crate) fn traceparent(&self, headers: &HeaderMap) -> Option<Box<Traceparent>> {
        const NAME: HeaderName = HeaderName::from_static("traceparent");
        if !self.continues_traces {
            return None;
        }
        let mut values = headers.get_all(NAME).iter();
        let value = values.next()?;
        // With two headers, it is unknown which one is the caller's.
        let parent = Traceparent::read(value.as_bytes()).filter(|_| values.next().is_none());
        parent.map(Box::new)
    }
}
