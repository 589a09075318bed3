//! Runs one execution of callers, writer, sync thread and disturbances, and then checks the result.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ledger::{Meter, Micro, Reservation};
use shuttle::future::block_on;
use shuttle::thread;
use tokio::sync::oneshot;

use super::environment::{AnswerLog, Database, Holds, LIMITS, NOW, Template};
use super::plan::{Mode, Plan};
use crate::queue::command::AdmittedCall;
use crate::queue::command::Command;
use crate::queue::command_queue::{Bounds, CommandQueue};
use crate::queue::durable::SyncQueue;
use crate::records::call::{Admit, Basis, Close, End, IfLost};
use crate::records::meter::MeterText;
use crate::sqlite::reads::verify::verify;
use crate::sqlite::writer::disk_reserve::DiskReserve;
use crate::sqlite::writer::shared_ledger::SharedLedger;
use crate::sqlite::writer::thread::WriterContext;
use crate::sqlite::writer::thread::write;
use crate::sqlite::writer::writer_lock::WriterLock;
use crate::stats::Counters;
use crate::sync::{Mutex, checked, sleep};

const HOLD: Micro = Micro::new(5);
const CHARGE: i64 = 3;
const GATHER: Duration = Duration::from_millis(1);
/// The maximum wait for the writer lock. The writer releases it sooner if it sees that another process waits.
const TURN_WAIT: Duration = Duration::from_millis(100);

pub(super) fn execute(plan: &Plan, template: &Arc<Template>) {
    checked::begin(true, plan.panics);
    let database = Arc::new(template.copy());
    let node = Node::start(plan, template, &database);
    let mut others = Vec::new();
    for calls in plan.callers.clone() {
        let (node, template) = (node.clone(), Arc::clone(template));
        others.push(thread::spawn(move || {
            for mode in calls {
                node.call(mode, &template);
            }
        }));
    }
    let (checkpoints, checkpoint_lock) = (plan.checkpoints, Arc::clone(&node.checkpoint_lock));
    others.push(thread::spawn(move || {
        for _ in 0..checkpoints {
            let mut folded = checkpoint_lock.lock();
            thread::yield_now();
            *folded += 1;
            drop(folded);
            sleep(GATHER);
        }
    }));
    let (commands, unlocked_writes) = (plan.commands, plan.unlocked_writes);
    let beside = Arc::clone(&database);
    others.push(thread::spawn(move || {
        write_beside(&beside, commands, unlocked_writes)
    }));
    for other in others {
        other.join().unwrap();
    }
    node.end();
    node.check_end_state(plan, template, &database);
}

/// Acts as another process that writes, sometimes with the writer lock and sometimes without it.
fn write_beside(database: &Database, commands: u32, unlocked_writes: u32) {
    if commands + unlocked_writes == 0 {
        return;
    }
    let connection = database.writer();
    // The checker cannot switch threads inside SQLite, so a wait there would keep the holder of the lock from releasing
    // it.
    connection.busy_timeout(Duration::ZERO).unwrap();
    let update = "UPDATE epochs SET started_at = started_at + 1";
    let mut writer_lock = WriterLock::open(&database.path, TURN_WAIT).unwrap();
    for _ in 0..commands {
        if writer_lock.acquire().is_ok() {
            // The writer holds the database's lock only while it holds the writer lock, so this write succeeds.
            connection.execute(update, []).unwrap();
            writer_lock.release();
        }
        sleep(GATHER);
    }
    for _ in 0..unlocked_writes {
        let _ = connection.execute(update, []);
        sleep(GATHER);
    }
}

/// The parts of a store that its threads share.
#[derive(Clone)]
struct Node {
    queue: Arc<CommandQueue>,
    sync_queue: Arc<SyncQueue>,
    shared_ledger: Arc<SharedLedger>,
    counters: Arc<Counters>,
    checkpoint_lock: Arc<Mutex<u64>>,
    answer_log: Arc<AnswerLog>,
    threads: Arc<parking_lot::Mutex<Vec<thread::JoinHandle<()>>>>,
}

impl Node {
    fn start(plan: &Plan, template: &Template, database: &Arc<Database>) -> Self {
        let queue = Arc::new(CommandQueue::new(Bounds {
            gather: GATHER,
            waiting_max: plan.queue_max,
            call_wait_max: Duration::MAX,
            change_wait_max: Duration::MAX,
        }));
        let sync_queue = SyncQueue::new(5 * GATHER, GATHER, Arc::clone(&queue));
        let node = Self {
            shared_ledger: Arc::new(SharedLedger::new(&queue)),
            counters: Arc::default(),
            checkpoint_lock: Arc::default(),
            answer_log: Arc::default(),
            threads: Arc::default(),
            queue,
            sync_queue,
        };
        let shared = WriterContext {
            queue: Arc::clone(&node.queue),
            sync_queue: Arc::clone(&node.sync_queue),
            shared_ledger: Arc::clone(&node.shared_ledger),
            checkpoint_lock: Arc::clone(&node.checkpoint_lock),
            disk_reserve: Arc::new(DiskReserve::none()),
            gather: GATHER,
        };
        let (connection, epoch) = (database.faulty_writer(plan), template.epoch);
        let writer_lock = WriterLock::open(&database.path, TURN_WAIT).unwrap();
        let counters = Arc::clone(&node.counters);
        let writer = thread::spawn(move || {
            let run = || write(&connection, epoch, LIMITS, counters, writer_lock, shared);
            drop(catch_unwind(AssertUnwindSafe(run)));
        });
        let (sync_queue, answer_log, failing) = (
            Arc::clone(&node.sync_queue),
            Arc::clone(&node.answer_log),
            plan.failing_sync,
        );
        let reader = database.reader();
        let syncer = thread::spawn(move || {
            let mut synced = 0;
            let sync = || {
                synced += 1;
                if failing == Some(synced - 1) {
                    return Err(std::io::Error::other("as the checker wants"));
                }
                let on_disk = Holds::read(&reader);
                thread::yield_now();
                answer_log.with_answers(|answers| answers.on_disk = on_disk);
                Ok(())
            };
            drop(catch_unwind(AssertUnwindSafe(|| sync_queue.run(sync))));
        });
        node.threads.lock().extend([writer, syncer]);
        node
    }

    /// Decides a call the way the store does.
    fn admit(&self, template: &Template, leaves: bool) -> Option<AdmittedCall> {
        if self.counters.failing.get() || self.sync_queue.is_broken() {
            return None;
        }
        let admit = Admit {
            wallet: template.wallet,
            key: template.key,
            ask: Reservation {
                hold: HOLD,
                exposure: Micro::ZERO,
                tokens: 0,
                counts_in_flight: true,
            },
            request_id: "req_1".into(),
            now: NOW,
        };
        let admit = match self.shared_ledger.admit(admit) {
            Ok(decided) => return decided.ok(),
            Err(admit) => admit,
        };
        let (reply, answer) = oneshot::channel();
        self.queue.push(Command::Admit(admit, reply)).ok()?;
        if leaves {
            return None;
        }
        block_on(answer).ok()?.ok()?.accept()
    }

    fn call(&self, mode: Mode, template: &Template) {
        let Some(admitted) = self.admit(template, mode == Mode::Leaves) else {
            self.answer_log.with_answers(|answers| answers.refused += 1);
            return;
        };
        let id = admitted.hold.get();
        let meter = MeterText::from(&Meter {
            input: u64::try_from(CHARGE).unwrap(),
            ..Meter::default()
        });
        let close = |end, if_lost| {
            let closing = Close {
                hold: admitted.hold,
                end,
                now: NOW,
                if_lost,
            };
            if let Err(closing) = self.shared_ledger.close(closing) {
                self.queue.push_close(Command::Close(closing));
            }
        };
        let settle = |if_lost| {
            let settled = End::Settled {
                charge: Micro::new(CHARGE),
                meter: meter.clone(),
                price_version: template.price,
                basis: Basis::Reported,
                tokens: None,
                cost: None,
            };
            close(settled, if_lost);
        };
        let durable = || {
            let known = block_on(admitted.durable.wait());
            if known.is_ok() {
                self.answer_log.with_answers(|answers| {
                    assert!(
                        answers.on_disk.has(admitted.hold),
                        "promised before it was synced"
                    );
                    answers.promised.insert(id);
                });
            }
            known.is_ok()
        };
        let answered = match mode {
            Mode::AnswerAndCloseNow => {
                settle(IfLost::Charge);
                true
            }
            Mode::AnswerNowCloseLater => {
                durable();
                settle(IfLost::Charge);
                true
            }
            Mode::CloseNowAnswerLater => {
                settle(IfLost::NoCharge);
                durable()
            }
            Mode::AnswerAndCloseLater => {
                let durable = durable();
                if durable {
                    settle(IfLost::Charge);
                } else {
                    close(End::Released, IfLost::NoCharge);
                }
                durable
            }
            Mode::Releases | Mode::Leaves => {
                close(End::Released, IfLost::NoCharge);
                false
            }
        };
        self.answer_log.with_answers(|answers| {
            if answered {
                answers.answered.insert(id, CHARGE);
            } else {
                answers.free.insert(id);
            }
        });
    }

    /// Ends the threads the way a dropped store does.
    fn end(&self) {
        self.queue.close();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            thread.join().unwrap();
        }
    }

    fn check_end_state(&self, plan: &Plan, template: &Template, database: &Database) {
        let reader = database.reader();
        let report = verify(&reader, &[]).unwrap();
        assert!(report.is_clean(), "{:#?}", report.differences);
        let holds = Holds::read(&reader);
        self.answer_log.with_answers(|answers| {
            for id in &answers.promised {
                let there = holds.open.contains(id) || holds.closed.contains_key(id);
                assert!(there, "hold {id} was promised and is gone");
            }
            let settled = holds
                .closed
                .iter()
                .filter(|(_, (kind, _))| kind == "settled");
            let settled: BTreeMap<i64, i64> =
                settled.map(|(id, (_, charge))| (*id, *charge)).collect();
            if plan.ends_badly() {
                // Calls that were in flight when a thread ended are abandoned at the next start.
                for (id, charge) in &settled {
                    let answered = answers.answered.get(id) == Some(charge);
                    assert!(
                        answered || answers.free.contains(id),
                        "hold {id} is nobody's"
                    );
                }
            } else {
                assert_eq!(settled, answers.answered, "answers and charges differ");
                assert!(holds.open.is_empty(), "{:?} stay open", holds.open);
            }
            let (counts, stats) = (&template.counts, self.counters.read());
            if !plan.ends_badly() {
                let left = (stats.lost_holds, stats.retried_closes, stats.stuck_closes);
                assert_eq!(left, (0, 0, 0));
            }
            let answered = answers.answered.len() as u64;
            counts.answered.fetch_add(answered, Ordering::Relaxed);
            counts
                .lost
                .fetch_add(answers.free.len() as u64, Ordering::Relaxed);
            counts.refused.fetch_add(answers.refused, Ordering::Relaxed);
            counts
                .failed_commits
                .fetch_add(stats.commits_failed, Ordering::Relaxed);
            counts.rebooked.fetch_add(holds.noted, Ordering::Relaxed);
        });
    }
}
