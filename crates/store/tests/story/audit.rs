//! Tests the audit log: one row for each administrative change, in the transaction of the change.

use ledger::{Micro, UnixMs, WalletStatus};
use store::{
    Actor, AuditQuery, AuditRow, Calendar, KeyChange, KeyLimits, KeyWindow, NewWallet,
    PeriodLength, Role, Store, StoreError, WalletSettings,
};

use crate::test_database::{TestDatabase, actor, credits, key, wallet};

async fn rows(store: &Store, query: AuditQuery) -> Vec<AuditRow> {
    store.audit(query).await.unwrap()
}

/// The audit rows, oldest first: action, target, before and after.
async fn audit_rows(store: &Store) -> Vec<(String, String, String, String)> {
    let rows = rows(store, AuditQuery::default()).await;
    let shown = |json: Option<String>| json.unwrap_or_else(|| "-".to_owned());
    rows.into_iter()
        .rev()
        .map(|row| (row.action, row.target, shown(row.before), shown(row.after)))
        .collect()
}

pub(crate) async fn each_change_has_a_row_of_its_own(database: &TestDatabase) {
    let store = database.open();
    let by = Actor {
        id: "tok_0123456789abcdef".to_owned(),
        name: "till".to_owned(),
        role: Role::Support,
        request_id: Some("req_1".to_owned()),
    };
    let acme = wallet(&store, "acme", credits(10)).await.id;
    store.top_up(acme, credits(2), "paid", &by).await.unwrap();
    store
        .gift(acme, Micro::new(500_000), "", &by)
        .await
        .unwrap();
    store.set_credit_limit(acme, credits(5), &by).await.unwrap();
    store
        .set_wallet_status(acme, WalletStatus::Disabled, &by)
        .await
        .unwrap();
    let limits = KeyLimits {
        rpm: Some(60),
        ..KeyLimits::default()
    };
    let key = key(&store, acme, limits).await;
    let change = KeyChange {
        name: Some(Some("ci".to_owned())),
        limit: Some(Some(credits(3))),
        rpm: Some(None),
        expires_at: Some(Some(UnixMs::new(7))),
        ..KeyChange::default()
    };
    store.update_key(key.id, change, &by).await.unwrap();
    store.set_key_enabled(key.id, false, &by).await.unwrap();

    let (acme, id) = (acme.to_string(), key.id.to_string());
    let key_made = format!(
        r#"{{"enabled":true,"prefix":"{}","rpm":60,"wallet":"{acme}"}}"#,
        key.shown_prefix
    );
    let expected = [
        (
            "wallet.create",
            &acme,
            "-",
            r#"{"balance":"10","credit_limit":"0","credit_used":"0","enabled":true,"gift_balance":"0","name":"acme"}"#,
        ),
        (
            "wallet.top_up",
            &acme,
            r#"{"balance":"10"}"#,
            r#"{"amount":"2","balance":"12","note":"paid"}"#,
        ),
        (
            "wallet.gift",
            &acme,
            r#"{"gift_balance":"0"}"#,
            r#"{"amount":"0.5","gift_balance":"0.5"}"#,
        ),
        (
            "wallet.update",
            &acme,
            r#"{"credit_limit":"0"}"#,
            r#"{"credit_limit":"5"}"#,
        ),
        (
            "wallet.update",
            &acme,
            r#"{"enabled":true}"#,
            r#"{"enabled":false}"#,
        ),
        ("key.create", &id, "-", &key_made),
        (
            "key.update",
            &id,
            r#"{"rpm":60}"#,
            r#"{"expires_at":7,"limit":"3","name":"ci"}"#,
        ),
        (
            "key.update",
            &id,
            r#"{"enabled":true}"#,
            r#"{"enabled":false}"#,
        ),
    ];
    let expected = expected.map(|(action, target, before, after)| {
        let owned = |text: &str| text.to_owned();
        (owned(action), target.clone(), owned(before), owned(after))
    });
    assert_eq!(audit_rows(&store).await, expected);

    let rows = rows(&store, AuditQuery::default()).await;
    let last = rows.last().unwrap();
    assert_eq!(last.actor, actor());
    assert_eq!(rows[0].actor, by);
    // The rows are as durable as the changes themselves.
    drop(store);
    assert_eq!(audit_rows(&database.open()).await, expected);
}

pub(crate) async fn a_refused_change_leaves_no_row(database: &TestDatabase) {
    let store = database.open();
    let acme = wallet(&store, "acme", credits(1)).await.id;
    let again = NewWallet {
        name: "acme".to_owned(),
        balance: credits(1),
        gift: Micro::ZERO,
        credit_limit: Micro::ZERO,
    };
    let refused = store.create_wallet(again, &actor()).await;
    assert!(matches!(refused, Err(StoreError::Taken { .. })));
    let refused = store.top_up(acme, Micro::ZERO, "", &actor()).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))));
    let refused = store.set_credit_limit(acme, credits(-1), &actor()).await;
    assert!(matches!(refused, Err(StoreError::Overflow)));
    let unknown = store::KeyId::random();
    let missing = store.set_key_enabled(unknown, true, &actor()).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
    let actions: Vec<String> = audit_rows(&store)
        .await
        .into_iter()
        .map(|row| row.0)
        .collect();
    assert_eq!(actions, ["wallet.create"]);
}

pub(crate) async fn rows_are_found_by_every_condition_a_page_at_a_time(database: &TestDatabase) {
    let store = database.open();
    let other = Actor {
        id: "config".to_owned(),
        name: "config".to_owned(),
        role: Role::Owner,
        request_id: Some("req_Ünd%".to_owned()),
    };
    let first = wallet(&store, "first", credits(1)).await.id;
    let second = wallet(&store, "second", credits(1)).await.id;
    for n in 1..=5 {
        store.top_up(first, credits(n), "", &other).await.unwrap();
    }
    store.gift(second, credits(1), "", &actor()).await.unwrap();
    let all = rows(&store, AuditQuery::default()).await;
    assert_eq!(all.len(), 8);
    assert!(all.is_sorted_by(|a, b| a.cursor > b.cursor && a.at >= b.at));

    let query = |set: &dyn Fn(&mut AuditQuery)| {
        let mut query = AuditQuery::default();
        set(&mut query);
        query
    };
    let text = |text: &str| Some(text.to_owned());
    let (newest, oldest) = (all[0].at, all[7].at);
    for (query, count) in [
        (query(&|q| q.actor = text("config")), 5),
        (query(&|q| q.actor = text("story")), 3),
        (query(&|q| q.actor = text("stor")), 0),
        (query(&|q| q.action = text("wallet.top_up")), 5),
        (query(&|q| q.target = Some(second.to_string())), 2),
        (query(&|q| (q.from, q.to) = (Some(newest), Some(newest))), 0),
        (query(&|q| q.from = Some(oldest)), 8),
        (query(&|q| q.to = Some(oldest)), 0),
        (query(&|q| q.text = text("SECOND")), 1),
        (query(&|q| q.text = text("nd%")), 5),
        (query(&|q| q.text = text("n_%")), 0),
        (query(&|q| q.text = text("")), 8),
    ] {
        assert_eq!(rows(&store, query.clone()).await.len(), count, "{query:?}");
    }

    let mut paged: Vec<AuditRow> = Vec::new();
    loop {
        let cursor = paged.last().map(|row| row.cursor);
        let next = query(&|q| (q.before, q.limit) = (cursor, 3));
        let page = rows(&store, next).await;
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
}

pub(crate) async fn rows_cannot_be_changed_or_deleted(database: &TestDatabase) {
    let store = database.open();
    wallet(&store, "acme", credits(1)).await;
    for sql in ["UPDATE audit SET actor = 'nobody'", "DELETE FROM audit"] {
        assert!(database.try_tamper(sql).is_err(), "{sql}");
    }
    assert_eq!(audit_rows(&store).await.len(), 1);
}

pub(crate) async fn a_change_without_effect_writes_nothing(database: &TestDatabase) {
    let store = database.open();
    let acme = wallet(&store, "acme", credits(10)).await.id;
    store
        .set_credit_limit(acme, credits(5), &actor())
        .await
        .unwrap();
    let zone = Calendar::new(PeriodLength::Day, "Europe/Berlin").unwrap();
    let limits = KeyLimits {
        rpm: Some(60),
        window: Some(KeyWindow {
            amount: credits(2),
            calendar: zone.clone(),
        }),
        ..KeyLimits::default()
    };
    let key = key(&store, acme, limits).await;
    let tagged = KeyChange {
        tags: Some(vec!["ci".to_owned()]),
        ..KeyChange::default()
    };
    store.update_key(key.id, tagged, &actor()).await.unwrap();
    let entries = async || store.latest_entries(acme, None, 10).await.unwrap().len();
    let before = (audit_rows(&store).await, entries().await);

    let same = WalletSettings {
        name: Some("acme".to_owned()),
        credit_limit: Some(credits(5)),
        status: Some(WalletStatus::Active),
        alert_below: Some(None),
    };
    let row = store.update_wallet(acme, same, &actor()).await.unwrap();
    assert_eq!(
        (row.name.as_str(), row.wallet.credit_limit),
        ("acme", credits(5))
    );
    let nothing = WalletSettings::default();
    store.update_wallet(acme, nothing, &actor()).await.unwrap();
    let same = KeyChange {
        enabled: Some(true),
        rpm: Some(Some(60)),
        limit: Some(None),
        tags: Some(vec!["ci".to_owned()]),
        window: Some(Some(KeyWindow {
            amount: credits(2),
            calendar: zone,
        })),
        ..KeyChange::default()
    };
    let row = store.update_key(key.id, same, &actor()).await.unwrap();
    assert_eq!(row.key.rpm_limit, Some(60));
    let row = store.set_key_enabled(key.id, true, &actor()).await;
    assert!(row.unwrap().key.enabled);
    assert_eq!((audit_rows(&store).await, entries().await), before);
    // If one member differs, only that member is recorded.
    let renamed = WalletSettings {
        name: Some("acme inc".to_owned()),
        credit_limit: Some(credits(5)),
        status: Some(WalletStatus::Active),
        alert_below: Some(None),
    };
    store.update_wallet(acme, renamed, &actor()).await.unwrap();
    let rows = audit_rows(&store).await;
    let last = rows.last().unwrap();
    assert_eq!(
        (last.2.as_str(), last.3.as_str()),
        (r#"{"name":"acme"}"#, r#"{"name":"acme inc"}"#)
    );
    assert_eq!(
        (rows.len(), entries().await),
        (before.0.len() + 1, before.1)
    );
}
