//! Durable state: wallets, keys, holds, entries, prices, the journal, and generated media.
//!
//! [`Store`] offers business operations, not tables. One writer per process (or per lane, with `PostgreSQL`) takes
//! commands from a queue and runs them in one transaction after another. Decisions on money are made only inside these
//! transactions: the pure functions of the `ledger` crate run on rows in memory, and the writer writes the result. With
//! `SQLite`, callers may run these functions in their own threads while the writer shares its rows with them. A
//! decision is answered before its commit, and [`Durable`] reports when it is on disk.
//!
//! This crate must know nothing of the gateway's HTTP interface, of protocols, of prices of models (it stores price
//! cards as text), or of upstreams.
//!
//! Start with [`Store`], then `queue` (how commands reach the writer), `books` (how they are decided), then `sqlite`
//! and `postgres`, which use the same names for the same things. [`Media`] is independent of the rest.

mod backend;
mod books;
mod cache;
mod chain;
mod clock;
mod disk;
mod embedded_migrations;
mod error;
#[cfg(all(any(test, feature = "faults"), not(feature = "schedules")))]
mod faults;
mod foreign;
mod inspect;
mod key_listener;
mod media;
mod postgres;
mod queue;
mod records;
mod settings;
mod sha256;
mod sqlite;
mod stats;
mod store;
mod sync;
mod ticker;
mod tls;
mod transfer;
mod usage;
mod verify;

pub use chain::{Head, HeadError, WalletHead};
pub use error::{AdmitError, NotDurable, OpenError, StoreError};
#[cfg(all(any(test, feature = "faults"), not(feature = "schedules")))]
pub use faults::Faults;
pub use foreign::{ForeignDatabase, ForeignError, ForeignRow, ForeignTable};
pub use media::{
    Bucket, Media, MediaBody, MediaError, MediaHead, MediaId, MediaName, MediaOpenError,
    MediaPlace, MediaSettings, MediaType, Spool, Spooled, Swept, Upload,
};
pub use queue::command::AdmittedCall;
pub use queue::durable::Durable;
pub use records::access::{
    NewSession, NewSignInCode, NewToken, OpenedBy, SessionRow, TOKENS_MAX, TokenCursor, TokenQuery,
    TokenRow,
};
pub use records::accounts::{
    KeyChange, KeyHead, KeyLimits, KeyRotation, KeyRow, KeyWindow, NewKey, NewWallet, WalletRow,
    WalletsBeyondCredit,
};
pub use records::alerts::{
    ALERT_DELIVERIES_MAX, ALERT_RULES_MAX, ALERTS_MAX, AlertCursor, AlertEvent, AlertKind,
    AlertQuery, AlertRow, AlertSignal, DeliveryClaim, DeliveryOutcome, DeliveryReport, DeliveryRow,
    DeliveryState, LastAttempt, LowWallet, NewAlert, NewRule, RuleRow, UnknownAlertKind, Webhook,
};
pub use records::audit::{
    AUDIT_ROWS_MAX, Actor, AuditCursor, AuditQuery, AuditRow, Role, UnknownRole,
};
pub use records::balance_point::{BalancePoint, Balances};
pub use records::calendar::{Calendar, PeriodLength, UnknownPeriodLength, UnknownZone};
pub use records::call::{Admit, Basis, Close, End, Extend, IfLost, SessionStep, UnknownBasis};
pub use records::catalog::{AuditAction, CatalogDocument};
pub use records::cost::{Cost, CostNumber, CostRow, CostVersion, EntryCost};
pub use records::entries::{
    CallRow, ENTRIES_MAX, EntryCursor, EntryKind, EntryQuery, EntryRow, PriceRow, SettledUsage,
    UnknownKind,
};
pub use records::ids::{
    AlertId, Digest, Epoch, HoldId, IdError, KeyId, PriceNumber, PriceVersion, RequestId, RuleId,
    TokenId, WalletId,
};
pub use records::import::{ImportBatch, ImportKnown, ImportQuery, ImportedKey, ImportedWallet};
pub use records::journal::{
    BODY_BYTES_MAX, JournalCursor, JournalEntry, JournalPage, JournalQuery, JournalRow,
    StatusRange, Timings,
};
pub use records::key_query::KeyQuery;
pub use records::manual::{BookedEntry, NewEntry, WalletSettings};
pub use records::meter::{MeterText, TokenCounts};
pub use records::model_list::{ModelList, ModelListError};
pub use records::names::{AccountNames, FoundAccounts, FoundKey};
pub use records::recovery::Recovery;
pub use records::settled::Settled;
pub use records::statement::{
    KeyTotal, KindTotal, STATEMENT_ENTRIES_MAX, StatementEntry, StatementRange, StatementTotals,
    WALLETS_MAX, WalletCursor, WalletQuery, WalletSpending,
};
pub use records::store_state::StoreState;
pub use records::task::{
    CallbackOutcome, CallbackReport, CallbackRow, Claim, ClaimRenewal, NewTask, OpenedTask,
    RunningTaskState, TaskAccepted, TaskEnd, TaskPollReport, TaskRow, TaskUpstream, TaskView,
};
pub use records::task_id::{TaskId, TaskIdError};
pub use records::task_list::{TaskListed, TaskPage, TaskQuery};
pub use settings::{Location, Server, Settings};
pub use stats::{Backlog, Stats};
pub use store::Store;
pub use transfer::{
    BackupReport, Progress, TransferError, TransferReport, TransferTotals, backup_store,
    move_store, restore_store,
};
pub use usage::{Dimension, Histogram, Series, Totals, UsageQuery, UsageRow, UsageStep};
pub use verify::{Difference, Rule, VerifyReport};
