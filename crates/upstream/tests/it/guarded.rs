//! Tests of calls to external URLs over real sockets.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use upstream::{
    AddressPolicy, CallErrorKind, FetchError, FetchLimits, Guarded, Post, TimeoutStage, UrlRefusal,
};

use crate::upstream_script::{HELLO, Peer, SECRET, both, channel_to, seconds};

/// A client that may call one address that is not public: 127.0.0.1.
fn guarded() -> Guarded {
    Guarded::new(AddressPolicy {
        allow: vec!["127.0.0.1".parse().unwrap()],
        ..AddressPolicy::default()
    })
}

fn bounds(bytes_max: u64) -> FetchLimits {
    FetchLimits {
        times: seconds(5, 10, 20, 60),
        bytes_max,
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Serves one connection after another and returns the requests.
async fn answer<'a>(
    listener: &TcpListener,
    answers: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let mut requests = Vec::new();
    for answer in answers {
        let mut peer = Peer::accept(listener).await;
        requests.push(peer.request().await);
        peer.say(answer).await;
    }
    requests
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

async fn get(guarded: &Guarded, url: &str, bytes_max: u64) -> Result<Bytes, FetchError> {
    let fetched = guarded.get(url, None, bounds(bytes_max)).await?;
    fetched.body.collect().await
}

#[tokio::test]
async fn a_fetch_reveals_nothing_about_the_gateway() {
    let (listener, address) = listener().await;
    let (guarded, url) = (guarded(), format!("http://{address}/a b?c=d"));
    let (requests, body) = tokio::join!(answer(&listener, [HELLO]), get(&guarded, &url, 100));
    assert_eq!(body.unwrap(), "hello");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        requests,
        [format!(
            "GET /a%20b?c=d HTTP/1.1\r\nhost: {address}\r\nuser-agent: tollgate/{version}\r\n\
             accept-encoding: identity\r\nconnection: close\r\naccept: */*\r\n\r\n"
        )]
    );
}

#[tokio::test]
async fn redirects_are_followed_five_times() {
    let (listener, address) = listener().await;
    let (guarded, url) = (guarded(), format!("http://{address}/0"));
    let steps: Vec<_> = (1..=6).map(|step| redirect(&format!("/{step}"))).collect();
    let steps: Vec<_> = steps.iter().map(String::as_str).collect();

    let enough = [&steps[..5], &[HELLO]].concat();
    let (requests, body) = tokio::join!(answer(&listener, enough), get(&guarded, &url, 9));
    assert_eq!(body.unwrap(), "hello");
    assert!(requests[5].starts_with("GET /5 "));

    let (_, body) = tokio::join!(answer(&listener, steps), get(&guarded, &url, 9));
    assert!(matches!(body, Err(FetchError::Redirects)));
}

#[tokio::test]
async fn a_redirect_is_judged_like_the_first_link() {
    let (listener, address) = listener().await;
    let (other, port) = {
        let other = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = other.local_addr().unwrap().port();
        (other, port)
    };
    let guarded = guarded();
    let url = format!("http://{address}/");
    for (to, why) in [
        (format!("http://127.0.0.2:{port}/"), UrlRefusal::Address),
        (
            format!("http://[::ffff:127.0.0.1]:{port}/"),
            UrlRefusal::Address,
        ),
        (format!("http://2130706434:{port}/"), UrlRefusal::Address),
        (
            "http://169.254.169.254/latest/meta-data".to_owned(),
            UrlRefusal::Address,
        ),
        (format!("http://localhost:{port}/"), UrlRefusal::Name),
        ("file:///etc/passwd".to_owned(), UrlRefusal::Scheme),
        (format!("http://u:p@{address}/"), UrlRefusal::Userinfo),
    ] {
        let step = redirect(&to);
        let (_, body) = tokio::join!(answer(&listener, [&*step]), get(&guarded, &url, 9));
        let Err(FetchError::Refused(found)) = body else {
            panic!("{to}: {body:?}");
        };
        assert_eq!(found, why, "{to}");
    }
    let untouched = tokio::time::timeout(std::time::Duration::ZERO, other.accept()).await;
    assert!(untouched.is_err(), "nobody was called");
}

#[tokio::test]
async fn our_own_listeners_and_hosts_are_not_reached() {
    let (listener, address) = listener().await;
    let url = format!("http://{address}/");
    let guarded = guarded();
    guarded.set_listeners(vec![address]);
    let refused = get(&guarded, &url, 9).await;
    assert!(matches!(
        refused,
        Err(FetchError::Refused(UrlRefusal::Address))
    ));

    let guarded = Guarded::new(AddressPolicy {
        allow: vec!["127.0.0.1".parse().unwrap()],
        own_hosts: vec!["127.0.0.1".to_owned()],
        listeners: Vec::new(),
        ..AddressPolicy::default()
    });
    let refused = get(&guarded, &url, 9).await;
    assert!(matches!(
        refused,
        Err(FetchError::Refused(UrlRefusal::Address))
    ));
    drop(listener);
}

#[tokio::test]
async fn bodies_above_their_limit_are_refused() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let until_close = "HTTP/1.0 200 OK\r\n\r\nhello";
    for text in [HELLO, chunked, until_close] {
        for (bytes_max, fits) in [(5, true), (4, false)] {
            let (listener, address) = listener().await;
            let (guarded, url) = (guarded(), format!("http://{address}/"));
            let (_, body) = tokio::join!(answer(&listener, [text]), get(&guarded, &url, bytes_max));
            match body {
                Ok(body) => assert!(fits && body == "hello", "{text}"),
                Err(FetchError::TooLarge(max)) => assert_eq!((max, fits), (4, false), "{text}"),
                Err(error) => panic!("{error}"),
            }

            // The same limit applies when the body is read piece by piece.
            let pieces = async {
                let mut fetched = guarded.get(&url, None, bounds(bytes_max)).await?;
                let mut whole = Vec::new();
                while let Some(piece) = fetched.body.next().await {
                    whole.extend_from_slice(&piece?);
                }
                Ok::<_, FetchError>(whole)
            };
            let (_, pieces) = tokio::join!(answer(&listener, [text]), pieces);
            assert_eq!(pieces.is_ok(), fits, "{text}");
        }
    }
}

#[tokio::test]
async fn a_failed_answer_is_an_error() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(17 << 10));
    for (text, shown) in [
        (
            "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n",
            "the answer has the status 404",
        ),
        (
            "HTTP/1.1 304 Same\r\nlocation: /\r\n\r\n",
            "the answer has the status 304",
        ),
        (
            "HTTP/1.1 302 Where\r\ncontent-length: 0\r\n\r\n",
            "the answer has the status 302",
        ),
        (
            "SSH-2.0-OpenSSH\r\n",
            "the upstream's answer broke off or is not HTTP",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",
            "the upstream's answer broke off or is not HTTP",
        ),
        (&long, "the upstream's answer broke off or is not HTTP"),
    ] {
        let (listener, address) = listener().await;
        let (guarded, url) = (guarded(), format!("http://{address}/"));
        let (_, body) = tokio::join!(answer(&listener, [text]), get(&guarded, &url, 1 << 20));
        assert_eq!(body.unwrap_err().to_string(), shown);
    }
}

#[tokio::test]
async fn every_wait_of_a_fetch_ends() {
    for (text, stage) in [
        ("", TimeoutStage::FirstByte),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",
            TimeoutStage::Idle,
        ),
    ] {
        let (listener, address) = listener().await;
        let (guarded, url) = (guarded(), format!("http://{address}/"));
        let server = async {
            let mut peer = Peer::accept(&listener).await;
            peer.request().await;
            peer.say(text).await;
            tokio::time::pause();
            peer.closed().await;
            tokio::time::resume();
        };
        let error = both(server, get(&guarded, &url, 100)).await.unwrap_err();
        let FetchError::Call(error) = error else {
            panic!("{error}");
        };
        assert_eq!(error.kind, CallErrorKind::Timeout(stage));
    }
}

#[tokio::test]
async fn the_credential_goes_to_the_channels_own_origin_only() {
    let (home_listener, home_address) = listener().await;
    let (listener, address) = listener().await;
    let channel = channel_to(&format!("http://{home_address}/v1"), seconds(5, 5, 5, 5));
    // This policy has no exceptions, so the only loopback address that it allows is the origin of the channel.
    let strict = Guarded::new(AddressPolicy::default());
    let url = format!("http://{home_address}/files/1");
    let fetch = strict.get(&url, Some(&channel), bounds(9));
    let (requests, fetched) = tokio::join!(answer(&home_listener, [HELLO]), fetch);
    assert_eq!(fetched.unwrap().body.collect().await.unwrap(), "hello");
    assert!(requests[0].contains(&format!("\r\nauthorization: Bearer {SECRET}\r\n")));

    let away = redirect(&format!("http://{address}/"));
    let refused = strict.get(&url, Some(&channel), bounds(9));
    let (_, refused) = tokio::join!(answer(&home_listener, [&*away]), refused);
    assert!(matches!(
        refused,
        Err(FetchError::Refused(UrlRefusal::Address))
    ));

    let open = guarded();
    let fetch = open.get(&url, Some(&channel), bounds(9));
    let (_, requests, fetched) = tokio::join!(
        answer(&home_listener, [&*away]),
        answer(&listener, [HELLO]),
        fetch
    );
    fetched.unwrap();
    assert!(!requests[0].contains("authorization"), "{}", requests[0]);
}

#[tokio::test]
async fn a_delivery_is_sent_whole_and_a_redirect_is_its_answer() {
    let (listener, address) = listener().await;
    let (guarded, url) = (guarded(), format!("http://{address}/hook?token=1"));
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", HeaderValue::from_static("task-1"));
    let post = Post {
        url: &url,
        content_type: HeaderValue::from_static("application/json"),
        headers: &headers,
        body: Bytes::from_static(b"{\"a\":1}"),
        within: std::time::Duration::from_secs(10),
    };
    let moved = redirect("/elsewhere");
    let large = format!(
        "HTTP/1.1 500 No\r\ncontent-length: 9999\r\n\r\n{}",
        "x".repeat(9999)
    );
    for (text, status) in [
        (HELLO, 200),
        ("HTTP/1.1 204 Fine\r\n\r\n", 204),
        (&*moved, 302),
        (&*large, 500),
        // The body of the response is ignored, whether it is complete or not.
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello", 200),
    ] {
        let (requests, found) = tokio::join!(answer(&listener, [text]), guarded.post(&post));
        assert_eq!(found.unwrap(), status, "{text}");
        let request = &requests[0];
        assert!(
            request.starts_with("POST /hook?token=1 HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(
            request.contains("\r\ncontent-type: application/json\r\n"),
            "{request}"
        );
        assert!(
            request.contains("\r\nidempotency-key: task-1\r\n"),
            "{request}"
        );
        assert!(
            request.ends_with("\r\ncontent-length: 7\r\n\r\n{\"a\":1}"),
            "{request}"
        );
    }
    let strict = Guarded::new(AddressPolicy::default());
    let refused = strict.post(&post).await;
    assert!(matches!(
        refused,
        Err(FetchError::Refused(UrlRefusal::Address))
    ));
}

#[tokio::test]
async fn the_status_of_a_delivery_counts_although_its_body_never_ends() {
    let (listener, address) = listener().await;
    let (guarded, url) = (guarded(), format!("http://{address}/hook"));
    let headers = HeaderMap::new();
    let post = |within| Post {
        url: &url,
        content_type: HeaderValue::from_static("application/json"),
        headers: &headers,
        body: Bytes::from_static(b"{}"),
        within,
    };
    let begun = |head: &'static [u8]| async {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(head).await.unwrap();
        socket
    };
    // The time limit for reading the body is much shorter than the limit for the head, so this ends.
    let day = post(std::time::Duration::from_hours(24));
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
    let (_open, delivered) = tokio::join!(begun(head), guarded.post(&day));
    assert_eq!(delivered.unwrap(), 200);

    let moment = post(std::time::Duration::from_millis(100));
    let (_open, silent) = tokio::join!(begun(b"HTTP/1.1 200 OK\r\n"), guarded.post(&moment));
    assert!(
        matches!(&silent, Err(FetchError::Call(error)) if matches!(error.kind, CallErrorKind::Timeout(_))),
        "{silent:?}"
    );
}

#[tokio::test]
async fn a_link_for_someone_else_is_checked_without_a_call() {
    let guarded = guarded();
    let times = seconds(5, 5, 5, 5);
    assert!(guarded.check("http://127.0.0.1:1/x", times).await.is_ok());
    for url in [
        "http://127.0.0.2/",
        "http://localhost/",
        "http://10.0.0.1/",
        "ftp://a.b/",
    ] {
        let checked = guarded.check(url, times).await;
        assert!(matches!(checked, Err(FetchError::Refused(_))), "{url}");
    }
}

#[test]
fn fetches_may_move_between_threads() {
    fn check<T: Send + Sync>(_: &T) {}
    fn send<T: Send>(_: &T) {}
    let guarded = guarded();
    check(&guarded);
    send(&guarded.get("", None, bounds(1)));
}
