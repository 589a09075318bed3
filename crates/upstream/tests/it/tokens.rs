//! Tests of channels that authorise their requests with tokens. The upstream and the token endpoint run in this
//! process, in virtual time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use protocol::Dialect;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::{advance, sleep};
use upstream::{
    CallError, CallErrorKind, Channel, ChannelSpec, Endpoint, MemoryListener, Secret, Sent,
    Timeouts, TokenError, UpstreamRequest,
};

/// A simulated cloud: the requests that it has received, and how it answers.
#[derive(Default)]
struct Cloud {
    /// The number of token requests so far.
    asked: u32,
    /// The statuses and bodies of the next answers of the token endpoint. If none is left, the endpoint issues a token.
    scripted: VecDeque<(u16, &'static str)>,
    /// Tokens below this number are refused.
    revoked: u32,
    /// The `authorization` header of each call.
    calls: Vec<String>,
    /// How long a call waits for its answer.
    call_takes: Duration,
    /// How long a token request waits for its answer, in addition to a fixed delay.
    token_takes: Duration,
}

type Shared = Arc<Mutex<Cloud>>;

fn channel() -> (Channel, Shared) {
    channel_with(Timeouts::default())
}

fn channel_with(timeouts: Timeouts) -> (Channel, Shared) {
    let settings = [
        ("tenant", "t"),
        ("client_id", "c"),
        ("authority", "http://login"),
    ];
    let spec = ChannelSpec {
        name: "cloud".to_owned(),
        preset: "azure".parse().unwrap(),
        base_url: Some("http://cloud/openai/v1".to_owned()),
        credential: Some(Secret::new("client-secret")),
        account: settings
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .into_iter()
            .collect(),
        protocols: None,
        private_network: false,
        keeps_output_limit: None,
        client_gone_drain: None,
        counts_tokens: None,
        sends_traceparent: false,
    };
    let (channel, listener) = Channel::in_memory(spec, timeouts).unwrap();
    let cloud = Shared::default();
    tokio::spawn(accept(listener, Arc::clone(&cloud)));
    (channel, cloud)
}

async fn accept(mut listener: MemoryListener, cloud: Shared) {
    while let Some(stream) = listener.accept().await {
        tokio::spawn(answer_all(stream, Arc::clone(&cloud)));
    }
}

async fn answer_all(mut stream: DuplexStream, cloud: Shared) {
    while let Some(request) = read(&mut stream).await {
        let is_token = request.starts_with("POST /t/oauth2/v2.0/token HTTP/1.1\r\n");
        let (call_takes, token_takes) = {
            let cloud = cloud.lock().unwrap();
            (cloud.call_takes, cloud.token_takes)
        };
        if is_token {
            // This is virtual time, long enough for other calls to arrive and wait.
            sleep(Duration::from_millis(50) + token_takes).await;
        } else {
            sleep(call_takes).await;
        }
        let (status, body) = answer(&request, is_token, &cloud);
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if stream
            .write_all(format!("{head}{body}").as_bytes())
            .await
            .is_err()
        {
            return;
        }
    }
}

fn answer(request: &str, is_token: bool, cloud: &Shared) -> (u16, String) {
    let mut cloud = cloud.lock().unwrap();
    if is_token {
        assert!(request.contains("client_secret=client-secret"), "{request}");
        cloud.asked += 1;
        let number = cloud.asked;
        if let Some((status, body)) = cloud.scripted.pop_front() {
            return (status, body.to_owned());
        }
        let body = format!(r#"{{"access_token":"token-{number}","expires_in":3600}}"#);
        return (200, body);
    }
    assert!(!request.contains("client-secret"), "{request}");
    let line = request
        .lines()
        .find_map(|line| line.strip_prefix("authorization: Bearer "));
    let token = line.expect("a token").to_owned();
    let number: u32 = token.strip_prefix("token-").unwrap().parse().unwrap();
    let is_revoked = number < cloud.revoked;
    cloud.calls.push(token);
    if is_revoked {
        (401, "{}".to_owned())
    } else {
        (200, "{}".to_owned())
    }
}

/// Reads a request with its body; `None` at the end of the connection.
async fn read(stream: &mut DuplexStream) -> Option<String> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text);
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => read.extend_from_slice(&piece[..count]),
        }
    }
}

async fn call(channel: &Channel) -> Result<u16, CallError> {
    let endpoint = Endpoint::Text {
        dialect: Dialect::Chat,
        stream: false,
    };
    let call = UpstreamRequest::json(endpoint, "m", vec![Bytes::from_static(b"{}")]);
    let answer = channel.send(&call).await?;
    let status = answer.status;
    answer.body.collect(100).await?;
    Ok(status)
}

fn last_call(cloud: &Shared) -> String {
    cloud.lock().unwrap().calls.last().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn calls_that_come_together_share_one_token() {
    let (channel, cloud) = channel();
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let channel = channel.clone();
            tokio::spawn(async move { call(&channel).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), 200);
    }
    let cloud = cloud.lock().unwrap();
    assert_eq!(cloud.asked, 1);
    assert_eq!(cloud.calls.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_ahead_of_its_end_and_the_old_one_is_used_meanwhile() {
    let (channel, cloud) = channel();
    assert_eq!(channel.renew_token().await, Some(Ok(())));
    assert_eq!(channel.renew_token().await, None, "nothing is due");
    advance(Duration::from_secs(3_301)).await;
    cloud.lock().unwrap().scripted = VecDeque::from([(503, "down"), (503, "down")]);
    for pause_s in [1, 2] {
        let failed = channel.renew_token().await;
        assert!(
            matches!(failed, Some(Err(TokenError::Transient(_)))),
            "{failed:?}"
        );
        assert_eq!(channel.renew_token().await, None, "a pause follows");
        assert_eq!(call(&channel).await.unwrap(), 200);
        assert_eq!(last_call(&cloud), "token-1");
        advance(Duration::from_millis(pause_s * 1_000 + 1)).await;
    }
    assert_eq!(channel.renew_token().await, Some(Ok(())));
    assert_eq!(call(&channel).await.unwrap(), 200);
    assert_eq!(last_call(&cloud), "token-4");
    // The token is not renewed here, so the call requests one itself.
    advance(Duration::from_secs(3_600)).await;
    assert_eq!(call(&channel).await.unwrap(), 200);
    assert_eq!(last_call(&cloud), "token-5");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_the_upstream_refuses_is_replaced_once() {
    let (channel, cloud) = channel();
    assert_eq!(call(&channel).await.unwrap(), 200);
    // The token is fresh, so no other token is requested.
    cloud.lock().unwrap().revoked = 2;
    assert_eq!(call(&channel).await.unwrap(), 401);
    assert_eq!(cloud.lock().unwrap().asked, 1);
    advance(Duration::from_secs(31)).await;
    assert_eq!(call(&channel).await.unwrap(), 200);
    assert_eq!(last_call(&cloud), "token-2");
    let seen = cloud.lock().unwrap().calls.clone();
    assert_eq!(seen, ["token-1", "token-1", "token-1", "token-2"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_is_sent() {
    let (channel, cloud) = channel();
    for (status, body, kind) in [
        (503, "down", CallErrorKind::Connect),
        (
            401,
            r#"{"error":"invalid_client","error_description":"no such app"}"#,
            CallErrorKind::Credential,
        ),
    ] {
        cloud.lock().unwrap().scripted.push_back((status, body));
        let asked = cloud.lock().unwrap().asked;
        for _ in 0..3 {
            let error = call(&channel).await.unwrap_err();
            assert_eq!((error.sent, error.kind), (Sent::No, kind), "{error}");
            assert!(!format!("{error:?}").contains("client-secret"));
        }
        assert_eq!(
            cloud.lock().unwrap().asked,
            asked + 1,
            "others fail without asking"
        );
        advance(Duration::from_secs(61)).await;
    }
    assert_eq!(call(&channel).await.unwrap(), 200);
    assert_eq!(cloud.lock().unwrap().calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_never_shows_in_a_text() {
    let (channel, _cloud) = channel();
    call(&channel).await.unwrap();
    let text = channel.without_credential("bad token-1 of client-secret");
    assert_eq!(text, "bad *** of ***");
    assert!(!format!("{channel:?}").contains("token-1"));
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_token_is_no_part_of_other_waits_but_of_the_whole_call() {
    let (connect, first_byte) = (Duration::from_secs(5), Duration::from_secs(5));
    let (idle, total) = (Duration::from_secs(5), Duration::from_secs(7));
    let (channel, cloud) = channel_with(Timeouts {
        connect,
        first_byte,
        idle,
        total,
    });
    let short = (200, r#"{"access_token":"token-1","expires_in":10}"#);
    for (call_takes_s, answer) in [(3, Some(200)), (4, None)] {
        cloud.lock().unwrap().scripted.push_back(short);
        cloud.lock().unwrap().call_takes = Duration::ZERO;
        cloud.lock().unwrap().token_takes = Duration::ZERO;
        assert_eq!(call(&channel).await.unwrap(), 200);
        // The connection is idle when the next call has to wait for a token.
        advance(Duration::from_secs(11)).await;
        cloud.lock().unwrap().scripted.push_back(short);
        cloud.lock().unwrap().token_takes = Duration::from_secs(3);
        cloud.lock().unwrap().call_takes = Duration::from_secs(call_takes_s);
        assert_eq!(call(&channel).await.ok(), answer);
        advance(Duration::from_secs(11)).await;
    }
}

#[test]
fn a_session_token_never_shows_in_a_text() {
    let settings = [
        ("region", "us-east-1"),
        ("access_key_id", "ASIA4711"),
        ("session_token", "Fwo/session+token=="),
    ];
    let spec = ChannelSpec {
        name: "cloud".to_owned(),
        preset: "bedrock".parse().unwrap(),
        base_url: None,
        credential: Some(Secret::new("access/secret")),
        account: settings
            .map(|(name, value)| (name.to_owned(), Secret::new(value)))
            .into_iter()
            .collect(),
        protocols: None,
        private_network: false,
        keeps_output_limit: None,
        client_gone_drain: None,
        counts_tokens: None,
        sends_traceparent: false,
    };
    let channel = Channel::new(spec, Timeouts::default()).unwrap();
    let repeated = r"host:us-east-1 x-amz-security-token:Fwo/session+token== Fwo\/session+token== access/secret";
    assert_eq!(
        channel.without_credential(repeated),
        "host:us-east-1 x-amz-security-token:*** *** ***"
    );
}
