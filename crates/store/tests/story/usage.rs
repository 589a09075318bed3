//! Tests that the roll-ups agree with a recount of the journal's rows, and that searches use them.

use std::collections::BTreeMap;

use ledger::{DAY_MS, HOUR_MS, MINUTE_MS, Meter, Micro, UnixMs};
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use store::{
    Dimension, Histogram, JournalCursor, JournalQuery, JournalRow, KeyId, MeterText, Series,
    Settings, StatusRange, Store, StoreError, Timings, UsageQuery, UsageRow, UsageStep, WalletId,
};

use crate::test_database::{TestDatabase, eventually};

const ROWS: usize = 600;

pub(crate) fn now() -> UnixMs {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    UnixMs::new(i64::try_from(since.as_millis()).unwrap())
}

/// Calls over three months, many of them recent, with all values that are counted.
pub(crate) fn rows(seed: u64, now: UnixMs) -> Vec<JournalRow> {
    let mut rng = rand::rngs::StdRng::seed_from_u64(seed);
    let accounts: Vec<(WalletId, KeyId)> = (0..5)
        .flat_map(|_| {
            let wallet = WalletId::random();
            [(wallet, KeyId::random()), (wallet, KeyId::random())]
        })
        .collect();
    let mut ages: Vec<i64> = (0..ROWS)
        .map(|_| {
            let span = *[MINUTE_MS, HOUR_MS, 2 * DAY_MS, 90 * DAY_MS]
                .choose(&mut rng)
                .unwrap();
            rng.random_range(0..span)
        })
        .collect();
    ages.sort_unstable_by(|one, other| other.cmp(one));
    let row = |(n, age): (usize, i64)| {
        let account = rng
            .random_bool(0.9)
            .then(|| *accounts.choose(&mut rng).unwrap());
        let (status, code) = *[
            (200, None),
            (200, None),
            (429, Some("rate_limit_exceeded")),
            (404, Some("model_not_found")),
        ]
        .choose(&mut rng)
        .unwrap();
        JournalRow {
            at: now.minus_ms(age),
            request_id: format!("req_{n:05}{}", rng.random_range(0..100))
                .as_str()
                .into(),
            wallet: account.map(|(wallet, _)| wallet),
            key: account.map(|(_, key)| key),
            endpoint: ["/v1/chat/completions", "/v1/messages"][rng.random_range(0..2)].into(),
            model: ["a/x", "a/y", "b/z"][rng.random_range(0..3)].into(),
            channel: (status == 200).then(|| ["one", "two"][rng.random_range(0..2)].into()),
            status,
            code: code.map(Into::into),
            meter: (status == 200).then(|| {
                MeterText::from(&Meter {
                    input: rng.random_range(0..1_000),
                    cached_input: rng.random_range(0..10),
                    output: rng.random_range(0..100),
                    ..Meter::default()
                })
            }),
            charge: Micro::new(rng.random_range(0..10_000)),
            cost: rng
                .random_bool(0.5)
                .then(|| Micro::new(rng.random_range(0..9_000))),
            timings: Timings {
                first_byte_us: (status == 200).then(|| rng.random_range(0..5_000_000)),
                total_us: rng.random_range(0..60_000_000),
                ..Timings::default()
            },
            ..JournalRow::default()
        }
    };
    ages.into_iter().enumerate().map(row).collect()
}

/// The counted values of some calls: their number, errors, tokens in and out, charge, cost and margin.
type Counted = (u64, u64, u64, u64, i64, Option<i64>, Option<i64>);

#[derive(Default)]
struct Recount {
    counted: Counted,
    latency: Vec<u64>,
    first_byte: Vec<u64>,
}

fn recount(rows: &[JournalRow], query: &UsageQuery) -> BTreeMap<(Option<UnixMs>, Series), Recount> {
    let mut groups: BTreeMap<(Option<UnixMs>, Series), Recount> = BTreeMap::new();
    for row in rows {
        let has_run = row.channel.is_some() || row.hold.is_some();
        let model = if !has_run && matches!(row.status, 400 | 404 | 422) {
            ""
        } else {
            &row.model
        };
        let channel = row.channel.as_deref().unwrap_or_default();
        let is_asked_for = query.from <= row.at
            && row.at < query.to
            && query.wallet.is_none_or(|wallet| row.wallet == Some(wallet))
            && query.key.is_none_or(|key| row.key == Some(key))
            && query.model.as_deref().is_none_or(|wanted| wanted == model);
        if !is_asked_for {
            continue;
        }
        let mut series = Series::default();
        for dimension in &query.by {
            match dimension {
                Dimension::Model => series.model = model.into(),
                Dimension::Channel => series.channel = channel.into(),
                Dimension::Wallet => series.wallet = row.wallet,
                Dimension::Key => series.key = row.key,
                Dimension::Endpoint => series.endpoint.clone_from(&row.endpoint),
            }
        }
        let at = query.step.map(|step| step.start_of(row.at));
        let group = groups.entry((at, series)).or_default();
        let (requests, errors, input, output, charge, cost, margin) = &mut group.counted;
        let meter = row
            .meter
            .as_ref()
            .map(|meter| meter.read().unwrap())
            .unwrap_or_default();
        *requests += 1;
        *errors += u64::from(row.status != 200);
        *input += meter.input + meter.cached_input;
        *output += meter.output;
        *charge += row.charge.get();
        if let Some(paid) = row.cost {
            *cost.get_or_insert(0) += paid.get();
            *margin.get_or_insert(0) += row.charge.get() - paid.get();
        }
        group.latency.push(row.timings.total_us);
        group.first_byte.extend(row.timings.first_byte_us);
    }
    groups
}

fn assert_percentile(estimate: &Histogram, durations: &mut [u64], of_hundred: u8) {
    durations.sort_unstable();
    let rank = (durations.len() * usize::from(of_hundred))
        .div_ceil(100)
        .max(1);
    match (estimate.percentile(of_hundred), durations.get(rank - 1)) {
        (Some(estimate), Some(true_one)) => assert!(estimate.abs_diff(*true_one) <= true_one / 32),
        (estimate, true_one) => assert_eq!(estimate, true_one.copied()),
    }
}

async fn assert_recounted(store: &Store, rows: &[JournalRow], query: UsageQuery) {
    let found: Vec<UsageRow> = store.usage(query.clone()).await.unwrap();
    let mut expected = recount(rows, &query);
    assert_eq!(found.len(), expected.len(), "{query:?}");
    for UsageRow { at, series, totals } in found {
        let group = expected.get_mut(&(at, series.clone())).unwrap();
        let counted = (
            totals.requests,
            totals.errors,
            totals.input_tokens,
            totals.output_tokens,
            totals.charge.get(),
            totals.known_cost().map(Micro::get),
            totals.margin().map(Micro::get),
        );
        assert_eq!(counted, group.counted, "{query:?} {at:?} {series:?}");
        for of_hundred in [50, 95] {
            assert_percentile(&totals.latency, &mut group.latency, of_hundred);
            assert_percentile(&totals.first_byte, &mut group.first_byte, of_hundred);
        }
    }
}

pub(crate) async fn write(store: &Store, rows: &[JournalRow]) {
    for part in rows.chunks(97) {
        for row in part {
            store.journal_append(row.clone());
        }
        store.flush().await.unwrap();
    }
}

pub(crate) fn kept(database: &TestDatabase) -> Store {
    let settings = Settings {
        journal_retention_days: 0,
        ..database.settings()
    };
    Store::open(&settings).unwrap().0
}

/// Queries of every kind. Each begins at the start of a minute or hour for which totals are kept. Each ends at the
/// start of such a minute or hour, or after the last call.
fn questions(rows: &[JournalRow], now: UnixMs) -> Vec<UsageQuery> {
    use Dimension::{Channel, Endpoint, Key, Model, Wallet};
    let minute = |ago_ms: i64| UsageStep::Minute.start_of(now.minus_ms(ago_ms));
    let hour = |ago_ms: i64| UsageStep::Hour.start_of(now.minus_ms(ago_ms));
    let end = now.plus_ms(1);
    let mut questions = Vec::new();
    for by in [
        vec![],
        vec![Model],
        vec![Channel],
        vec![Endpoint],
        vec![Wallet],
        vec![Key],
        vec![Wallet, Key],
        vec![Model, Channel],
        vec![Wallet, Model],
        Dimension::ALL.to_vec(),
    ] {
        for (from, to, step) in [
            (hour(80 * DAY_MS), end, None),
            (hour(40 * DAY_MS), hour(3 * DAY_MS + 7 * HOUR_MS), None),
            (minute(45 * MINUTE_MS), end, None),
            (minute(HOUR_MS), end, Some(UsageStep::Minute)),
            (hour(5 * DAY_MS), end, Some(UsageStep::Hour)),
            (
                hour(30 * DAY_MS),
                minute(3 * MINUTE_MS),
                Some(UsageStep::Day),
            ),
            (hour(89 * DAY_MS), end, Some(UsageStep::Month)),
        ] {
            let query = UsageQuery {
                step,
                by: by.clone(),
                ..UsageQuery::between(from, to, now)
            };
            questions.push(query);
        }
    }
    let filtered = UsageQuery {
        wallet: rows.iter().find_map(|row| row.wallet),
        by: vec![Model],
        ..UsageQuery::between(hour(60 * DAY_MS), end, now)
    };
    questions.push(UsageQuery {
        model: Some("a/x".to_owned()),
        ..filtered.clone()
    });
    for by in [vec![], vec![Key], vec![Key, Model], vec![Model, Channel]] {
        for step in [None, Some(UsageStep::Day)] {
            let of_wallet = UsageQuery {
                by: by.clone(),
                step,
                ..filtered.clone()
            };
            questions.push(UsageQuery {
                wallet: None,
                key: rows.iter().find_map(|row| row.key),
                ..of_wallet.clone()
            });
            questions.push(of_wallet);
        }
    }
    questions.push(UsageQuery {
        wallet: Some(WalletId::random()),
        ..filtered.clone()
    });
    questions.push(filtered);
    questions
}

pub(crate) async fn a_report_with_too_many_rows_is_refused(database: &TestDatabase) {
    let store = kept(database);
    let now = now();
    let row = |n: i64| JournalRow {
        at: now.minus_ms(n * HOUR_MS),
        model: format!("a/{n}").into(),
        status: 200,
        ..JournalRow::default()
    };
    write(&store, &(0..10).map(row).collect::<Vec<_>>()).await;
    let by_model = |rows_max| UsageQuery {
        by: vec![Dimension::Model],
        rows_max,
        ..UsageQuery::between(now.minus_ms(DAY_MS), now.plus_ms(1), now)
    };
    assert_eq!(store.usage(by_model(10)).await.unwrap().len(), 10);
    let refused = store.usage(by_model(9)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Invalid(_)), "{refused}");
}

/// `PostgreSQL` cannot store NUL, so the first two names are the same there.
pub(crate) async fn names_that_a_database_stores_alike_do_not_stop_the_journal(
    database: &TestDatabase,
) {
    let store = kept(database);
    let now = now();
    let row = |model: &str| JournalRow {
        at: now,
        model: model.into(),
        channel: Some("one".into()),
        status: 200,
        ..JournalRow::default()
    };
    write(&store, &[row("a/\u{0}"), row("a/\u{fffd}"), row("a/x")]).await;
    let from = UsageStep::Hour.start_of(now);
    let query = UsageQuery::between(from, now.plus_ms(1), now);
    let rows = store.usage(query).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.totals.requests).sum::<u64>(), 3);
}

pub(crate) async fn reports_equal_a_recount_of_the_rows(database: &TestDatabase) {
    let store = kept(database);
    let now = now();
    let rows = rows(1, now);
    write(&store, &rows).await;
    for query in questions(&rows, now) {
        assert_recounted(&store, &rows, query).await;
    }
    // All counts are stored, so the reports are the same after a restart.
    drop(store);
    let store = kept(database);
    for query in questions(&rows, now) {
        assert_recounted(&store, &rows, query).await;
    }
}

pub(crate) async fn reports_outlive_the_rows(database: &TestDatabase) {
    let store = kept(database);
    let now = now();
    let rows = rows(2, now);
    write(&store, &rows).await;
    drop(store);
    let settings = Settings {
        journal_retention_days: 10,
        ..database.settings()
    };
    let (store, _) = Store::open(&settings).unwrap();
    store.flush().await.unwrap();
    let kept = store.journal(JournalQuery {
        limit: 1_000,
        ..JournalQuery::default()
    });
    assert!(kept.await.unwrap().len() < rows.len());
    for query in questions(&rows, now) {
        assert_recounted(&store, &rows, query).await;
    }
}

pub(crate) async fn rows_of_earlier_versions_are_counted(database: &TestDatabase) {
    let store = kept(database);
    let now = now();
    let rows = rows(3, now);
    let (older, newer) = rows.split_at(400);
    write(&store, older).await;
    drop(store);
    // Brings the store into the state after a migration from a version that did not count calls.
    database.tamper_journal(
        "DELETE FROM usage_totals; DELETE FROM usage_series; DELETE FROM usage_uncounted;
         INSERT INTO usage_uncounted SELECT max(n) + 1 FROM calls",
    );
    let store = kept(database);
    write(&store, newer).await;
    let everything = UsageQuery::between(now.minus_ms(91 * DAY_MS), now.plus_ms(1), now);
    eventually("that all rows are counted", async || {
        let counted = store.usage(everything.clone()).await.unwrap();
        counted.iter().map(|row| row.totals.requests).sum::<u64>() == rows.len() as u64
    })
    .await;
    for query in questions(&rows, now) {
        assert_recounted(&store, &rows, query).await;
    }
}

pub(crate) async fn reports_over_an_upgrade_lack_nothing(database: &TestDatabase) {
    let store = kept(database);
    let now = now();
    let rows = rows(4, now);
    write(&store, &rows).await;
    drop(store);
    // Brings the store into its state 40 days after an upgrade. Earlier versions wrote no grains above 5.
    let upgraded = now.minus_ms(40 * DAY_MS).get();
    database.tamper_journal(&format!(
        "INSERT INTO usage_long_steps VALUES ({upgraded});
         DELETE FROM usage_totals WHERE grain > 5 AND at < {upgraded}"
    ));
    let store = kept(database);
    for query in questions(&rows, now) {
        assert_recounted(&store, &rows, query).await;
    }
    drop(store);
    // Brings the store into a state before the migration, as an earlier version left it.
    database.tamper_journal(&format!(
        "DELETE FROM usage_totals WHERE grain > 5; DROP TABLE usage_long_steps; {}
         DELETE FROM refinery_schema_history WHERE version >= {}",
        database.sql_for(
            "DROP TABLE usage_pending;",
            "ALTER TABLE tasks DROP COLUMN endpoint;"
        ),
        database.sql_for("4", "13")
    ));
    let store = kept(database);
    for query in questions(&rows, now) {
        assert_recounted(&store, &rows, query).await;
    }
}

/// Reads all pages of a search and joins them.
async fn pages(store: &Store, query: &JournalQuery) -> Vec<String> {
    let mut found = Vec::new();
    let mut before: Option<JournalCursor> = query.before;
    loop {
        let page = JournalQuery {
            before,
            ..query.clone()
        };
        let page = store.journal_page(page).await.unwrap();
        found.extend(
            page.entries
                .iter()
                .map(|entry| entry.row.request_id.to_string()),
        );
        let Some(next) = page.next else { return found };
        assert!(
            before.is_none_or(|before| next <= before),
            "a search goes on"
        );
        before = Some(next);
    }
}

pub(crate) async fn a_search_finds_what_a_look_at_every_row_finds(database: &TestDatabase) {
    let store = kept(database);
    let now = now();
    let rows = rows(4, now);
    write(&store, &rows).await;
    let mut rng = rand::rngs::StdRng::seed_from_u64(5);
    for _ in 0..150 {
        let like = rows.choose(&mut rng).unwrap().clone();
        let mut may = |likely: f64| rng.random_bool(likely);
        let query = JournalQuery {
            wallet: like.wallet.filter(|_| may(0.3)),
            key: like.key.filter(|_| may(0.2)),
            model: may(0.4).then(|| like.model.to_string()),
            channel: like.channel.as_deref().filter(|_| may(0.3)).map(Into::into),
            endpoint: may(0.3).then(|| like.endpoint.to_string()),
            status: may(0.4).then(|| StatusRange::class(like.status / 100)),
            code: like.code.as_deref().filter(|_| may(0.3)).map(Into::into),
            request_prefix: may(0.2).then(|| like.request_id[..7].to_owned()),
            since: may(0.3).then(|| like.at.minus_ms(DAY_MS)),
            until: may(0.3).then(|| like.at.plus_ms(HOUR_MS)),
            limit: 37,
            without_bodies: true,
            ..JournalQuery::default()
        };
        let matches = |row: &&JournalRow| {
            let text = |wanted: &Option<String>, is: Option<&str>| {
                wanted.as_deref().is_none_or(|wanted| is == Some(wanted))
            };
            query.wallet.is_none_or(|wallet| row.wallet == Some(wallet))
                && query.key.is_none_or(|key| row.key == Some(key))
                && text(&query.model, Some(&row.model))
                && text(&query.channel, row.channel.as_deref())
                && text(&query.endpoint, Some(&row.endpoint))
                && text(&query.code, row.code.as_deref())
                && query
                    .status
                    .is_none_or(|range| range.first <= row.status && row.status <= range.last)
                && query
                    .request_prefix
                    .as_ref()
                    .is_none_or(|prefix| row.request_id.starts_with(&**prefix))
                && query.since.is_none_or(|since| row.at >= since)
                && query.until.is_none_or(|until| row.at < until)
        };
        let expected = rows.iter().rev().filter(matches);
        let expected: Vec<String> = expected.map(|row| row.request_id.to_string()).collect();
        assert_eq!(pages(&store, &query).await, expected, "{query:?}");
    }
}
