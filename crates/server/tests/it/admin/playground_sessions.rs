//! Playground sessions: `WebSockets` of the public API, opened on the admin listener on behalf of a key.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderMap, HeaderName};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{AdminClient, TOKEN, with_token};
use crate::harness::{GatewayBuilder, Key, Request, TestGateway, UPSTREAM_KEY, eventually, within};

const VOICE: &str = r#"
    [[model]]
    id = "maker/voice"
    kind = "audio"
    routes = [{ channel = "main", model = "sim-voice" }]
    price = { realtime_minute = "0.6", realtime_text_input = "0.004" }
"#;
const REALTIME: &str = "/v1/realtime?model=maker/voice&x=1";

type Socket = WebSocketStream<TcpStream>;

async fn gateway() -> (TestGateway, Key) {
    with_token(GatewayBuilder::default())
        .entries(VOICE)
        .funded()
        .await
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let header = |(name, value): &(&str, &str)| {
        (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())
    };
    pairs.iter().map(header).collect()
}

/// Performs a handshake with the admin listener. Returns the socket and the chosen subprotocol.
async fn open(
    gateway: &TestGateway,
    target: &str,
    given: &[(&str, &str)],
) -> Result<(Socket, Option<String>), Error> {
    let url = format!("ws://{}/admin/v1/play{target}", gateway.admin());
    let mut request = url.into_client_request()?;
    request.headers_mut().extend(headers(given));
    let tcp = TcpStream::connect(gateway.admin()).await.unwrap();
    let handshake = tokio_tungstenite::client_async(request, tcp);
    let (socket, answer) = within("a handshake", handshake).await?;
    let chosen = answer.headers().get("sec-websocket-protocol");
    let chosen = chosen.map(|it| it.to_str().unwrap().to_owned());
    Ok((socket, chosen))
}

/// Status and code of a refused handshake.
async fn refusal(gateway: &TestGateway, target: &str, given: &[(&str, &str)]) -> (u16, String) {
    let handshake = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    let mut request = Request::get(&format!("/admin/v1/play{target}"));
    for (name, value) in handshake.iter().chain(given) {
        request = request.header(name, value);
    }
    let answer = AdminClient::without_token(gateway)
        .send_as_is(request)
        .await;
    let code = answer.json()["error"]["code"].clone();
    (
        answer.status(),
        code.as_str().unwrap_or_default().to_owned(),
    )
}

async fn until(socket: &mut Socket, kind: &str) -> Value {
    loop {
        let message = within(kind, socket.next()).await.unwrap().unwrap();
        if let Message::Text(text) = message {
            let event: Value = serde_json::from_str(&text).unwrap();
            if event["type"] == kind {
                return event;
            }
        }
    }
}

/// Signs in like a browser, and returns the session's cookie and CSRF token.
async fn signed_in(gateway: &TestGateway) -> (String, String) {
    let body = json!({ "token": TOKEN });
    let request = Request::post("/admin/v1/session").json(&body);
    let answer = AdminClient::without_token(gateway)
        .send_as_is(request)
        .await;
    let cookie = answer.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let csrf = answer.json()["csrf"].as_str().unwrap().to_owned();
    (cookie, csrf)
}

/// Checks that the upstream got the gateway's credential and nothing of the caller's.
#[track_caller]
fn assert_headers(call: &sim::Call, of_caller: &[&str]) {
    assert_eq!(
        call.headers["authorization"],
        format!("Bearer {UPSTREAM_KEY}")
    );
    for name in ["cookie", "origin", "x-play-key"] {
        assert!(!call.headers.contains_key(name), "{name}");
    }
    let all = format!("{:?}", call.headers);
    for value in of_caller {
        assert!(!all.contains(value), "{value} in {all}");
    }
}

#[tokio::test]
async fn a_browser_talks_in_the_name_of_a_key_which_pays() {
    let (gateway, key) = gateway().await;
    let (cookie, csrf) = signed_in(&gateway).await;
    let origin = format!("http://{}", gateway.admin());
    let offered = format!("realtime, csrf.{csrf}");
    let target = format!("{REALTIME}&play_key={}", key.id);
    let (mut socket, chosen) = open(
        &gateway,
        &target,
        &[
            ("cookie", &cookie),
            ("origin", &origin),
            ("sec-websocket-protocol", &offered),
        ],
    )
    .await
    .unwrap();
    assert_eq!(chosen.as_deref(), Some("realtime"));
    let created = until(&mut socket, "session.created").await;
    assert_eq!(created["session"]["model"], "maker/voice");
    for event in [
        json!({"type": "conversation.item.create", "item": {"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "Hi"}]}}),
        json!({"type": "response.create"}),
    ] {
        let event = Message::text(event.to_string());
        socket.send(event).await.unwrap();
    }
    until(&mut socket, "response.done").await;
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = within("the end", socket.next()).await {}
    eventually("the hold is closed", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    assert!(gateway.usage(&key).await >= 4_000);
    // The upstream does not get the parameter that names the key.
    let call = gateway.sim.calls().remove(0);
    assert_eq!(call.query.as_deref(), Some("model=sim-voice&x=1"));
    assert_headers(&call, &[&cookie, &csrf, &origin, &key.id]);
    gateway.verify().await;
}

#[tokio::test]
async fn a_program_opens_a_session_with_its_token() {
    let (gateway, key) = gateway().await;
    let bearer = format!("Bearer {TOKEN}");
    let given = [("authorization", &*bearer), ("x-play-key", &*key.id)];
    let (mut socket, chosen) = open(&gateway, REALTIME, &given).await.unwrap();
    assert_eq!(chosen, None);
    until(&mut socket, "session.created").await;
    assert_headers(&gateway.sim.calls()[0], &[TOKEN, &key.id]);
    // The session ends when its client disappears.
    drop(socket);
    eventually("the session is settled", async || {
        (gateway.frozen(&key).await == 0).then_some(())
    })
    .await;
    gateway.verify().await;
}

#[tokio::test]
async fn a_session_that_another_site_may_have_caused_is_refused() {
    let (gateway, key) = gateway().await;
    let (cookie, csrf) = signed_in(&gateway).await;
    let target = format!("{REALTIME}&play_key={}", key.id);
    let own = "http://gateway".to_owned();
    let right = format!("realtime, csrf.{csrf}");
    for (origin, offered) in [
        (&*own, "realtime"),
        (&*own, "realtime, csrf.wrong"),
        (&*own, "csrf."),
        ("http://evil.example", &*right),
        ("null", &*right),
    ] {
        let given = [
            ("cookie", &*cookie),
            ("origin", origin),
            ("sec-websocket-protocol", offered),
        ];
        let refused = refusal(&gateway, &target, &given).await;
        assert_eq!(refused, (403, "cross_site_request".to_owned()), "{offered}");
    }
    assert_eq!(gateway.upstream_calls(), 0);
}

#[tokio::test]
async fn refusals_come_before_the_upgrade_as_the_public_listener_sends_them() {
    let (gateway, key) = gateway().await;
    let bearer = format!("Bearer {TOKEN}");
    let given = [("authorization", &*bearer), ("x-play-key", &*key.id)];
    let unknown = refusal(&gateway, "/v1/realtime?model=maker/none", &given).await;
    assert_eq!(unknown, (404, "model_not_found".to_owned()));
    let nowhere = refusal(&gateway, "/v1/nothing", &given).await;
    assert_eq!(nowhere, (404, "not_found".to_owned()));
    let nobody = refusal(&gateway, REALTIME, &[]).await;
    assert_eq!(nobody, (401, "invalid_admin_token".to_owned()));
    let keyless = refusal(&gateway, REALTIME, &[("authorization", &bearer)]).await;
    assert_eq!(keyless, (400, "invalid_request".to_owned()));
    let admin = AdminClient::new(&gateway);
    let low = json!({ "name": "low", "role": "support" });
    let low = admin.post("/tokens", &low).await;
    let low = format!("Bearer {}", low["secret"].as_str().unwrap());
    let given = [("authorization", &*low), ("x-play-key", &*key.id)];
    let low = refusal(&gateway, REALTIME, &given).await;
    assert_eq!(low, (403, "role_not_sufficient".to_owned()));
    // Without an upgrade, the answer is the public listener's answer to a plain request.
    let plain = Request::get(&format!("/admin/v1/play{REALTIME}")).header("x-play-key", &key.id);
    assert_eq!(admin.send_as_is(plain).await.status(), 426);
    assert_eq!(gateway.upstream_calls(), 0);
}
