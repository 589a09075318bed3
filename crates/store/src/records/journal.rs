//! The journal: one row per call, for people.
//!
//! No decision about money depends on it, and it never delays a call: a full queue drops rows and counts them. A crash
//! loses the last fraction of a second. An outage of the database loses nothing as long as the queue has room.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use ledger::{HOUR_MS, Micro, UnixMs};

use super::ids::{HoldId, KeyId, RequestId, WalletId};
use super::meter::MeterText;

/// The row of one call. Unknown fields have their defaults.
///
/// A row is created on one thread and freed on another. Values that many rows repeat are shared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JournalRow {
    /// When the call ended.
    pub at: UnixMs,
    pub request_id: RequestId,
    /// `None` if the caller was not authenticated.
    pub wallet: Option<WalletId>,
    pub key: Option<KeyId>,
    /// The endpoint as a path template, never with a query.
    pub endpoint: Cow<'static, str>,
    pub model: Arc<str>,
    /// The channel that answered. For a failed call, the last channel that was tried.
    pub channel: Option<Arc<str>>,
    pub upstream_model: Option<Arc<str>>,
    /// The HTTP status the caller saw.
    pub status: u16,
    /// Our error code, when there was one.
    pub code: Option<Cow<'static, str>>,
    pub stream: bool,
    /// How the hold ended: `settled`, `released`, `abandoned`, or `None` if there was no hold.
    pub outcome: Option<Cow<'static, str>>,
    /// The hold that paid for the call. Its closing entry explains the charge.
    pub hold: Option<HoldId>,
    pub meter: Option<MeterText>,
    pub charge: Micro,
    /// The upstream cost of the call, if it is known.
    pub cost: Option<Micro>,
    pub timings: Timings,
    /// The value of `x-dropped-params`.
    pub dropped_params: Option<Box<str>>,
    /// The routes that were tried and why each failed, for people.
    pub route_notes: Option<Box<str>>,
    /// Redacted by the caller. The store cuts it to [`BODY_BYTES_MAX`].
    pub request_body: Option<Box<str>>,
    pub response_body: Option<Box<str>>,
    /// Whether this is only a late charge: the charge of a call whose row was written before, such as the creation of a
    /// task. Usage reports count late charges, but the journal does not store them as rows.
    pub is_late_charge: bool,
}

impl JournalRow {
    /// Whether the caller saw an error, before the answer or within it.
    pub fn is_error(&self) -> bool {
        self.status >= 400 || self.code.is_some()
    }
}

/// The rows that the journal stores: all except late charges. `rows` must be sorted by [`sort_late_charges`].
pub(crate) fn calls_of(rows: &[JournalRow]) -> &[JournalRow] {
    let calls = rows.partition_point(|row| !row.is_late_charge);
    rows.get(..calls).unwrap_or(rows)
}

/// Moves late charges behind all calls. Both stay in order.
pub(crate) fn sort_late_charges(rows: &mut [JournalRow]) {
    rows.sort_by_key(|row| row.is_late_charge);
}

/// The maximum size of a stored body.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// The prefix of a body that is stored.
pub(crate) fn cut(body: &str) -> &str {
    let mut end = body.len().min(BODY_BYTES_MAX);
    while !body.is_char_boundary(end) {
        end -= 1;
    }
    body.get(..end).unwrap_or(body)
}

/// The number of a row contains a time, shifted left by this many bits. This time is never earlier than the time of the
/// row's call.
pub(crate) const TIME_SHIFT: u32 = 20;
/// If the clock is set back by more than this, a search by time may miss rows.
pub(crate) const SET_BACK_MS_MAX: i64 = HOUR_MS;

/// The time in a row's number.
pub(crate) fn time_of(number: i64) -> UnixMs {
    UnixMs::new(number >> TIME_SHIFT)
}

/// The lowest number of a row with this time.
pub(crate) fn number_of(at: UnixMs) -> i64 {
    at.get().max(0).saturating_mul(1 << TIME_SHIFT)
}

/// When the stages of a call were reached, in microseconds since its arrival.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// When the call was admitted.
    pub admitted_us: Option<u64>,
    /// The part of `admitted_us` that the call waited for the ledger's decision.
    pub queued_us: Option<u64>,
    /// When the head of the upstream's answer arrived.
    pub upstream_us: Option<u64>,
    /// When the first byte of the answer was sent.
    pub first_byte_us: Option<u64>,
    /// When the call ended.
    pub total_us: u64,
}

/// A position in the journal, newest first, for paging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalCursor(pub(crate) i64);

impl JournalCursor {
    /// The position as a number, to give to clients.
    pub fn get(self) -> i64 {
        self.0
    }

    /// A position from a number that `get` returned.
    pub fn new(place: i64) -> Self {
        Self(place)
    }

    /// The position that lies `by` before this one in time.
    #[must_use]
    pub fn earlier(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX >> TIME_SHIFT);
        Self(self.0.saturating_sub(by << TIME_SHIFT))
    }
}

/// A stored row and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    pub cursor: JournalCursor,
    pub row: JournalRow,
}

/// A query for journal rows. A row must meet every condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalQuery {
    pub wallet: Option<WalletId>,
    pub key: Option<KeyId>,
    pub model: Option<String>,
    /// The channel that answered or, for a failed call, the last one that was tried.
    pub channel: Option<String>,
    pub endpoint: Option<String>,
    pub status: Option<StatusRange>,
    /// Our error code.
    pub code: Option<String>,
    pub request_id: Option<String>,
    /// The beginning of the request id.
    pub request_prefix: Option<String>,
    /// Rows of calls that ended at or after this time.
    pub since: Option<UnixMs>,
    /// Rows of calls that ended before this time.
    pub until: Option<UnixMs>,
    /// Rows older than this position: the next page.
    pub before: Option<JournalCursor>,
    /// Rows newer than this position, to follow the journal.
    pub after: Option<JournalCursor>,
    /// 0 means the default of 100. At most 1,000.
    pub limit: u32,
    /// Leaves out bodies, which lists do not show.
    pub without_bodies: bool,
}

/// Rows that match, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JournalPage {
    pub entries: Vec<JournalEntry>,
    /// The position where the search continues. `None` at the end of the journal. A search that takes too long returns
    /// fewer rows than requested, or none.
    pub next: Option<JournalCursor>,
}

impl JournalQuery {
    /// The range of row numbers that may match. The end is exclusive.
    pub(crate) fn numbers(&self) -> (i64, i64) {
        // The time in a row's number is never before the time of its call. The number's time is later if the clock was
        // set back or the row was written late.
        let since = self.since.map_or(0, number_of);
        let after = self.after.map_or(0, |place| place.0.saturating_add(1));
        let until = self
            .until
            .map_or(i64::MAX, |until| number_of(until.plus_ms(SET_BACK_MS_MAX)));
        let before = self.before.map_or(i64::MAX, |place| place.0);
        (since.max(after), until.min(before))
    }

    /// Whether only failed calls match.
    pub(crate) fn only_errors(&self) -> bool {
        self.code.is_some() || self.status.is_some_and(|range| range.first >= 400)
    }

    /// Whether the roll-ups of traffic can tell which hours contain a match.
    pub(crate) fn has_traffic_filter(&self) -> bool {
        let is_of_account = self.wallet.is_some() || self.key.is_some();
        let is_narrowed = self.model.is_some()
            || self.channel.is_some()
            || self.endpoint.is_some()
            || self.only_errors();
        is_narrowed && !is_of_account
    }

    pub(crate) fn rows_max(&self) -> u32 {
        const DEFAULT: u32 = 100;
        const MOST: u32 = 1_000;
        match self.limit {
            0 => DEFAULT,
            limit => limit.min(MOST),
        }
    }
}

/// HTTP statuses from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRange {
    pub first: u16,
    pub last: u16,
}

impl StatusRange {
    /// One status.
    pub fn only(status: u16) -> Self {
        Self {
            first: status,
            last: status,
        }
    }

    /// All errors.
    pub fn errors() -> Self {
        Self {
            first: 400,
            last: 599,
        }
    }

    /// A class of statuses: 4 is 400 to 499.
    pub fn class(class: u16) -> Self {
        let first = class.saturating_mul(100);
        Self {
            first,
            last: first.saturating_add(99),
        }
    }
}
