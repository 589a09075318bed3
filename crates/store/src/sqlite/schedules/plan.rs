//! Chooses the faults and the participants of an execution.

use crate::sync::FaultPoint;

#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    /// The range of commits that fail, by number. The end is exclusive.
    pub(super) failing_commits: (u32, u32),
    /// The commit that succeeds but is reported as failed.
    pub(super) misreported_commit: Option<u32>,
    pub(super) failing_sync: Option<u32>,
    /// The point at which a thread panics, and the number of visits before that.
    pub(super) panics: Option<(FaultPoint, u32)>,
    /// The maximum number of waiting commands. With one, the queue is often full.
    pub(super) queue_max: usize,
    pub(super) callers: Vec<Vec<Mode>>,
    /// The number of checkpoints of the log.
    pub(super) checkpoints: u32,
    /// The number of writes by another process with the writer lock.
    pub(super) commands: u32,
    /// The number of writes by a program that ignores the writer lock.
    pub(super) unlocked_writes: u32,
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    AnswerAndCloseNow,
    /// The call is answered at once, and closed when its batch is durable or lost.
    AnswerNowCloseLater,
    /// The call is closed at once, and answered when its hold is durable.
    CloseNowAnswerLater,
    /// The call is closed and answered when its hold is durable.
    AnswerAndCloseLater,
    /// Nothing was delivered, so the hold is released.
    Releases,
    /// The caller leaves before the decision.
    Leaves,
}

const MODES: [Mode; 6] = [
    Mode::AnswerAndCloseNow,
    Mode::AnswerNowCloseLater,
    Mode::CloseNowAnswerLater,
    Mode::AnswerAndCloseLater,
    Mode::Releases,
    Mode::Leaves,
];
pub(super) const POINTS: [FaultPoint; 5] = [
    FaultPoint::Begun,
    FaultPoint::Decided,
    FaultPoint::BatchTaken,
    FaultPoint::Committed,
    FaultPoint::Syncing,
];

impl Plan {
    /// The plan for a seed. Of every eight consecutive seeds, the first has no faults, the next six have one kind of
    /// fault each, and the last may have any of them.
    pub(super) fn of(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let has =
            |dice: &mut Dice, kind: u64| seed % 8 == kind || seed % 8 == 7 && dice.below(3) == 0;
        let mut plan = Self {
            queue_max: if dice.below(4) == 0 { 1 } else { 16 },
            ..Self::default()
        };
        let callers = 2 + dice.below(5);
        plan.callers = (0..callers)
            .map(|_| {
                let calls = 1 + dice.below(3);
                (0..calls).map(|_| *dice.pick(&MODES)).collect()
            })
            .collect();
        if has(&mut dice, 1) {
            let first = dice.below(6);
            plan.failing_commits = (first, first + 1 + dice.below(4));
        }
        if has(&mut dice, 2) {
            plan.misreported_commit = Some(dice.below(6));
        }
        if has(&mut dice, 3) {
            plan.failing_sync = Some(dice.below(4));
        }
        if has(&mut dice, 4) {
            plan.panics = Some((*dice.pick(&POINTS), dice.below(5)));
        }
        if has(&mut dice, 5) {
            plan.checkpoints = 1 + dice.below(3);
        }
        if has(&mut dice, 6) {
            plan.commands = dice.below(3);
            plan.unlocked_writes = dice.below(3);
        }
        plan
    }

    /// Whether the answers and the charges may differ at the end. After a failed sync, the database may contain a
    /// decision that was reported as lost. A thread that panics leaves calls open.
    pub(super) fn ends_badly(&self) -> bool {
        self.failing_sync.is_some() || self.panics.is_some()
    }
}

/// A generator of random numbers that depend only on the seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.next() % u64::from(end)).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let last = u32::try_from(from.len()).unwrap_or(1);
        let n = usize::try_from(self.below(last)).unwrap_or(0);
        from.get(n).unwrap_or(&from[0])
    }
}
