//! Parks wallets that another node has locked, with the commands that wait for them.

use super::lane::{Lane, Parked, wallet_of};
use crate::error::AdmitError;
use crate::queue::command::Command;
use crate::queue::command_queue::Queued;
use crate::records::ids::WalletId;
use crate::sync::Instant;

impl Lane {
    /// Adds the commands of parked wallets to those that already wait. Returns the other commands.
    pub(super) fn queue_behind_parked(&self, commands: Vec<Queued>) -> Vec<Queued> {
        if self.state.borrow().parked.is_empty() {
            return commands;
        }
        let mut free = Vec::with_capacity(commands.len());
        for queued in commands {
            let wallet = self.wallet_of(&queued.command);
            let mut state = self.state.borrow_mut();
            let behind = wallet.and_then(|wallet| {
                let mut parked = state.parked.iter_mut();
                parked.find(|parked| parked.wallet == wallet)
            });
            match behind {
                Some(parked) => parked.commands.push(queued),
                None => free.push(queued),
            }
        }
        free
    }

    pub(super) fn park(&self, left: Vec<Queued>) {
        let mut state = self.state.borrow_mut();
        let mut waiting: usize = state
            .parked
            .iter()
            .map(|parked| parked.commands.len())
            .sum();
        for queued in left {
            if let Command::Flush(reply) = queued.command {
                state.flushes.push(reply);
                continue;
            }
            let Some(wallet) = wallet_of(&state, &queued.command) else {
                continue;
            };
            if waiting >= self.settings.waiting_max && matches!(queued.command, Command::Admit(..))
            {
                queued.command.refuse(AdmitError::Busy);
                continue;
            }
            waiting += 1;
            if let Some(parked) = state
                .parked
                .iter_mut()
                .find(|parked| parked.wallet == wallet)
            {
                parked.commands.push(queued);
            } else {
                let commands = vec![queued];
                state.parked.push_back(Parked { wallet, commands });
            }
        }
        drop(state);
        self.parked.notify_one();
    }

    /// Takes the commands of the wallet that has waited longest. The wallet stays parked, so that later commands queue
    /// behind them.
    pub(super) fn next_parked(&self) -> Option<(WalletId, Vec<Queued>)> {
        let mut state = self.state.borrow_mut();
        let parked = state.parked.front_mut()?;
        Some((parked.wallet, std::mem::take(&mut parked.commands)))
    }

    /// Removes the first parked wallet. If commands are left, parks it again at the end.
    pub(super) fn unpark(&self, wallet: WalletId, mut left: Vec<Queued>) {
        let now = Instant::now();
        let mut state = self.state.borrow_mut();
        let Some(parked) = state.parked.pop_front() else {
            return;
        };
        left.extend(parked.commands);
        let (old, kept): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|queued| self.is_expired(queued, now));
        if !kept.is_empty() {
            state.parked.push_back(Parked {
                wallet,
                commands: kept,
            });
        }
        let flushes = if state.parked.is_empty() {
            std::mem::take(&mut state.flushes)
        } else {
            Vec::new()
        };
        drop(state);
        for queued in old {
            queued.command.refuse(AdmitError::Busy);
        }
        for flush in flushes {
            let batch = self.next_batch();
            batch.mark_durable();
            // A receiver that is gone does not need an answer.
            drop(flush.send(batch.durable()));
        }
    }

    fn is_expired(&self, queued: &Queued, now: Instant) -> bool {
        let waited = now.saturating_duration_since(queued.at);
        match queued.command {
            Command::Admit(..) | Command::Extend(..) | Command::Step(..) | Command::Balance(..) => {
                waited > self.settings.call_wait_max
            }
            Command::Change(..) | Command::Task(..) | Command::Alert(..) => {
                waited > self.settings.change_wait_max
            }
            Command::Close(..) | Command::Uncount(..) | Command::Flush(..) => false,
        }
    }

    /// Keeps a flush until no wallet is parked. Returns the flush if no wallet is parked now.
    pub(crate) fn keep_flush(
        &self,
        flush: tokio::sync::oneshot::Sender<crate::queue::durable::Durable>,
    ) -> Option<tokio::sync::oneshot::Sender<crate::queue::durable::Durable>> {
        let mut state = self.state.borrow_mut();
        if state.parked.is_empty() {
            return Some(flush);
        }
        state.flushes.push(flush);
        None
    }
}
