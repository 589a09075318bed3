//! Tests tasks and callbacks: tasks are opened with their holds, claimed, polled and ended once, and callbacks
//! delivered.

use std::time::Duration;

use ledger::{Meter, Micro, Reservation};
use store::{
    Backlog, CallbackOutcome, CallbackReport, Claim, ClaimRenewal, End, KeyRow, NewTask,
    OpenedTask, PriceVersion, Rule, RunningTaskState, Store, TaskAccepted, TaskEnd, TaskId,
    TaskPollReport, TaskQuery, TaskRow, TaskUpstream,
};

use crate::nodes::named;
use crate::test_database::{
    NOW, TestDatabase, admission, assert_clean, credits, funded, price, restart_time,
    settled as close_of,
};

/// A lease that has already expired when it begins.
const NONE: Duration = Duration::ZERO;
/// A lease that is longer than any test.
const LONG: Duration = Duration::from_secs(3600);
const CALLBACK: &str = "https://callback.example/x";

fn running_state(status: &str, progress: u8) -> RunningTaskState {
    RunningTaskState {
        status: status.into(),
        progress: Some(progress),
        snapshot: format!("{status} {progress}").into_bytes().into(),
    }
}

fn new_task(key: &KeyRow, price_version: PriceVersion, lease: Duration) -> NewTask {
    let ask = Reservation {
        hold: credits(2),
        exposure: Micro::ZERO,
        tokens: 0,
        counts_in_flight: false,
    };
    NewTask {
        id: TaskId::random(NOW),
        admit: admission(key, ask),
        protocol: "video-a".into(),
        endpoint: "/v1/videos/generations".into(),
        model: "story/video".into(),
        price_version,
        bound: Box::new(Meter {
            video_seconds: 8,
            ..Meter::default()
        }),
        memo: Some("memo".into()),
        callback_url: Some(CALLBACK.into()),
        running_state: running_state("pending", 0),
        lease,
        lifetime: LONG,
    }
}

pub(crate) async fn open(store: &Store, key: &KeyRow, lease: Duration) -> OpenedTask {
    let version = price(store).await;
    store
        .open_task(new_task(key, version, lease))
        .await
        .unwrap()
}

pub(crate) async fn accept(store: &Store, claim: Claim) -> bool {
    let accepted = TaskAccepted {
        claim,
        upstream: upstream(),
        next_in: NONE,
        now: NOW,
    };
    store.accept_task(accepted).await.unwrap()
}

fn upstream() -> TaskUpstream {
    TaskUpstream {
        channel: "main".into(),
        model: "up".into(),
        id: "up-1".into(),
    }
}

pub(crate) async fn claim(store: &Store, lease: Duration) -> Vec<TaskRow> {
    store.claim_tasks(10, lease, NOW).await.unwrap()
}

async fn report(store: &Store, claim: Claim, next_in: Duration) -> bool {
    let report = TaskPollReport {
        claim,
        running_state: Some(running_state("pending", 50)),
        next_in,
        missing: true,
        now: NOW,
    };
    store.report_task_poll(report).await.unwrap()
}

pub(crate) async fn end(store: &Store, opened: &OpenedTask, claim: Claim) -> bool {
    let version = price(store).await;
    let end = TaskEnd {
        claim,
        status: "done".into(),
        end: close_of(opened.hold, version, 1_500_000).end,
        snapshot: b"the end".as_slice().into(),
        now: NOW,
    };
    store.end_task(end).await.unwrap()
}

async fn frozen_and_used(store: &Store, key: &KeyRow) -> (Micro, Micro) {
    let (wallet, key) = store.balance(&key.id).await.unwrap();
    (wallet.frozen, key.usage)
}

pub(crate) async fn a_task_goes_from_its_hold_to_its_callback(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(10)).await;
    assert_eq!(store.backlog().await.unwrap(), Backlog::default());
    let opened = open(&store, &key, LONG).await;
    let id = opened.claim.task;
    assert_eq!(
        frozen_and_used(&store, &key).await,
        (credits(2), Micro::ZERO)
    );
    assert_clean(&store).await;
    let open = store.backlog().await.unwrap();
    assert_eq!((open.callbacks, open.oldest_hold.is_some()), (0, true));
    // The task belongs to its creator until it is accepted.
    assert!(claim(&store, LONG).await.is_empty());
    assert!(accept(&store, opened.claim).await);
    let channels = store.task_channels().await.unwrap();
    assert_eq!(channels, [("main".into(), 1)]);
    let rows = claim(&store, LONG).await;
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(
        (row.claim.task, row.wallet, row.hold),
        (id, key.wallet, opened.hold)
    );
    assert_eq!((&*row.protocol, &*row.model), ("video-a", "story/video"));
    assert_eq!(
        (row.bound.video_seconds, row.memo.as_deref()),
        (8, Some("memo"))
    );
    assert_eq!(row.upstream, Some(upstream()));
    assert_eq!((row.polls, row.missing), (0, 0));
    assert!(report(&store, row.claim, NONE).await);
    let view = store.find_task(key.wallet, id).await.unwrap().unwrap();
    assert_eq!(
        (&*view.snapshot, view.is_ended),
        (&b"pending 50"[..], false)
    );

    let row = claim(&store, LONG).await.remove(0);
    assert_eq!((row.polls, row.missing), (1, 1));
    assert!(row.missing_since.is_some());
    let renewal = ClaimRenewal {
        delivery: Some("delivered".into()),
        ..ClaimRenewal::claim(row.claim, NONE, NOW)
    };
    assert!(store.renew_claim(renewal).await.unwrap());
    let row = claim(&store, LONG).await.remove(0);
    assert_eq!(row.delivery.as_deref(), Some("delivered"));
    assert!(end(&store, &opened, row.claim).await);
    assert_eq!(
        frozen_and_used(&store, &key).await,
        (Micro::ZERO, Micro::new(1_500_000))
    );
    let view = store.find_task(key.wallet, id).await.unwrap().unwrap();
    assert_eq!((&*view.status, &*view.snapshot), ("done", &b"the end"[..]));
    assert!(view.is_ended);
    // An end is final (T6).
    assert!(!end(&store, &opened, row.claim).await);
    assert!(!report(&store, row.claim, NONE).await);
    assert!(claim(&store, LONG).await.is_empty());
    assert!(store.task_channels().await.unwrap().is_empty());

    let waiting = Backlog {
        callbacks: 1,
        oldest_hold: None,
    };
    assert_eq!(store.backlog().await.unwrap(), waiting);
    let claimed = store.claim_callbacks(10, LONG, NOW).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].claim.task, claimed[0].claim.fence), (id, 1));
    assert_eq!(
        (&*claimed[0].url, &*claimed[0].body),
        (CALLBACK, &b"the end"[..])
    );
    assert_clean(&store).await;
}

/// T7: a later claim fences off an earlier one.
pub(crate) async fn a_claim_is_worth_nothing_once_another_has_it(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(10)).await;
    let opened = open(&store, &key, NONE).await;
    let (first, second) = (
        claim(&store, NONE).await.remove(0),
        claim(&store, LONG).await.remove(0),
    );
    assert!(first.claim.fence < second.claim.fence);
    for late in [opened.claim, first.claim] {
        assert!(!accept(&store, late).await);
        assert!(!report(&store, late, NONE).await);
        assert!(
            !store
                .renew_claim(ClaimRenewal::claim(late, NONE, NOW))
                .await
                .unwrap()
        );
        assert!(!store.refuse_task(late, NOW).await.unwrap());
        assert!(!end(&store, &opened, late).await);
    }
    assert_eq!(
        frozen_and_used(&store, &key).await,
        (credits(2), Micro::ZERO)
    );
    // A claim for the task's own wallet succeeds, even if another worker has claimed the task.
    let id = opened.claim.task;
    let stranger = funded(&store, credits(1)).await;
    let foreign = store.claim_task(stranger.wallet, id, LONG, NOW).await;
    assert_eq!(foreign.unwrap(), None);
    let own = store.claim_task(key.wallet, id, LONG, NOW).await.unwrap();
    assert!(!report(&store, second.claim, NONE).await);
    assert!(end(&store, &opened, own.unwrap().claim).await);
    let none = store.claim_task(key.wallet, id, LONG, NOW).await.unwrap();
    assert_eq!(none, None);
    assert_clean(&store).await;
}

pub(crate) async fn a_refused_task_leaves_nothing(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(3)).await;
    let opened = open(&store, &key, LONG).await;
    // Two of the three credits are frozen.
    let version = price(&store).await;
    assert!(
        store
            .open_task(new_task(&key, version, LONG))
            .await
            .is_err()
    );
    assert!(store.refuse_task(opened.claim, NOW).await.unwrap());
    assert_eq!(
        frozen_and_used(&store, &key).await,
        (Micro::ZERO, Micro::ZERO)
    );
    let gone = store.find_task(key.wallet, opened.claim.task).await;
    assert_eq!(gone.unwrap(), None);
    assert!(
        store
            .claim_callbacks(10, LONG, NOW)
            .await
            .unwrap()
            .is_empty()
    );
    assert_clean(&store).await;
}

/// T2: the hold of a task belongs to the task. The claims of a node become free when the node restarts.
pub(crate) async fn a_task_outlives_its_process(database: &TestDatabase) {
    let (store, _) = Store::open(&named(database, "one")).unwrap();
    let key = funded(&store, credits(10)).await;
    let (first, second) = (
        open(&store, &key, LONG).await,
        open(&store, &key, LONG).await,
    );
    assert!(accept(&store, second.claim).await);
    assert_eq!(claim(&store, LONG).await.len(), 1);
    drop(store);

    let (store, recovery) = Store::open(&named(database, "one")).unwrap();
    assert_eq!(recovery.abandoned, 0);
    assert_eq!(
        frozen_and_used(&store, &key).await,
        (credits(4), Micro::ZERO)
    );
    assert_clean(&store).await;
    let rows = store.claim_tasks(10, LONG, restart_time()).await.unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let opened = if row.hold == first.hold {
            &first
        } else {
            &second
        };
        assert_eq!(row.upstream.is_some(), row.hold == second.hold);
        assert!(end(&store, opened, row.claim).await);
    }
    assert_eq!(
        frozen_and_used(&store, &key).await,
        (Micro::ZERO, Micro::new(3_000_000))
    );
    assert_clean(&store).await;
}

/// C1: an attempt counts from its claim on, but an attempt that was not made does not count.
pub(crate) async fn a_callback_is_tried_until_it_is_told_or_given_up(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(10)).await;
    for last in [CallbackOutcome::Delivered, CallbackOutcome::GivenUp] {
        let opened = open(&store, &key, LONG).await;
        assert!(end(&store, &opened, opened.claim).await);
        let again = CallbackOutcome::Again { after: NONE };
        let busy = CallbackOutcome::NotTried { after: NONE };
        for (attempt, outcome) in [(1, again), (2, busy), (2, again), (3, last)] {
            let row = store
                .claim_callbacks(10, LONG, NOW)
                .await
                .unwrap()
                .remove(0);
            assert_eq!(row.claim.fence, attempt);
            let report = CallbackReport {
                claim: row.claim,
                outcome,
                now: NOW,
            };
            assert!(store.report_callback(report).await.unwrap());
            let late = CallbackReport {
                outcome: CallbackOutcome::Delivered,
                ..report
            };
            let is_last = outcome == last;
            assert!(!is_last || !store.report_callback(late).await.unwrap());
        }
        assert!(
            store
                .claim_callbacks(10, LONG, NOW)
                .await
                .unwrap()
                .is_empty()
        );
    }
    assert_clean(&store).await;
}

#[expect(clippy::too_many_lines, reason = "one life of a list")]
pub(crate) async fn tasks_are_listed_hidden_and_forgotten(database: &TestDatabase) {
    let store = database.open();
    let (key, other) = (
        funded(&store, credits(10)).await,
        funded(&store, credits(10)).await,
    );
    let mut opened = Vec::new();
    for _ in 0..3 {
        opened.push(open(&store, &key, LONG).await);
    }
    let foreign = open(&store, &other, LONG).await;
    assert!(end(&store, &opened[0], opened[0].claim).await);
    let own = TaskQuery {
        wallet: Some(key.wallet),
        protocol: Some("video-a".into()),
        limit: 10,
        ..TaskQuery::default()
    };
    let found = async |query: &TaskQuery| {
        let page = store.tasks(query.clone()).await.unwrap();
        let ids: Vec<TaskId> = page.tasks.iter().map(|task| task.id).collect();
        (ids, page.total)
    };
    let mut ids: Vec<TaskId> = opened.iter().map(|opened| opened.claim.task).collect();
    ids.sort_unstable();
    ids.reverse();
    assert_eq!(found(&own).await, (ids.clone(), 3));
    let page = TaskQuery {
        limit: 1,
        offset: 1,
        ..own.clone()
    };
    assert_eq!(found(&page).await, (vec![ids[1]], 3));
    let ended = opened[0].claim.task;
    for (query, expected) in [
        (
            TaskQuery {
                statuses: vec!["done".to_owned(), "failed".to_owned()],
                ..own.clone()
            },
            vec![ended],
        ),
        (
            TaskQuery {
                ids: vec![ended, foreign.claim.task],
                ..own.clone()
            },
            vec![ended],
        ),
        (
            TaskQuery {
                protocol: Some("omni".into()),
                ..own.clone()
            },
            vec![],
        ),
        (
            TaskQuery {
                model: Some("story/other".into()),
                ..own.clone()
            },
            vec![],
        ),
        (
            TaskQuery {
                key: Some(key.id),
                ..own.clone()
            },
            ids.clone(),
        ),
        (
            TaskQuery {
                key: Some(other.id),
                ..own.clone()
            },
            vec![],
        ),
        (
            TaskQuery {
                before: Some(ids[0]),
                ..own.clone()
            },
            ids[1..].to_vec(),
        ),
        (
            TaskQuery {
                id_prefix: Some(ids[1].to_string()[..30].into()),
                ..own.clone()
            },
            vec![ids[1]],
        ),
    ] {
        let total = expected.len() as u64;
        assert_eq!(found(&query).await, (expected.clone(), total), "{query:?}");
        let uncounted = TaskQuery {
            uncounted: true,
            ..query
        };
        assert_eq!(found(&uncounted).await, (expected, 0));
    }
    for task in store.tasks(own.clone()).await.unwrap().tasks {
        assert_eq!(task.key, Some(key.id));
        assert_eq!(task.charge.is_some(), task.id == ended);
    }
    let going_on = TaskQuery {
        only_open: true,
        ..own.clone()
    };
    assert_eq!(found(&going_on).await.1, 2);
    let listed = store.tasks(own.clone()).await.unwrap().tasks;
    let listed = listed.iter().find(|task| task.id == ended).unwrap();
    assert_eq!(
        (&*listed.status, listed.callback_attempts),
        ("done", Some(0))
    );
    assert!(listed.ended_at.is_some() && listed.next_at.is_none());

    // Callers can hide only ended tasks of their own.
    let hide = async |wallet, task| store.hide_task(wallet, task, NOW).await.unwrap();
    assert!(!hide(other.wallet, ended).await);
    assert!(!hide(key.wallet, opened[1].claim.task).await);
    assert!(hide(key.wallet, ended).await);
    assert!(!hide(key.wallet, ended).await);
    assert_eq!(store.find_task(key.wallet, ended).await.unwrap(), None);
    assert_eq!(found(&own).await.1, 2);
    let hidden = TaskQuery {
        with_hidden: true,
        ..own.clone()
    };
    assert_eq!(found(&hidden).await.1, 3);
    assert_clean(&store).await;

    // A task is kept while its callback is pending.
    let forget = async || store.forget_tasks(NONE, 10, NOW).await.unwrap();
    assert_eq!(forget().await, 0);
    let row = store
        .claim_callbacks(10, LONG, NOW)
        .await
        .unwrap()
        .remove(0);
    let report = CallbackReport {
        claim: row.claim,
        outcome: CallbackOutcome::Delivered,
        now: NOW,
    };
    assert!(store.report_callback(report).await.unwrap());
    assert_eq!(store.forget_tasks(LONG * 2, 10, NOW).await.unwrap(), 0);
    assert_eq!(forget().await, 1);
    assert_eq!(found(&hidden).await.1, 2);
    assert_clean(&store).await;
}

/// V8: `verify` reports the missing part.
pub(crate) async fn a_task_that_lacks_something_is_found(database: &TestDatabase) {
    for (tamper, lacks) in [
        (
            database.sql_for(
                "UPDATE tasks SET snapshot = x''",
                "UPDATE tasks SET snapshot = ''",
            ),
            "a snapshot",
        ),
        ("DELETE FROM callbacks", "a callback of equal bytes"),
        (
            database.sql_for(
                "UPDATE callbacks SET body = x'00'",
                "UPDATE callbacks SET body = 'else'",
            ),
            "a callback of equal bytes",
        ),
        (
            "UPDATE tasks SET ended_at = NULL, next_at = 1 WHERE ended_at IS NOT NULL",
            "an open hold",
        ),
        ("UPDATE tasks SET hold = hold + 1000", "a closed hold"),
    ] {
        let database = TestDatabase::like(database);
        let store = database.open();
        let key = funded(&store, credits(10)).await;
        let opened = open(&store, &key, LONG).await;
        assert!(end(&store, &opened, opened.claim).await);
        assert_clean(&store).await;
        database.tamper(tamper);
        let report = store.verify().await.unwrap();
        let found = report.differences.iter();
        let found: Vec<_> = found.filter(|it| it.rule == Rule::V8Tasks).collect();
        assert!(
            found.iter().any(|it| it.expected.contains(lacks)),
            "{tamper}: {:#?}",
            report.differences
        );
    }
}

pub(crate) async fn a_task_whose_end_is_unknown_is_abandoned(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(10)).await;
    let opened = open(&store, &key, NONE).await;
    let row = claim(&store, LONG).await.remove(0);
    let end = TaskEnd {
        claim: row.claim,
        status: "failed".into(),
        end: End::Abandoned,
        snapshot: b"lost".as_slice().into(),
        now: NOW,
    };
    assert!(store.end_task(end).await.unwrap());
    assert_eq!(row.hold, opened.hold);
    assert_eq!(
        frozen_and_used(&store, &key).await,
        (Micro::ZERO, Micro::ZERO)
    );
    assert_clean(&store).await;
}

pub(crate) async fn two_nodes_never_have_one_task(database: &TestDatabase) {
    const TASKS: usize = 60;
    let (one, two) = (database.open(), database.open());
    let key = funded(&one, credits(1_000)).await;
    for _ in 0..TASKS {
        let opened = open(&one, &key, LONG).await;
        assert!(accept(&one, opened.claim).await);
    }
    let claims = async |store: &Store| {
        let mut all = Vec::new();
        loop {
            let rows = store.claim_tasks(3, LONG, NOW).await.unwrap();
            if rows.is_empty() {
                return all;
            }
            all.extend(rows.into_iter().map(|row| row.claim.task));
        }
    };
    let (first, second) = tokio::join!(claims(&one), claims(&two));
    let mut all: Vec<TaskId> = first.into_iter().chain(second).collect();
    assert_eq!(all.len(), TASKS);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), TASKS);
}

pub(crate) async fn no_lookup_waits_for_lists(database: &TestDatabase) {
    let store = database.open();
    let key = funded(&store, credits(5)).await;
    let task = open(&store, &key, LONG).await.claim.task;
    // Lists read the callbacks table, lookups do not.
    let holder = database.hold_lock("LOCK TABLE callbacks IN ACCESS EXCLUSIVE MODE");
    let list = || {
        store.tasks(TaskQuery {
            wallet: Some(key.wallet),
            limit: 10,
            ..TaskQuery::default()
        })
    };
    let look_up = async {
        for _ in 0..4 {
            let found = store.find_task(key.wallet, task);
            let found = tokio::time::timeout(Duration::from_secs(5), found).await;
            assert!(found.unwrap().unwrap().is_some());
        }
        drop(holder);
    };
    let (one, other, ()) = tokio::join!(list(), list(), look_up);
    assert_eq!((one.unwrap().total, other.unwrap().total), (1, 1));
}
