//! Runs the writer's threads under a schedule checker (`shuttle`).
//!
//! All code is real, down to the SQL: queue, shared ledger, pending writes, writer lock, writer and sync thread. Only
//! locks, atomics, time and tasks come from the checker (`crate::sync`). An execution depends only on its seed. A
//! failure prints the seed, and `TOLLGATE_SCHEDULE=<seed>` runs it again.
//!
//! `cargo test -p tollgate-store --features schedules --lib schedules::`

mod environment;
mod execution;
mod plan;
mod small;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use environment::Template;
use execution::execute;
use plan::{POINTS, Plan};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};

use crate::sync::FaultPoint;
use crate::sync::checked::visits;

/// The number of executions in the test command. `TOLLGATE_SCHEDULES` overrides it.
const SEEDS: u64 = 1_500;
/// The maximum number of switches away from the thread with the highest priority, in schedules with priorities.
const SWITCHES_MAX: usize = 4;
/// The size of a thread's stack, large enough for `SQLite`.
const STACK_BYTES: usize = 512 * 1024;

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.failure_persistence = FailurePersistence::None;
    config
}

fn number(variable: &str) -> Option<u64> {
    let set = std::env::var(variable).ok()?;
    Some(set.parse().expect("a number is expected"))
}

/// Runs the execution of one seed. Every second seed uses thread priorities with a few switches, which finds faults
/// that occur only if one thread is stopped for long.
fn run(seed: u64, template: &Arc<Template>) {
    let plan = Plan::of(seed);
    if seed.is_multiple_of(2) {
        check(RandomScheduler::new_from_seed(seed, 1), &plan, template);
    } else {
        let scheduler = PctScheduler::new_from_seed(seed, SWITCHES_MAX, 1);
        check(scheduler, &plan, template);
    }
}

fn check(scheduler: impl Scheduler + 'static, plan: &Plan, template: &Arc<Template>) {
    let (plan, template) = (plan.clone(), Arc::clone(template));
    Runner::new(scheduler, config()).run(move || execute(&plan, &template));
}

#[test]
#[expect(clippy::print_stderr, reason = "whoever runs it wants to know")]
fn money_holds_in_every_schedule_with_faults() {
    let template = Arc::new(Template::new());
    let seeds = match number("TOLLGATE_SCHEDULE") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TOLLGATE_SCHEDULES").unwrap_or(SEEDS),
    };
    let (begun, count) = (std::time::Instant::now(), seeds.end - seeds.start);
    for seed in seeds {
        let ran = catch_unwind(AssertUnwindSafe(|| run(seed, &template)));
        if let Err(panic) = ran {
            let plan = Plan::of(seed);
            eprintln!("TOLLGATE_SCHEDULE={seed} runs it again; its faults: {plan:#?}");
            resume_unwind(panic);
        }
    }
    let (time, visits) = (begun.elapsed(), visits());
    eprintln!("{count} schedules in {time:?}: {}", template.summary());
    eprintln!("{visits:?}");
    // A search that never reaches a fault point proves nothing about it.
    let unseen = |point: &&FaultPoint| !visits.contains_key(*point);
    let unseen: Vec<_> = POINTS.iter().filter(unseen).collect();
    assert!(unseen.is_empty() || count < SEEDS, "{unseen:?}");
}

#[test]
fn a_seed_replays_its_execution() {
    let summary = || {
        let template = Arc::new(Template::new());
        let each = |seed| {
            run(seed, &template);
            template.summary()
        };
        (0..40).map(each).collect::<Vec<_>>()
    };
    assert_eq!(summary(), summary());
}
