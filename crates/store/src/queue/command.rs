//! The commands that the ledger writer runs.

use std::sync::Arc;
use std::time::Duration;

use ledger::{Micro, Rates, UnixMs};
use tokio::sync::oneshot;

use super::command_queue::CommandQueue;
use super::durable::Durable;
use crate::error::{AdmitError, StoreError};
use crate::records::access::{NewSession, NewSignInCode, NewToken, SessionRow, TokenRow};
use crate::records::accounts::{KeyChange, KeyRotation, KeyRow, NewKey, NewWallet, WalletRow};
use crate::records::alerts::{
    AlertSignal, DeliveryReport, DeliveryRow, NewAlert, NewRule, RuleRow,
};
use crate::records::audit::Actor;
use crate::records::call::{Admit, Close, End, Extend, IfLost, SessionStep};
use crate::records::catalog::AuditAction;
use crate::records::cost::CostVersion;
use crate::records::ids::{
    AlertId, Digest, HoldId, KeyId, PriceVersion, RuleId, TokenId, WalletId,
};
use crate::records::import::ImportBatch;
use crate::records::manual::{ChangedWallet, NewEntry, WalletSettings};
use crate::records::task::{
    CallbackReport, CallbackRow, Claim, ClaimRenewal, NewTask, OpenedTask, TaskAccepted, TaskEnd,
    TaskPollReport, TaskRow,
};
use crate::records::task_id::TaskId;

/// The channel on which the writer sends its decision. The receiver then waits until the decision is durable.
pub(crate) type Reply<T> = oneshot::Sender<Result<(T, Durable), StoreError>>;

/// A command for the writer, which runs commands in the order of their arrival.
#[derive(Debug)]
pub(crate) enum Command {
    Admit(Admit, oneshot::Sender<Result<AdmissionReply, AdmitError>>),
    Extend(Extend, oneshot::Sender<Result<Durable, AdmitError>>),
    /// The answer is the amount that the hold covers since the beginning of the session.
    Step(Box<SessionStep>, oneshot::Sender<Result<Micro, AdmitError>>),
    Close(Close),
    /// Stops counting the hold against its key's concurrency.
    Uncount(HoldId),
    Balance(KeyId, UnixMs, Reply<(ledger::Wallet, ledger::Key)>),
    Change(Change),
    Task(TaskCommand),
    Alert(AlertCommand),
    Flush(oneshot::Sender<Durable>),
}

/// A change of a task or callback. The answer `false` means that nothing was written: the caller no longer holds the
/// claim, or the task cannot be hidden.
#[derive(Debug)]
pub(crate) enum TaskCommand {
    Open(
        Box<NewTask>,
        oneshot::Sender<Result<(OpenedTask, Durable), AdmitError>>,
    ),
    Accept(Box<TaskAccepted>, Reply<bool>),
    /// The upstream did not accept the task: releases the hold and deletes the row.
    Refuse(Claim, UnixMs, Reply<bool>),
    RenewClaim(Box<ClaimRenewal>, Reply<bool>),
    ReportPoll(Box<TaskPollReport>, Reply<bool>),
    End(Box<TaskEnd>, Reply<bool>),
    Claim(DueWork, Reply<Vec<TaskRow>>),
    ClaimOne(OneTask, Reply<Option<TaskRow>>),
    /// Hides the task from its owner.
    Hide(WalletId, TaskId, UnixMs, Reply<bool>),
    Forget(EndedWork, Reply<u64>),
    ClaimCallbacks(DueWork, Reply<Vec<CallbackRow>>),
    ReportCallback(CallbackReport, Reply<bool>),
}

/// A change of alerts or their deliveries.
#[derive(Debug)]
pub(crate) enum AlertCommand {
    /// Asks whether this node should check for alerts for the given time. If so, other nodes get the answer `false`.
    LeaseChecks(Duration, Reply<bool>),
    /// Replaces the signals of this node.
    Signal {
        signals: Vec<AlertSignal>,
        lasting: Duration,
        now: UnixMs,
        reply: Reply<()>,
    },
    Begin(Box<NewAlert>, UnixMs, Reply<bool>),
    End(AlertId, UnixMs, Reply<bool>),
    Claim(DueWork, Reply<Vec<DeliveryRow>>),
    ReportDelivery(Box<DeliveryReport>, Reply<bool>),
    Forget(EndedWork, Reply<u64>),
}

/// The maximum number of due tasks, callbacks or deliveries to claim, and the duration of the claims.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DueWork {
    pub(crate) count_max: u32,
    pub(crate) lease: std::time::Duration,
    pub(crate) now: UnixMs,
}

/// One task of a wallet to claim, and the duration of the claim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneTask {
    pub(crate) wallet: WalletId,
    pub(crate) task: TaskId,
    pub(crate) lease: std::time::Duration,
    pub(crate) now: UnixMs,
}

/// The age from which ended tasks or alerts are deleted, and how many at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedWork {
    pub(crate) age: std::time::Duration,
    pub(crate) count_max: u32,
    pub(crate) now: UnixMs,
}

/// An administrative change, written in one transaction with its audit row. Price and cost versions are also stored
/// this way, but have no audit row, because the server stores them itself.
#[derive(Debug)]
pub(crate) enum Change {
    CreateWallet {
        id: WalletId,
        new: NewWallet,
        now: UnixMs,
        actor: Box<Actor>,
        reply: Reply<WalletRow>,
    },
    Wallet {
        wallet: WalletId,
        change: WalletChange,
        now: UnixMs,
        actor: Box<Actor>,
        reply: Reply<ChangedWallet>,
    },
    CreateKey {
        id: KeyId,
        new: NewKey,
        now: UnixMs,
        actor: Box<Actor>,
        reply: Reply<KeyRow>,
    },
    Key {
        key: KeyId,
        edit: KeyEdit,
        now: UnixMs,
        actor: Box<Actor>,
        reply: Reply<KeyRow>,
    },
    /// A change of the access to the admin API.
    Access {
        change: Box<AccessChange>,
        now: UnixMs,
        actor: Box<Actor>,
        reply: Reply<AccessChanged>,
    },
    Rule {
        change: Box<RuleChange>,
        now: UnixMs,
        actor: Box<Actor>,
        reply: Reply<RuleRow>,
    },
    PriceVersion {
        model: String,
        card: String,
        now: UnixMs,
        reply: Reply<PriceVersion>,
    },
    /// Writes an audit row alone.
    AuditAction {
        action: Box<AuditAction>,
        now: UnixMs,
        actor: Box<Actor>,
        reply: Reply<()>,
    },
    /// Stores a catalog as the successor of version `expected`. The answer is its version, or `None` if `expected` is
    /// not the latest version.
    Catalog {
        catalog: Box<NewCatalog>,
        now: UnixMs,
        actor: Box<Actor>,
        reply: Reply<Option<i64>>,
    },
    /// Creates the accounts that are imported from another gateway.
    Import {
        batch: Box<ImportBatch>,
        now: UnixMs,
        actor: Box<Actor>,
        reply: Reply<()>,
    },
    CostVersion {
        route: CostedRoute,
        now: UnixMs,
        reply: Reply<CostVersion>,
    },
}

/// A catalog to store, and the version that it replaces.
#[derive(Debug, Clone)]
pub(crate) struct NewCatalog {
    pub(crate) expected: i64,
    pub(crate) document: String,
    pub(crate) action: AuditAction,
}

/// A route's cost card, with the names that identify the route.
#[derive(Debug, Clone)]
pub(crate) struct CostedRoute {
    pub(crate) model: String,
    pub(crate) channel: String,
    pub(crate) card: String,
}

#[derive(Debug, Clone)]
pub(crate) enum RuleChange {
    Create { id: RuleId, new: NewRule },
    Remove(RuleId),
}

#[derive(Debug, Clone)]
pub(crate) enum AccessChange {
    CreateToken {
        id: TokenId,
        new: NewToken,
    },
    RevokeToken(TokenId),
    /// Writes no audit row.
    NoteTokenUsed(TokenId),
    CreateCode(NewSignInCode),
    OpenSession(NewSession),
    EndSession(Digest),
}

#[derive(Debug)]
pub(crate) enum AccessChanged {
    Token(TokenRow),
    /// `None` if the sign-in code is unknown, used or expired.
    Session(Option<SessionRow>),
    Done,
}

impl AccessChanged {
    pub(crate) fn token(self) -> Result<TokenRow, StoreError> {
        match self {
            Self::Token(row) => Ok(row),
            Self::Session(_) | Self::Done => Err(StoreError::Unavailable),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum WalletChange {
    Manual(NewEntry),
    Settings(WalletSettings),
}

#[derive(Debug, Clone)]
pub(crate) enum KeyEdit {
    Limits(KeyChange),
    Enabled(bool),
    Rotate(KeyRotation),
}

/// An admitted call. The owner of this value must send a [`Close`], even if the decision is reported as lost. Closing a
/// hold that does not exist is harmless, and a lost hold may exist after all, because a commit can succeed although its
/// answer is lost.
#[derive(Debug)]
#[must_use = "an admitted call keeps credits frozen until its hold is closed"]
pub struct AdmittedCall {
    pub hold: HoldId,
    /// The remaining rate limits of the key, for the response headers.
    pub rates: Rates,
    /// With `ledger.commit = "before-answer"`, the client gets no byte of the answer before this is durable (W12).
    pub durable: Durable,
}

/// An admission on its way back to the caller. A caller that is gone cannot close the hold, so a reply that is dropped
/// without being accepted closes it.
#[derive(Debug)]
pub(crate) struct AdmissionReply {
    admitted: Option<AdmittedCall>,
    now: UnixMs,
    queue: Arc<CommandQueue>,
}

impl AdmissionReply {
    pub(crate) fn new(admitted: AdmittedCall, now: UnixMs, queue: &Arc<CommandQueue>) -> Self {
        Self {
            admitted: Some(admitted),
            now,
            queue: Arc::clone(queue),
        }
    }

    pub(crate) fn accept(mut self) -> Option<AdmittedCall> {
        self.admitted.take()
    }
}

impl Drop for AdmissionReply {
    fn drop(&mut self) {
        if let Some(admitted) = self.admitted.take() {
            let closing = Close {
                if_lost: IfLost::Charge,
                hold: admitted.hold,
                now: self.now,
                end: End::Released,
            };
            self.queue.push_close(Command::Close(closing));
        }
    }
}

impl Command {
    /// Refuses the command without running it.
    pub(crate) fn refuse(self, why: AdmitError) {
        // A receiver that is gone does not need an answer.
        match self {
            Self::Admit(_, reply) => drop(reply.send(Err(why))),
            Self::Extend(_, reply) => drop(reply.send(Err(why))),
            Self::Task(TaskCommand::Open(_, reply)) => drop(reply.send(Err(why))),
            Self::Step(_, reply) => drop(reply.send(Err(why))),
            // Dropping the sender tells the caller that the store is unavailable.
            Self::Balance(..)
            | Self::Change(..)
            | Self::Task(..)
            | Self::Alert(..)
            | Self::Flush(..)
            | Self::Close(..)
            | Self::Uncount(..) => {}
        }
    }
}
