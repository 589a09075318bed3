//! What travels to the ledger writer.

use std::sync::Arc;

use ledger::{Micro, UnixMs, WalletStatus};
use tokio::sync::oneshot;

use super::command_queue::CommandQueue;
use super::durable::Durable;
use crate::error::{AdmitError, StoreError};
use crate::records::accounts::{KeyChange, KeyRow, NewKey, NewWallet, WalletRow};
use crate::records::call::{Admit, Admitted, Close, End, Extend, IfLost, SessionStep};
use crate::records::ids::{HoldId, KeyId, PriceVersion, WalletId};
use crate::records::task::{
    CallbackNote, CallbackRow, Claim, NewTask, OpenedTask, TaskAccepted, TaskEnd, TaskKept,
    TaskNote, TaskRow,
};
use crate::records::task_id::TaskId;

/// An answer that is given when the writer has decided; the receiver then waits for the disk.
pub(crate) type Reply<T> = oneshot::Sender<Result<(T, Durable), StoreError>>;

/// One wish to the writer, which takes them in the order they came.
#[derive(Debug)]
pub(crate) enum Command {
    Admit(Admit, oneshot::Sender<Result<Granted, AdmitError>>),
    Extend(Extend, oneshot::Sender<Result<Durable, AdmitError>>),
    /// Answers how far the hold reaches, from the session's beginning.
    Step(Box<SessionStep>, oneshot::Sender<Result<Micro, AdmitError>>),
    Close(Close),
    /// The hold no longer counts against its key's concurrency.
    Uncount(HoldId),
    Balance(KeyId, Reply<(ledger::Wallet, ledger::Key)>),
    Change(Change),
    Task(TaskCommand),
    Flush(oneshot::Sender<Durable>),
}

/// A step of a task or of a callback. The answer `false` says that the claim is no longer held, and
/// that nothing was written.
#[derive(Debug)]
pub(crate) enum TaskCommand {
    Open(
        Box<NewTask>,
        oneshot::Sender<Result<(OpenedTask, Durable), AdmitError>>,
    ),
    Accept(Box<TaskAccepted>, Reply<bool>),
    /// The upstream has not taken it: the hold is released, and the row goes.
    Refuse(Claim, UnixMs, Reply<bool>),
    Keep(Box<TaskKept>, Reply<bool>),
    Note(Box<TaskNote>, Reply<bool>),
    End(Box<TaskEnd>, Reply<bool>),
    Claim(DueWork, Reply<Vec<TaskRow>>),
    ClaimOne(OneTask, Reply<Option<TaskRow>>),
    /// Its owner no longer wants to see it.
    Hide(WalletId, TaskId, UnixMs, Reply<bool>),
    Forget(OldTasks, Reply<u64>),
    ClaimCallbacks(DueWork, Reply<Vec<CallbackRow>>),
    NoteCallback(CallbackNote, Reply<bool>),
}

/// How much due work is claimed, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DueWork {
    pub(crate) count_max: u32,
    pub(crate) lease: std::time::Duration,
    pub(crate) now: UnixMs,
}

/// One task of a wallet that is claimed, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneTask {
    pub(crate) wallet: WalletId,
    pub(crate) task: TaskId,
    pub(crate) lease: std::time::Duration,
    pub(crate) now: UnixMs,
}

/// Tasks that ended so long ago that they are forgotten, and how many of them at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OldTasks {
    pub(crate) age: std::time::Duration,
    pub(crate) count_max: u32,
    pub(crate) now: UnixMs,
}

/// An administrative change.
#[derive(Debug)]
pub(crate) enum Change {
    CreateWallet {
        id: WalletId,
        new: NewWallet,
        now: UnixMs,
        reply: Reply<WalletRow>,
    },
    Wallet {
        wallet: WalletId,
        change: WalletChange,
        now: UnixMs,
        reply: Reply<WalletRow>,
    },
    CreateKey {
        id: KeyId,
        new: NewKey,
        now: UnixMs,
        reply: Reply<KeyRow>,
    },
    Key {
        key: KeyId,
        edit: KeyEdit,
        reply: Reply<KeyRow>,
    },
    PriceVersion {
        model: String,
        card: String,
        now: UnixMs,
        reply: Reply<PriceVersion>,
    },
}

/// What is changed of a wallet.
#[derive(Debug, Clone)]
pub(crate) enum WalletChange {
    Credit {
        credit: Credit,
        amount: Micro,
        note: String,
    },
    CreditLimit(Micro),
    Status(WalletStatus),
}

/// What is changed of a key.
#[derive(Debug, Clone)]
pub(crate) enum KeyEdit {
    Limits(KeyChange),
    Enabled(bool),
}

/// Which pocket a credit goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credit {
    TopUp,
    Gift,
}

/// An admission on its way back to the caller. A caller that has gone meanwhile cannot close
/// the hold, so an unaccepted grant does it when it is dropped, wherever that happens.
#[derive(Debug)]
pub(crate) struct Granted {
    admitted: Option<Admitted>,
    now: UnixMs,
    queue: Arc<CommandQueue>,
}

impl Granted {
    pub(crate) fn new(admitted: Admitted, now: UnixMs, queue: &Arc<CommandQueue>) -> Self {
        Self {
            admitted: Some(admitted),
            now,
            queue: Arc::clone(queue),
        }
    }

    pub(crate) fn accept(mut self) -> Option<Admitted> {
        self.admitted.take()
    }
}

impl Drop for Granted {
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
    /// Answers without doing anything.
    pub(crate) fn refuse(self, why: AdmitError) {
        // A receiver that has gone needs no answer.
        match self {
            Self::Admit(_, reply) => drop(reply.send(Err(why))),
            Self::Extend(_, reply) => drop(reply.send(Err(why))),
            Self::Task(TaskCommand::Open(_, reply)) => drop(reply.send(Err(why))),
            Self::Step(_, reply) => drop(reply.send(Err(why))),
            // Dropping the other end of an answer says that the store is not available.
            Self::Balance(..)
            | Self::Change(..)
            | Self::Task(..)
            | Self::Flush(..)
            | Self::Close(..)
            | Self::Uncount(..) => {}
        }
    }
}
