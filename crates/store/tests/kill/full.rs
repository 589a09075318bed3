//! Tests a full disk: no call is admitted, admitted calls are booked, and no restart is needed afterwards.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ledger::{Meter, Micro, Reservation};
use store::{
    Admit, AdmitError, AdmittedCall, Basis, Close, End, IfLost, KeyRow, MeterText, Settings, Store,
};

use crate::{FOLDER, NOW, Scene, assert_clean, fund};

const CALLS: usize = 300;
const HOLD: Micro = Micro::new(1_000);
const FLOOR_BYTES: u64 = 32 << 20;

#[test]
fn a_full_disk_stops_admissions_and_books_what_is_open() {
    let folder = tempfile::tempdir().unwrap();
    // Mounts a small file system that only this process sees and that disappears with it.
    let on_small_disk = |program: &Path| {
        let mut command = Command::new("unshare");
        let mount = "mount -t tmpfs -o size=112m tmpfs \"$0\" && exec \"$@\"";
        let arguments = ["--mount", "--map-root-user", "sh", "-c", mount];
        command.args(arguments).arg(folder.path()).arg(program);
        command.env(FOLDER, folder.path());
        command
    };
    if !matches!(on_small_disk(Path::new("true")).status(), Ok(status) if status.success()) {
        eprintln!("not played: nothing may be mounted here");
        return;
    }
    let mut story = on_small_disk(&std::env::current_exe().unwrap());
    story.args([
        "--exact",
        "full::on_a_small_disk",
        "--ignored",
        "--nocapture",
    ]);
    assert!(story.stdout(Stdio::null()).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a small disk, which the other test makes"]
async fn on_a_small_disk() {
    let folder = std::env::var_os(FOLDER).expect("started by the other test");
    let scene = Scene {
        folder: folder.into(),
        server: None,
        node: None,
    };
    let key = fund(&scene).await;
    let settings = Settings {
        disk_floor_bytes: FLOOR_BYTES,
        ..scene.settings()
    };
    let (store, _) = Store::open(&settings).unwrap();
    let key = store.find_key(&key).await.unwrap().unwrap();
    let price = store.price_version("a/model", r#"{"input":"1"}"#);
    let price_version = price.await.unwrap();
    let mut open = Vec::new();
    for _ in 0..CALLS {
        open.push(admit(&store, &key).await.unwrap());
    }

    // The reserve must exist before the disk is filled. Afterwards it is the only space that the ledger can get.
    eventually(async || scene.folder.join("tollgate.db-ballast").exists()).await;
    let filler = scene.folder.join("filler");
    let mut file = File::create(&filler).unwrap();
    let block = vec![1; 64 << 10];
    while file.write_all(&block).is_ok() {}
    while file.write_all(&[1]).is_ok() {}
    // Some calls are still admitted until the store notices that the free space is below the floor.
    while let Ok(admitted) = admit(&store, &key).await {
        open.push(admitted);
    }
    let calls = i64::try_from(open.len()).unwrap();
    for admitted in open {
        let meter = MeterText::from(&Meter {
            input: 7,
            ..Meter::default()
        });
        let end = End::Settled {
            charge: Micro::new(7),
            meter,
            price_version,
            basis: Basis::Reported,
            tokens: None,
            cost: None,
        };
        let (hold, now) = (admitted.hold, NOW);
        store.close(Close {
            hold,
            end,
            now,
            if_lost: IfLost::Charge,
        });
    }
    eventually(async || {
        let balance = store.balance(&key.id).await;
        balance.is_ok_and(|(_, spent)| spent.open_holds == 0)
    })
    .await;
    let (wallet, spent) = store.balance(&key.id).await.unwrap();
    assert_eq!(spent.usage, Micro::new(7 * calls));
    assert_eq!(wallet.frozen, Micro::ZERO);
    assert_clean(&store).await;

    drop(file);
    std::fs::remove_file(&filler).unwrap();
    eventually(async || admit(&store, &key).await.is_ok()).await;
    assert_clean(&store).await;
}

async fn admit(store: &Store, key: &KeyRow) -> Result<AdmittedCall, AdmitError> {
    let ask = Reservation {
        hold: HOLD,
        exposure: Micro::ZERO,
        tokens: 10,
        counts_in_flight: true,
    };
    let admit = Admit {
        wallet: key.wallet,
        key: key.id,
        ask,
        request_id: "req_1".into(),
        now: NOW,
    };
    let admitted = store.admit(admit).await?;
    match admitted.durable.wait().await {
        Ok(()) => Ok(admitted),
        Err(_) => Err(AdmitError::Unavailable),
    }
}

async fn eventually(is_so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
