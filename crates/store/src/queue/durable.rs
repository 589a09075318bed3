//! Waiting for a decision to be on the disk.
//!
//! A decision is told when it is made, before the commit, and the writer commits without a sync. A
//! thread of its own syncs the log and then marks every batch that was committed before the
//! sync began. So a slow disk delays the promise, never the decision.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::command_queue::Queue;
use crate::error::Lost;
use crate::sync::{
    AtomicBool, AtomicU8, AtomicU64, Condvar, FaultPoint, Handle, Instant, Mutex, RuntimeId,
    fault_point, timeout,
};

/// How long whoever wants a decision confirmed waits for it; a ledger that takes longer is away.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(10);

const UNDECIDED: u8 = 0;
const DURABLE: u8 = 1;
const LOST: u8 = 2;
const SEALED: u8 = 3;

/// The promise that a decision survives a power cut, once [`wait`](Self::wait) has returned.
#[derive(Clone)]
pub struct Durable {
    batch: Arc<Batch>,
}

impl Durable {
    /// Returns when the decision is on the disk, or can never be.
    pub async fn wait(&self) -> Result<(), Lost> {
        loop {
            if let Some(known) = self.listen().await {
                return known;
            }
        }
    }

    /// Whether the decision is on the disk, as soon as that is known; not, when its batch takes longer
    /// than ten seconds from the first who waits for it.
    pub async fn is_confirmed(&self) -> bool {
        self.listen().await == Some(Ok(()))
    }

    /// What became of the batch when its bell rings, or has rung; nothing while that is not known.
    async fn listen(&self) -> Option<Result<(), Lost>> {
        let bell = match self.batch.bell() {
            Ok(bell) => bell,
            Err(known) => return Some(known),
        };
        // Made before what it rings for is read: what happens between the two is not missed.
        let rung = bell.rings.notified();
        // In this order: a batch that was marked rings afterwards.
        let has_rung = bell.has_rung();
        let known = self.batch.known();
        if has_rung || known.is_some() {
            return known;
        }
        if let Some(line) = &self.batch.line {
            line.hurry(&self.batch);
        }
        rung.await;
        self.batch.known()
    }

    /// Whether a command that is sent now may still be decided together with this one, and so stand
    /// or fall with it.
    pub fn is_open(&self) -> bool {
        self.batch.state.load(Ordering::Acquire) == UNDECIDED
    }

    /// Whether the decision is on the disk already.
    pub fn is_done(&self) -> bool {
        self.batch.state.load(Ordering::Acquire) == DURABLE
    }

    /// Whether the decision never happened.
    pub fn is_lost(&self) -> bool {
        self.batch.state.load(Ordering::Acquire) == LOST
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.batch.state.load(Ordering::Relaxed) {
            DURABLE => "durable",
            LOST => "lost",
            SEALED => "sealed",
            _ => "undecided",
        };
        write!(f, "Durable(batch {}, {state})", self.batch.number)
    }
}

/// One transaction of the writer.
pub(crate) struct Batch {
    number: u64,
    state: AtomicU8,
    bells: Mutex<Vec<(Arc<Bell>, Rope)>>,
    /// Where it waits for the disk, unless the database itself answers when it is there.
    line: Option<Arc<SyncLine>>,
}

impl Batch {
    /// A batch that is durable when `line` has synced it.
    pub(crate) fn in_line(number: u64, line: &Arc<SyncLine>) -> OpenBatch {
        Self::open(number, Some(Arc::clone(line)))
    }

    /// A batch that is durable as soon as its commit is answered.
    pub(crate) fn without_line(number: u64) -> OpenBatch {
        Self::open(number, None)
    }

    fn open(number: u64, line: Option<Arc<SyncLine>>) -> OpenBatch {
        OpenBatch(Arc::new(Self {
            number,
            state: AtomicU8::new(UNDECIDED),
            bells: Mutex::default(),
            line,
        }))
    }

    pub(crate) fn durable(self: &Arc<Self>) -> Durable {
        Durable {
            batch: Arc::clone(self),
        }
    }

    /// Nothing more is decided in it: it is being written.
    pub(crate) fn seal(&self) {
        self.state.store(SEALED, Ordering::Release);
    }

    /// The commit is on the disk.
    pub(crate) fn done(&self) {
        self.mark(DURABLE);
    }

    /// The commit failed: nothing of the batch happened.
    pub(crate) fn lose(&self) {
        self.mark(LOST);
    }

    /// What became of it, once that is known.
    fn known(&self) -> Option<Result<(), Lost>> {
        match self.state.load(Ordering::Acquire) {
            DURABLE => Some(Ok(())),
            LOST => Some(Err(Lost)),
            _ => None,
        }
    }

    /// What rings for those who wait on the present runtime, unless they need not wait.
    fn bell(&self) -> Result<Arc<Bell>, Result<(), Lost>> {
        let mut bells = self.bells.lock();
        // Under the lock: a mark that is not seen here finds the bell.
        if let Some(known) = self.known() {
            return Err(known);
        }
        let runtime = Handle::current();
        let there = bells
            .iter()
            .find(|(bell, _)| bell.runtime == runtime.id() && !bell.has_rung());
        if let Some((bell, _)) = there {
            return Ok(Arc::clone(bell));
        }
        let (bell, rope) = Bell::hang(&runtime);
        bells.push((Arc::clone(&bell), rope));
        Ok(bell)
    }

    fn mark(&self, state: u8) {
        self.state.store(state, Ordering::Release);
        for (_, rope) in self.bells.lock().drain(..) {
            let _ = rope.send(());
        }
    }
}

/// A batch in the hands of whoever decides its fate. When it is dropped undecided, by a panic, the batch
/// is lost, so that nobody waits for it for ever.
pub(crate) struct OpenBatch(Arc<Batch>);

impl Deref for OpenBatch {
    type Target = Arc<Batch>;

    fn deref(&self) -> &Arc<Batch> {
        &self.0
    }
}

impl Drop for OpenBatch {
    fn drop(&mut self) {
        if self.0.known().is_none() {
            self.0.lose();
        }
    }
}

/// Rings once for those who wait for a batch on one runtime: when its rope is pulled, or when that takes
/// too long.
///
/// A task rings it there, where waking one more costs next to nothing; from another thread each
/// waiter would cost a system call. And there is one timer for all of them.
struct Bell {
    runtime: RuntimeId,
    rings: Notify,
    rung: AtomicBool,
}

/// Rings a bell from another thread.
type Rope = oneshot::Sender<()>;

impl Bell {
    fn hang(runtime: &Handle) -> (Arc<Self>, Rope) {
        let (rope, pulled) = oneshot::channel();
        let bell = Arc::new(Self {
            runtime: runtime.id(),
            rings: Notify::new(),
            rung: AtomicBool::new(false),
        });
        let ringer = Arc::clone(&bell);
        runtime.spawn(async move {
            let _ = timeout(CONFIRMED_WITHIN, pulled).await;
            ringer.rung.store(true, Ordering::Release);
            ringer.rings.notify_waiters();
        });
        (bell, rope)
    }

    fn has_rung(&self) -> bool {
        self.rung.load(Ordering::Acquire)
    }
}

/// Committed batches on their way to the disk.
pub(crate) struct SyncLine {
    state: Mutex<State>,
    wake: Condvar,
    /// The latest batch that somebody waits for.
    wanted: AtomicU64,
    broken: AtomicBool,
    delay: Duration,
    /// The way to the writer of batches.
    queue: Arc<Queue>,
}

struct State {
    committed: Vec<Committed>,
    closed: bool,
    /// Nobody syncs any more.
    ended: bool,
    /// When the sync under way began, for health.
    syncing_since: Option<Instant>,
}

struct Committed {
    batch: OpenBatch,
    wrote: bool,
    at: Instant,
}

impl SyncLine {
    pub(crate) fn new(delay: Duration, queue: Arc<Queue>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                committed: Vec::new(),
                closed: false,
                ended: false,
                syncing_since: None,
            }),
            wake: Condvar::new(),
            wanted: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            delay,
            queue,
        })
    }

    /// A batch has been committed. One that wrote nothing still waits for those before it,
    /// since what it read may be theirs.
    pub(crate) fn push(&self, batch: OpenBatch, wrote: bool) {
        let mut state = self.state.lock();
        if state.ended {
            // Dropped, it is lost.
            return;
        }
        let first = state.committed.is_empty();
        let wanted = self.wants(&batch);
        state.committed.push(Committed {
            batch,
            wrote,
            at: Instant::now(),
        });
        drop(state);
        if first || wanted {
            self.wake.notify_one();
        }
    }

    /// Ends the sync thread when everything committed is synced.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_one();
    }

    /// A sync has failed. What the disk holds is then unknown, and asking again would get the
    /// kernel's word for pages it has already given up, so nothing is promised any more until
    /// the process starts anew.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// How long the present sync has been under way.
    pub(crate) fn stalled_for(&self) -> Duration {
        self.state
            .lock()
            .syncing_since
            .map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Whether somebody waits for this batch, or for a later one.
    pub(crate) fn wants(&self, batch: &Batch) -> bool {
        self.wanted.load(Ordering::Relaxed) >= batch.number
    }

    fn hurry(&self, batch: &Batch) {
        // Only the first who waits for a batch needs to wake anyone.
        if self.wanted.fetch_max(batch.number, Ordering::Relaxed) >= batch.number {
            return;
        }
        if batch.state.load(Ordering::Acquire) == UNDECIDED {
            // It has yet to be written.
            self.queue.nudge();
        }
        // It may be on its way by now. Under the lock, so that the sync thread is either before its
        // check or asleep, and whoever hands the batch over sees that it is wanted.
        drop(self.state.lock());
        self.wake.notify_one();
    }

    /// The sync thread: `sync` forces the log to the disk.
    pub(crate) fn run(&self, mut sync: impl FnMut() -> std::io::Result<()>) {
        let _end = SyncEnd(self);
        while let Some(group) = self.next_group() {
            if group.iter().any(|committed| committed.wrote)
                && !self.is_broken()
                && let Err(error) = {
                    fault_point(FaultPoint::Syncing);
                    sync()
                }
            {
                tracing::error!(%error, "the ledger could not be synced; admission stops until a restart");
                self.broken.store(true, Ordering::Relaxed);
            }
            let state = if self.is_broken() { LOST } else { DURABLE };
            for committed in &group {
                committed.batch.mark(state);
            }
        }
    }

    /// Waits until there is something to sync and a reason to do it now.
    fn next_group(&self) -> Option<Vec<Committed>> {
        let mut state = self.state.lock();
        state.syncing_since = None;
        loop {
            let Some(first) = state.committed.first() else {
                if state.closed {
                    return None;
                }
                self.wake.wait(&mut state);
                continue;
            };
            let due = first.at + self.delay;
            let hurried = self.wants(&first.batch);
            if state.closed || hurried || Instant::now() >= due {
                state.syncing_since = Some(Instant::now());
                return Some(std::mem::take(&mut state.committed));
            }
            self.wake.wait_until(&mut state, due);
        }
    }
}

/// However the sync thread ends: nothing is promised any more, and nobody waits for a promise.
struct SyncEnd<'a>(&'a SyncLine);

impl Drop for SyncEnd<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.ended = true;
        if !state.closed {
            self.0.broken.store(true, Ordering::Relaxed);
        }
        let left = std::mem::take(&mut state.committed);
        drop(state);
        drop(left);
    }
}

#[cfg(test)]
#[cfg(not(feature = "schedules"))]
mod tests {
    use crate::queue::command_queue::Bounds;
    use crate::queue::durable::*;

    fn line() -> Arc<SyncLine> {
        let queue = Queue::new(Bounds {
            gather: Duration::ZERO,
            waiting_max: 1,
            call_wait_max: Duration::ZERO,
            change_wait_max: Duration::ZERO,
        });
        SyncLine::new(Duration::from_secs(3600), Arc::new(queue))
    }

    #[tokio::test]
    async fn a_waiter_hurries_the_sync_and_gets_its_promise() {
        let line = line();
        let batch = Batch::in_line(1, &line);
        let durable = batch.durable();
        line.push(batch, true);
        let thread = std::thread::spawn({
            let line = Arc::clone(&line);
            move || line.run(|| Ok(()))
        });
        assert!(!durable.is_done());
        assert_eq!(durable.wait().await, Ok(()));
        assert!(durable.is_done());
        line.close();
        thread.join().unwrap();
    }

    #[tokio::test]
    async fn who_waits_before_the_commit_is_not_left_to_the_delay() {
        let line = line();
        let (early, late) = (Batch::in_line(1, &line), Batch::in_line(2, &line));
        line.push(early, true);
        let waiter = tokio::spawn({
            let durable = late.durable();
            async move { durable.wait().await }
        });
        while line.wanted.load(Ordering::Relaxed) < 2 {
            tokio::task::yield_now().await;
        }
        let thread = std::thread::spawn({
            let line = Arc::clone(&line);
            move || line.run(|| Ok(()))
        });
        line.push(late, true);
        assert_eq!(waiter.await.unwrap(), Ok(()));
        line.close();
        thread.join().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_too_long_is_not_confirmed_and_may_still_happen() {
        let batch = Batch::in_line(1, &line());
        let durable = batch.durable();
        let waiter = tokio::spawn({
            let durable = durable.clone();
            async move { durable.wait().await }
        });
        assert!(!durable.is_confirmed().await);
        assert!(!durable.is_confirmed().await, "asked again");
        batch.done();
        assert!(durable.is_confirmed().await);
        assert_eq!(waiter.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn a_failed_sync_promises_nothing_ever_again() {
        let line = line();
        let (first, second) = (Batch::in_line(1, &line), Batch::in_line(2, &line));
        let (one, two) = (first.durable(), second.durable());
        line.push(first, true);
        line.close();
        let mut answers = vec![Ok(()), Err(std::io::Error::other("disk"))];
        line.run(|| answers.pop().unwrap());
        assert_eq!(one.wait().await, Err(Lost));
        line.push(second, true);
        line.run(|| Ok(()));
        assert_eq!(two.wait().await, Err(Lost));
        assert!(line.is_broken() && two.is_lost());
    }

    #[test]
    fn a_batch_that_wrote_nothing_needs_no_sync() {
        let line = line();
        let batch = Batch::in_line(1, &line);
        let durable = batch.durable();
        line.push(batch, false);
        line.close();
        line.run(|| panic!("no sync is needed"));
        assert!(durable.is_done());
    }
}
