//! Tests the hash chain of a wallet's entries: `verify` finds changes that were made directly in the database.

use std::collections::BTreeSet;

use ledger::{Meter, Micro, Step, WalletStatus};
use store::{
    Basis, Close, End, Head, IfLost, KeyLimits, KeyRow, MeterText, NewWallet, Rule, SessionStep,
    Store, VerifyReport, WalletHead,
};

use crate::test_database::{
    NOW, TestDatabase, actor, admit, assert_clean, credits, key, price, released, settled, wallet,
};

/// Creates two wallets: `a` with an open hold and an entry of every kind except debit, refund and adjustment, `b` with
/// a settled call.
async fn history(store: &Store) -> KeyRow {
    let version = price(store).await;
    let new = NewWallet {
        name: "a".to_owned(),
        balance: credits(100),
        gift: credits(1),
        credit_limit: credits(5),
    };
    let first = store.create_wallet(new, &actor()).await.unwrap().id;
    let key_a = key(store, first, KeyLimits::default()).await;
    store
        .top_up(first, credits(2), "one", &actor())
        .await
        .unwrap();
    store
        .top_up(first, credits(3), "two", &actor())
        .await
        .unwrap();
    store.gift(first, credits(1), "", &actor()).await.unwrap();
    store
        .set_credit_limit(first, credits(7), &actor())
        .await
        .unwrap();
    for status in [WalletStatus::Disabled, WalletStatus::Active] {
        store
            .set_wallet_status(first, status, &actor())
            .await
            .unwrap();
    }
    let calls = [
        admit(store, &key_a, credits(1)).await.unwrap().hold,
        admit(store, &key_a, credits(1)).await.unwrap().hold,
        admit(store, &key_a, credits(1)).await.unwrap().hold,
        admit(store, &key_a, credits(1)).await.unwrap().hold,
    ];
    store.close(settled(calls[0], version, 600_000));
    store.close(released(calls[1]));
    store.close(Close {
        hold: calls[2],
        end: End::Abandoned,
        now: NOW,
        if_lost: IfLost::Charge,
    });
    let meter = MeterText::from(&Meter {
        stt_stream_seconds: 10,
        ..Meter::default()
    });
    let step = SessionStep {
        hold: calls[3],
        step: Step {
            used: Micro::new(100_000),
            wanted: Micro::new(200_000),
            least: Micro::new(110_000),
        },
        meter: meter.clone(),
        price_version: version,
        now: NOW,
        cost: None,
    };
    store.step_session(step).await.unwrap();
    store.close(Close {
        hold: calls[3],
        end: End::Settled {
            charge: Micro::new(100_000),
            meter,
            price_version: version,
            basis: Basis::Counted,
            tokens: None,
            cost: None,
        },
        now: NOW,
        if_lost: IfLost::Charge,
    });
    let _open = admit(store, &key_a, credits(2)).await.unwrap();

    let second = wallet(store, "b", credits(10)).await.id;
    let key_b = key(store, second, KeyLimits::default()).await;
    let call = admit(store, &key_b, credits(1)).await.unwrap().hold;
    store.close(settled(call, version, 600_000));
    store.flush().await.unwrap();
    store
        .top_up(first, credits(1), "last", &actor())
        .await
        .unwrap();
    assert_clean(store).await;
    key_a
}

fn drop_guards(database: &TestDatabase) -> &'static str {
    database.sql_for(
        "DROP TRIGGER entries_are_not_changed; DROP TRIGGER entries_are_not_deleted;
         DROP TRIGGER price_versions_are_not_changed;",
        "DROP TRIGGER entries_are_not_changed ON entries; DROP TRIGGER entries_are_not_deleted ON entries;
         DROP TRIGGER price_versions_are_not_changed ON price_versions; DROP TRIGGER entries_are_chained ON wallets;
         ALTER TABLE wallets DROP CONSTRAINT every_entry_is_summed;",
    )
}

fn rules(report: &VerifyReport) -> BTreeSet<Rule> {
    report.differences.iter().map(|it| it.rule).collect()
}

/// Most of these forgeries keep everything except the chain consistent, like an attacker who knows the other rules.
pub(crate) async fn what_was_forged_is_found(database: &TestDatabase) {
    let a = "(SELECT n FROM wallets WHERE name = 'a')";
    let key_of = |name| {
        format!("(SELECT k.n FROM keys k JOIN wallets w ON w.n = k.wallet WHERE w.name = '{name}')")
    };
    let (key_a, key_b) = (key_of("a"), key_of("b"));
    let of_key = database.sql_for("UPDATE key_states SET", "UPDATE keys SET");
    let id = database.sql_for("key", "n");
    let forged = "INSERT INTO entries (wallet, seq, kind, at, charge, balance_delta, gift_delta, credit_delta, note)
        SELECT n, entries + 1, 'top_up', 0, 0, 5000000, 0, 0, 'paid' FROM wallets WHERE name = 'a';
        UPDATE wallets SET entries = entries + 1, balance = balance + 5000000 WHERE name = 'a'"
        .to_owned();
    let cut = "DELETE FROM entries WHERE note = 'last'";
    let cut_and_rewritten = format!(
        "{cut}; UPDATE wallets SET entries = entries - 1, balance = balance - 1000000 WHERE name = 'a'"
    );
    let moved = format!(
        "UPDATE entries SET key = {key_b} WHERE wallet = {a} AND meter = '{{\"input\":600000}}';
         {of_key} usage = usage - 600000 WHERE {id} = {key_a}; {of_key} usage = usage + 600000 WHERE {id} = {key_b}"
    );
    let swapped = "UPDATE entries SET note = CASE note WHEN 'one' THEN 'two' ELSE 'one' END,
        balance_delta = CASE note WHEN 'one' THEN 3000000 ELSE 2000000 END WHERE note IN ('one', 'two')"
        .to_owned();
    let hold_moved = format!(
        "UPDATE holds SET key = {key_b} WHERE wallet = {a};
         {of_key} frozen = frozen - 2000000, open_holds = open_holds - 1 WHERE {id} = {key_a};
         {of_key} frozen = frozen + 2000000, open_holds = open_holds + 1 WHERE {id} = {key_b}"
    );
    for (sql, expected) in [
        (forged, vec![Rule::V9Chain]),
        (cut.to_owned(), vec![Rule::V2Entries, Rule::V4Closes, Rule::V9Chain]),
        (cut_and_rewritten, vec![Rule::V9Chain]),
        (moved, vec![Rule::V5Usage, Rule::V9Chain]),
        (swapped, vec![Rule::V9Chain]),
        ("UPDATE entries SET note = 'gone' WHERE note = 'last'".to_owned(), vec![Rule::V9Chain]),
        (
            "UPDATE price_versions SET card = '{\"input\":\"1\",\"output\":\"9\",\"stt_stream_second\":\"0.01\"}'"
                .to_owned(),
            vec![Rule::V9Chain],
        ),
        ("UPDATE price_versions SET model = 'story/other'".to_owned(), vec![Rule::V9Chain]),
        (
            format!("UPDATE keys SET id = 'key_0000000000000000' WHERE n = {key_a}"),
            vec![Rule::V9Chain],
        ),
        ("UPDATE wallets SET head = (SELECT head FROM wallets WHERE name = 'b')".to_owned(), vec![Rule::V9Chain]),
        (database.sql_for("UPDATE wallets SET head = x''", "UPDATE wallets SET head = ''").to_owned(), vec![Rule::V9Chain]),
        ("UPDATE wallets SET credit_limit = 900000000 WHERE name = 'a'".to_owned(), vec![Rule::V2Entries]),
        ("UPDATE wallets SET status = 'disabled' WHERE name = 'b'".to_owned(), vec![Rule::V2Entries]),
        (hold_moved, vec![Rule::V1Frozen]),
    ] {
        let database = TestDatabase::like(database);
        let store = database.open();
        history(&store).await;
        let posted = "UPDATE wallets SET posted_at = (SELECT max(at) FROM entries WHERE wallet = wallets.n)";
        database.tamper(&format!("{} {sql}; {posted}", drop_guards(&database)));
        let report = store.verify().await.unwrap();
        assert_eq!(rules(&report), expected.into_iter().collect(), "{sql}: {:#?}", report.differences);
        for difference in &report.differences {
            assert_ne!(difference.expected, difference.found, "{sql}");
        }
    }
}

/// Changes one value at a time, in each entry and in each column except `basis`, `cost` and `cost_version`.
pub(crate) async fn a_change_of_any_value_of_any_entry_is_found(database: &TestDatabase) {
    let store = database.open();
    history(&store).await;
    let entries = store.verify().await.unwrap().entries;
    assert_eq!(entries, 17);
    let guards = database.sql_for(
        "DROP INDEX entries_closing; DROP INDEX entries_by_reference;",
        "DROP INDEX entries_closing; DROP INDEX entries_by_reference; ALTER TABLE entries DROP CONSTRAINT entries_check,
         DROP CONSTRAINT entries_charge_check, DROP CONSTRAINT entries_booked_check,
         DROP CONSTRAINT entries_basis_check, DROP CONSTRAINT entries_pkey;",
    );
    database.tamper(&format!(
        "{} {guards} CREATE TABLE kept AS SELECT * FROM entries",
        drop_guards(database)
    ));
    let unchecked = database.sql_for(
        "PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF;",
        "SET synchronous_commit = off;",
    );
    // Expressions for the new value of a column. The last two lists are for columns that may be NULL.
    let number = ["{} + 1", "{} + 4611686018427387904"];
    let text = ["{} || ' '", "substr({}, 2)"];
    let maybe_number = ["coalesce({} + 1, 0)", "CASE WHEN {} IS NULL THEN 7 END"];
    let maybe_text = [
        "coalesce({} || ' ', '')",
        "CASE WHEN {} IS NULL THEN 'x' END",
    ];
    let columns: [(&str, &[&str]); 21] = [
        ("wallet", &number[..1]),
        ("seq", &number),
        ("kind", &text),
        ("at", &number),
        ("closes", &maybe_number),
        ("part_of", &maybe_number),
        ("key", &maybe_number),
        ("held", &maybe_number),
        ("booked", &number),
        ("charge", &number),
        ("balance_delta", &number),
        ("gift_delta", &number),
        ("credit_delta", &number),
        ("opened_at", &maybe_number),
        ("request_id", &maybe_text),
        ("meter", &maybe_text),
        ("price_version", &maybe_number),
        ("note", &maybe_text),
        ("reference", &maybe_text),
        ("refund_of", &maybe_number),
        ("actor", &maybe_text),
    ];
    // One change of each column is enough to test what PostgreSQL stores. The rest is the same code for both databases.
    let changes_max = match database {
        TestDatabase::Sqlite(_) => usize::MAX,
        TestDatabase::Postgres(_) => 1,
    };
    let mut undo = String::new();
    for (column, changes) in columns {
        for change in changes.iter().take(changes_max) {
            let new = change.replace("{}", column);
            for entry in 0..entries {
                let that = format!("n = (SELECT n FROM kept ORDER BY n LIMIT 1 OFFSET {entry})");
                database.tamper(&format!(
                    "{unchecked} {undo} UPDATE entries SET {column} = {new} WHERE {that}"
                ));
                let report = store.verify().await.unwrap();
                assert!(!report.is_clean(), "entry {entry}: {column} = {new}");
                undo = format!(
                    "UPDATE entries SET {column} = (SELECT {column} FROM kept WHERE {that}) WHERE {that};"
                );
            }
        }
    }
    database.tamper(&format!("{unchecked} {undo}"));
    assert_clean(&store).await;
}

/// A chain that was rewritten as a whole matches its head, but not the heads that were noted before.
pub(crate) async fn noted_heads_find_a_chain_that_was_rewritten(database: &TestDatabase) {
    let store = database.open();
    let key_a = history(&store).await;
    let noted = store.verify().await.unwrap().heads;
    assert_eq!(noted.len(), 2);
    assert!(noted.is_sorted_by_key(|noted| noted.wallet));
    assert!(
        noted
            .iter()
            .any(|noted| (noted.wallet, noted.entries) == (key_a.wallet, 15))
    );

    // Later entries and wallets do not affect the noted heads.
    store
        .top_up(key_a.wallet, credits(1), "later", &actor())
        .await
        .unwrap();
    wallet(&store, "c", Micro::ZERO).await;
    let report = store.verify_with(noted.clone()).await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.differences);
    assert_eq!(report.heads.len(), 3);

    let ends: Vec<WalletHead> = report.heads;
    let newer = |change: fn(&mut WalletHead)| {
        let mut ends = ends.clone();
        ends.iter_mut()
            .filter(|it| it.wallet == key_a.wallet)
            .for_each(change);
        ends
    };
    let other: Head = "00".repeat(32).parse().unwrap();
    for wrong in [
        newer(|it| it.entries += 1),
        newer(|it| it.head = "00".repeat(32).parse().unwrap()),
    ] {
        let report = store.verify_with(wrong).await.unwrap();
        assert_eq!(
            rules(&report),
            [Rule::V9Chain].into(),
            "{:#?}",
            report.differences
        );
    }
    let mut gone = ends.clone();
    gone.push(WalletHead {
        wallet: store::WalletId::random(),
        entries: 0,
        head: other,
    });
    let report = store.verify_with(gone).await.unwrap();
    assert_eq!(report.differences.len(), 1, "{:#?}", report.differences);

    // The program itself computes heads after a migration, which could be abused to rewrite a chain.
    drop(store);
    database.tamper(&format!(
        "{} UPDATE entries SET note = 'gone' WHERE note = 'one'; CREATE TABLE heads_missing (since bigint)",
        drop_guards(database)
    ));
    let store = database.open();
    assert_clean(&store).await;
    let report = store.verify_with(noted).await.unwrap();
    assert_eq!(rules(&report), [Rule::V9Chain].into());
    let [difference] = &report.differences[..] else {
        panic!("{:#?}", report.differences);
    };
    assert_eq!(difference.wallet, key_a.wallet.to_string());
    assert_eq!(difference.what, "head noted at entry 15");
}

/// The test brings the database into the state of a migration that was stopped after the SQL steps.
pub(crate) async fn a_migration_that_was_stopped_before_the_heads_is_completed(
    database: &TestDatabase,
) {
    let store = database.open();
    let key_a = history(&store).await;
    let heads = store.verify().await.unwrap().heads;
    drop(store);
    let stopped = database.sql_for(
        "UPDATE wallets SET head = x''; CREATE TABLE heads_missing (since INTEGER)",
        "UPDATE wallets SET head = ''; CREATE TABLE heads_missing (since bigint)",
    );
    database.tamper(stopped);
    // A command that finds the database without a server completes the migration too.
    let command = database.attach();
    assert_eq!(command.verify().await.unwrap().heads, heads);
    drop(command);
    database.tamper(stopped);
    let store = database.open();
    store
        .top_up(key_a.wallet, credits(1), "more", &actor())
        .await
        .unwrap();
    let report = store.verify_with(heads).await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.differences);
}

pub(crate) async fn server_and_commands_write_one_chain(database: &TestDatabase) {
    let store = database.open();
    let version = price(&store).await;
    let first = wallet(&store, "a", credits(100)).await;
    let key_a = key(&store, first.id, KeyLimits::default()).await;
    let command = database.attach();
    for round in 0..5_u8 {
        let call = admit(&store, &key_a, credits(1)).await.unwrap();
        store.close(settled(call.hold, version, 100_000 + u64::from(round)));
        command
            .top_up(first.id, credits(1), "beside", &actor())
            .await
            .unwrap();
        let call = admit(&store, &key_a, credits(1)).await.unwrap();
        store.close(released(call.hold));
        command
            .set_credit_limit(first.id, credits(i64::from(round) + 1), &actor())
            .await
            .unwrap();
    }
    let _open = admit(&store, &key_a, credits(1)).await.unwrap();
    store.flush().await.unwrap();
    let noted = command.verify().await.unwrap();
    assert!(noted.is_clean(), "{:#?}", noted.differences);
    drop(command);
    drop(store);
    // The next start closes the open hold.
    let store = database.open();
    let report = store.verify_with(noted.heads).await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.differences);
    assert_eq!(report.heads[0].entries, 22);
}
