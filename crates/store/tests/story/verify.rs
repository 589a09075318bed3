//! Tests that verification is clean if everything is consistent, and reports every difference.

use store::{KeyRow, Rule, Store};

use crate::test_database::{
    NOW, TestDatabase, admit, assert_clean, credits, funded, price, settled,
};
use store::{Basis, Close, End, IfLost};

/// Creates a wallet with a settled, a released and an open call.
async fn history(store: &Store) -> KeyRow {
    let version = price(store).await;
    let key = funded(store, credits(10)).await;
    let first = admit(store, &key, credits(1)).await.unwrap();
    let second = admit(store, &key, credits(1)).await.unwrap();
    let _open = admit(store, &key, credits(2)).await.unwrap();
    store.close(settled(first.hold, version, 600_000));
    store.close(Close {
        if_lost: IfLost::Charge,
        hold: second.hold,
        end: End::Released,
        now: NOW,
    });
    store.flush().await.unwrap();
    key
}

pub(crate) async fn a_clean_ledger_verifies(database: &TestDatabase) {
    let store = database.open();
    let key = history(&store).await;
    let report = store.verify().await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.differences);
    assert_eq!(
        (
            report.wallets,
            report.keys,
            report.open_holds,
            report.entries
        ),
        (1, 1, 1, 3)
    );

    // Counted usage is limited to the hold, and the verification expects that.
    let counted = admit(&store, &key, credits(1)).await.unwrap();
    let meter = ledger::Meter {
        input: 5_000_000,
        ..ledger::Meter::default()
    };
    let end = End::Settled {
        charge: credits(1),
        meter: (&meter).into(),
        price_version: price(&store).await,
        basis: Basis::Counted,
        tokens: None,
        cost: None,
    };
    store.close(Close {
        if_lost: IfLost::Charge,
        hold: counted.hold,
        end,
        now: NOW,
    });
    store.flush().await.unwrap();
    assert_clean(&store).await;
}

pub(crate) async fn each_planted_difference_is_found(database: &TestDatabase) {
    let drop_triggers = database.sql_for(
        "DROP TRIGGER entries_are_not_changed; DROP TRIGGER entries_are_not_deleted;",
        "DROP TRIGGER entries_are_not_changed ON entries; DROP TRIGGER entries_are_not_deleted ON entries;",
    );
    for (rule, sql) in [
        (Rule::V1Frozen, "UPDATE wallets SET frozen = frozen + 1"),
        (
            Rule::V1Frozen,
            database.sql_for("UPDATE key_states SET frozen = 0", "UPDATE keys SET frozen = 0"),
        ),
        (
            Rule::V1Frozen,
            database.sql_for("UPDATE key_states SET open_holds = 0", "UPDATE keys SET open_holds = 0"),
        ),
        (Rule::V1Frozen, "UPDATE holds SET amount = amount + 1"),
        (Rule::V1Frozen, "UPDATE wallets SET exposed = exposed + 1"),
        (Rule::V1Frozen, "UPDATE holds SET exposure = exposure + 1"),
        (Rule::V2Entries, "UPDATE wallets SET balance = balance + 1"),
        (Rule::V2Entries, "UPDATE wallets SET gift_balance = 1"),
        (Rule::V2Entries, "UPDATE entries SET balance_delta = balance_delta - 1 WHERE kind = 'settled'"),
        (Rule::V2Entries, "UPDATE entries SET balance_delta = -1 WHERE kind = 'top_up'"),
        (
            Rule::V3Credit,
            database.sql_for(
                "PRAGMA ignore_check_constraints = ON; UPDATE wallets SET credit_used = 5 WHERE balance > 0",
                "ALTER TABLE wallets DROP CONSTRAINT no_balance_beside_credit;
                 UPDATE wallets SET credit_used = 5 WHERE balance > 0",
            ),
        ),
        (Rule::V4Closes, "DELETE FROM entries WHERE kind = 'released'"),
        (Rule::V4Closes, "UPDATE entries SET seq = 9 WHERE kind = 'released'"),
        (Rule::V4Closes, "UPDATE wallets SET holds_opened = holds_opened + 1"),
        (Rule::V4Closes, "UPDATE entries SET closes = (SELECT id FROM holds) WHERE kind = 'released'"),
        (
            Rule::V4Closes,
            "DROP INDEX entries_closing; UPDATE entries SET closes = (SELECT closes FROM entries WHERE kind = 'settled')
             WHERE kind = 'released'",
        ),
        (Rule::V4Closes, "UPDATE holds SET booked = 1"),
        (Rule::V4Closes, "UPDATE entries SET booked = 1 WHERE kind = 'settled'"),
        (Rule::V4Closes, "UPDATE entries SET kind = 'part', part_of = closes, closes = NULL WHERE kind = 'settled'"),
        (
            Rule::V5Usage,
            database.sql_for("UPDATE key_states SET usage = usage + 1", "UPDATE keys SET usage = usage + 1"),
        ),
        (
            Rule::V6Owner,
            database.sql_for(
                "INSERT INTO epochs SELECT max(epoch) + 1, 0 FROM epochs",
                "UPDATE nodes SET closed_at = 1, swept_at = 1",
            ),
        ),
        (Rule::V7Price, "UPDATE entries SET meter = '{\"input\":1}' WHERE kind = 'settled'"),
        (Rule::V7Price, "UPDATE entries SET meter = 'no JSON' WHERE kind = 'settled'"),
        (Rule::V7Price, "UPDATE entries SET price_version = 99 WHERE kind = 'settled'"),
        (Rule::V10Points, "UPDATE wallets SET charged = charged + 1"),
        (Rule::V10Points, "UPDATE wallets SET posted_at = posted_at + 1"),
        (
            Rule::V10Points,
            database.sql_for(
                "INSERT INTO balance_points SELECT n, 2, posted_at, balance, 0, 0, charged, 0 FROM wallets",
                "INSERT INTO balance_points SELECT n, 2, posted_at, balance, 0, 0, charged FROM wallets",
            ),
        ),
        (Rule::V10Points, "UPDATE entries SET at = at + 86400000 WHERE kind = 'settled'"),
    ] {
        let database = TestDatabase::like(database);
        let store = database.open();
        let key = history(&store).await;
        database.tamper(&format!("{drop_triggers} {sql}"));
        let report = store.verify().await.unwrap();
        let found: Vec<Rule> = report.differences.iter().map(|difference| difference.rule).collect();
        assert!(found.contains(&rule), "{sql}: {found:?}");
        assert!(report.differences.iter().all(|difference| difference.wallet == key.wallet.to_string()), "{sql}");
    }
}

pub(crate) async fn entries_cannot_be_changed_or_deleted(database: &TestDatabase) {
    let store = database.open();
    history(&store).await;
    for sql in [
        "UPDATE entries SET charge = 0",
        "DELETE FROM entries",
        "UPDATE price_versions SET card = '{}'",
        "DELETE FROM price_versions",
        "UPDATE wallets SET balance = -1",
        "UPDATE wallets SET frozen = -1",
        "UPDATE wallets SET credit_used = 1 WHERE balance > 0",
    ] {
        assert!(database.try_tamper(sql).is_err(), "{sql}");
    }
    assert_clean(&store).await;
}
