//! Durable state: wallets, keys, holds, entries, prices and the journal; and generated media.
//!
//! [`Store`] is a set of business verbs, not tables. One writer thread per process drains a
//! queue into one transaction after another and is the only place that decides on money: it runs
//! the pure transitions of the `ledger` crate on rows inside its transaction and writes the
//! result. A decision is answered before its commit; [`Durable`] tells when it is on the disk.
//!
//! What this crate must never know: HTTP, protocols, prices of models (it keeps price cards as
//! text), upstreams.
//!
//! Start reading at [`Store`], then `queue` and `durable` (how commands travel), `books` (how they
//! are decided), then `sqlite` and `postgres`. [`Media`] stands by itself.

mod accounts;
mod backend;
mod books;
mod cache;
mod call;
mod chain;
mod clock;
mod columns;
mod command;
mod disk;
mod durable;
mod entries;
mod error;
#[cfg(all(any(test, feature = "faults"), not(feature = "schedules")))]
mod faults;
mod ids;
mod journal;
mod journal_queue;
mod media;
mod meter;
mod postgres;
mod queue;
mod settings;
mod settled;
mod sqlite;
mod stats;
mod store;
mod sync;
mod task;
mod task_id;
mod task_list;
mod tasks;
mod ticker;
mod tls;
mod verify;

pub use accounts::{KeyChange, KeyHead, KeyLimits, KeyRow, NewKey, NewWallet, WalletRow};
pub use call::{Admit, Admitted, Basis, Close, End, Extend, IfLost, SessionStep, UnknownBasis};
pub use chain::{Head, HeadError, WalletHead};
pub use durable::Durable;
pub use entries::{
    CallRow, ENTRIES_MAX, EntryKind, EntryPlace, EntryQuery, EntryRow, PriceRow, SettledUsage,
    UnknownKind,
};
pub use error::{AdmitError, Lost, OpenError, StoreError};
#[cfg(all(any(test, feature = "faults"), not(feature = "schedules")))]
pub use faults::Faults;
pub use ids::{
    Digest, Epoch, HoldId, IdError, KeyId, PriceNumber, PriceVersion, RequestId, WalletId,
};
pub use journal::{
    BODY_BYTES_MAX, JournalEntry, JournalPlace, JournalQuery, JournalRow, StatusRange, Timings,
};
pub use media::{
    Bucket, Media, MediaBody, MediaError, MediaHead, MediaId, MediaName, MediaOpenError,
    MediaPlace, MediaSettings, MediaType, Spool, Spooled, Swept, Upload,
};
pub use meter::{MeterText, TokenCounts};
pub use settings::{Location, Server, Settings};
pub use settled::Settled;
pub use stats::Stats;
pub use store::{Recovery, Store};
pub use task::{
    CallbackNote, CallbackOutcome, CallbackRow, Claim, NewTask, OpenedTask, TaskAccepted, TaskEnd,
    TaskKept, TaskNote, TaskRow, TaskStanding, TaskUpstream, TaskView,
};
pub use task_id::{TaskId, TaskIdError};
pub use task_list::{TaskListed, TaskPage, TaskQuery};
pub use verify::{Difference, Rule, VerifyReport};
