//! Tests small parts of the writer in every possible schedule.

use std::sync::Arc;
use std::time::Duration;

use ledger::{Key, Micro, Reservation, UnixMs, Wallet};
use shuttle::future::block_on;
use shuttle::scheduler::{DfsScheduler, RandomScheduler};
use shuttle::{Runner, thread};

use super::config;
use super::environment::NOW;
use crate::books::{BookKey, BookWallet, Books, PendingWrite};
use crate::chain::Head;
use crate::queue::command::Command;
use crate::queue::command_queue::{BatchTiming, Bounds, CommandQueue, Wake};
use crate::queue::durable::{Batch, SyncQueue};
use crate::records::call::Admit;
use crate::records::ids::{HoldId, KeyId, WalletId};
use crate::sqlite::writer::shared_ledger::{BatchLoad, SharedLedger};
use crate::sync::{Instant, checked};

/// A limit that none of these tests reaches.
const SCHEDULES_MAX: usize = 200_000;
/// The number of random schedules, for tests with too many schedules to run all of them.
const RANDOM_SCHEDULES: usize = 2_000;

/// Runs every schedule, and prints how many there are.
#[expect(clippy::print_stderr, reason = "whoever runs it wants to know")]
fn in_every_schedule(what: &str, run: impl Fn() + Send + Sync + 'static) {
    let scheduler = DfsScheduler::new(Some(SCHEDULES_MAX), false);
    let count = Runner::new(scheduler, config()).run(move || {
        checked::begin(false, None);
        run();
    });
    assert!(count < SCHEDULES_MAX, "{what}: more than {count} schedules");
    eprintln!("{what}: all {count} schedules");
}

fn queue() -> Arc<CommandQueue> {
    Arc::new(CommandQueue::new(Bounds {
        gather: Duration::from_millis(1),
        waiting_max: 2,
        call_wait_max: Duration::MAX,
        change_wait_max: Duration::MAX,
    }))
}

#[test]
fn nobody_who_waits_is_left_in_the_queue() {
    in_every_schedule("queue", || {
        let queue = queue();
        let writer = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                let now = Instant::now();
                let timing = BatchTiming {
                    not_before: now,
                    enough: usize::MAX,
                    linger_until: now,
                    due: None,
                    opens_ahead: false,
                };
                let (mut taken, mut drained) = (0, Vec::new());
                while queue.wait(&timing) == Wake::Work {
                    queue.drain(&mut drained);
                    taken += drained.drain(..).count();
                }
                taken
            }
        });
        let (reply, answer) = tokio::sync::oneshot::channel();
        queue.push(Command::Flush(reply)).unwrap();
        // The writer drains and drops the command. Nothing else can wake the waiter.
        assert!(block_on(answer).is_err());
        queue.push_close(Command::Uncount(HoldId::new(1)));
        queue.close();
        assert_eq!(writer.join().unwrap(), 2);
    });
}

/// The waiter may begin to wait before, between or after the commit and the sync. That gives too many schedules to run
/// them all.
#[test]
fn who_waits_for_a_batch_learns_what_became_of_it() {
    for fails in [false, true] {
        let scheduler = RandomScheduler::new_from_seed(1, RANDOM_SCHEDULES);
        Runner::new(scheduler, config()).run(move || {
            checked::begin(true, None);
            let sync_queue = SyncQueue::new(Duration::from_millis(5), Duration::ZERO, queue());
            let batch = Batch::synced_by(1, &sync_queue);
            let durable = batch.durable();
            let syncer = thread::spawn({
                let sync_queue = Arc::clone(&sync_queue);
                move || {
                    sync_queue.run(|| match fails {
                        false => Ok(()),
                        true => Err(std::io::Error::other("as the checker wants")),
                    });
                }
            });
            let waiter = thread::spawn(move || block_on(durable.wait()).is_ok());
            batch.seal();
            sync_queue.push(batch, true);
            assert_eq!(waiter.join().unwrap(), !fails);
            sync_queue.close();
            syncer.join().unwrap();
        });
    }
}

#[test]
fn who_waits_for_a_batch_does_not_miss_its_mark() {
    in_every_schedule("durable", || {
        let batch = Batch::durable_on_commit(1);
        let durable = batch.durable();
        let waiter = thread::spawn(move || block_on(durable.wait()).is_ok());
        batch.seal();
        batch.mark_durable();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_batch_that_is_dropped_undecided_is_lost_to_whoever_waits() {
    in_every_schedule("dropped batch", || {
        let batch = Batch::durable_on_commit(1);
        let durable = batch.durable();
        let waiter = thread::spawn(move || block_on(durable.wait()).is_err());
        drop(batch);
        assert!(waiter.join().unwrap());
    });
}

/// An admitted call gets the `Durable` of the batch that contains its hold. A call that finds no shared books is not
/// decided.
#[test]
fn a_call_belongs_to_the_batch_that_it_was_told() {
    in_every_schedule("open books", || {
        let queue = queue();
        let sync_queue = SyncQueue::new(Duration::ZERO, Duration::ZERO, Arc::clone(&queue));
        let (first, second) = (
            Batch::synced_by(1, &sync_queue),
            Batch::synced_by(2, &sync_queue),
        );
        let shared_ledger = Arc::new(SharedLedger::new(&queue));
        let (wallet, key) = (WalletId::random(), KeyId::random());
        let mut books = books(wallet, key);
        let caller = thread::spawn({
            let shared_ledger = Arc::clone(&shared_ledger);
            move || {
                let admit = Admit {
                    wallet,
                    key,
                    ask: Reservation {
                        hold: Micro::new(5),
                        exposure: Micro::ZERO,
                        tokens: 0,
                        counts_in_flight: true,
                    },
                    request_id: "req_1".into(),
                    now: NOW,
                };
                let decided = shared_ledger.admit(admit).ok();
                decided.map(|decided| decided.unwrap())
            }
        });
        let (mut draft, mut counts) = (PendingWrite::default(), BatchLoad::default());
        shared_ledger.share_while(&mut books, first.durable(), &mut counts, || {
            shared_ledger.take_batch(&mut draft, second.durable());
        });
        first.mark_durable();
        second.mark_lost();
        let drafted = draft.opened.first().map(|(id, ..)| *id);
        let kept = books.pending.opened.first().copied();
        match caller.join().unwrap() {
            Some(admitted) if admitted.durable.is_done() => {
                assert_eq!((drafted, kept), (Some(admitted.hold), None))
            }
            Some(admitted) => assert_eq!((drafted, kept), (None, Some(admitted.hold))),
            None => assert_eq!((drafted, kept), (None, None)),
        }
    });
}

fn books(wallet_id: WalletId, key: KeyId) -> Books {
    let mut books = Books::default();
    let mut wallet = Wallet::default();
    wallet.top_up(Micro::new(7)).unwrap();
    let row = BookWallet {
        wallet,
        entries: 0,
        holds_opened: 0,
        posted_at: UnixMs::new(0),
        charged: Micro::ZERO,
        head: Head::of_wallet(wallet_id),
        dirty: false,
    };
    books.wallets.insert(1, row);
    let row = BookKey {
        n: 1,
        wallet: 1,
        wallet_id,
        key: Key {
            enabled: true,
            ..Key::default()
        },
        calendar: None,
        last_used_at: None,
        dirty: false,
    };
    books.keys.insert(key, row);
    books
}
