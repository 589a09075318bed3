//! The databases of the tests, and small helpers.

use std::time::Duration;

use ledger::{Meter, Micro, Reservation, UnixMs};
use store::{
    Actor, Admit, AdmitError, AdmittedCall, Basis, Close, Digest, End, HoldId, IfLost, KeyId,
    KeyLimits, KeyRow, NewKey, NewWallet, PriceVersion, Recovery, Settings, Store, WalletId,
    WalletRow,
};

use refinery_core::{Runner, Target, load_sql_migrations};

use crate::schema::{Guest, LockHolder, Schema};

/// A database that can be opened repeatedly. Its contents are deleted when it is dropped.
pub(crate) enum TestDatabase {
    Sqlite(tempfile::TempDir),
    Postgres(Schema),
}

/// A fixed time, so that a test does not depend on when it runs, unless it also uses the machine's clock.
pub(crate) const NOW: UnixMs = UnixMs::new(1_800_000_000_000);

/// A time at which the claims of earlier starts are void: a start voids them by the machine's clock, which may be ahead
/// of [`NOW`].
pub(crate) fn restart_time() -> UnixMs {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = i64::try_from(since.unwrap().as_millis()).unwrap();
    NOW.max(UnixMs::new(now))
}

/// A time that is in the past by every clock.
pub(crate) const LONG_AGO: UnixMs = UnixMs::new(1_000_000_000_000);

/// One credit per million input tokens, so a token costs a micro-credit.
pub(crate) const CARD: &str = r#"{"input":"1","output":"1","stt_stream_second":"0.01"}"#;

impl TestDatabase {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the same signature as the other one"
    )]
    pub(crate) fn sqlite() -> Option<Self> {
        Some(Self::Sqlite(tempfile::tempdir().unwrap()))
    }

    /// A schema of its own on the test server. `None` without a test server.
    pub(crate) fn postgres() -> Option<Self> {
        Schema::new().map(Self::Postgres)
    }

    pub(crate) fn settings(&self) -> Settings {
        // The machine that runs the tests may be slow and short of disk space.
        Settings {
            disk_floor_bytes: 0,
            queue_wait_max: Duration::from_secs(60),
            ..match self {
                Self::Sqlite(folder) => Settings::at(folder.path().join("tollgate.db")),
                Self::Postgres(schema) => Settings::on(schema.server()),
            }
        }
    }

    pub(crate) fn open(&self) -> Store {
        self.reopen().0
    }

    pub(crate) fn reopen(&self) -> (Store, Recovery) {
        Store::open(&self.settings()).unwrap()
    }

    pub(crate) fn attach(&self) -> Store {
        Store::attach(&self.settings()).unwrap()
    }

    /// A fresh database of the same kind.
    pub(crate) fn like(database: &Self) -> Self {
        match database {
            Self::Sqlite(_) => Self::sqlite(),
            Self::Postgres(_) => Self::postgres(),
        }
        .unwrap()
    }

    /// Selects the SQL text for this kind of database.
    pub(crate) fn sql_for<'a>(&self, sqlite: &'a str, postgres: &'a str) -> &'a str {
        match self {
            Self::Sqlite(_) => sqlite,
            Self::Postgres(_) => postgres,
        }
    }

    /// Holds locks in the database until the result is dropped.
    pub(crate) fn hold_lock(&self, sql: &str) -> LockHolder {
        match self {
            Self::Sqlite(_) => panic!("SQLite has one lock; see its own fault tests"),
            Self::Postgres(schema) => schema.hold_lock(sql),
        }
    }

    /// Creates a role of its own on the server.
    pub(crate) fn guest(&self) -> Guest<'_> {
        match self {
            Self::Sqlite(_) => panic!("SQLite has no roles"),
            Self::Postgres(schema) => schema.guest(),
        }
    }

    /// Migrates an empty database to a version of the schema, for tests of upgrades.
    pub(crate) async fn migrate_to(&self, version: i32) {
        match self {
            Self::Sqlite(folder) => {
                let path = folder.path().join("tollgate.db");
                let mut on = rusqlite::Connection::open(path).unwrap();
                on.pragma_update(None, "application_id", 0x546f_6c6c)
                    .unwrap();
                on.pragma_update(None, "journal_mode", "WAL").unwrap();
                let old = migrations_up_to("ledger", version);
                old.run(&mut on).unwrap();
            }
            Self::Postgres(schema) => {
                let url = schema.url();
                let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
                let (mut client, driver) = connected.unwrap();
                tokio::spawn(driver);
                let old = migrations_up_to("postgres", version);
                old.run_async(&mut client).await.unwrap();
            }
        }
    }

    /// Sets the database's clock if the store uses it. The first call must come before a store is opened.
    pub(crate) fn set_clock(&self, now: UnixMs) {
        if let Self::Postgres(schema) = self {
            schema.set_clock(now.get());
        }
    }

    /// Changes the database directly, without the store.
    pub(crate) fn tamper(&self, sql: &str) {
        self.try_tamper(sql).unwrap();
    }

    /// Changes the journal directly, without the store.
    pub(crate) fn tamper_journal(&self, sql: &str) {
        match self {
            Self::Sqlite(folder) => {
                let path = folder.path().join("tollgate.db-calls");
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.execute_batch(sql).unwrap();
            }
            Self::Postgres(schema) => schema.run(sql).unwrap(),
        }
    }

    /// Every row of every table, except tables that a start writes. On `SQLite`, the journal's names and calls are left
    /// out too, because a move numbers the names anew.
    pub(crate) fn contents(&self) -> Vec<String> {
        match self {
            Self::Sqlite(folder) => {
                let names = ["tollgate.db", "tollgate.db-calls"];
                let files = names.iter().map(|name| folder.path().join(name));
                files.flat_map(|file| rows_of(&file)).collect()
            }
            Self::Postgres(schema) => schema.rows(),
        }
    }

    /// Like `tamper`, for changes that the database is expected to refuse.
    pub(crate) fn try_tamper(&self, sql: &str) -> Result<(), String> {
        match self {
            Self::Sqlite(folder) => {
                let path = folder.path().join("tollgate.db");
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.busy_timeout(Duration::from_secs(5)).unwrap();
                connection
                    .execute_batch(sql)
                    .map_err(|error| error.to_string())
            }
            Self::Postgres(schema) => schema.run(sql),
        }
    }
}

fn rows_of(file: &std::path::Path) -> Vec<String> {
    let on = rusqlite::Connection::open(file).unwrap();
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'
                  AND name NOT IN ('refinery_schema_history', 'epochs', 'names', 'calls') ORDER BY name";
    let mut tables = on.prepare(tables).unwrap();
    let tables = tables.query_map([], |row| row.get(0)).unwrap();
    let tables: Vec<String> = tables.map(Result::unwrap).collect();
    let mut found = Vec::new();
    for table in tables {
        let mut rows = on.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let count = rows.column_count();
        let rows = rows.query_map([], |row| {
            let value = |column| row.get::<_, rusqlite::types::Value>(column);
            let values: Result<Vec<_>, _> = (0..count).map(value).collect();
            Ok(format!("{table} {:?}", values?))
        });
        found.extend(rows.unwrap().map(Result::unwrap));
    }
    found.sort();
    found
}

pub(crate) fn actor() -> Actor {
    Actor::cli("story")
}

pub(crate) fn credits(credits: i64) -> Micro {
    Micro::new(credits * 1_000_000)
}

pub(crate) async fn wallet(store: &Store, name: &str, balance: Micro) -> WalletRow {
    let new = NewWallet {
        name: name.to_owned(),
        balance,
        gift: Micro::ZERO,
        credit_limit: Micro::ZERO,
    };
    store.create_wallet(new, &actor()).await.unwrap()
}

pub(crate) async fn key(store: &Store, wallet: WalletId, limits: KeyLimits) -> KeyRow {
    let secret = KeyId::random().to_string();
    let digest = Digest::of(secret.as_bytes());
    let shown_prefix = secret[..8].to_owned();
    store
        .create_key(
            NewKey {
                wallet,
                name: None,
                digest,
                shown_prefix,
                limits,
                tags: Vec::new(),
            },
            &actor(),
        )
        .await
        .unwrap()
}

/// Creates a wallet and a key without limits.
pub(crate) async fn funded(store: &Store, balance: Micro) -> KeyRow {
    let wallet = wallet(
        store,
        &WalletId::random().to_string().replace("wal_", "w "),
        balance,
    )
    .await;
    key(store, wallet.id, KeyLimits::default()).await
}

pub(crate) fn ask(hold: Micro) -> Reservation {
    Reservation {
        hold,
        exposure: Micro::ZERO,
        tokens: 0,
        counts_in_flight: true,
    }
}

pub(crate) fn admission(key: &KeyRow, ask: Reservation) -> Admit {
    Admit {
        wallet: key.wallet,
        key: key.id,
        ask,
        request_id: "req_story".into(),
        now: NOW,
    }
}

pub(crate) async fn admit(
    store: &Store,
    key: &KeyRow,
    hold: Micro,
) -> Result<AdmittedCall, AdmitError> {
    store.admit(admission(key, ask(hold))).await
}

pub(crate) async fn price(store: &Store) -> PriceVersion {
    store.price_version("story/model", CARD).await.unwrap()
}

/// A settlement of this many input tokens, at a micro-credit each.
pub(crate) fn settled(hold: HoldId, version: PriceVersion, tokens: u64) -> Close {
    let meter = Meter {
        input: tokens,
        ..Meter::default()
    };
    let charge = Micro::new(i64::try_from(tokens).unwrap());
    let end = End::Settled {
        charge,
        meter: (&meter).into(),
        price_version: version,
        basis: Basis::Reported,
        tokens: Some(tokens),
        cost: None,
    };
    Close {
        if_lost: IfLost::Charge,
        hold,
        end,
        now: NOW,
    }
}

pub(crate) fn released(hold: HoldId) -> Close {
    Close {
        if_lost: IfLost::Charge,
        hold,
        end: End::Released,
        now: NOW,
    }
}

pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn assert_clean(store: &Store) {
    let report = store.verify().await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.differences);
}

/// Checks that the counters agree with the ledger, for a store that has written every entry itself.
pub(crate) async fn assert_counted(store: &Store) {
    let entries = store.entries(store::EntryQuery::default()).await.unwrap();
    let charged: i64 = entries.iter().map(|entry| entry.charge.get()).sum();
    let settled = store.settled();
    let counted: u64 = settled.iter().map(|it| it.charge_micro).sum();
    assert_eq!(i64::try_from(counted).unwrap(), charged, "{settled:?}");
    let ends = entries
        .iter()
        .filter(|entry| entry.kind == store::EntryKind::Settled);
    let calls: u64 = settled.iter().map(|it| it.calls).sum();
    assert_eq!(calls, ends.count() as u64, "{settled:?}");
}

fn migrations_up_to(folder: &str, version: i32) -> Runner {
    let folder = format!("{}/migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
    let migrations = load_sql_migrations(folder).unwrap();
    Runner::new(&migrations).set_target(Target::Version(version))
}
