//! Applies commands to the ledger and answers their callers.

use std::collections::VecDeque;
use std::sync::Arc;

use super::ledger::Ledger;
use crate::books::Closed;
use crate::error::{AdmitError, StoreError};
use crate::queue::command::AdmittedCall;
use crate::queue::command::{AdmissionReply, Change, Command, Reply, TaskCommand};
use crate::queue::command_queue::CommandQueue;
use crate::queue::durable::Batch;
use crate::records::call::Close;

impl Ledger<'_> {
    /// Decides a command inside the transaction of `batch`. Closes that cannot be decided now are added to
    /// `undecided`.
    pub(crate) fn apply(
        &mut self,
        command: Command,
        queue: &Arc<CommandQueue>,
        batch: &Arc<Batch>,
        undecided: &mut VecDeque<Close>,
    ) {
        // If the receiver is gone, the answer is dropped. A dropped `AdmissionReply` closes its hold.
        match command {
            Command::Admit(admit, reply) => {
                if reply.is_closed() {
                    return;
                }
                let now = admit.now;
                let answer = match self.admit(admit) {
                    Ok(Ok((hold, rates))) => {
                        let admitted = AdmittedCall {
                            hold,
                            rates,
                            durable: batch.durable(),
                        };
                        Ok(AdmissionReply::new(admitted, now, queue))
                    }
                    Ok(Err(refused)) => Err(refused),
                    Err(error) => Err(unavailable(&error)),
                };
                drop(reply.send(answer));
            }
            Command::Extend(extend, reply) => {
                let answer = match self.extend(&extend) {
                    Ok(Some(Ok(()))) => Ok(batch.durable()),
                    Ok(Some(Err(refused))) => Err(refused),
                    Ok(None) => Err(AdmitError::Unavailable),
                    Err(error) => Err(unavailable(&error)),
                };
                drop(reply.send(answer));
            }
            Command::Step(stepping, reply) => {
                let answer = match self.step(stepping) {
                    Ok(Some(answer)) => answer,
                    Ok(None) => Err(AdmitError::Unavailable),
                    Err(error) => Err(unavailable(&error)),
                };
                drop(reply.send(answer));
            }
            Command::Close(closing) => self.book(closing, undecided),
            // `Uncount` is not repeated after a failed batch. The hold then counts until it is closed.
            Command::Uncount(hold) => {
                if let Err(error) = self.stop_counting(hold) {
                    tracing::warn!(%error, %hold, "a hold is still counted");
                }
            }
            Command::Balance(key, now, reply) => {
                let loaded = self.load_key(key).map_err(StoreError::from);
                let balance = loaded.and_then(|()| self.books.balance(key, now));
                answer(reply, balance, batch);
            }
            // If the database has ended the transaction on its own, the change is dropped, because it would be
            // committed separately from its batch.
            Command::Change(change) if self.is_in_transaction() => {
                self.change(change, batch);
            }
            Command::Task(task) if self.is_in_transaction() => self.task(task, batch),
            Command::Alert(alert) if self.is_in_transaction() => self.alert(alert, batch),
            Command::Change(_) | Command::Task(_) | Command::Alert(_) => {}
            Command::Flush(reply) => drop(reply.send(batch.durable())),
        }
    }

    /// Books a close. If it cannot be decided now, adds it to `undecided`.
    pub(crate) fn book(&mut self, closing: Close, undecided: &mut VecDeque<Close>) {
        match self.close(closing) {
            Ok(Closed::Booked) => {}
            Ok(Closed::Late) => self.books.counters.late_closes.add(1),
            Ok(Closed::Unbookable(closing)) => {
                tracing::error!(hold = %closing.hold, "a hold could not be closed: the stored amounts do not contain it");
                undecided.push_back(*closing);
            }
            Err(unread) => {
                let (closing, error) = *unread;
                tracing::error!(%error, hold = %closing.hold, "a hold could not be closed");
                undecided.push_back(closing);
            }
        }
    }

    fn change(&mut self, change: Change, batch: &Arc<Batch>) {
        match change {
            Change::CreateWallet {
                id,
                new,
                now,
                actor,
                reply,
            } => {
                let made = self.atomically(|ledger| ledger.create_wallet(id, new, now, &actor));
                answer(reply, made, batch);
            }
            Change::Wallet {
                wallet,
                change,
                now,
                actor,
                reply,
            } => {
                let made =
                    self.atomically(|ledger| ledger.change_wallet(wallet, &change, now, &actor));
                answer(reply, made, batch);
            }
            Change::CreateKey {
                id,
                new,
                now,
                actor,
                reply,
            } => {
                let made = self.atomically(|ledger| ledger.create_key(id, new, now, &actor));
                answer(reply, made, batch);
            }
            Change::Key {
                key,
                edit,
                now,
                actor,
                reply,
            } => {
                let made = self.atomically(|ledger| ledger.change_key(key, &edit, now, &actor));
                answer(reply, made, batch);
            }
            Change::Access {
                change,
                now,
                actor,
                reply,
            } => {
                let made = self.atomically(|ledger| ledger.change_access(*change, now, &actor));
                answer(reply, made, batch);
            }
            Change::Rule {
                change,
                now,
                actor,
                reply,
            } => {
                let made = self.atomically(|ledger| ledger.change_rule(&change, now, &actor));
                answer(reply, made, batch);
            }
            Change::PriceVersion {
                model,
                card,
                now,
                reply,
            } => {
                answer(reply, self.price_version(&model, &card, now), batch);
            }
            Change::AuditAction {
                action,
                now,
                actor,
                reply,
            } => answer(reply, self.audit(&(*action).into(), now, &actor), batch),
            Change::Catalog {
                catalog,
                now,
                actor,
                reply,
            } => {
                let stored = self.atomically(|it| it.store_catalog(*catalog, now, &actor));
                answer(reply, stored, batch);
            }
            Change::Import {
                batch: accounts,
                now,
                actor,
                reply,
            } => {
                let made = self.atomically(|ledger| ledger.import(&accounts, now, &actor));
                answer(reply, made, batch);
            }
            Change::CostVersion { route, now, reply } => {
                answer(reply, self.cost_version(&route, now), batch);
            }
        }
    }

    fn task(&mut self, task: TaskCommand, batch: &Arc<Batch>) {
        match task {
            TaskCommand::Open(new, reply) => {
                // The caller is gone and does not know of the task, so no hold is opened.
                if reply.is_closed() {
                    return;
                }
                let opened = match self.open_task(&new) {
                    Ok(opened) => opened.map(|opened| (opened, batch.durable())),
                    Err(error) => Err(unavailable(&error)),
                };
                drop(reply.send(opened));
            }
            TaskCommand::Accept(accepted, reply) => {
                answer(reply, self.accept_task(&accepted), batch);
            }
            TaskCommand::Refuse(claim, now, reply) => {
                answer(reply, self.refuse_task(claim, now), batch);
            }
            TaskCommand::RenewClaim(renewal, reply) => {
                answer(reply, self.renew_claim(&renewal), batch);
            }
            TaskCommand::ReportPoll(report, reply) => {
                answer(reply, self.report_task_poll(&report), batch);
            }
            TaskCommand::End(ended, reply) => answer(reply, self.end_task(*ended), batch),
            TaskCommand::Claim(due, reply) => answer(reply, self.claim_tasks(due), batch),
            TaskCommand::ClaimOne(one, reply) => answer(reply, self.claim_task(one), batch),
            TaskCommand::Hide(wallet, task, now, reply) => {
                answer(reply, self.hide_task(wallet, task, now), batch);
            }
            TaskCommand::Forget(old, reply) => answer(reply, self.forget_tasks(old), batch),
            TaskCommand::ClaimCallbacks(due, reply) => {
                answer(reply, self.claim_callbacks(due), batch);
            }
            TaskCommand::ReportCallback(report, reply) => {
                answer(reply, self.report_callback(&report), batch);
            }
        }
    }
}

pub(crate) fn answer<T>(reply: Reply<T>, result: Result<T, StoreError>, batch: &Arc<Batch>) {
    drop(reply.send(result.map(|value| (value, batch.durable()))));
}

fn unavailable(error: &rusqlite::Error) -> AdmitError {
    tracing::error!(%error, "a call could not be decided");
    AdmitError::Unavailable
}
