//! An upstream inside a private network must not fetch URLs of its neighbours for callers. Requests for text are tested
//! in `images/fetched_urls.rs`.

use serde_json::{Value, json};

use crate::harness::pictures::form;
use crate::harness::{CannedUpstream, GatewayBuilder, Request, TestGateway, eventually};

const ENTRIES: &str = r#"
[[channel]]
name = "inside"
preset = "sim"
base_url = "http://SIM/v1"
private_network = true
[[model]]
id = "maker/paint"
kind = "image"
routes = [{ channel = "inside", model = "sim-paint" }]
price = { image = "0.04" }
profile = { base = "gpt-image" }
[[model]]
id = "maker/video"
kind = "video"
routes = [{ channel = "inside", model = "sim-video" }]
price = { video_second = "0.05" }
profile = { base = "video-a" }
[[model]]
id = "maker/film"
kind = "video"
routes = [{ channel = "inside", model = "sim-film" }]
price = { video_tokens = "1" }
profile = { base = "content-2.0" }
[[model]]
id = "maker/inner-vectors"
kind = "embedding"
routes = [{ channel = "inside", model = "sim-embed" }]
price = { input = "1" }
[[model]]
id = "maker/inner-voice"
kind = "audio"
routes = [{ channel = "inside", model = "sim-voice" }]
price = { tts_characters = "1", stt_second = "0.001" }
[[model]]
id = "maker/omni"
kind = "video"
routes = [{ channel = "inside", model = "sim-omni" }]
price = { video_second = "0.1" }
profile = { base = "omni-1.1" }
"#;

/// Requests that are not for text and name a URL.
fn requests(url: &str) -> Vec<Request> {
    let picture = |member: &str, value: Value| {
        let mut body = json!({ "model": "maker/paint", "prompt": "a boat" });
        body[member] = value;
        body
    };
    let film = json!([
        { "type": "text", "text": "a boat" },
        { "type": "image_url", "image_url": { "url": url }, "role": "first_frame" },
    ]);
    let omni = json!([{ "type": "text", "text": "a boat" }, { "type": "image", "uri": url }]);
    let in_json = [
        ("/v1/images/edits", picture("image", url.into())),
        (
            "/v1/images/edits",
            picture("images", json!([{ "image_url": url }])),
        ),
        (
            "/v1/images/generations",
            picture("x_reference", json!({ "at": [url] })),
        ),
        (
            "/v1/videos/generations",
            json!({ "model": "maker/video", "prompt": "a boat", "image": { "url": url } }),
        ),
        (
            "/v1/contents/generations/tasks",
            json!({ "model": "maker/film", "content": film }),
        ),
        (
            "/v1beta/interactions",
            json!({ "model": "maker/omni", "input": omni, "background": true }),
        ),
        (
            "/v1/embeddings",
            json!({ "model": "maker/inner-vectors", "input": "a boat", "x_image": { "at": url } }),
        ),
        (
            "/v1/tts",
            json!({ "model": "maker/inner-voice", "text": "a boat", "language": "en", "x_voice": url }),
        ),
    ];
    let in_json = in_json.map(|(path, body)| Request::post(path).json(&body));
    let edit = ["maker/paint", "image"];
    let transcript = ["maker/inner-voice", "x_audio"];
    let in_forms = [("/v1/images/edits", edit), ("/v1/stt", transcript)];
    let in_forms = in_forms.map(|(path, [model, member])| {
        let fields = [("model", model), ("prompt", "a boat"), (member, url)];
        let (content_type, body) = form(&fields, &[("file", b"RIFF")]);
        let request = Request::post(path).header("content-type", &content_type);
        request.body(body)
    });
    in_json.into_iter().chain(in_forms).collect()
}

#[tokio::test]
async fn requests_for_media_do_not_tell_an_upstream_of_its_neighbours() {
    let (gateway, key): (TestGateway, _) =
        GatewayBuilder::default().entries(ENTRIES).funded().await;
    for request in requests("https://10.0.0.1/a.png") {
        let answer = gateway.send(&request.bearer(&key.secret)).await;
        assert_eq!(answer.status(), 400, "{}", answer.text());
        let text = answer.text();
        assert!(
            text.contains("A URL of the request is not accepted"),
            "{text}"
        );
    }
    // Some protocols refuse these spellings for every upstream.
    for url in ["\u{1}ht\ttp:10.0.0.1/a.png", "file:///etc/hosts"] {
        for request in requests(url) {
            let answer = gateway.send(&request.bearer(&key.secret)).await;
            assert_eq!(answer.status(), 400, "{url}: {}", answer.text());
        }
    }
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(gateway.usage(&key).await, 0);
    let url = "https://8.8.8.8/a.png";
    for (request, count) in requests(url).into_iter().zip(1..) {
        let answer = gateway.send(&request.bearer(&key.secret)).await;
        let answered = String::from_utf8_lossy(&answer.body);
        // Omni answers before the request is sent on.
        eventually(&answered, async || {
            let calls = gateway.sim.calls().into_iter();
            let named = calls.filter(|call| String::from_utf8_lossy(&call.body).contains(url));
            (named.count() == count).then_some(())
        })
        .await;
    }
    gateway.verify().await;
}

/// The wallet has exactly what the call needs, and the call holds all of it.
#[tokio::test]
async fn a_call_that_holds_its_credits_may_fall_back_to_a_private_network() {
    let outside = CannedUpstream::json("{}").await;
    outside.answers(500, "application/json", "{}");
    let entries = format!(
        "{ENTRIES}
        [[channel]]
        name = \"outside\"
        preset = \"sim\"
        base_url = \"http://{}/v1\"
        [[model]]
        id = \"maker/two-voices\"
        kind = \"audio\"
        routes = [{{ channel = \"outside\", model = \"v\" }}, {{ channel = \"inside\", model = \"sim-voice\", priority = 1 }}]
        price = {{ tts_characters = \"1\" }}",
        outside.address()
    );
    let gateway = GatewayBuilder::default().entries(&entries).start().await;
    gateway.wallet("w", &["--balance", "0.000006"]).await;
    let key = gateway.key("w", &[]).await;
    let body = json!({ "model": "maker/two-voices", "text": "a boat", "language": "en", "x_voice": "https://8.8.8.8/a.wav" });
    let request = Request::post("/v1/tts").json(&body).bearer(&key.secret);
    gateway.send(&request).await.ok();
    assert_eq!(outside.bodies().len(), 1);
    assert_eq!(gateway.upstream_calls(), 1);
    assert_eq!(gateway.usage(&key).await, 6);
    // The next call has no credits, so nothing is looked up for it.
    let refused = gateway.send(&request).await;
    assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
    gateway.verify().await;
}
