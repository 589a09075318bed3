//! Several nodes on one database.

use store::{KeyLimits, OpenError, Server, Settings, Store};

use crate::place::{
    Place, admit, assert_clean, credits, funded, key, price, released, settled, wallet,
};

fn named(place: &Place, node: &str) -> Settings {
    let mut settings = place.settings();
    if let store::Location::Server(server) = &mut settings.location {
        *server = Server {
            node: Some(node.to_owned()),
            ..server.clone()
        };
    }
    settings
}

pub(crate) async fn a_node_of_the_same_name_is_refused(place: &Place) {
    let (first, _) = Store::open(&named(place, "one")).unwrap();
    let refused = Store::open(&named(place, "one")).unwrap_err();
    assert!(
        matches!(refused, OpenError::NodeRunning { .. }),
        "{refused}"
    );
    // The first one goes on, and another name is welcome.
    let key = funded(&first, credits(1)).await;
    let (second, _) = Store::open(&named(place, "two")).unwrap();
    for store in [&first, &second] {
        let admitted = admit(store, &key, credits(1)).await.unwrap();
        store.close(released(admitted.hold));
        store.flush().await.unwrap();
    }
    drop(first);
    Store::open(&named(place, "one")).unwrap();
}

pub(crate) async fn two_nodes_share_wallets_and_limits(place: &Place) {
    let (one, two) = (place.open(), place.open());
    let version = price(&one).await;
    assert_eq!(price(&two).await, version);
    let account = wallet(&one, "acme", credits(5)).await;
    let limits = KeyLimits {
        concurrency: Some(2),
        rpm: Some(3),
        ..KeyLimits::default()
    };
    let key = key(&two, account.id, limits).await;
    let first = admit(&one, &key, credits(1)).await.unwrap();
    let second = admit(&two, &key, credits(1)).await.unwrap();
    assert_eq!(second.rates.requests.unwrap().remaining, 1);
    // Two at a time, whichever node they are on.
    assert!(admit(&one, &key, credits(1)).await.is_err());
    assert!(admit(&two, &key, credits(1)).await.is_err());
    one.close(settled(first.hold, version, 700_000));
    one.flush().await.unwrap();
    let (wallet, used) = two.balance(&key.id).await.unwrap();
    assert_eq!(
        (wallet.frozen, used.usage),
        (credits(1), ledger::Micro::new(700_000))
    );
    // The third of the minute, and no fourth.
    let third = admit(&two, &key, credits(1)).await.unwrap();
    two.close(released(third.hold));
    two.close(released(second.hold));
    two.flush().await.unwrap();
    assert!(admit(&one, &key, credits(1)).await.is_err());
    assert_clean(&one).await;
    assert_clean(&two).await;
}

pub(crate) async fn a_newer_schema_is_refused(place: &Place) {
    drop(place.open());
    place.tamper(
        "INSERT INTO refinery_schema_history SELECT 999, 'later', applied_on, checksum
         FROM refinery_schema_history LIMIT 1",
    );
    for refused in [
        Store::open(&place.settings()).map(drop),
        Store::attach(&place.settings()).map(drop),
    ] {
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, OpenError::NewerSchema { found: 999, .. }),
            "{refused}"
        );
    }
}
