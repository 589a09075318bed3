//! Memory for request bodies: one caller cannot use up the memory of the others (L4).

use serde_json::json;

use crate::harness::{Connection, GatewayBuilder, Key, MODEL, Request, TestGateway, eventually};

fn post(key: &Key) -> Request {
    Request::post("/v1/chat/completions").bearer(&key.secret)
}

/// A call whose body has about this many bytes.
fn call_of(key: &Key, bytes: usize) -> Request {
    // One long word has few tokens, so the call is cheap at every size.
    let content = "x".repeat(bytes);
    post(key).json(&json!({ "model": MODEL, "max_tokens": 10,
        "messages": [{ "role": "user", "content": content }] }))
}

/// Opens a connection that announces a body, sends a part of it and then nothing more.
async fn open_stalled_upload(
    gateway: &TestGateway,
    key: &Key,
    announced: usize,
    sent: usize,
) -> Connection {
    let mut connection = Connection::open(gateway.address()).await;
    let head = post(key).header("content-length", &announced.to_string());
    connection.write(&head.head()).await;
    connection.write(&vec![b' '; sent]).await;
    connection
}

async fn key_of(gateway: &TestGateway, wallet: &str, balance: &str) -> Key {
    gateway.wallet(wallet, &["--balance", balance]).await;
    gateway.key(wallet, &[]).await
}

/// The status that answers the head of a body of this size, which is 100 if there is memory for the body. The body is
/// never sent, so this request itself takes no memory.
async fn status_for_body(gateway: &TestGateway, key: &Key, bytes: usize) -> u16 {
    let mut connection = Connection::open(gateway.address()).await;
    let head = post(key)
        .header("expect", "100-continue")
        .header("content-length", &bytes.to_string());
    connection.write(&head.head()).await;
    let answer = connection.first().await;
    std::str::from_utf8(&answer[9..12])
        .unwrap()
        .parse()
        .unwrap()
}

/// Repeats `status_for_body` until the status is the expected one.
async fn wait_for_status(what: &str, gateway: &TestGateway, key: &Key, bytes: usize, status: u16) {
    eventually(what, async || {
        (status_for_body(gateway, key, bytes).await == status).then_some(())
    })
    .await;
}

#[tokio::test]
async fn announced_bodies_take_no_memory_from_others() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "body_memory_bytes = 67108864")
        .funded()
        .await;
    let attacker = key_of(&gateway, "attacker", "100").await;
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(open_stalled_upload(&gateway, &attacker, 30 << 20, 1_000).await);
    }
    // While the gateway answers this later request, it has time to read the heads of the earlier ones.
    gateway.get(&attacker, "/v1/models").await.ok();
    gateway.send(&call_of(&key, 5 << 20)).await.ok();
    gateway.send(&call_of(&key, 100)).await.ok();
    drop(held);
}

#[tokio::test]
async fn a_wallet_with_nothing_is_refused_before_a_large_body_is_read() {
    let gateway = TestGateway::start().await;
    let poor = key_of(&gateway, "poor", "0").await;
    let refusal = (402, "insufficient_quota".to_owned());
    // The announced length is enough for the refusal: no byte of the body is sent.
    let mut upload = open_stalled_upload(&gateway, &poor, 30 << 20, 0).await;
    assert_eq!(upload.answer().await.failure(), refusal);
    // Without an announced length, the gateway refuses the body once enough bytes have arrived.
    let mut chunked = Connection::open(gateway.address()).await;
    let head = post(&poor).header("transfer-encoding", "chunked");
    chunked.write(&head.head()).await;
    let piece = [b"20000\r\n".as_slice(), &vec![b' '; 0x20000], b"\r\n"].concat();
    chunked.write(&piece).await;
    assert_eq!(chunked.answer().await.failure(), refusal);
    // The gateway reads a small body before it checks the wallet, so an error in the body takes precedence.
    let broken = gateway.send(&post(&poor).body("{")).await;
    assert_eq!(broken.failure(), (400, "invalid_request".to_owned()));
    assert_eq!(gateway.send(&call_of(&poor, 100)).await.failure(), refusal);

    let wallets = gateway.cli_json(&["wallet", "list"]).await;
    let id = wallets[0]["id"].as_str().unwrap().to_owned();
    gateway.cli_json(&["wallet", "topup", &id, "10"]).await;
    gateway.send(&call_of(&poor, 200_000)).await.ok();

    // After a wallet has passed the check, the gateway does not check it again for a moment. So use a wallet that was
    // not checked yet.
    let barred = key_of(&gateway, "barred", "100").await;
    let wallets = gateway.cli_json(&["wallet", "list"]).await;
    let id = wallets[1]["id"].as_str().unwrap().to_owned();
    gateway.cli_json(&["wallet", "disable", &id]).await;
    let mut upload = open_stalled_upload(&gateway, &barred, 30 << 20, 0).await;
    let refused = upload.answer().await.failure();
    assert_eq!(refused, (403, "wallet_disabled".to_owned()));
    gateway.verify().await;
}

#[tokio::test]
async fn a_key_and_a_wallet_have_their_part_of_the_memory() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "body_memory_key_bytes = 300000")
        .setting("limits", "body_memory_wallet_bytes = 500000")
        .funded()
        .await;
    let sibling = gateway.key("w", &[]).await;
    let other = key_of(&gateway, "other", "100").await;
    let stalled = open_stalled_upload(&gateway, &key, 299_000, 280_000).await;
    wait_for_status("the key's limit", &gateway, &key, 100_000, 429).await;
    let refused = gateway.send(&call_of(&key, 100_000)).await;
    assert_eq!(
        refused.failure(),
        (429, "concurrency_limit_exceeded".to_owned())
    );
    assert!(refused.header("retry-after").is_some());
    gateway.send(&call_of(&key, 1_000)).await.ok();
    gateway.send(&call_of(&sibling, 150_000)).await.ok();
    let refused = gateway.send(&call_of(&sibling, 280_000)).await;
    assert_eq!(refused.status(), 429, "the wallet's limit");
    gateway.send(&call_of(&other, 280_000)).await.ok();
    drop(stalled);
    wait_for_status("room again", &gateway, &key, 100_000, 100).await;
}

#[tokio::test]
async fn small_bodies_of_a_wallet_leave_room_for_others() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "body_memory_wallet_bytes = 300000")
        .funded()
        .await;
    let sibling = gateway.key("w", &[]).await;
    let other = key_of(&gateway, "other", "0").await;
    let mut stalled = Vec::new();
    for key in [&key, &sibling, &key, &sibling, &key] {
        stalled.push(open_stalled_upload(&gateway, key, 60_500, 60_000).await);
    }
    wait_for_status("the wallet's limit", &gateway, &sibling, 1_000, 429).await;
    let poor = gateway.send(&call_of(&other, 60_000)).await;
    assert_eq!(poor.status(), 402, "another wallet has room");
    drop(stalled);
    wait_for_status("room again", &gateway, &sibling, 60_000, 100).await;
}

#[tokio::test]
async fn large_bodies_leave_room_for_small_ones() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "body_memory_bytes = 1600000")
        .funded()
        .await;
    let other = key_of(&gateway, "other", "100").await;
    assert_eq!(
        status_for_body(&gateway, &key, 1_600_000).await,
        503,
        "an eighth is kept"
    );
    let stalled = open_stalled_upload(&gateway, &key, 1_399_000, 1_390_000).await;
    wait_for_status("a full node", &gateway, &other, 150_000, 503).await;
    gateway.send(&call_of(&other, 60_000)).await.ok();
    drop(stalled);
    wait_for_status("room again", &gateway, &other, 150_000, 100).await;
}
