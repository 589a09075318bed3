//! Logs received calls: the request, and how the call ended.
//!
//! Tests of a gateway read in this log what reached the upstream, and whether a call was cancelled. The log keeps the
//! newest calls, limited by number and by bytes.

use crate::true_usage::{SessionUsage, TrueUsage};
use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use parking_lot::Mutex;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// One received call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The number of the call. It counts from 1 and is never reused while the simulator runs.
    pub seq: u64,
    pub method: String,
    pub path: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
    /// The body, cut at `call_body_bytes_max` of the settings.
    pub body: Bytes,
    /// The size of the whole body.
    pub body_bytes: u64,
    /// The name under which faults are queued for the call, usually the model's name without its script. `None` if the
    /// call names no model, or was refused before its model was read.
    pub model: Option<String>,
    /// The text of the script that was applied, including queued faults.
    pub faults: String,
    /// The status of the answer; `None` until there is an answer.
    pub status: Option<u16>,
    pub end: CallEnd,
    /// The number of body bytes passed to the connection.
    pub sent_bytes: u64,
    /// When the call arrived (Unix time), and how many milliseconds later it ended.
    pub at_ms: u64,
    pub took_ms: Option<u64>,
    /// The true usage of the answer; `None` if there was no answer, or if its protocol does not generate text.
    pub true_usage: Option<TrueUsage>,
    /// The true usage of a session, once it has ended.
    pub session_usage: Option<SessionUsage>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallEnd {
    /// The call has not ended yet.
    Open,
    /// The whole answer was passed to the connection, or the WebSocket session has ended.
    Completed,
    /// The peer closed the connection before the whole answer was passed to it.
    Cancelled,
    /// A script closed the connection before the end of the answer.
    Cut,
    Reset,
    /// The request did not arrive completely.
    Broken,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) calls: usize,
    pub(crate) body_bytes: usize,
    /// The total size of all stored bodies.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
pub(crate) struct CallLog {
    bounds: Bounds,
    log: Mutex<Log>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Log {
    rows: VecDeque<Call>,
    seq: u64,
    bytes: usize,
    counts: Counts,
}

/// Counts of all calls since the start, including those that the log has dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub received: u64,
    pub open: u64,
    pub completed: u64,
    pub cancelled: u64,
    /// Calls that a script cut or reset, and calls whose request was incomplete.
    pub broken: u64,
}

impl CallLog {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            log: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// Logs a new call and returns the record that tracks it to its end.
    pub(crate) fn open(self: &Arc<Self>, parts: &Parts) -> CallRecord {
        let mut log = self.log.lock();
        log.seq += 1;
        log.counts.received += 1;
        log.counts.open += 1;
        let seq = log.seq;
        log.rows.push_back(Call {
            seq,
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            headers: parts.headers.clone(),
            body: Bytes::new(),
            body_bytes: 0,
            model: None,
            faults: String::new(),
            status: None,
            end: CallEnd::Open,
            sent_bytes: 0,
            at_ms: unix_ms(),
            took_ms: None,
            true_usage: None,
            session_usage: None,
        });
        log.shrink(&self.bounds);
        drop(log);
        self.bump();
        CallRecord {
            calls: Arc::clone(self),
            seq,
            begun: Instant::now(),
            sent_bytes: 0,
            end: CallEnd::Cancelled,
        }
    }

    /// The logged calls, oldest first. If a model is given, only its calls.
    pub(crate) fn rows(&self, model: Option<&str>) -> Vec<Call> {
        let log = self.log.lock();
        log.rows
            .iter()
            .filter(|call| model.is_none_or(|model| call.model.as_deref() == Some(model)))
            .cloned()
            .collect()
    }

    /// The logged calls with a higher number than `seq`, oldest first.
    pub(crate) fn after(&self, seq: u64) -> Vec<Call> {
        let log = self.log.lock();
        let known = log.rows.partition_point(|call| call.seq <= seq);
        log.rows.range(known..).cloned().collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.log.lock().counts
    }

    /// Drops the logged calls; the counts stay.
    pub(crate) fn forget(&self) {
        let mut log = self.log.lock();
        log.rows.clear();
        log.bytes = 0;
        drop(log);
        self.bump();
    }

    /// Returns a receiver that is notified when a call arrives or ends, and when `forget` drops the logged calls. Other
    /// changes of a call do not notify it.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn bump(&self) {
        self.changed
            .send_modify(|revision| *revision = revision.wrapping_add(1));
    }

    fn change(&self, seq: u64, change: impl FnOnce(&mut Call)) {
        let mut log = self.log.lock();
        if let Some(call) = log.row(seq) {
            change(call);
        }
    }
}

impl Log {
    fn row(&mut self, seq: u64) -> Option<&mut Call> {
        let first = self.rows.front()?.seq;
        let place = usize::try_from(seq.checked_sub(first)?).ok()?;
        self.rows.get_mut(place)
    }

    fn shrink(&mut self, bounds: &Bounds) {
        while self.rows.len() > bounds.calls || self.bytes > bounds.bytes {
            let Some(call) = self.rows.pop_front() else {
                break;
            };
            self.bytes = self.bytes.saturating_sub(call.body.len());
        }
    }
}

/// Tracks one call. If the record is dropped before its end is set, the call counts as cancelled: the peer has closed
/// the connection, or the simulator has stopped.
#[derive(Debug)]
pub(crate) struct CallRecord {
    calls: Arc<CallLog>,
    seq: u64,
    begun: Instant,
    sent_bytes: u64,
    end: CallEnd,
}

impl CallRecord {
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn body(&self, body: &Bytes) {
        let bounds = self.calls.bounds;
        // Copy, because the body may be a slice of the connection's larger buffer.
        let kept = Bytes::copy_from_slice(body.get(..bounds.body_bytes).unwrap_or(body));
        let mut log = self.calls.log.lock();
        let Some(call) = log.row(self.seq) else {
            return;
        };
        call.body_bytes = body.len() as u64;
        let added = kept.len();
        call.body = kept;
        log.bytes += added;
        log.shrink(&bounds);
    }

    pub(crate) fn model(&self, model: &str, faults: &str) {
        self.calls.change(self.seq, |call| {
            call.model = Some(model.to_owned());
            faults.clone_into(&mut call.faults);
        });
    }

    pub(crate) fn true_usage(&self, usage: Option<TrueUsage>) {
        self.calls.change(self.seq, |call| call.true_usage = usage);
    }

    pub(crate) fn session_usage(&self, usage: SessionUsage) {
        self.calls
            .change(self.seq, |call| call.session_usage = Some(usage));
    }

    pub(crate) fn status(&self, status: u16) {
        self.calls
            .change(self.seq, |call| call.status = Some(status));
    }

    pub(crate) fn sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// Sets the end that is logged when the record is dropped.
    pub(crate) fn will_end(&mut self, end: CallEnd) {
        self.end = end;
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        let mut log = self.calls.log.lock();
        log.counts.open = log.counts.open.saturating_sub(1);
        match self.end {
            CallEnd::Completed => log.counts.completed += 1,
            CallEnd::Open | CallEnd::Cancelled => log.counts.cancelled += 1,
            CallEnd::Cut | CallEnd::Reset | CallEnd::Broken => log.counts.broken += 1,
        }
        if let Some(call) = log.row(self.seq) {
            call.end = self.end;
            call.sent_bytes = self.sent_bytes;
            call.took_ms = u64::try_from(self.begun.elapsed().as_millis()).ok();
        }
        drop(log);
        self.calls.bump();
    }
}

fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| u64::try_from(since.as_millis()).ok())
        .unwrap_or_default()
}

impl Serialize for Call {
    /// `body` is the stored body as JSON, or null if it is not JSON. `text` is the same body as text, with
    /// invalid UTF-8 replaced.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("method", &self.method)?;
        map.serialize_entry("path", &self.path)?;
        map.serialize_entry("query", &self.query)?;
        map.serialize_entry("headers", &Headers(&self.headers))?;
        let json: Option<&RawValue> = serde_json::from_slice(&self.body).ok();
        map.serialize_entry("body", &json)?;
        map.serialize_entry("text", &String::from_utf8_lossy(&self.body))?;
        map.serialize_entry("body_bytes", &self.body_bytes)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("faults", &self.faults)?;
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("end", &self.end)?;
        map.serialize_entry("sent_bytes", &self.sent_bytes)?;
        map.serialize_entry("at_ms", &self.at_ms)?;
        map.serialize_entry("took_ms", &self.took_ms)?;
        map.serialize_entry("used", &self.true_usage)?;
        map.serialize_entry("talked", &self.session_usage)?;
        map.end()
    }
}

/// Serializes headers as an object and joins the values of a repeated name.
struct Headers<'a>(&'a HeaderMap);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.keys().map(|name| {
            let values: Vec<_> = self
                .0
                .get_all(name)
                .iter()
                .map(|value| String::from_utf8_lossy(value.as_bytes()))
                .collect();
            (name.as_str(), values.join(", "))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn calls(calls: usize, bytes: usize) -> Arc<CallLog> {
        Arc::new(CallLog::new(Bounds {
            calls,
            body_bytes: 100,
            bytes,
        }))
    }

    fn open(calls: &Arc<CallLog>, body: &'static str) -> CallRecord {
        let (parts, ()) = Request::post("/v1/x?a=1")
            .header("x-twice", "1")
            .header("x-twice", "2")
            .body(())
            .unwrap()
            .into_parts();
        let record = calls.open(&parts);
        record.body(&Bytes::from_static(body.as_bytes()));
        record
    }

    #[test]
    fn a_dropped_record_is_a_cancelled_call() {
        let calls = calls(10, 1000);
        let mut record = open(&calls, "{}");
        assert_eq!(calls.rows(None)[0].end, CallEnd::Open);
        record.sent(7);
        drop(record);
        let call = calls.rows(None).remove(0);
        assert_eq!((call.end, call.sent_bytes), (CallEnd::Cancelled, 7));
        assert_eq!(calls.counts().cancelled, 1);
        assert_eq!(calls.counts().open, 0);
    }

    #[test]
    fn the_log_keeps_the_newest_within_its_bounds() {
        let calls = calls(3, 10);
        for body in ["1", "2", "3", "4", "5"] {
            open(&calls, body).will_end(CallEnd::Completed);
        }
        let kept: Vec<_> = calls.rows(None).iter().map(|call| call.seq).collect();
        assert_eq!(kept, [3, 4, 5]);
        // A body as large as the limit of the whole log evicts all other calls.
        let last = open(&calls, "0123456789");
        let kept: Vec<_> = calls.rows(None).iter().map(|call| call.seq).collect();
        assert_eq!(kept, [6]);
        drop(last);
        assert_eq!(calls.counts().received, 6);
        calls.forget();
        assert!(calls.rows(None).is_empty());
    }

    #[test]
    fn a_call_is_shown_with_its_exact_text() {
        let calls = calls(3, 1000);
        let record = open(&calls, r#" {"b" : 1.0} "#);
        record.model("sim-chat", "cut=3");
        record.status(200);
        drop(record);
        let shown = serde_json::to_value(&calls.rows(Some("sim-chat"))[0]).unwrap();
        assert_eq!(shown["text"], r#" {"b" : 1.0} "#);
        assert_eq!(shown["body"]["b"], 1.0);
        assert_eq!(shown["headers"]["x-twice"], "1, 2");
        assert_eq!(shown["query"], "a=1");
        assert_eq!(shown["end"], "cancelled");
        assert_eq!(shown["status"], 200);
        assert!(calls.rows(Some("other")).is_empty());
    }

    #[test]
    fn an_oversized_body_is_cut() {
        let calls = calls(3, 1000);
        let record = open(&calls, "");
        record.body(&Bytes::from(vec![b'x'; 150]));
        let call = calls.rows(None).remove(0);
        assert_eq!((call.body.len(), call.body_bytes), (100, 150));
    }
}
