//! Closes each hold in its own transaction, after one of the closes has made the transaction of a batch fail.

use super::transaction::LockedWallets;
use super::worker::Worker;
use crate::postgres::connection::errors::FailureKind;
use crate::records::call::Close;

impl Worker {
    pub(crate) async fn close_one_by_one(&mut self, closings: Vec<Close>) {
        let mut closings = closings.into_iter();
        while let Some(mut closing) = closings.next() {
            self.needed.clear();
            let owners = self.lane.state.borrow().owners.get(&closing.hold).copied();
            let Some(owners) = owners else {
                self.lane.counters.late_closes.add(1);
                continue;
            };
            self.needed.hold(closing.hold, owners);
            let begun = match self.begin(LockedWallets::Wait).await {
                Ok(begun) => begun,
                Err(failed) => {
                    tracing::error!(error = %failed, "a hold could not be closed");
                    self.lane.failed();
                    let mut state = self.lane.state.borrow_mut();
                    state.retry.push_back(closing);
                    state.retry.extend(closings);
                    return;
                }
            };
            let hold = closing.hold;
            closing.now = begun.now;
            self.close(closing);
            // A close that was set aside again is not among `closed`, so its hold keeps its owner.
            let closed = self.closed();
            match self.commit_calls(&begun).await {
                Ok(()) => {
                    self.remove_owners(&closed);
                    self.count_commit(1);
                }
                Err(failure) => {
                    let left = self.roll_back();
                    self.lane.failed();
                    if failure.failed.kind() == FailureKind::Permanent {
                        tracing::error!(error = %failure.failed, %hold, "a hold cannot be closed");
                        self.lane.set_aside(left);
                    } else {
                        self.lane.state.borrow_mut().retry.extend(left);
                    }
                }
            }
        }
    }
}
