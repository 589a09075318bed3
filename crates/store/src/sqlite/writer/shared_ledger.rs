//! The books lie open: while the writer sleeps in an open batch, calls decide on themselves.
//!
//! A decision is a few changes of rows in memory, which cost less than handing it to another
//! thread and waking up for the answer. The transaction stays the writer's: it is open, so
//! the rows are true, and what was decided is written when the writer takes the books back. What
//! needs the database (a row that is not in memory, or no batch that is open) is queued, and
//! nobody overtakes what is queued: it may be the end of the same caller's last call, or more
//! for the hold that is to be closed.

use std::sync::Arc;

use crate::books::{Books, Closed, Draft};
use crate::error::AdmitError;
use crate::queue::command_queue::Queue;
use crate::queue::durable::Durable;
use crate::records::call::{Admit, Admitted, Close};
use crate::sync::{Instant, Mutex};

/// Where the writer leaves the books of an open batch.
#[derive(Debug)]
pub(crate) struct OpenBooks {
    lent: Mutex<Option<Lent>>,
    queue: Arc<Queue>,
}

#[derive(Debug)]
struct Lent {
    books: Books,
    durable: Durable,
    tally: Tally,
}

/// The commands of a batch.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) commands: usize,
    pub(crate) first_call: Option<Instant>,
    /// Calls admitted here less those that ended here, whoever had admitted them, now and at most.
    open_calls: usize,
    pub(crate) most_calls: usize,
}

impl Tally {
    pub(crate) fn admits(&mut self) {
        self.first_call.get_or_insert_with(Instant::now);
        self.open_calls += 1;
        self.most_calls = self.most_calls.max(self.open_calls);
    }

    pub(crate) fn closes(&mut self) {
        self.open_calls = self.open_calls.saturating_sub(1);
    }
}

impl OpenBooks {
    pub(crate) fn new(queue: &Arc<Queue>) -> Self {
        Self {
            lent: Mutex::default(),
            queue: Arc::clone(queue),
        }
    }

    /// Decides on a call, or gives it back to be queued.
    pub(crate) fn admit(&self, admit: Admit) -> Result<Result<Admitted, AdmitError>, Admit> {
        if !self.queue.is_empty() {
            return Err(admit);
        }
        let mut lent = self.lent.lock();
        let Some(lent) = lent.as_mut().filter(|lent| lent.books.knows(admit.key)) else {
            return Err(admit);
        };
        lent.tally.commands += 1;
        lent.tally.admits();
        Ok(lent.books.admit(admit).map(|(hold, rates)| Admitted {
            hold,
            rates,
            durable: lent.durable.clone(),
        }))
    }

    /// Books a close, or gives it back to be queued.
    #[expect(
        clippy::result_large_err,
        reason = "what is given back is queued; a box would cost each call an allocation"
    )]
    pub(crate) fn close(&self, closing: Close) -> Result<(), Close> {
        if !self.queue.is_empty() {
            return Err(closing);
        }
        let mut lent = self.lent.lock();
        let Some(lent) = lent
            .as_mut()
            .filter(|lent| lent.books.knows_hold(closing.hold))
        else {
            return Err(closing);
        };
        match lent.books.close(closing) {
            Closed::Booked | Closed::Late => {
                lent.tally.commands += 1;
                lent.tally.closes();
                Ok(())
            }
            Closed::Unbookable(closing) => Err(closing),
        }
    }

    /// Leaves the books of a batch here while `sleep` lasts.
    pub(crate) fn lend<T>(
        &self,
        books: &mut Books,
        durable: Durable,
        tally: &mut Tally,
        sleep: impl FnOnce() -> T,
    ) -> T {
        let lent = Lent {
            books: std::mem::take(books),
            durable,
            tally: *tally,
        };
        *self.lent.lock() = Some(lent);
        // A writer that panics leaves no books behind that nobody will write.
        let _shut = Shut(&self.lent);
        let slept = sleep();
        if let Some(lent) = self.lent.lock().take() {
            (*books, *tally) = (lent.books, lent.tally);
        }
        slept
    }

    /// How many came to the books that lie here.
    pub(crate) fn tally(&self) -> Tally {
        let lent = self.lent.lock();
        lent.as_ref().map_or_else(Tally::default, |lent| lent.tally)
    }

    /// Takes out what has been decided on the books that lie here; who comes next belongs to the batch of
    /// `next`. Answers how many had come.
    pub(crate) fn turn_over(&self, draft: &mut Draft, next: Durable) -> Tally {
        let mut lent = self.lent.lock();
        let Some(lent) = lent.as_mut() else {
            return Tally::default();
        };
        lent.books.draft(draft);
        lent.durable = next;
        std::mem::take(&mut lent.tally)
    }
}

/// Shuts the books when it is dropped, also by a panic.
struct Shut<'a>(&'a Mutex<Option<Lent>>);

impl Drop for Shut<'_> {
    fn drop(&mut self) {
        drop(self.0.lock().take());
    }
}

#[cfg(test)]
#[cfg(not(feature = "schedules"))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use ledger::{Ask, Key, Micro, UnixMs, Wallet};

    use crate::books::{BookKey, BookWallet};
    use crate::chain::Head;
    use crate::queue::command::Command;
    use crate::queue::command_queue::Bounds;
    use crate::queue::durable::{Batch, SyncLine};
    use crate::records::call::{End, IfLost};
    use crate::records::ids::{HoldId, KeyId, WalletId};
    use crate::sqlite::writer::shared_ledger::*;

    const NOW: UnixMs = UnixMs::new(1_800_000_000_000);

    fn call(wallet: WalletId, key: KeyId) -> Admit {
        Admit {
            wallet,
            key,
            ask: Ask {
                hold: Micro::new(5),
                exposure: Micro::ZERO,
                tokens: 0,
                counts: true,
            },
            request_id: "req_1".into(),
            now: NOW,
        }
    }

    fn end(hold: HoldId) -> Close {
        Close {
            if_lost: IfLost::Charge,
            hold,
            now: NOW,
            end: End::Released,
        }
    }

    #[test]
    fn calls_are_decided_while_the_books_lie_there_and_only_on_their_rows() {
        let queue = Queue::new(Bounds {
            gather: Duration::ZERO,
            waiting_max: 1,
            call_wait_max: Duration::ZERO,
            change_wait_max: Duration::ZERO,
        });
        let queue = Arc::new(queue);
        let batch = Batch::in_line(1, &SyncLine::new(Duration::ZERO, Arc::clone(&queue)));
        let (wallet, known, other) = (WalletId::random(), KeyId::random(), KeyId::random());
        let mut books = Books::default();
        let mut money = Wallet::default();
        money.top_up(Micro::new(7)).unwrap();
        let row = BookWallet {
            wallet: money,
            entries: 0,
            head: Head::of_wallet(wallet),
            holds_opened: 0,
            dirty: false,
        };
        books.wallets.insert(1, row);
        let row = BookKey {
            n: 1,
            wallet: 1,
            wallet_id: wallet,
            key: Key {
                enabled: true,
                ..Key::default()
            },
            dirty: false,
        };
        books.keys.insert(known, row);
        let (open, mut tally) = (OpenBooks::new(&queue), Tally::default());

        assert!(open.admit(call(wallet, known)).is_err());
        open.lend(&mut books, batch.durable(), &mut tally, || {
            let admitted = open.admit(call(wallet, known)).unwrap().unwrap();
            assert!(admitted.durable.is_open());
            // There is no money for a second one, until the first has ended.
            assert!(open.admit(call(wallet, known)).unwrap().is_err());
            open.close(end(admitted.hold)).unwrap();
            assert!(open.close(end(admitted.hold)).is_err());
            let admitted = open.admit(call(wallet, known)).unwrap().unwrap();
            assert!(open.admit(call(wallet, other)).is_err());
            // Whatever is queued comes first.
            queue.push_close(Command::Uncount(admitted.hold));
            assert!(open.close(end(admitted.hold)).is_err());
            assert!(open.admit(call(wallet, known)).is_err());
        });
        assert!(open.admit(call(wallet, known)).is_err());

        // Not a single call more when the writer has panicked.
        let mut none = Books::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            open.lend(&mut none, batch.durable(), &mut Tally::default(), || {
                assert!(open.lent.lock().is_some());
                panic!("as a writer might");
            });
        }));
        assert!(panicked.is_err());
        assert!(open.lent.lock().is_none());

        assert_eq!((tally.commands, tally.most_calls), (4, 2));
        assert_eq!((books.holds.len(), books.pending.postings.len()), (1, 1));
    }
}
