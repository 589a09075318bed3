//! The ledger's rows in memory: wallets, keys and open holds.

use ledger::{Key, Micro, Period, Reservation, UnixMs, Wallet};

use crate::chain::Head;
use crate::records::calendar::Calendar;
use crate::records::ids::{KeyId, RequestId, WalletId};

#[derive(Debug, Clone, Copy)]
pub(crate) struct BookWallet {
    pub(crate) wallet: Wallet,
    /// The number of its last entry.
    pub(crate) entries: i64,
    /// The latest time of any of its entries.
    pub(crate) posted_at: UnixMs,
    /// The sum of the charges of all its entries.
    pub(crate) charged: Micro,
    /// The hash of its last entry.
    pub(crate) head: Head,
    pub(crate) holds_opened: i64,
    /// Whether the row was changed in the current batch.
    pub(crate) dirty: bool,
}

#[derive(Debug)]
pub(crate) struct BookKey {
    pub(crate) n: i64,
    /// The wallet's row number and id.
    pub(crate) wallet: i64,
    pub(crate) wallet_id: WalletId,
    pub(crate) key: Key,
    /// The periods of the key's window.
    pub(crate) calendar: Option<Calendar>,
    pub(crate) last_used_at: Option<UnixMs>,
    /// Whether the row was changed in the current batch.
    pub(crate) dirty: bool,
}

impl BookKey {
    /// Begins the next period of the key's window if the current period is over at `now`. The new period need not be
    /// written, because every later reader of the row computes an equivalent one.
    pub(crate) fn begin_period(&mut self, now: UnixMs, entries: i64) {
        let Some(window) = self.key.window else {
            return;
        };
        let Some(calendar) = &self.calendar else {
            return;
        };
        if self.key.needs_period(now) || calendar.begins_after(now, window.period.ends_at) {
            self.key.begin_period(Period {
                ends_at: calendar.period_end(now),
                entries_before: entries,
            });
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct OpenHold {
    pub(crate) wallet: i64,
    pub(crate) key: KeyId,
    pub(crate) held: Reservation,
    /// The sum that the steps of a session have charged so far.
    pub(crate) booked: Micro,
    /// The upstream cost that these steps have booked.
    pub(crate) cost_booked: Micro,
    pub(crate) request_id: RequestId,
    pub(crate) opened_at: UnixMs,
    pub(crate) row: HoldRow,
}

impl OpenHold {
    /// The amount that the hold covers since the beginning of its call: the charges of its steps plus the amount still
    /// held.
    pub(crate) fn booked_and_held(&self) -> Micro {
        self.booked
            .checked_add(self.held.hold)
            .unwrap_or(Micro::MAX)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldRow {
    /// No row yet: the hold was opened in the current batch.
    None,
    /// The row is up to date.
    Same,
    /// The row is out of date: the hold was changed in the current batch.
    Stale,
    /// No row: the hold was lost with a failed batch and reopened to be settled.
    Lost,
}

impl HoldRow {
    pub(crate) fn is_stored(self) -> bool {
        matches!(self, Self::Same | Self::Stale)
    }
}
