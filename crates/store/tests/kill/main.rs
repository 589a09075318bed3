//! Tests a server that is killed, suspended beyond its lease, out of disk space, or without power. It must leave a
//! ledger that balances and contains every charge that a caller has seen.
//!
//! The victim is this test program itself, started again to run only the test that plays the server. With a
//! `PostgreSQL` server (`scripts/with-postgres`) the tests run there too. `TOLLGATE_KILLS=200` runs the long version.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod full;
mod migrate;
mod power;
mod trace;
mod transfers;

use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ledger::{Meter, Micro, Reservation, UnixMs};
use store::{
    Admit, Basis, Close, Digest, End, IfLost, KeyId, KeyLimits, KeyRow, MeterText, NewKey,
    NewWallet, PriceVersion, Server, Settings, Store, WalletId,
};

const FOLDER: &str = "TOLLGATE_KILL_FOLDER";
const SERVER: &str = "TOLLGATE_KILL_SERVER";
const NODE: &str = "TOLLGATE_KILL_NODE";
/// The number of reads of the balance after which the victim ends itself.
const ANSWERS: &str = "TOLLGATE_KILL_ANSWERS";
const NOW: UnixMs = UnixMs::new(1_800_000_000_000);
const KILLS: usize = 8;
const CALLERS: usize = 16;
/// A short lease, so that tests need not wait long for its end.
const LEASE: Duration = Duration::from_secs(2);

/// The store of a victim: a folder, or a server and the node's name.
#[derive(Clone)]
struct Scene {
    folder: PathBuf,
    server: Option<String>,
    node: Option<String>,
}

impl Scene {
    fn settings(&self) -> Settings {
        let settings = match &self.server {
            None => Settings::at(self.folder.join("tollgate.db")),
            Some(url) => Settings::on(Server {
                node: self.node.clone(),
                lease: LEASE,
                ..Server::at(url)
            }),
        };
        Settings {
            disk_floor_bytes: 0,
            queue_wait_max: Duration::from_secs(60),
            wal_bytes_max: 256 * 1024,
            ..settings
        }
    }

    /// A fresh schema on the test server. `None` without a test server.
    fn on_server(folder: &Path, node: Option<&str>) -> Option<Self> {
        let Ok(url) = std::env::var("TOLLGATE_TEST_POSTGRES") else {
            eprintln!("not tested on PostgreSQL: run it by scripts/with-postgres");
            return None;
        };
        let name = format!("kill_{}", WalletId::random()).to_lowercase();
        let create = format!("CREATE SCHEMA {name}");
        let made = Command::new("psql").args([&url, "-qc", &create]).status();
        assert!(made.unwrap().success());
        Some(Self {
            folder: folder.to_owned(),
            server: Some(format!("{url}&options=-csearch_path%3D{name}")),
            node: node.map(str::to_owned),
        })
    }

    /// Sets the arguments that make this program a server for this store.
    fn play_victim(&self, command: &mut Command) {
        command
            .args(["--exact", "the_victim", "--ignored", "--nocapture"])
            .env(FOLDER, &self.folder);
        for (name, value) in [(SERVER, &self.server), (NODE, &self.node)] {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
    }

    /// Starts a server for this store.
    fn victim(&self) -> Victim {
        let mut command = Command::new(std::env::current_exe().unwrap());
        self.play_victim(&mut command);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Victim {
            child,
            lines,
            seen: 0,
        }
    }
}

/// A running server, which is killed when dropped.
struct Victim {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: i64,
}

impl Victim {
    /// Waits for this many answers, or for the end of the victim, so that slow and fast machines get equally far.
    fn work(&mut self, answers: usize) {
        let spent = self
            .lines
            .by_ref()
            .map_while(Result::ok)
            .filter(|line| line.starts_with("spent "));
        for line in spent.take(answers) {
            self.seen = self
                .seen
                .max(line.trim_start_matches("spent ").parse().unwrap());
        }
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn kills() -> usize {
    std::env::var("TOLLGATE_KILLS").map_or(KILLS, |kills| kills.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_leaves_a_ledger_that_balances() {
    let folder = tempfile::tempdir().unwrap();
    let file = Scene {
        folder: folder.path().to_owned(),
        server: None,
        node: None,
    };
    let server = Scene::on_server(folder.path(), Some("victim"));
    for scene in [Some(file), server].into_iter().flatten() {
        let key = fund(&scene).await;
        let mut abandoned = 0;
        for kill in 0..kills() {
            let mut victim = scene.victim();
            victim.work(40 + kill % 20 * 23);
            let seen = Micro::new(victim.seen);
            drop(victim);
            let (store, recovery) = Store::open(&scene.settings()).unwrap();
            abandoned += recovery.abandoned;
            assert_clean(&store).await;
            let (wallet, spent) = store.balance(&key).await.unwrap();
            assert_eq!(
                (wallet.frozen, spent.frozen, spent.open_holds),
                (Micro::ZERO, Micro::ZERO, 0)
            );
            assert!(
                spent.usage >= seen,
                "somebody has seen {seen} spent, now it is {}",
                spent.usage
            );
        }
        assert!(abandoned > 0, "no kill met an open hold");
    }
}

/// A dead node keeps its holds for one lease. After that another node closes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_nodes_holds_come_back_one_lease_later() {
    let folder = tempfile::tempdir().unwrap();
    let Some(scene) = Scene::on_server(folder.path(), None) else {
        return;
    };
    let key = fund(&scene).await;
    let (other, _) = Store::open(&scene.settings()).unwrap();
    let mut victim = scene.victim();
    victim.work(60);
    drop(victim);
    assert_clean(&other).await;
    nothing_stays_frozen(&other, &key).await;
    assert!(other.stats().abandoned > 0, "no kill met an open hold");
    assert_clean(&other).await;
}

/// R7: a node is suspended beyond its lease and resumed. Its late closes change nothing, and it begins a new epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stopped_past_its_lease_changes_nothing_late() {
    let folder = tempfile::tempdir().unwrap();
    let Some(scene) = Scene::on_server(folder.path(), None) else {
        return;
    };
    let key = fund(&scene).await;
    let (other, _) = Store::open(&scene.settings()).unwrap();
    let mut victim = scene.victim();
    for _ in 0..2 {
        victim.work(60);
        victim.signal("STOP");
        nothing_stays_frozen(&other, &key).await;
        let (_, before) = other.balance(&key).await.unwrap();
        victim.signal("CONT");
        // The node continues in a new epoch, in which its calls are charged again.
        let seen = victim.seen;
        while victim.seen <= seen.max(before.usage.get()) {
            victim.work(1);
        }
        assert_clean(&other).await;
    }
    assert!(other.stats().abandoned > 0, "no stop met an open hold");
    drop(victim);
    nothing_stays_frozen(&other, &key).await;
    assert_clean(&other).await;
}

/// Waits until the sweeper has closed the holds that a silent node left open.
async fn nothing_stays_frozen(store: &Store, key: &KeyId) {
    let begun = Instant::now();
    loop {
        let (wallet, spent) = store.balance(key).await.unwrap();
        if (wallet.frozen, spent.open_holds) == (Micro::ZERO, 0) {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{:#?}",
            store.stats()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn assert_clean(store: &Store) {
    let report = store.verify().await.unwrap();
    assert!(report.is_clean(), "{:#?}", report.differences);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "plays the victim of the other tests"]
async fn the_victim() {
    let folder = std::env::var_os(FOLDER).expect("started by the other tests");
    let scene = Scene {
        folder: folder.into(),
        server: std::env::var(SERVER).ok(),
        node: std::env::var(NODE).ok(),
    };
    let (store, _) = Store::open(&scene.settings()).unwrap();
    let key = store.keys(None).await.unwrap().remove(0);
    let price = store
        .price_version("a/model", r#"{"input":"1"}"#)
        .await
        .unwrap();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| tokio::spawn(calls(store.clone(), key.clone(), price)))
        .collect();
    let answers = std::env::var(ANSWERS).map_or(usize::MAX, |answers| answers.parse().unwrap());
    for _ in 0..answers {
        if let Ok((_, spent)) = store.balance(&key.id).await {
            println!("spent {}", spent.usage.get());
        }
        assert!(callers.iter().all(|caller| !caller.is_finished()));
    }
    // Ends without closing or flushing anything.
    std::process::exit(0);
}

fn admission(key: &KeyRow) -> Admit {
    Admit {
        wallet: key.wallet,
        key: key.id,
        ask: Reservation {
            hold: Micro::new(1_000),
            exposure: Micro::new(500),
            tokens: 10,
            counts_in_flight: true,
        },
        request_id: "req_1".into(),
        now: NOW,
    }
}

async fn calls(store: Store, key: KeyRow, price_version: PriceVersion) {
    for n in 0.. {
        let admit = admission(&key);
        // A node whose lease has expired admits no call until it has a new one.
        let Ok(admitted) = store.admit(admit).await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        if n % 3 == 0 {
            let _may_be_lost = admitted.durable.wait().await;
        }
        let meter = MeterText::from(&Meter {
            input: n % 1_500,
            ..Meter::default()
        });
        let charge = Micro::new(i64::try_from(n % 1_500).unwrap());
        let basis = Basis::Reported;
        let end = match n % 7 {
            0 => End::Released,
            _ => End::Settled {
                charge,
                meter,
                price_version,
                basis,
                tokens: None,
                cost: None,
            },
        };
        store.close(Close {
            if_lost: IfLost::Charge,
            hold: admitted.hold,
            end,
            now: NOW,
        });
    }
}

async fn fund(scene: &Scene) -> KeyId {
    let (store, _) = Store::open(&scene.settings()).unwrap();
    let (gift, credit_limit) = (Micro::ZERO, Micro::ZERO);
    let balance = Micro::new(1_000_000_000_000);
    let wallet = store
        .create_wallet(
            NewWallet {
                name: "acme".to_owned(),
                balance,
                gift,
                credit_limit,
            },
            &store::Actor::cli("test"),
        )
        .await
        .unwrap();
    let (digest, shown_prefix) = (Digest::of(b"secret"), "sk-tg-se".to_owned());
    let limits = KeyLimits::default();
    store
        .create_key(
            NewKey {
                wallet: wallet.id,
                name: None,
                digest,
                shown_prefix,
                limits,
                tags: Vec::new(),
            },
            &store::Actor::cli("test"),
        )
        .await
        .unwrap()
        .id
}
