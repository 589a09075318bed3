//! Tests a disk that is nearly full.

use ledger::{Micro, Reservation};

use super::rig::*;
use crate::{Admit, AdmitError, Settings, Store};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn below_the_floor_nobody_is_admitted_and_the_admitted_settle() {
    let rig = Rig::new().await;
    let Rig {
        folder,
        store,
        key,
        price,
        ..
    } = rig;
    drop(store);
    let floor = Settings {
        disk_floor_bytes: u64::MAX,
        ..settings(folder.path())
    };
    let (store, _) = Store::open(&floor).unwrap();
    let ask = Reservation {
        hold: CREDIT,
        exposure: Micro::ZERO,
        tokens: 0,
        counts_in_flight: true,
    };
    let call = Admit {
        wallet: key.wallet,
        key: key.id,
        ask,
        request_id: "req_1".into(),
        now: NOW,
    };
    assert_eq!(
        store.admit(call).await.unwrap_err(),
        AdmitError::Unavailable
    );
    assert!(!store.healthy());
    // Everything except admission continues.
    store
        .top_up(key.wallet, CREDIT, "", &crate::Actor::cli("test"))
        .await
        .unwrap();
    assert_eq!(
        store.balance(&key.id).await.unwrap().0.balance,
        Micro::new(11_000_000)
    );
    assert!(price.get() > 0);
}
