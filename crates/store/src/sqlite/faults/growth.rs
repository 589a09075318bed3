//! Tests holds whose extension is lost with a failed commit. Their calls know of the extension, so a counted charge may
//! be as large as the extended hold.

use std::sync::atomic::Ordering;
use std::time::Duration;

use ledger::Step;
use ledger::{Meter, Micro, Reservation};

use super::rig::*;
use crate::{AdmittedCall, Basis, Close, End, IfLost, MeterText};
use crate::{Extend, SessionStep};

/// The size of the extended hold, in micro-credits.
const EXTENDED_HOLD: u32 = 2_000_000;
/// The charge at the end, by our own count.
const COUNTED: u32 = 1_900_000;

#[derive(Debug, Clone, Copy)]
enum Grows {
    /// The hold of a stream grows by an extension.
    ByExtension,
    /// The hold of a session grows by a step, which also books the usage so far.
    ByStep,
}

#[derive(Debug, Clone, Copy)]
enum Ends {
    InTheFailedBatch,
    BehindIt,
    /// After the failed batch, in a batch that fails too.
    InAnother,
}

impl Rig {
    async fn grow(&self, admitted: &AdmittedCall, how: Grows) {
        let (hold, now) = (admitted.hold, NOW);
        match how {
            Grows::ByExtension => {
                let more = Reservation {
                    hold: CREDIT,
                    exposure: Micro::ZERO,
                    tokens: 0,
                    counts_in_flight: true,
                };
                let extend = Extend { hold, more, now };
                self.store.extend(extend).await.unwrap();
            }
            Grows::ByStep => {
                let micro = |amount: u32| Micro::new(i64::from(amount));
                let step = Step {
                    used: micro(900_000),
                    wanted: micro(EXTENDED_HOLD),
                    least: micro(900_001),
                };
                let meter = MeterText::from(&Meter {
                    input: 900_000,
                    ..Meter::default()
                });
                let step = SessionStep {
                    hold,
                    step,
                    meter,
                    price_version: self.price,
                    now,
                    cost: None,
                };
                let extended = self.store.step_session(step).await.unwrap();
                assert_eq!(extended, micro(EXTENDED_HOLD));
            }
        }
    }

    fn settle_counted(&self, admitted: &AdmittedCall, charge: u32) {
        let meter = Meter {
            input: u64::from(charge),
            ..Meter::default()
        };
        let end = End::Settled {
            charge: Micro::new(i64::from(charge)),
            meter: MeterText::from(&meter),
            price_version: self.price,
            basis: Basis::Counted,
            tokens: None,
            cost: None,
        };
        self.store.close(Close {
            if_lost: IfLost::Charge,
            hold: admitted.hold,
            end,
            now: NOW,
        });
    }

    async fn until_failed(&self, commits: u64) {
        self.until("the commit fails", |stats| stats.commits_failed >= commits)
            .await;
    }
}

/// The charge of a call whose hold grows in a batch that fails.
async fn charged(is_stored: bool, grows: Grows, ends: Ends, counted: u32) -> i64 {
    // A batch is written only when a caller waits for it.
    let rig = Rig::with(|settings| settings.gather = Duration::from_secs(60)).await;
    let call = rig.admit().await.unwrap();
    if is_stored {
        call.durable.wait().await.unwrap();
    }
    rig.failing_commits.store(1, Ordering::SeqCst);
    rig.grow(&call, grows).await;
    if matches!(ends, Ends::InTheFailedBatch) {
        rig.settle_counted(&call, counted);
    }
    // Waiting for the balance ends the batch.
    let _ = rig.store.balance(&rig.key.id).await;
    rig.until_failed(1).await;
    if matches!(ends, Ends::InAnother) {
        rig.until("commits succeed again", |_| rig.store.healthy())
            .await;
        rig.failing_commits.store(1, Ordering::SeqCst);
        rig.settle_counted(&call, counted);
        let _ = rig.store.balance(&rig.key.id).await;
        rig.until_failed(2).await;
    } else if matches!(ends, Ends::BehindIt) {
        rig.settle_counted(&call, counted);
    }
    rig.until("commits succeed again", |_| rig.store.healthy())
        .await;
    let (balance, frozen) = rig.money().await;
    assert_eq!(frozen, 0);
    rig.assert_clean().await;
    10_000_000 - balance
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counted_charge_reaches_as_far_as_the_hold_that_the_call_was_told_of() {
    for is_stored in [true, false] {
        for grows in [Grows::ByExtension, Grows::ByStep] {
            for ends in [Ends::InTheFailedBatch, Ends::BehindIt, Ends::InAnother] {
                // One charge is within the hold, the other beyond it.
                for (counted, charge) in [(COUNTED, COUNTED), (EXTENDED_HOLD + 1, EXTENDED_HOLD)] {
                    let charged = charged(is_stored, grows, ends, counted).await;
                    let case = (is_stored, grows, ends, counted);
                    assert_eq!(charged, i64::from(charge), "{case:?}");
                }
            }
        }
    }
}
