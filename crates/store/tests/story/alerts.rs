//! Tests alerts: rules, start and end, deliveries, and the reads from which alerts are computed.

use std::time::Duration;

use ledger::{Micro, WalletStatus};
use store::{
    AlertEvent, AlertId, AlertKind, AlertQuery, AlertRow, AlertSignal, AuditQuery, DeliveryOutcome,
    DeliveryReport, DeliveryRow, KeyLimits, KeyRow, NewAlert, NewRule, RuleId, RuleRow, Store,
    StoreError, WalletId, WalletSettings, Webhook,
};

use crate::nodes::named;
use crate::test_database::{
    NOW, TestDatabase, actor, admit, credits, key, price, restart_time, settled, wallet,
};

const LONG: Duration = Duration::from_secs(3_600);
const SECRET: &str = "whsec_of_the_story";

fn new_rule(kinds: &[AlertKind]) -> NewRule {
    NewRule {
        kinds: kinds.to_vec(),
        webhook: Webhook {
            url: "https://a.example/hook?token=t".to_owned(),
            secret: SECRET.to_owned(),
        },
        shown_url: "https://a.example/…".to_owned(),
        wallet: None,
        below: None,
    }
}

async fn rule(store: &Store) -> RuleRow {
    let new = new_rule(&AlertKind::ALL);
    store.create_alert_rule(new, &actor()).await.unwrap()
}

fn new_alert(condition: &str, rules: &[RuleId]) -> NewAlert {
    NewAlert {
        id: AlertId::random(),
        kind: AlertKind::ChannelDown,
        condition: condition.to_owned(),
        subject: Some("main".to_owned()),
        wallet: None,
        message: "Channel main is paused after failures.".to_owned(),
        rules: rules.to_vec(),
    }
}

async fn begin(store: &Store, condition: &str, rules: &[RuleId]) -> bool {
    let new = new_alert(condition, rules);
    store.begin_alert(new, NOW).await.unwrap()
}

async fn alerts(store: &Store) -> Vec<AlertRow> {
    store.alerts(AlertQuery::default()).await.unwrap()
}

async fn claim(store: &Store, lease: Duration) -> Vec<DeliveryRow> {
    store.claim_deliveries(10, lease, NOW).await.unwrap()
}

async fn report(store: &Store, row: &DeliveryRow, outcome: DeliveryOutcome) -> bool {
    let report = DeliveryReport {
        claim: row.claim,
        outcome,
        now: NOW,
    };
    store.report_delivery(report).await.unwrap()
}

pub(crate) async fn a_rule_is_kept_and_audited_without_its_secret(database: &TestDatabase) {
    let store = database.open();
    let acme = wallet(&store, "acme", credits(1)).await;
    let mut new = new_rule(&[AlertKind::LowBalance, AlertKind::KeyLimit]);
    new.wallet = Some(acme.id);
    new.below = Some(credits(5));
    let made = store
        .create_alert_rule(new.clone(), &actor())
        .await
        .unwrap();
    let listed = store.alert_rules().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].id, &listed[0].kinds, &listed[0].wallet_name),
        (made.id, &new.kinds, &Some("acme".to_owned()))
    );
    assert_eq!(listed[0].below, new.below);
    assert_eq!(listed[0].last_attempt, None);
    let webhook = store.webhook(made.id).await.unwrap().unwrap();
    assert_eq!(webhook, new.webhook);

    new.wallet = Some(WalletId::random());
    let refused = store.create_alert_rule(new, &actor()).await.unwrap_err();
    assert!(matches!(
        refused,
        StoreError::NotFound { what: "wallet", .. }
    ));
    let nothing = new_rule(&[]);
    let refused = store.create_alert_rule(nothing, &actor()).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))));

    store.remove_alert_rule(made.id, &actor()).await.unwrap();
    let again = store.remove_alert_rule(made.id, &actor()).await;
    assert!(matches!(
        again,
        Err(StoreError::NotFound { what: "rule", .. })
    ));
    assert!(store.alert_rules().await.unwrap().is_empty());
    assert_eq!(store.webhook(made.id).await.unwrap(), None);
    let audit = store.audit(AuditQuery {
        target: Some(made.id.to_string()),
        ..AuditQuery::default()
    });
    let audit = audit.await.unwrap();
    let actions: Vec<&str> = audit.iter().map(|row| &*row.action).collect();
    assert_eq!(actions, ["alert_rule.remove", "alert_rule.create"]);
    let text = format!("{audit:?}");
    assert!(
        !text.contains(SECRET) && !text.contains("token=t"),
        "{text}"
    );
}

pub(crate) async fn an_alert_begins_once_and_ends_once(database: &TestDatabase) {
    let store = database.open();
    let (one, other) = (rule(&store).await, rule(&store).await);
    assert!(begin(&store, "channel_down main", &[one.id, RuleId::random()]).await);
    assert!(!begin(&store, "channel_down main", &[one.id]).await);
    assert!(begin(&store, "channel_down spare", &[]).await);
    let open = alerts(&store).await;
    assert_eq!(open.len(), 2);
    assert_eq!(open[0].condition, "channel_down spare");
    assert_eq!(
        [open[0].delivery.as_str(), open[1].delivery.as_str()],
        ["none", "pending"]
    );
    let main = open[1].id;
    assert!(store.end_alert(main, NOW).await.unwrap());
    assert!(!store.end_alert(main, NOW).await.unwrap());
    assert!(!store.end_alert(AlertId::random(), NOW).await.unwrap());
    let query = AlertQuery {
        only_open: true,
        ..AlertQuery::default()
    };
    let open = store.alerts(query).await.unwrap();
    assert_eq!(open.len(), 1);

    // The end is delivered to the rule that got the beginning, and to no other.
    let mut due = claim(&store, LONG).await;
    for row in &due {
        assert!(report(&store, row, DeliveryOutcome::Delivered).await);
    }
    due.extend(claim(&store, LONG).await);
    let events: Vec<_> = due.iter().map(|row| (row.event, row.rule)).collect();
    assert_eq!(
        events,
        [(AlertEvent::Begin, one.id), (AlertEvent::End, one.id)]
    );
    assert_ne!(one.id, other.id);
    assert_eq!(due[0].webhook.secret, SECRET);
    assert_eq!(due[0].alert.id, main);
    assert!(due[1].alert.ended_at.is_some());

    // An alert with the same condition may begin again. The pages have no gaps and no repetitions.
    assert!(begin(&store, "channel_down main", &[]).await);
    let first = AlertQuery {
        limit: 2,
        ..AlertQuery::default()
    };
    let page = store.alerts(first.clone()).await.unwrap();
    let next = AlertQuery {
        before: page.last().map(|row| row.cursor),
        ..first
    };
    let rest = store.alerts(next).await.unwrap();
    assert_eq!((page.len(), rest.len()), (2, 1));
    assert_eq!(rest[0].id, main);
    // Ended alerts are deleted, except those with pending deliveries.
    let forget = async || store.forget_alerts(Duration::ZERO, 10, NOW).await.unwrap();
    assert_eq!(forget().await, 0);
    assert!(report(&store, &due[1], DeliveryOutcome::Delivered).await);
    assert_eq!(forget().await, 1);
    assert_eq!(alerts(&store).await.len(), 2);
}

pub(crate) async fn a_delivery_is_tried_until_it_is_delivered_or_given_up(database: &TestDatabase) {
    let store = database.open();
    let rule = rule(&store).await;
    assert!(begin(&store, "channel_down main", &[rule.id]).await);
    let again = DeliveryOutcome::Again {
        after: Duration::ZERO,
        problem: "the answer has the status 500".to_owned(),
    };
    for attempt in 1..=3 {
        let due = claim(&store, LONG).await;
        assert_eq!((due.len(), due[0].claim.attempt), (1, attempt));
        assert!(claim(&store, LONG).await.is_empty(), "it is claimed");
        assert!(report(&store, &due[0], again.clone()).await);
        let last = store.alert_rules().await.unwrap()[0].last_attempt.clone();
        assert!(last.unwrap().problem.unwrap().contains("500"));
    }
    let due = claim(&store, LONG).await;
    assert!(report(&store, &due[0], DeliveryOutcome::Delivered).await);
    assert!(
        !report(&store, &due[0], again.clone()).await,
        "it has ended"
    );
    assert_eq!(alerts(&store).await[0].delivery.as_str(), "delivered");
    let last = store.alert_rules().await.unwrap()[0].last_attempt.clone();
    assert_eq!(last.unwrap().problem, None);

    assert!(begin(&store, "channel_down spare", &[rule.id]).await);
    let due = claim(&store, LONG).await;
    let given_up = DeliveryOutcome::GivenUp {
        problem: "no answer".to_owned(),
    };
    assert!(report(&store, &due[0], given_up).await);
    assert!(claim(&store, LONG).await.is_empty());
    assert_eq!(alerts(&store).await[0].delivery.as_str(), "failed");

    // Removing a rule also removes its pending deliveries.
    assert!(begin(&store, "channel_down third", &[rule.id]).await);
    store.remove_alert_rule(rule.id, &actor()).await.unwrap();
    assert!(claim(&store, LONG).await.is_empty());
    assert_eq!(alerts(&store).await[0].delivery.as_str(), "none");
}

/// A receiver that gets the end first would keep the alert open.
pub(crate) async fn an_end_waits_until_its_beginning_is_delivered_or_given_up(
    database: &TestDatabase,
) {
    let store = database.open();
    let rule = rule(&store).await;
    assert!(begin(&store, "channel_down main", &[rule.id]).await);
    let again = DeliveryOutcome::Again {
        after: Duration::ZERO,
        problem: "no answer".to_owned(),
    };
    let given_up = DeliveryOutcome::GivenUp {
        problem: "no answer".to_owned(),
    };
    let alert = alerts(&store).await[0].id;
    assert!(store.end_alert(alert, NOW).await.unwrap());
    for outcome in [again, given_up] {
        let due = claim(&store, LONG).await;
        assert_eq!((due.len(), due[0].event), (1, AlertEvent::Begin));
        assert!(claim(&store, LONG).await.is_empty(), "it is being sent");
        assert!(report(&store, &due[0], outcome).await);
    }
    let due = claim(&store, LONG).await;
    assert_eq!((due.len(), due[0].event), (1, AlertEvent::End));
}

pub(crate) async fn a_rule_with_many_deliveries_leaves_room_for_others(database: &TestDatabase) {
    let store = database.open();
    let (busy, other) = (rule(&store).await, rule(&store).await);
    for number in 0..12 {
        let condition = format!("channel_down {number}");
        assert!(begin(&store, &condition, &[busy.id]).await);
    }
    assert!(begin(&store, "channel_down last", &[other.id]).await);
    let due = claim(&store, LONG).await;
    let of = |rule| due.iter().filter(|row| row.rule == rule).count();
    assert_eq!((of(busy.id), of(other.id)), (4, 1));
    // The webhook gets no more deliveries while its first four are being sent. It then gets a new one for each that has
    // ended.
    assert!(claim(&store, LONG).await.is_empty());
    let sent: Vec<_> = due.iter().filter(|row| row.rule == busy.id).collect();
    for row in &sent[..2] {
        assert!(report(&store, row, DeliveryOutcome::Delivered).await);
    }
    let due = claim(&store, LONG).await;
    assert_eq!(due.len(), 2);
    assert!(due.iter().all(|row| row.rule == busy.id));
}

/// A node may die between the claim and the report. The delivery is then repeated, and the dead node's report has no
/// effect.
pub(crate) async fn a_delivery_outlives_the_node_that_claimed_it(database: &TestDatabase) {
    let (store, _) = Store::open(&named(database, "one")).unwrap();
    let rule = rule(&store).await;
    assert!(begin(&store, "channel_down main", &[rule.id]).await);
    // The first claim's lease has already ended.
    let lost = claim(&store, Duration::ZERO).await;
    let found = claim(&store, LONG).await;
    assert_eq!((lost[0].claim.attempt, found[0].claim.attempt), (1, 2));
    assert!(!report(&store, &lost[0], DeliveryOutcome::Delivered).await);
    // A node that restarts continues at once.
    drop(store);
    let (store, _) = Store::open(&named(database, "one")).unwrap();
    let found = store
        .claim_deliveries(10, LONG, restart_time())
        .await
        .unwrap();
    assert_eq!(found[0].claim.attempt, 3);
    assert!(report(&store, &found[0], DeliveryOutcome::Delivered).await);
}

pub(crate) async fn what_a_node_sees_is_seen_by_all_until_it_expires(database: &TestDatabase) {
    let store = database.open();
    let signal = |condition: &str| AlertSignal {
        condition: condition.to_owned(),
        kind: AlertKind::ChannelDown,
        subject: Some("main".to_owned()),
        message: "It is down.".to_owned(),
    };
    let set = async |signals: Vec<AlertSignal>, lasting| {
        store
            .set_alert_signals(signals, lasting, NOW)
            .await
            .unwrap();
        store.alert_signals(NOW).await.unwrap()
    };
    let (a, b) = (signal("a"), signal("b"));
    assert_eq!(
        set(vec![a.clone(), b.clone()], LONG).await,
        [a.clone(), b.clone()]
    );
    assert_eq!(set(vec![b.clone()], LONG).await, vec![b.clone()]);
    assert_eq!(set(vec![a, b], Duration::ZERO).await, []);
    assert_eq!(set(Vec::new(), LONG).await, []);
}

/// Creates a wallet whose key has this limit and has spent this many tokens.
async fn spent(store: &Store, name: &str, limit: Option<Micro>, tokens: u64) -> KeyRow {
    let wallet = wallet(store, name, credits(10)).await;
    let limits = KeyLimits {
        limit,
        ..KeyLimits::default()
    };
    let key = key(store, wallet.id, limits).await;
    let admitted = admit(store, &key, Micro::new(1)).await.unwrap();
    store.close(settled(admitted.hold, price(store).await, tokens));
    store.flush().await.unwrap();
    key
}

pub(crate) async fn wallets_and_keys_that_run_low_are_found(database: &TestDatabase) {
    let store = database.open();
    let (full, low) = (
        spent(&store, "full", None, 1_000_000).await,
        spent(&store, "low", Some(credits(10)), 7_900_000).await,
    );
    let own = spent(&store, "own", Some(credits(10)), 8_000_000).await;
    let names = async |below: Option<Micro>| -> Vec<String> {
        let found = store.low_wallets(below).await.unwrap();
        found.into_iter().map(|wallet| wallet.name).collect()
    };
    assert_eq!(names(None).await, [""; 0]);
    assert_eq!(names(Some(credits(3))).await, ["low", "own"]);
    assert_eq!(names(Some(credits(2))).await, [""; 0], "it has two");
    let set = async |wallet: WalletId, settings: WalletSettings| {
        store
            .update_wallet(wallet, settings, &actor())
            .await
            .unwrap()
    };
    let below = WalletSettings {
        alert_below: Some(Some(credits(9))),
        ..WalletSettings::default()
    };
    let row = set(own.wallet, below).await;
    assert_eq!(row.alert_below, Some(credits(9)));
    let found = store.low_wallets(None).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].id, found[0].balance, found[0].below),
        (own.wallet, credits(2), Some(credits(9)))
    );
    // A change of another setting keeps the amount. A disabled wallet needs no alert.
    let disabled = WalletSettings {
        status: Some(WalletStatus::Disabled),
        ..WalletSettings::default()
    };
    let row = set(own.wallet, disabled).await;
    assert_eq!(row.alert_below, Some(credits(9)));
    assert_eq!(names(Some(credits(3))).await, ["low"]);
    let lifted = WalletSettings {
        status: Some(WalletStatus::Active),
        alert_below: Some(None),
        ..WalletSettings::default()
    };
    assert_eq!(set(own.wallet, lifted).await.alert_below, None);
    assert_eq!(names(None).await, [""; 0]);

    let near = store.keys_near_limits().await.unwrap();
    let near: Vec<_> = near.iter().map(|row| row.id).collect();
    assert_eq!(near, [own.id]);
    store
        .set_key_enabled(own.id, false, &actor())
        .await
        .unwrap();
    assert!(store.keys_near_limits().await.unwrap().is_empty());
    assert_ne!(full.id, low.id);
}

pub(crate) async fn one_node_looks_for_alerts_and_one_delivers_each(database: &TestDatabase) {
    let (one, two) = (database.open(), database.open());
    assert!(one.lease_alert_checks(LONG).await.unwrap());
    assert!(one.lease_alert_checks(LONG).await.unwrap(), "it goes on");
    assert!(!two.lease_alert_checks(LONG).await.unwrap());
    // Another node takes over when the lease has ended.
    assert!(one.lease_alert_checks(Duration::ZERO).await.unwrap());
    let mut taken = false;
    while !taken {
        taken = two.lease_alert_checks(LONG).await.unwrap();
    }
    assert!(!one.lease_alert_checks(LONG).await.unwrap());

    let rule = rule(&one).await;
    let rules = [rule.id];
    let [first, second] = [&one, &two].map(|it| begin(it, "channel_down main", &rules));
    let (first, second) = tokio::join!(first, second);
    assert!(first != second, "it begins once");
    let [first, second] = [&one, &two].map(|store| claim(store, LONG));
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.len() + second.len(), 1);

    // The other node sees the signal, but only the node that set it can remove it.
    let signal = AlertSignal {
        condition: "stuck_closes".to_owned(),
        kind: AlertKind::StuckCloses,
        subject: None,
        message: "Calls cannot be booked.".to_owned(),
    };
    for store in [&one, &two] {
        let set = store.set_alert_signals(vec![signal.clone()], LONG, NOW);
        set.await.unwrap();
    }
    for (store, left) in [(&one, 1), (&two, 0)] {
        let unset = store.set_alert_signals(Vec::new(), LONG, NOW);
        unset.await.unwrap();
        assert_eq!(two.alert_signals(NOW).await.unwrap().len(), left);
    }
}
