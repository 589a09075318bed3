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

mod backend;
mod books;
mod cache;
mod chain;
mod clock;
mod disk;
mod error;
#[cfg(all(any(test, feature = "faults"), not(feature = "schedules")))]
mod faults;
mod media;
mod postgres;
mod queue;
mod records;
mod settings;
mod sqlite;
mod stats;
mod store;
mod sync;
mod ticker;
mod tls;
mod verify;

pub use chain::{Head, HeadError, WalletHead};
pub use error::{AdmitError, Lost, OpenError, StoreError};
#[cfg(all(any(test, feature = "faults"), not(feature = "schedules")))]
pub use faults::Faults;
pub use media::{
    Bucket, Media, MediaBody, MediaError, MediaHead, MediaId, MediaName, MediaOpenError,
    MediaPlace, MediaSettings, MediaType, Spool, Spooled, Swept, Upload,
};
pub use queue::durable::Durable;
pub use records::accounts::{KeyChange, KeyHead, KeyLimits, KeyRow, NewKey, NewWallet, WalletRow};
pub use records::call::{
    Admit, Admitted, Basis, Close, End, Extend, IfLost, SessionStep, UnknownBasis,
};
pub use records::entries::{
    CallRow, ENTRIES_MAX, EntryKind, EntryPlace, EntryQuery, EntryRow, PriceRow, SettledUsage,
    UnknownKind,
};
pub use records::ids::{
    Digest, Epoch, HoldId, IdError, KeyId, PriceNumber, PriceVersion, RequestId, WalletId,
};
pub use records::journal::{
    BODY_BYTES_MAX, JournalEntry, JournalPlace, JournalQuery, JournalRow, StatusRange, Timings,
};
pub use records::meter::{MeterText, TokenCounts};
pub use records::settled::Settled;
pub use records::task::{
    CallbackNote, CallbackOutcome, CallbackRow, Claim, NewTask, OpenedTask, TaskAccepted, TaskEnd,
    TaskKept, TaskNote, TaskRow, TaskStanding, TaskUpstream, TaskView,
};
pub use records::task_id::{TaskId, TaskIdError};
pub use records::task_list::{TaskListed, TaskPage, TaskQuery};
pub use settings::{Location, Server, Settings};
pub use stats::Stats;
pub use store::{Recovery, Store};
pub use verify::{Difference, Rule, VerifyReport};
