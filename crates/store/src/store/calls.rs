//! Operations on calls: keys, admission, and the growth and end of holds.

use ledger::Micro;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{ANSWERED_WITHIN, Store, found_in_time};
use crate::backend::{Backend, on};
use crate::clock;
use crate::error::{AdmitError, StoreError};
use crate::queue::command::{AdmittedCall, Command};
use crate::queue::durable::Durable;
use crate::records::accounts::KeyHead;
use crate::records::call::{Admit, Close, Extend, SessionStep};
use crate::records::ids::{Digest, HoldId, KeyId};

impl Store {
    /// Decides on a call: wallet, key, limits and rates in one step, all or nothing. Returns when the decision is made.
    /// [`AdmittedCall::durable`] reports when the hold is on disk.
    pub async fn admit(&self, admit: Admit) -> Result<AdmittedCall, AdmitError> {
        on!(self, backend => backend.may_admit())?;
        match self.backend.admit_now(admit) {
            Ok(decided) => decided,
            // Boxed, because this large future would enlarge every future that awaits it.
            Err(admit) => Box::pin(self.ask_admission(admit)).await,
        }
    }

    async fn ask_admission(&self, admit: Admit) -> Result<AdmittedCall, AdmitError> {
        let (reply, answer) = oneshot::channel();
        self.backend.push(Command::Admit(admit, reply)).await?;
        // A late answer is dropped, which closes the hold of the admitted call.
        let granted = timeout(ANSWERED_WITHIN, answer)
            .await
            .map_err(|_| AdmitError::Unavailable)?
            .map_err(|_| AdmitError::Unavailable)??;
        granted.accept().ok_or(AdmitError::Unavailable)
    }

    /// Grows an open hold by credits and tokens.
    pub async fn extend(&self, extend: Extend) -> Result<Durable, AdmitError> {
        let (reply, answer) = oneshot::channel();
        self.backend.push(Command::Extend(extend, reply)).await?;
        answer.await.map_err(|_| AdmitError::Unavailable)?
    }

    /// Books the usage of a session and extends its hold. Returns the total that is covered since the beginning of the
    /// session. This is the requested total, or less if the wallet and the limits do not cover it.
    pub async fn step_session(&self, step: SessionStep) -> Result<Micro, AdmitError> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Step(Box::new(step), reply);
        self.backend.push(command).await?;
        answer.await.map_err(|_| AdmitError::Unavailable)?
    }

    /// Stops counting a hold against its key's concurrency, because the caller is gone and only the rest of the
    /// upstream's answer is read. The hold stays open.
    pub fn stop_counting(&self, hold: HoldId) {
        self.backend.push_close(Command::Uncount(hold));
    }

    /// Closes a hold. Never fails and never waits. The first close of a hold is booked, and later ones are only
    /// counted.
    pub fn close(&self, close: Close) {
        self.backend.close(close);
    }

    /// A key and its wallet at one instant, after all settlements that were queued before. The returned state is
    /// durable.
    pub async fn balance(&self, key: &KeyId) -> Result<(ledger::Wallet, ledger::Key), StoreError> {
        let balance = self.ask(|reply| Command::Balance(*key, clock::now(), reply));
        found_in_time(balance).await
    }

    /// The key with this digest.
    pub async fn key_by_digest(&self, digest: &Digest) -> Result<Option<KeyHead>, StoreError> {
        on!(self, backend => backend.key_by_digest(*digest).await)
    }
}
