//! A server that is killed leaves a ledger that balances, with every charge somebody has seen.
//!
//! The victim is this test program itself, started again for the one test that plays it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ledger::{Ask, Meter, Micro, UnixMs};
use store::{
    Admit, Basis, Close, Digest, End, KeyId, KeyLimits, KeyRow, NewKey, NewWallet, PriceVersion,
    Settings, Store,
};

const FOLDER: &str = "TOLLGATE_KILL_FOLDER";
const NOW: UnixMs = UnixMs::new(1_800_000_000_000);
const KILLS: usize = 8;
const CALLERS: usize = 16;

fn settings(folder: &Path) -> Settings {
    Settings {
        disk_floor_bytes: 0,
        queue_wait_max: Duration::from_secs(60),
        wal_bytes_max: 256 * 1024,
        ..Settings::at(folder.join("tollgate.db"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_leaves_a_ledger_that_balances() {
    let folder = tempfile::tempdir().unwrap();
    let key = fund(folder.path()).await;
    let mut abandoned = 0;
    for kill in 0..KILLS {
        let seen = victim(folder.path(), kill);
        let (store, recovery) = Store::open(&settings(folder.path())).unwrap();
        abandoned += recovery.abandoned;
        let report = store.verify().await.unwrap();
        assert!(report.is_clean(), "{:#?}", report.differences);
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
        assert!(spent.usage > Micro::ZERO, "the victim did nothing");
    }
    assert!(abandoned > 0, "no kill met an open hold");
}

/// Starts a server, lets it work for a while, kills it. Answers the most it has shown as spent.
fn victim(folder: &Path, kill: usize) -> Micro {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_victim", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Not a time but a number of answers: a slow machine is killed as far into its work.
    let answers = 40 + kill * 23;
    let mut seen = 0;
    for line in lines
        .map_while(Result::ok)
        .filter(|line| line.starts_with("spent "))
        .take(answers)
    {
        seen = seen.max(line.trim_start_matches("spent ").parse().unwrap());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    Micro::new(seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "plays the victim of the other test"]
async fn the_victim() {
    let folder = std::env::var_os(FOLDER).expect("started by the other test");
    let (store, _) = Store::open(&settings(Path::new(&folder))).unwrap();
    let key = store.keys(None).await.unwrap().remove(0);
    let price = store
        .price_version("a/model", r#"{"input":"1"}"#)
        .await
        .unwrap();
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| tokio::spawn(calls(store.clone(), key.clone(), price)))
        .collect();
    loop {
        let (_, spent) = store.balance(&key.id).await.unwrap();
        println!("spent {}", spent.usage.get());
        assert!(callers.iter().all(|caller| !caller.is_finished()));
    }
}

async fn calls(store: Store, key: KeyRow, price_version: PriceVersion) {
    for n in 0.. {
        let ask = Ask {
            hold: Micro::new(1_000),
            tokens: 10,
            counts: true,
        };
        let request_id = "req_1".into();
        let admit = Admit {
            wallet: key.wallet,
            key: key.id,
            ask,
            request_id,
            now: NOW,
        };
        let admitted = store.admit(admit).await.unwrap();
        if n % 3 == 0 {
            admitted.durable.wait().await.unwrap();
        }
        let meter = Box::new(Meter {
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
            },
        };
        store.close(Close {
            hold: admitted.hold,
            end,
            now: NOW,
        });
    }
}

async fn fund(folder: &Path) -> KeyId {
    let (store, _) = Store::open(&settings(folder)).unwrap();
    let (gift, credit_limit) = (Micro::ZERO, Micro::ZERO);
    let balance = Micro::new(1_000_000_000_000);
    let wallet = store
        .create_wallet(NewWallet {
            name: "acme".to_owned(),
            balance,
            gift,
            credit_limit,
        })
        .await
        .unwrap();
    let (digest, shown_prefix) = (Digest::of(b"secret"), "sk-tg-se".to_owned());
    let limits = KeyLimits::default();
    store
        .create_key(NewKey {
            wallet: wallet.id,
            name: None,
            digest,
            shown_prefix,
            limits,
        })
        .await
        .unwrap()
        .id
}
