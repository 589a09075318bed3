//! Property test: runs ten thousand random calls, without sockets and in virtual time.
//!
//! The engine, its client for upstreams and its store are the real ones. Only three things differ from production:
//! connections to upstreams are pairs of buffers (`Channel::in_memory`), the upstream behind them follows a plan, and
//! time advances only when there is nothing left to do. `plan` draws what the upstreams and the client of each call do.
//! `scripted_upstream` and `client` follow the plan, and `harness` holds the engine, the store and the clock. `checks`
//! compares what the client saw, what the upstream sent, what the ledger booked and what the journal says.
//!
//! `TOLLGATE_LIVES_SEED=7` draws other calls, and `TOLLGATE_LIVES=100` sets their number.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod checks;
mod client;
mod harness;
mod plan;
mod scripted_upstream;

use std::collections::BTreeMap;
use std::sync::Arc;

use harness::Harness;
use plan::Plan;

/// The number of calls that run concurrently as one wave. Each wave has its own engine.
const WAVE: u64 = 2_500;

fn setting(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().unwrap())
}

/// Every hold is closed once, by the rule that applies, and every call has one row in the journal.
#[test]
fn every_call_is_settled_or_released_once_and_journaled_once() {
    let seed = setting("TOLLGATE_LIVES_SEED", 1);
    let calls = setting("TOLLGATE_LIVES", 10_000);

    harness::in_virtual_time(async move {
        let harness = Harness::new().await;
        let mut endings = BTreeMap::new();
        for first in (0..calls).step_by(usize::try_from(WAVE).unwrap()) {
            let wave = first..calls.min(first + WAVE);
            let plans: Vec<_> = wave
                .map(|number| Arc::new(Plan::draw(seed, number)))
                .collect();
            let outcome = harness.run(&plans).await;
            checks::check(&harness, &plans, &outcome, seed, &mut endings).await;
        }
        harness.check_sums().await;
        checks::every_ending_has_occurred(&endings, calls);
    });
}
