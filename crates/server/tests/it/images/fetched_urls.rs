//! Images given by URL for upstreams that take only inline data: the gateway fetches them, within limits.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::harness::{
    CannedUpstream, Connection, Dialect, GatewayBuilder, Key, TestGateway, within,
};

const PIXEL: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";
const PIXEL_BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";

/// A web server with pictures and other content. It stops when dropped.
struct PictureServer {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl PictureServer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                connections.spawn(serve(socket));
            }
        });
        Self {
            address,
            _serving: serving,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Reads a request and answers according to its path.
async fn serve(mut socket: TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = socket.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(!head.contains("authorization"), "{head}");
    let path = head.split(' ').nth(1).unwrap();
    let whole = |body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    let answer = match path {
        "/pixel" | "/pixel.png" => whole(PIXEL),
        "/moved" => b"HTTP/1.1 302 Found\r\nlocation: /pixel\r\n\r\n".to_vec(),
        "/inside" => b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.2/\r\n\r\n".to_vec(),
        "/page" => whole(b"<!DOCTYPE html><title>Not a picture</title>"),
        "/large" => whole(&[PIXEL, &[0; 5000]].concat()),
        "/endless" => [
            b"HTTP/1.1 200 OK\r\n\r\n",
            [PIXEL, &[0; 5000]].concat().as_slice(),
        ]
        .concat(),
        "/broken" => b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n\x89PNG\r\n\x1a\n".to_vec(),
        "/silent" => std::future::pending().await,
        _ => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(),
    };
    let _ = socket.write_all(&answer).await;
}

/// A gateway with a model whose only upstream uses one dialect and fetches no images.
async fn gateway(upstream: Dialect, channel: &str) -> (TestGateway, Key) {
    builder(upstream, channel).funded().await
}

fn builder(upstream: Dialect, channel: &str) -> GatewayBuilder {
    let entries = format!(
        "[[channel]]
        name = \"only\"
        preset = \"sim\"
        base_url = \"http://SIM/v1\"
        protocols = [\"{}\"]
        {channel}
        [[model]]
        id = \"maker/seer\"
        kind = \"text\"
        routes = [{{ channel = \"only\", model = \"sim-seer\" }}]
        price = {{ input = \"1\", output = \"2\" }}
        profile = {{ max_output_tokens = 128000, vision = true, image_urls = false }}",
        upstream.name()
    );
    GatewayBuilder::default()
        .entries(&entries)
        .setting("outbound", "allow = [\"127.0.0.1\"]")
        .setting("limits", "fetched_images = 3")
        .setting("limits", "fetched_image_bytes = 4000")
        .setting("limits", "fetched_images_bytes = 4050")
}

/// A question about pictures in the form of a dialect.
fn ask(dialect: Dialect, urls: &[String]) -> Value {
    let words = "What is this?";
    let images = urls.iter();
    match dialect {
        Dialect::Chat => {
            let images =
                images.map(|url| json!({ "type": "image_url", "image_url": { "url": url } }));
            let mut content: Vec<_> = images.collect();
            content.push(json!({ "type": "text", "text": words }));
            json!({ "messages": [{ "role": "user", "content": content }] })
        }
        Dialect::Responses => {
            let images = images.map(|url| json!({ "type": "input_image", "image_url": url }));
            let mut content: Vec<_> = images.collect();
            content.push(json!({ "type": "input_text", "text": words }));
            json!({ "input": [{ "role": "user", "content": content }] })
        }
        Dialect::Messages => {
            let source = |url| json!({ "type": "url", "url": url });
            let images = images.map(|url| json!({ "type": "image", "source": source(url) }));
            let mut content: Vec<_> = images.collect();
            content.push(json!({ "type": "text", "text": words }));
            json!({ "max_tokens": 99, "messages": [{ "role": "user", "content": content }] })
        }
        Dialect::Generate => {
            let file = |url| json!({ "fileUri": url, "mimeType": "image/png" });
            let mut parts: Vec<_> = images.map(|url| json!({ "fileData": file(url) })).collect();
            parts.push(json!({ "text": words }));
            json!({ "contents": [{ "role": "user", "parts": parts }] })
        }
        Dialect::Interactions => {
            let images = images.map(|url| json!({ "type": "image", "uri": url }));
            let mut content: Vec<_> = images.collect();
            content.push(json!({ "type": "text", "text": words }));
            json!({ "input": content })
        }
    }
}

#[tokio::test]
async fn every_upstream_gets_inline_what_it_cannot_fetch() {
    let pictures = PictureServer::start().await;
    let urls = [
        pictures.url("/moved"),
        pictures.url("/pixel"),
        pictures.url("/pixel"),
    ];
    for upstream in Dialect::ALL {
        let (gateway, key) = gateway(upstream, "").await;
        for caller in Dialect::ALL {
            gateway.sim.forget_calls();
            for stream in [false, true] {
                let body = ask(caller, &urls);
                let request = caller.call(&key.secret, "maker/seer", body, stream);
                gateway.send(&request).await.ok();
            }
            for call in gateway.sim.calls() {
                let sent = String::from_utf8(call.body.to_vec()).unwrap();
                let what = format!("{caller:?} to {upstream:?}: {sent}");
                assert_eq!(sent.matches(PIXEL_BASE64).count(), 3, "{what}");
                assert!(
                    sent.contains("image/png") && !sent.contains("http://"),
                    "{what}"
                );
            }
        }
        gateway.verify().await;
    }
}

/// Converse has no member for the URL of a picture, so the gateway sends every picture inline, for callers of every
/// dialect.
#[tokio::test]
async fn converse_gets_all_pictures_inline() {
    let pictures = PictureServer::start().await;
    let entries = "[[channel]]
        name = \"only\"
        preset = \"bedrock-converse\"
        base_url = \"http://SIM\"
        account = { region = \"us-east-1\" }
        credential = { file = \"upstream-key\" }
        [[model]]
        id = \"maker/seer\"
        kind = \"text\"
        routes = [{ channel = \"only\", model = \"sim-seer\" }]
        price = { input = \"1\", output = \"2\" }
        profile = { max_output_tokens = 128000, vision = true }";
    let builder = GatewayBuilder::default().entries(entries);
    let builder = builder.setting("outbound", "allow = [\"127.0.0.1\"]");
    let (gateway, key) = builder.funded().await;
    for caller in Dialect::ALL {
        for stream in [false, true] {
            gateway.sim.forget_calls();
            let body = ask(caller, &[pictures.url("/pixel")]);
            let request = caller.call(&key.secret, "maker/seer", body, stream);
            gateway.send(&request).await.ok();
            let calls = gateway.sim.calls();
            let sent: Value = serde_json::from_slice(&calls[0].body).unwrap();
            let image = json!({ "format": "png", "source": { "bytes": PIXEL_BASE64 } });
            assert_eq!(sent["messages"][0]["content"][0]["image"], image, "{sent}");
        }
    }
    gateway.verify().await;
}

#[tokio::test]
async fn a_caller_who_leaves_meanwhile_is_not_fetched_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/picture", listener.local_addr().unwrap());
    // The timeouts are so long that only the caller's departure can end the fetch.
    let (gateway, key) = builder(Dialect::Generate, "")
        .setting("timeouts", "image_fetch_ms = 100000")
        .setting("timeouts", "client_gone_drain_ms = 100000")
        .funded()
        .await;
    let mut caller = Connection::open(gateway.address()).await;
    let body = ask(Dialect::Chat, std::slice::from_ref(&url));
    caller
        .send(&Dialect::Chat.call(&key.secret, "maker/seer", body, false))
        .await;
    let (mut fetch, _) = within("the picture is asked for", listener.accept())
        .await
        .unwrap();
    drop(caller);
    let mut asked = Vec::new();
    within("the fetch is given up", fetch.read_to_end(&mut asked))
        .await
        .unwrap();
    assert!(asked.starts_with(b"GET /picture"));
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(
        (gateway.usage(&key).await, gateway.frozen(&key).await),
        (0, 0)
    );
    gateway.verify().await;
}

#[tokio::test]
async fn a_picture_that_cannot_be_had_is_refused_before_anything_is_paid_or_sent() {
    let pictures = PictureServer::start().await;
    let (gateway, key) = gateway(Dialect::Generate, "").await;
    for (paths, why) in [
        (&["/nowhere"][..], "the answer has the status 404"),
        (&["/page"], "it is not a PNG, JPEG, GIF, WebP or HEIC file"),
        (&["/large"], "it is larger than 4000 bytes"),
        (&["/endless"], "it is larger than 4000 bytes"),
        (&["/broken"], "its server gave no whole answer"),
        (
            &["/inside"],
            "the URL leads to an address that is not public",
        ),
        (
            &["/pixel?1", "/pixel?2", "/pixel?3", "/pixel?4"],
            "At most 3 images",
        ),
    ] {
        let urls: Vec<_> = paths.iter().map(|path| pictures.url(path)).collect();
        for caller in Dialect::ALL
            .into_iter()
            .filter(|it| *it != Dialect::Generate)
        {
            let request = caller.call(&key.secret, "maker/seer", ask(caller, &urls), true);
            let answer = gateway.send(&request).await;
            let failure = caller.failure(&answer);
            assert_eq!(
                failure,
                (400, "invalid_request".to_owned()),
                "{caller:?} {paths:?}"
            );
            assert!(answer.text().contains(why), "{}", answer.text());
        }
    }
    let outside = [
        "http://127.0.0.2/a.png".to_owned(),
        "http://localhost/a.png".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        format!("http://{}/healthz", gateway.address()),
        format!("http://{}/metrics", gateway.admin()),
        "http://user:word@example.com/a.png".to_owned(),
    ];
    for url in outside {
        let body = ask(Dialect::Chat, std::slice::from_ref(&url));
        let answer = gateway
            .send(&Dialect::Chat.call(&key.secret, "maker/seer", body, false))
            .await;
        assert_eq!(Dialect::Chat.failure(&answer).0, 400, "{url}");
        assert_eq!(
            answer.json()["error"]["param"],
            "messages[0].content[0]",
            "{url}"
        );
    }
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(
        (gateway.usage(&key).await, gateway.frozen(&key).await),
        (0, 0)
    );
    gateway.verify().await;
}

#[tokio::test]
async fn a_picture_that_does_not_come_in_time_is_refused() {
    let pictures = PictureServer::start().await;
    let (gateway, key) = builder(Dialect::Generate, "")
        .setting("timeouts", "image_fetch_ms = 300")
        .funded()
        .await;
    let body = ask(Dialect::Chat, &[pictures.url("/silent")]);
    let request = Dialect::Chat.call(&key.secret, "maker/seer", body, true);
    let answer = gateway.send(&request).await;
    assert_eq!(answer.failure(), (400, "invalid_request".to_owned()));
    let why = "it did not come in time";
    assert!(answer.text().contains(why), "{}", answer.text());
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(
        (gateway.usage(&key).await, gateway.frozen(&key).await),
        (0, 0)
    );
}

#[tokio::test]
async fn pictures_take_no_more_memory_than_the_node_and_the_key_have() {
    let pictures = PictureServer::start().await;
    let entries = "[[channel]]
        name = \"only\"
        preset = \"sim\"
        base_url = \"http://SIM/v1\"
        protocols = [\"messages\"]
        [[model]]
        id = \"maker/seer\"
        kind = \"text\"
        routes = [{ channel = \"only\", model = \"sim-seer\" }]
        price = { input = \"1\", output = \"2\" }
        profile = { max_output_tokens = 128000, vision = true }";
    for (limit, refusal) in [
        ("body_memory_bytes = 4096", 503),
        ("body_memory_key_bytes = 4096", 429),
    ] {
        let (gateway, key) = GatewayBuilder::default()
            .entries(entries)
            .setting("outbound", "allow = [\"127.0.0.1\"]")
            .setting("limits", limit)
            .funded()
            .await;
        let ask_about = async |key: &Key, path: &str| {
            // An upstream of the Messages dialect accepts URLs, but only `https`. So the gateway fetches this picture.
            let body = ask(Dialect::Chat, &[pictures.url(path)]);
            let call = Dialect::Chat.call(&key.secret, "maker/seer", body, false);
            gateway.send(&call).await
        };
        for (path, status) in [("/pixel", 200), ("/large", refusal), ("/pixel", 200)] {
            let answer = ask_about(&key, path).await;
            assert_eq!(answer.status(), status, "{}", answer.text());
        }
        // Each mention of the URL gets a copy of the picture, and each copy takes memory.
        let body = ask(Dialect::Chat, &vec![pictures.url("/pixel"); 120]);
        let call = Dialect::Chat.call(&key.secret, "maker/seer", body, false);
        assert_eq!(gateway.send(&call).await.status(), refusal);
        // The server of this picture never answers, so the refusal proves that nothing is fetched for a wallet without
        // credits.
        gateway.wallet("poor", &["--balance", "0"]).await;
        let poor = gateway.key("poor", &[]).await;
        let answer = ask_about(&poor, "/silent").await;
        assert_eq!(answer.failure(), (402, "insufficient_quota".to_owned()));
    }
}

/// The first upstream takes the URL and fails. The second upstream needs the picture inline. At that time the call
/// already holds all credits of its wallet.
#[tokio::test]
async fn pictures_are_fetched_for_a_call_that_holds_its_credits() {
    let pictures = PictureServer::start().await;
    let [first, meter] = [
        CannedUpstream::paused("{}").await,
        CannedUpstream::paused("{}").await,
    ];
    let channel = |name: &str, address: &str, more: &str| {
        format!(
            "[[channel]]\nname = \"{name}\"\npreset = \"sim\"\nbase_url = \"http://{address}/v1\"\n{more}\n"
        )
    };
    let model = |id: &str, routes: &str| {
        format!(
            "[[model]]\nid = \"{id}\"\nkind = \"text\"\nroutes = [{routes}]
            price = {{ input = \"1\", output = \"2\" }}
            profile = {{ max_output_tokens = 128000, vision = true }}\n"
        )
    };
    let entries = [
        channel("first", &first.address().to_string(), ""),
        channel("meter", &meter.address().to_string(), ""),
        channel("second", "SIM", "protocols = [\"messages\"]"),
        model(
            "maker/seer",
            "{ channel = \"first\", model = \"a\" }, { channel = \"second\", model = \"sim-seer\", priority = 1 }",
        ),
        model("maker/seem", "{ channel = \"meter\", model = \"a\" }"),
    ];
    let (gateway, rich) = GatewayBuilder::default()
        .entries(&entries.concat())
        .setting("outbound", "allow = [\"127.0.0.1\"]")
        .funded()
        .await;
    // Makes a call whose first upstream fails. Returns the answer, and the amount that the call held meanwhile.
    let call = async |key: &Key, model: &str, upstream: &CannedUpstream| {
        upstream.answers(500, "application/json", "{}");
        let body = ask(Dialect::Chat, &[pictures.url("/pixel")]);
        let request = Dialect::Chat.call(&key.secret, model, body, false);
        let held = async {
            upstream.wait_for_requests(1).await;
            let held = gateway.frozen(key).await;
            upstream.release_answers();
            held
        };
        tokio::join!(gateway.send(&request), held)
    };
    let (_, needed) = call(&rich, "maker/seem", &meter).await;
    let balance = format!("{}.{:06}", needed / 1_000_000, needed % 1_000_000);
    gateway.wallet("exact", &["--balance", &balance]).await;
    let exact = gateway.key("exact", &[]).await;
    let (answer, held) = call(&exact, "maker/seer", &first).await;
    assert_eq!(held, needed);
    answer.ok();
    assert_eq!(gateway.upstream_calls(), 1);
    gateway.verify().await;
}

#[tokio::test]
async fn an_upstream_inside_a_private_network_is_not_told_of_its_neighbours() {
    for upstream in Dialect::ALL {
        let entries = format!(
            "[[channel]]
            name = \"inside\"
            preset = \"sim\"
            base_url = \"http://SIM/v1\"
            protocols = [\"{}\"]
            private_network = true
            [[model]]
            id = \"maker/seer\"
            kind = \"text\"
            routes = [{{ channel = \"inside\", model = \"sim-seer\" }}]
            price = {{ input = \"1\", output = \"2\" }}
            profile = {{ max_output_tokens = 128000, vision = true }}",
            upstream.name()
        );
        let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
        for caller in [upstream, Dialect::Chat] {
            let body = ask(caller, &["https://10.0.0.1/a.png".to_owned()]);
            let answer = gateway
                .send(&caller.call(&key.secret, "maker/seer", body, false))
                .await;
            assert_eq!(caller.failure(&answer).0, 400, "{caller:?} to {upstream:?}");
            let body = ask(caller, &["https://8.8.8.8/a.png".to_owned()]);
            let answer = gateway
                .send(&caller.call(&key.secret, "maker/seer", body, false))
                .await;
            answer.ok();
        }
        assert_eq!(gateway.upstream_calls(), 2, "{upstream:?}");
    }
}
