//! Tests a database that is unreachable, slow, or silent at the wrong moment (R8).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use ledger::Micro;
use store::{AdmitError, KeyRow, Location, NotDurable, PriceVersion, Settings, Store};

use crate::faulty_proxy::{FaultyProxy, Mode};
use crate::test_database::{
    TestDatabase, actor, admit, assert_clean, assert_counted, credits, eventually, funded, price,
    released, settled,
};

/// A store that connects to its database through a proxy.
pub(crate) struct Rig {
    pub(crate) proxy: FaultyProxy,
    pub(crate) store: Store,
    pub(crate) key: KeyRow,
    version: PriceVersion,
}

impl Rig {
    pub(crate) async fn new(database: &TestDatabase) -> Self {
        Self::with(database.settings()).await
    }

    pub(crate) async fn with(mut settings: Settings) -> Self {
        let Location::Server(server) = &mut settings.location else {
            panic!("a server is needed");
        };
        let host = server.shown();
        let host = host.trim_start_matches("postgres://");
        let host = host.split('/').next().unwrap().to_owned();
        let proxy = FaultyProxy::before(host.parse().unwrap()).await;
        server.url = server.url.replace(&host, &proxy.address().to_string());
        let (store, _) = Store::open(&settings).unwrap();
        let version = price(&store).await;
        let key = funded(&store, credits(10)).await;
        Self {
            proxy,
            store,
            key,
            version,
        }
    }

    /// The balance and the frozen amount, after all queued commands.
    async fn money(&self) -> (Micro, Micro) {
        let (wallet, key) = self.store.balance(&self.key.id).await.unwrap();
        assert_eq!(wallet.frozen, key.frozen);
        (wallet.balance, wallet.frozen)
    }

    /// Waits until calls are admitted again.
    pub(crate) async fn recovers(&self) {
        eventually("a durable hold", async || {
            let Ok(admitted) = admit(&self.store, &self.key, Micro::ZERO).await else {
                return false;
            };
            let durable = admitted.durable.wait().await;
            self.store.close(released(admitted.hold));
            durable.is_ok()
        })
        .await;
    }
}

/// The outcome of an interrupted commit stays unknown for longer than `lost_commit_max`. The call was answered
/// meanwhile, and is charged when it turns out that its hold was lost.
pub(crate) async fn a_commit_in_doubt_is_asked_about_until_it_is_known(database: &TestDatabase) {
    let lost_commit_max = Duration::from_millis(20);
    let mut settings = database.settings();
    if let Location::Server(server) = &mut settings.location {
        server.lost_commit_max = lost_commit_max;
    }
    let rig = Rig::with(settings).await;
    rig.proxy.set(Mode::CutBefore(b"COMMIT"));
    let call = admit(&rig.store, &rig.key, credits(1)).await.unwrap();
    rig.store.close(settled(call.hold, rig.version, 250_000));
    let doubtful = call.durable.clone();
    // If the wait ended, an outcome was reported too early.
    let outcome = tokio::time::timeout(20 * lost_commit_max, doubtful.wait()).await;
    assert!(outcome.is_err(), "{outcome:?}");
    assert_eq!(rig.proxy.lost(), 1);
    assert!(admit(&rig.store, &rig.key, credits(1)).await.is_err());
    rig.proxy.set(Mode::Pass);
    assert_eq!(doubtful.wait().await, Err(NotDurable));
    rig.recovers().await;
    rig.store.flush().await.unwrap();
    assert_eq!(rig.money().await, (Micro::new(9_750_000), Micro::ZERO));
    assert_eq!(rig.store.stats().lost_holds, 0);
    assert_clean(&rig.store).await;
}

/// The database refuses writes for a while. Every answered call is charged, whether or not its caller waited for the
/// disk.
pub(crate) async fn while_commits_fail_nobody_is_admitted_and_answered_calls_are_charged(
    database: &TestDatabase,
) {
    const CHARGE: u32 = 10;
    let store = database.open();
    database.tamper(
        "CREATE TABLE outage (code text);
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
             $$ DECLARE code text; BEGIN
                 SELECT o.code INTO code FROM outage o;
                 IF FOUND THEN RAISE EXCEPTION 'no writes' USING ERRCODE = code; END IF;
                 RETURN NULL;
             END $$;
         CREATE TRIGGER fail BEFORE UPDATE ON wallets FOR EACH STATEMENT EXECUTE FUNCTION fail();
         CREATE TRIGGER fail BEFORE UPDATE ON nodes FOR EACH STATEMENT EXECUTE FUNCTION fail()",
    );
    let version = price(&store).await;
    let key = funded(&store, credits(10)).await;
    let (answered, over) = (
        Arc::new(AtomicU32::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let callers: Vec<_> = (0..6)
        .map(|n| {
            let (store, key) = (store.clone(), key.clone());
            let (answered, over) = (Arc::clone(&answered), Arc::clone(&over));
            let (behind, slow) = (n % 2 == 0, n % 3 == 0);
            tokio::spawn(async move {
                while !over.load(Ordering::SeqCst) {
                    let Ok(call) = admit(&store, &key, Micro::new(20)).await else {
                        // The caller backs off like a client.
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        continue;
                    };
                    let promised = (!behind || slow) && call.durable.wait().await.is_ok();
                    if behind || promised {
                        store.close(settled(call.hold, version, u64::from(CHARGE)));
                        answered.fetch_add(1, Ordering::SeqCst);
                    } else {
                        store.close(released(call.hold));
                    }
                }
            })
        })
        .collect();
    // The errors of a full disk, and of a server that has become a standby.
    for code in ["53100", "25006", "53100"] {
        let before = answered.load(Ordering::SeqCst);
        let goes_on = || answered.load(Ordering::SeqCst) > before + 50;
        eventually("more answers", async || goes_on()).await;
        database.tamper(&format!("INSERT INTO outage VALUES ('{code}')"));
        let failed = store.stats().commits_failed;
        let is_noticed = || store.stats().commits_failed > failed && !store.healthy();
        eventually("the outage is noticed", async || is_noticed()).await;
        let refused = admit(&store, &key, Micro::new(20)).await.unwrap_err();
        assert_eq!(refused, AdmitError::Unavailable, "{code}");
        database.tamper("DELETE FROM outage");
        eventually("health", async || store.healthy()).await;
    }
    over.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.unwrap();
    }
    store.flush().await.unwrap();
    let (wallet, row) = store.balance(&key.id).await.unwrap();
    let charged = i64::from(answered.load(Ordering::SeqCst)) * i64::from(CHARGE);
    assert_eq!(
        (row.usage, wallet.frozen),
        (Micro::new(charged), Micro::ZERO)
    );
    assert_eq!(store.stats().lost_holds, 0);
    assert_clean(&store).await;
}

const COMMIT: Mode = Mode::LoseAnswerTo(b"COMMIT");

pub(crate) async fn a_commit_whose_answer_is_lost_happens_once(database: &TestDatabase) {
    let rig = Rig::new(database).await;
    let open = admit(&rig.store, &rig.key, credits(1)).await.unwrap();
    open.durable.wait().await.unwrap();

    // A settlement, a top-up and an admission: each is booked once, and no caller gets an error.
    rig.proxy.set(COMMIT);
    rig.store.close(settled(open.hold, rig.version, 250_000));
    rig.store.flush().await.unwrap();
    assert_eq!(rig.proxy.lost(), 1);
    assert_eq!(rig.money().await, (Micro::new(9_750_000), Micro::ZERO));

    rig.proxy.set(COMMIT);
    let row = rig
        .store
        .top_up(rig.key.wallet, credits(1), "", &actor())
        .await
        .unwrap();
    assert_eq!(row.wallet.balance, Micro::new(10_750_000));
    assert_eq!(rig.proxy.lost(), 2);
    assert_eq!(rig.money().await.0, Micro::new(10_750_000));

    rig.proxy.set(COMMIT);
    let admitted = admit(&rig.store, &rig.key, credits(2)).await.unwrap();
    assert_eq!(admitted.durable.wait().await, Ok(()));
    assert_eq!(rig.proxy.lost(), 3);
    assert_eq!(rig.money().await.1, credits(2));
    rig.store.close(released(admitted.hold));
    assert_eq!(rig.money().await, (Micro::new(10_750_000), Micro::ZERO));
    assert_eq!(rig.store.stats().late_closes, 0);
    assert_clean(&rig.store).await;
    assert_counted(&rig.store).await;
}

pub(crate) async fn while_the_database_is_away_calls_are_refused_and_closes_wait(
    database: &TestDatabase,
) {
    let rig = Rig::with(Settings {
        queue_wait_max: Duration::from_secs(2),
        ..database.settings()
    })
    .await;
    let open = admit(&rig.store, &rig.key, credits(1)).await.unwrap();
    open.durable.wait().await.unwrap();
    for away in [Mode::Cut, Mode::BlackHole] {
        rig.proxy.set(away);
        let refused = admit(&rig.store, &rig.key, credits(1)).await.unwrap_err();
        assert!(
            matches!(refused, AdmitError::Busy | AdmitError::Unavailable),
            "{refused:?}"
        );
        if away == Mode::Cut {
            rig.store.close(settled(open.hold, rig.version, 250_000));
            assert!(
                rig.store
                    .top_up(rig.key.wallet, credits(1), "", &actor())
                    .await
                    .is_err()
            );
            assert!(!rig.store.healthy());
        }
        rig.proxy.set(Mode::Pass);
        rig.recovers().await;
        rig.store.flush().await.unwrap();
        assert_eq!(rig.money().await, (Micro::new(9_750_000), Micro::ZERO));
    }
    assert!(rig.store.healthy());
    assert_clean(&rig.store).await;
    assert_counted(&rig.store).await;
}

pub(crate) async fn a_slow_database_is_slow_and_right(database: &TestDatabase) {
    let rig = Rig::new(database).await;
    rig.proxy.set(Mode::Slow(Duration::from_millis(30)));
    let calls: Vec<_> = (0..40)
        .map(|_| {
            let (store, key, version) = (rig.store.clone(), rig.key.clone(), rig.version);
            tokio::spawn(async move {
                let admitted = admit(&store, &key, Micro::new(2_000)).await.unwrap();
                admitted.durable.wait().await.unwrap();
                store.close(settled(admitted.hold, version, 1_000));
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(rig.money().await, (Micro::new(9_960_000), Micro::ZERO));
    rig.proxy.set(Mode::Pass);
    assert_clean(&rig.store).await;
}

pub(crate) async fn a_lock_holder_keeps_only_its_own_wallet_waiting(database: &TestDatabase) {
    let settings = Settings {
        queue_wait_max: Duration::from_millis(500),
        ..database.settings()
    };
    let (store, _) = Store::open(&settings).unwrap();
    let version = price(&store).await;
    let (held, free) = (
        funded(&store, credits(10)).await,
        funded(&store, credits(10)).await,
    );
    let open = admit(&store, &held, credits(1)).await.unwrap();
    open.durable.wait().await.unwrap();
    let holder = database.hold_lock(&format!(
        "SELECT 1 FROM wallets WHERE id = '{}' FOR UPDATE",
        held.wallet
    ));
    store.close(settled(open.hold, version, 250_000));
    for _ in 0..20 {
        let quiet = admit(&store, &free, credits(1)).await.unwrap();
        quiet.durable.wait().await.unwrap();
        store.close(settled(quiet.hold, version, 1_000));
    }
    assert_eq!(
        admit(&store, &held, credits(1)).await.unwrap_err(),
        AdmitError::Busy
    );
    drop(holder);
    store.flush().await.unwrap();
    let (wallet, _) = store.balance(&held.id).await.unwrap();
    assert_eq!(
        (wallet.balance, wallet.frozen),
        (Micro::new(9_750_000), Micro::ZERO)
    );
    let (wallet, _) = store.balance(&free.id).await.unwrap();
    assert_eq!(
        (wallet.balance, wallet.frozen),
        (Micro::new(9_980_000), Micro::ZERO)
    );
    assert_eq!(store.stats().commits_failed, 0);
    assert_clean(&store).await;
}

pub(crate) async fn a_close_that_cannot_be_booked_does_not_stop_the_others(
    database: &TestDatabase,
) {
    let store = database.open();
    let version = price(&store).await;
    let key = funded(&store, credits(10)).await;
    database.tamper(
        "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'poison'; END $$;
         CREATE TRIGGER poison BEFORE INSERT ON entries FOR EACH ROW WHEN (NEW.charge = 13)
             EXECUTE FUNCTION poison()",
    );
    let (poison, good) = (
        admit(&store, &key, credits(1)).await.unwrap(),
        admit(&store, &key, credits(1)).await.unwrap(),
    );
    good.durable.wait().await.unwrap();
    store.close(settled(poison.hold, version, 13));
    store.close(settled(good.hold, version, 250_000));
    // Callers in the batch of the failing close get an error. The next batch succeeds.
    while store.flush().await.is_err() {}
    let (wallet, _) = store.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.balance, wallet.frozen),
        (Micro::new(9_750_000), credits(1))
    );
    assert_eq!(store.stats().stuck_closes, 1);
    assert_clean(&store).await;
}
