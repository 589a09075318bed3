//! Tests of WebSocket sessions.

mod abnormal_ends;
mod billing;
mod conversations;
mod echo_upstream;
mod frames;
mod refusals;
mod text;

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderMap;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::harness::{GatewayBuilder, Key, TestGateway, eventually, within};

/// Prices: 10,000 micro-credits per second of a session, 4,000 per text input, 15 per character, and 1,000 per second
/// of audio.
const ENTRIES: &str = r#"
[[model]]
id = "maker/voice"
kind = "audio"
routes = [{ channel = "main", model = "sim-voice-secret", cost = { realtime_minute = "0.06", realtime_text_input = "0", tts_stream_characters = "1", stt_stream_second = "0.0001" } }]
price = { realtime_minute = "0.6", realtime_text_input = "0.004", tts_stream_characters = "15", stt_stream_second = "0.001" }
"#;
const REALTIME: &str = "/v1/realtime?model=maker/voice";
/// One second of this audio is 8,000 bytes.
const TRANSCRIPT: &str = "/v1/stt?model=maker/voice&sample_rate=8000&encoding=mulaw";
const SPEECH: &str = "/v1/tts?model=maker/voice&language=en&codec=pcm";

type Socket = WebSocketStream<TcpStream>;

async fn gateway() -> (TestGateway, Key) {
    GatewayBuilder::default().entries(ENTRIES).funded().await
}

async fn gateway_with_balance(balance: &str) -> (TestGateway, Key) {
    let gateway = GatewayBuilder::default().entries(ENTRIES).start().await;
    gateway.wallet("w", &["--balance", balance]).await;
    let key = gateway.key("w", &[]).await;
    (gateway, key)
}

fn bearer(key: &Key) -> HeaderMap {
    let bearer = format!("Bearer {}", key.secret);
    HeaderMap::from_iter([("authorization".parse().unwrap(), bearer.parse().unwrap())])
}

async fn connect_with(
    gateway: &TestGateway,
    headers: HeaderMap,
    target: &str,
) -> Result<Socket, Error> {
    let url = format!("ws://{}{target}", gateway.address());
    let mut request = url.into_client_request()?;
    request.headers_mut().extend(headers);
    let tcp = TcpStream::connect(gateway.address()).await.unwrap();
    let handshake = tokio_tungstenite::client_async(request, tcp);
    let (socket, _) = within("a handshake", handshake).await?;
    Ok(socket)
}

async fn connect(gateway: &TestGateway, key: &Key, target: &str) -> Socket {
    connect_with(gateway, bearer(key), target).await.unwrap()
}

/// Status and code of a refused handshake.
async fn refusal_with(gateway: &TestGateway, headers: HeaderMap, target: &str) -> (u16, String) {
    match connect_with(gateway, headers, target).await {
        Err(Error::Http(response)) => {
            let json = response.headers().get("content-type");
            assert_eq!(json.unwrap(), "application/json", "{target}");
            let status = response.status().as_u16();
            let body = response.body().clone().unwrap_or_default();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let code = body["error"]["code"].as_str().unwrap_or_default();
            (status, code.to_owned())
        }
        Err(error) => panic!("{target}: {error}"),
        Ok(_) => panic!("{target} was opened"),
    }
}

async fn refusal(gateway: &TestGateway, key: &Key, target: &str) -> (u16, String) {
    refusal_with(gateway, bearer(key), target).await
}

async fn say(socket: &mut Socket, event: &Value) {
    socket.send(Message::text(event.to_string())).await.unwrap();
}

/// The next event of this type; other events are skipped.
async fn until(socket: &mut Socket, kind: &str) -> Value {
    loop {
        let message = within(kind, socket.next()).await;
        match message.unwrap_or_else(|| panic!("no {kind}")).unwrap() {
            Message::Text(text) => {
                let event: Value = serde_json::from_str(&text).unwrap();
                if event["type"] == kind {
                    return event;
                }
            }
            Message::Close(close) => panic!("closed without {kind}: {close:?}"),
            _ => {}
        }
    }
}

/// Code and reason of the close; earlier messages are skipped.
async fn closed(socket: &mut Socket) -> (u16, String) {
    loop {
        let message = within("a close", socket.next()).await;
        if let Message::Close(Some(frame)) = message.expect("a close").unwrap() {
            return (frame.code.into(), frame.reason.to_string());
        }
    }
}

/// The amount that the key has spent, once its holds are closed.
async fn settled(gateway: &TestGateway, key: &Key) -> u64 {
    eventually("the hold is closed", async || {
        (gateway.frozen(key).await == 0).then_some(())
    })
    .await;
    gateway.usage(key).await
}

/// The duration in whole seconds, rounded up.
fn ceil(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
