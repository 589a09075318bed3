//! `/events`: live events, as server-sent events.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, StreamExt as _};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use store::{JournalCursor, JournalQuery};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::access::Viewer;
use crate::admin::api::error::{ApiError, Refused};
use crate::admin::api::state::AdminState;
use crate::admin::events::{CALLS_MAX, Subscription, call_event};
use crate::operations::calls::names_of_calls;

/// The time without an event after which a comment is sent, so that proxies keep the connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The maximum duration of a stream. Clients reconnect automatically and authenticate again, so that a revoked token
/// cannot keep listening.
const STREAM_DURATION_MAX: Duration = Duration::from_secs(300);
/// The `retry-after` when there are too many listeners.
const SUBSCRIBE_RETRY_AFTER: Duration = Duration::from_secs(5);

pub(crate) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Live events
///
/// Server-sent events `call`, `task`, `alert` and `channel`, about a second after they happen. Every node sends the
/// events of all nodes, except that `channel` is about the node itself. `call`, `task` and `alert` have the rows of
/// their lists; an alert is sent when it begins and when it ends. A listener that reconnects with the id of an event in
/// `last-event-id` gets the newest calls since then, at most 200. A listener that reads too slowly is dropped. One node
/// has at most 64 listeners.
#[utoipa::path(
    get,
    path = "/events",
    tag = "events",
    params(("last-event-id" = Option<String>, Header, description = "The id of the last event that was seen.")),
    responses((status = 200, description = "The events, for five minutes.", body = String, content_type = "text/event-stream"), Refused),
)]
async fn events(
    _: Viewer,
    State(state): State<AdminState>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let last = last_event(&headers)?;
    let mut subscription = state.events.subscribe(&state.engine).ok_or_else(|| {
        ApiError::too_many(
            "Too many listen to live events of this node.",
            SUBSCRIBE_RETRY_AFTER,
        )
    })?;
    let missed = match last {
        // Subscribe before reading missed events, so that no event is lost in between.
        Some(position) => {
            subscription.started().await;
            missed(&state, position).await?
        }
        None => Vec::new(),
    };
    let seen: HashSet<i64> = missed.iter().filter_map(|event| event.0).collect();
    let hello = Bytes::from_static(b"retry: 3000\n\n");
    let first = stream::iter(std::iter::once(hello).chain(missed.into_iter().map(|event| event.1)));
    let frames = first
        .chain(live(subscription, seen))
        .take_until(Box::pin(tokio::time::sleep(STREAM_DURATION_MAX)))
        .map(Ok::<_, Infallible>);
    let kind = [(CONTENT_TYPE, "text/event-stream")];
    Ok((kind, Body::from_stream(frames)).into_response())
}

fn last_event(headers: &HeaderMap) -> Result<Option<JournalCursor>, ApiError> {
    let Some(id) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let id = id.to_str().ok().and_then(|id| id.parse().ok());
    let refused = || ApiError::invalid("last-event-id", "This is not the id of an event.");
    id.map(|id| Some(JournalCursor::new(id)))
        .ok_or_else(refused)
}

/// The newest calls since a position, oldest first.
async fn missed(
    state: &AdminState,
    after: JournalCursor,
) -> Result<Vec<(Option<i64>, Bytes)>, ApiError> {
    let query = JournalQuery {
        after: Some(after),
        limit: CALLS_MAX,
        without_bodies: true,
        ..JournalQuery::default()
    };
    let mut entries = state.store().journal_page(query).await?.entries;
    entries.reverse();
    let names = names_of_calls(state.store(), &entries).await?;
    let events = entries.iter().map(|entry| call_event(entry, &names));
    Ok(events.map(|event| (event.position, event.frame)).collect())
}

/// Live events, with comments when there are none. The stream ends when the listener is too slow, or when the node
/// stops.
fn live(subscription: Subscription, seen: HashSet<i64>) -> impl stream::Stream<Item = Bytes> {
    stream::unfold((subscription, seen), async |(mut listener, seen)| {
        loop {
            let next = tokio::time::timeout(HEARTBEAT, listener.events.recv());
            let next = listener.stop.run_until_cancelled(next).await?;
            let frame = match next {
                Ok(Ok(event))
                    if event
                        .position
                        .is_some_and(|position| seen.contains(&position)) =>
                {
                    continue;
                }
                Ok(Ok(event)) => event.frame,
                // The listener is too slow, or the channel is closed.
                Ok(Err(_)) => return None,
                Err(_) => Bytes::from_static(b": still here\n\n"),
            };
            return Some((frame, (listener, seen)));
        }
    })
}
