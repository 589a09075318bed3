//! Image generations for every model family.

use serde_json::{Value, json};
use sim::raster::Raster;

use super::edits::edit;
use crate::harness::pictures::{base64, bytes_of, decoded, form, png};
use crate::harness::{
    Answer, CANNED_MODEL, CannedUpstream, Dialect, GatewayBuilder, Key, Request, TestGateway,
    eventually, with,
};

/// Models of every family, with the prices and the faults that the tests need.
pub(crate) const ENTRIES: &str = r#"
[[model]]
id = "maker/gpt"
kind = "image"
routes = [{ channel = "main", model = "sim-paint" }]
price = { input = "5", output = "10", image_input = "8", image_output = "30" }
profile = { base = "gpt-image", image_tokens_max = 6240 }
[[model]]
id = "maker/gpt-max"
kind = "image"
routes = [{ channel = "main", model = "sim-paint" }]
price = { input = "5", output = "10", image_input = "8", image_output = "30" }
profile = { base = "gpt-image-max", image_tokens_max = 60000 }
[[model]]
id = "maker/tiered"
kind = "image"
routes = [{ channel = "main", model = "sim-paint+no-usage" }]
price = { image = { default = "0.04", high = "0.17" } }
profile = { base = "gpt-image" }
[[model]]
id = "maker/fewer"
kind = "image"
routes = [{ channel = "main", model = "sim-paint+no-usage+chunks=1" }]
price = { image = { default = "0.04", high = "0.17" } }
profile = { base = "gpt-image" }
[[model]]
id = "maker/video-a"
kind = "image"
routes = [{ channel = "main", model = "sim-paint-a" }]
price = { image = { default = "0.06", "2k" = "0.08" }, usd = "1" }
profile = { base = "video-a-image", qualities = ["low", "medium"] }
[[model]]
id = "maker/content"
kind = "image"
routes = [{ channel = "main", model = "sim-paint-content" }]
price = { image = { default = "0.09", "1k" = "0.045", "2k" = "0.09" } }
profile = { base = "content-image", resolutions = ["1k", "2k"], references_max = 10 }
[[model]]
id = "maker/failing"
kind = "image"
routes = [{ channel = "main", model = "sim-paint-content+content-filter" }]
price = { image = "0.1" }
profile = { base = "content-image" }
[[model]]
id = "maker/native"
kind = "image"
routes = [{ channel = "main", model = "sim-image" }]
price = { input = "1", output = "2", image_output = "30" }
profile = { base = "native-image", image_tokens_max = 2000, context_tokens = 1000, max_output_tokens = 1000 }
"#;

pub(crate) async fn gateway() -> (TestGateway, Key) {
    GatewayBuilder::default().entries(ENTRIES).funded().await
}

pub(crate) fn generation(key: &Key, body: &Value) -> Request {
    Request::post("/v1/images/generations")
        .json(body)
        .bearer(&key.secret)
}

fn ask(model: &str, more: &Value) -> Value {
    with(
        json!({ "model": model, "prompt": "a red circle and a green square on a blue background",
                "size": "64x48" }),
        more,
    )
}

pub(super) fn picture_of(answer: &Answer) -> Raster {
    decoded(&bytes_of(&answer.json()["data"][0]["b64_json"]))
}

#[tokio::test]
async fn a_picture_shows_what_was_asked_for_at_its_size_and_in_its_format() {
    let (gateway, key) = gateway().await;
    for (format, magic) in [
        ("png", &b"\x89PNG"[..]),
        ("jpeg", b"\xff\xd8\xff"),
        ("webp", b"RIFF"),
    ] {
        let body = ask(
            "maker/gpt",
            &json!({ "output_format": format, "quality": "low" }),
        );
        let answer = gateway.send(&generation(&key, &body)).await.ok();
        assert_eq!(answer.header("x-dropped-params"), None);
        let json = answer.json();
        assert_eq!(json["output_format"], format);
        assert_eq!(
            (&json["quality"], &json["size"]),
            (&json!("low"), &json!("64x48"))
        );
        assert!(json["created"].is_u64());
        let bytes = bytes_of(&json["data"][0]["b64_json"]);
        assert!(bytes.starts_with(magic), "{format}");
        let picture = decoded(&bytes);
        assert_eq!(picture.dimensions(), (64, 48));
        let near = |x: u32, y: u32, colour: [u8; 3]| {
            let found = picture.pixel(x, y);
            let near = found.iter().zip(colour).all(|(a, b)| a.abs_diff(b) < 30);
            assert!(near, "{format} at {x},{y}: {found:?}");
        };
        near(16, 24, [220, 40, 40]);
        near(48, 24, [40, 160, 60]);
        near(1, 1, [40, 80, 210]);
    }
    gateway.verify().await;
}

/// The charge of each family, computed by hand.
#[tokio::test]
async fn every_family_is_billed_by_its_own_measure() {
    let (gateway, key) = gateway().await;
    let mut spent = 0;
    let gpt = ask("maker/gpt", &json!({ "n": 2, "quality": "high" }));
    let answer = gateway.send(&generation(&key, &gpt)).await.ok().json();
    assert_eq!(answer["data"].as_array().unwrap().len(), 2);
    let usage = &answer["usage"];
    let count = |name: &str| usage[name].as_u64().unwrap();
    spent += count("input_tokens") * 5 + count("output_tokens") * 30;
    assert_eq!(gateway.usage(&key).await, spent, "tokens");

    for (body, micro) in [
        (
            ask("maker/tiered", &json!({ "quality": "high", "n": 2 })),
            340_000,
        ),
        (ask("maker/tiered", &json!({ "quality": "low" })), 40_000),
        (
            ask("maker/fewer", &json!({ "quality": "high", "n": 4 })),
            170_000,
        ),
        (
            json!({ "model": "maker/video-a", "prompt": "x", "n": 3 }),
            60_000,
        ),
        (
            json!({ "model": "maker/content", "prompt": "x", "size": "1024x1024" }),
            45_000,
        ),
        (
            json!({ "model": "maker/content", "prompt": "x", "size": "256x256",
                    "sequential_image_generation": "auto",
                    "sequential_image_generation_options": { "max_images": 3 } }),
            3 * 45_000,
        ),
        (
            json!({ "model": "maker/failing", "prompt": "x", "size": "64x64" }),
            0,
        ),
    ] {
        gateway.send(&generation(&key, &body)).await.ok();
        spent += micro;
        assert_eq!(gateway.usage(&key).await, spent, "{body}");
    }
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

/// Sequential generation reserves credits for the maximum number of images.
#[tokio::test]
async fn a_sequence_needs_credits_for_all_it_may_give() {
    let gateway = GatewayBuilder::default().entries(ENTRIES).start().await;
    gateway.wallet("w", &["--balance", "0.2"]).await;
    let key = gateway.key("w", &[]).await;
    let ask = |most: u64| {
        json!({ "model": "maker/content", "prompt": "x", "size": "1024x1024",
                "sequential_image_generation": "auto",
                "sequential_image_generation_options": { "max_images": most } })
    };
    let refused = gateway.send(&generation(&key, &ask(5))).await;
    assert_eq!(refused.failure(), (402, "insufficient_quota".to_owned()));
    assert_eq!(gateway.upstream_calls(), 0);
    gateway.send(&generation(&key, &ask(2))).await.ok();
    assert_eq!(gateway.usage(&key).await, 90_000);
}

#[tokio::test]
async fn what_a_family_does_not_take_is_left_out_and_named() {
    let (gateway, key) = gateway().await;
    for (body, dropped) in [
        (
            ask(
                "maker/gpt",
                &json!({ "response_format": "b64_json", "user": "u" }),
            ),
            Some("response_format"),
        ),
        (
            ask("maker/video-a", &json!({ "response_format": "b64_json" })),
            Some("size"),
        ),
        (ask("maker/content", &json!({ "n": 2 })), Some("n")),
        (ask("maker/content", &json!({ "n": 1 })), None),
        (
            json!({ "model": "maker/content", "prompt": "x", "resolution": "1k" }),
            None,
        ),
    ] {
        let answer = gateway.send(&generation(&key, &body)).await.ok();
        assert_eq!(answer.header("x-dropped-params"), dropped, "{body}");
        let text = answer.text();
        assert!(
            !text.contains("sim-paint"),
            "{}",
            &text[..text.len().min(300)]
        );
    }
    let call = gateway.sim.calls().pop().unwrap();
    let sent: Value = serde_json::from_slice(&call.body).unwrap();
    assert_eq!(
        (&sent["size"], &sent["resolution"]),
        (&json!("1K"), &Value::Null)
    );
}

#[tokio::test]
async fn the_video_a_family_answers_as_asked() {
    let (gateway, key) = gateway().await;
    let body = json!({ "model": "maker/video-a", "prompt": "a yellow star", "aspect_ratio": "16:9",
                       "resolution": "1k", "quality": "low" });
    let url = gateway.send(&generation(&key, &body)).await.ok().json();
    assert!(
        url["data"][0]["url"]
            .as_str()
            .unwrap()
            .starts_with("https://")
    );
    assert_eq!(url["quality"], "low");
    assert!(url["created"].is_u64());
    assert_eq!(url["usage"]["total_tokens"], 0);
    assert_eq!(url["usage"]["cost_in_usd_ticks"], 200_000_000);
    assert!(
        url.get("model")
            .is_none_or(|model| model == "maker/video-a")
    );
    let more = json!({ "response_format": "b64_json" });
    let answer = gateway
        .send(&generation(&key, &with(body, &more)))
        .await
        .ok();
    assert_eq!(picture_of(&answer).dimensions(), (1024, 576));
}

/// Parameters and values outside of the model's profile are refused. Nothing is held or sent.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one table")]
async fn what_a_model_cannot_do_is_refused_before_money_moves() {
    let (gateway, key) = gateway().await;
    let no_model = json!({ "prompt": "x" });
    for (body, code) in [
        (no_model, "invalid_request"),
        (json!({ "model": "maker/gpt" }), "invalid_request"),
        (
            json!({ "model": "maker/gpt", "prompt": "" }),
            "invalid_request",
        ),
        (
            ask("maker/gpt", &json!({ "style": "vivid" })),
            "unsupported_parameter",
        ),
        (
            ask("maker/gpt", &json!({ "moderation": "none" })),
            "invalid_request",
        ),
        (
            ask("maker/gpt", &json!({ "response_format": "png" })),
            "invalid_request",
        ),
        (
            ask("maker/gpt", &json!({ "storage_options": {} })),
            "stateful_not_supported",
        ),
        (
            ask("maker/gpt", &json!({ "provider": "x" })),
            "routing_not_supported",
        ),
        (
            ask("maker/gpt", &json!({ "service_tier": "flex" })),
            "service_tier_not_supported",
        ),
        (
            ask("maker/gpt", &json!({ "quality": "xhigh" })),
            "unsupported_parameter",
        ),
        (
            ask("maker/gpt", &json!({ "quality": "hd" })),
            "unsupported_parameter",
        ),
        (
            ask("maker/gpt", &json!({ "quality": 5 })),
            "invalid_request",
        ),
        (
            ask("maker/gpt", &json!({ "resolution": "1k" })),
            "unsupported_parameter",
        ),
        (
            ask("maker/gpt", &json!({ "output_format": "gif" })),
            "unsupported_parameter",
        ),
        (
            ask(
                "maker/gpt",
                &json!({ "background": "transparent", "output_format": "jpeg" }),
            ),
            "invalid_request",
        ),
        (
            ask("maker/gpt", &json!({ "background": "blue" })),
            "unsupported_parameter",
        ),
        (
            ask("maker/gpt", &json!({ "output_compression": 101 })),
            "invalid_request",
        ),
        (
            ask("maker/gpt", &json!({ "output_compression": -1 })),
            "invalid_request",
        ),
        (
            ask("maker/gpt", &json!({ "partial_images": 4 })),
            "invalid_request",
        ),
        (ask("maker/gpt", &json!({ "n": 0 })), "invalid_request"),
        (
            ask("maker/gpt", &json!({ "layer_decomposition": true })),
            "invalid_request",
        ),
        (
            ask("maker/video-a", &json!({ "resolution": "4k" })),
            "unsupported_parameter",
        ),
        (
            ask("maker/video-a", &json!({ "quality": "high" })),
            "unsupported_parameter",
        ),
        (
            ask("maker/video-a", &json!({ "stream": true })),
            "unsupported_parameter",
        ),
        (
            ask("maker/content", &json!({ "layer_decomposition": true })),
            "invalid_request",
        ),
        (
            ask("maker/content", &json!({ "resolution": "4k" })),
            "unsupported_parameter",
        ),
        (ask("maker/native", &json!({})), "model_not_supported"),
        (ask("maker/chat", &json!({})), "model_not_supported"),
    ] {
        let refused = gateway.send(&generation(&key, &body)).await;
        assert_eq!(refused.failure().1, code, "{body}");
        assert!(refused.status() < 500);
    }
    // Generate Content serves an image model only if the model generates images natively.
    for model in ["maker/gpt", "maker/video-a", "maker/content"] {
        let body = json!({ "contents": [{ "parts": [{ "text": "x" }] }] });
        let request = Request::post(&format!("/v1beta/models/{model}:generateContent"));
        let refused = gateway.send(&request.json(&body).bearer(&key.secret)).await;
        let expected = (400, "model_not_supported".to_owned());
        assert_eq!(Dialect::Generate.failure(&refused), expected, "{model}");
    }
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(gateway.usage(&key).await, 0);
    let newest = ask(
        "maker/gpt-max",
        &json!({ "quality": "xhigh", "style": null }),
    );
    gateway.send(&generation(&key, &newest)).await.ok();
}

#[tokio::test]
async fn layers_need_one_picture_and_no_prompt() {
    let (gateway, key) = gateway().await;
    let source = base64(&png(16, 16, [9, 9, 9, 255]));
    let uri = format!("data:image/png;base64,{source}");
    let body = json!({ "model": "maker/content", "layer_decomposition": true, "image": uri,
                       "size": "64x64" });
    let answer = gateway.send(&generation(&key, &body)).await.ok().json();
    assert_eq!(answer["data"].as_array().unwrap().len(), 3);
    assert_eq!(answer["data"][2]["z_index"], 2);
    let two = with(body, &json!({ "image": [uri, uri] }));
    let refused = gateway.send(&generation(&key, &two)).await;
    assert_eq!(refused.failure(), (400, "invalid_request".to_owned()));
}

/// A complete answer is passed on byte for byte, except for the model's name.
#[tokio::test]
async fn a_complete_answer_passes_as_it_is() {
    let upstream = "{ \"created\":5, \"data\":[ {\"b64_json\":\"QUJD\",\"x\":1}],\"model\":\"hidden-name-1\",\
        \"output_format\":\"png\",\"quality\":\"high\",\"size\":\"1x1\",\"usage\":{\"input_tokens\":2,\
        \"output_tokens\":3,\"total_tokens\":5},\"x_new\":[1e3] }";
    let canned = CannedUpstream::json(upstream).await;
    let price = "{ input = \"5\", output = \"10\", image_output = \"30\" }";
    let profile = "{ base = \"gpt-image\", image_tokens_max = 1000 }";
    let entries = canned.entries_of("image", price, profile);
    let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
    let body = format!("{{\"prompt\":\"x\" ,\"model\":\"{CANNED_MODEL}\",\"complexity\":\"low\"}}");
    let call = Request::post("/v1/images/generations")
        .bearer(&key.secret)
        .body(body.clone());
    let answer = gateway.send(&call).await.ok();
    assert_eq!(
        answer.text(),
        upstream.replace("hidden-name-1", CANNED_MODEL)
    );
    let sent = String::from_utf8(canned.bodies().pop().unwrap()).unwrap();
    assert_eq!(sent, body.replace(CANNED_MODEL, "hidden-name-1"));
    assert_eq!(gateway.usage(&key).await, 2 * 5 + 3 * 30);
}

#[tokio::test]
async fn an_upstream_that_fails_costs_nothing() {
    let cases = [
        ("a", "error-in-200", 502, "upstream_error"),
        ("b", "empty-object", 502, "upstream_error"),
        ("c", "garbage", 502, "upstream_error"),
        ("d", "status=429", 503, "upstream_overloaded"),
        ("e", "refuse", 400, "upstream_rejected"),
        ("f", "cut=content", 502, "upstream_error"),
    ];
    let entry = |(id, script, ..): &(&str, &str, u16, &str)| {
        format!(
            "[[model]]\nid = \"maker/{id}\"\nkind = \"image\"\n\
             routes = [{{ channel = \"main\", model = \"sim-paint+{script}\" }}]\n\
             price = {{ image = \"0.1\" }}\nprofile = {{ base = \"gpt-image\" }}\n"
        )
    };
    let entries: String = cases.iter().map(entry).collect();
    let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
    for (id, script, status, code) in cases {
        let body = ask(&format!("maker/{id}"), &json!({}));
        let answer = gateway.send(&generation(&key, &body)).await;
        assert_eq!(answer.failure(), (status, code.to_owned()), "{script}");
        assert!(!answer.text().contains("sim-upstream"), "{}", answer.text());
    }
    assert_eq!(gateway.usage(&key).await, 0);
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

/// The journal never contains image data: a marker with the size replaces it.
#[tokio::test]
async fn the_journal_keeps_markers_of_pictures() {
    let builder = GatewayBuilder::default().setting("journal", "bodies = true");
    let (gateway, key) = builder.entries(ENTRIES).funded().await;
    let source = png(64, 64, [200, 10, 10, 255]);
    let uri = format!("data:image/png;base64,{}", base64(&source));
    let json = json!({ "model": "maker/gpt", "prompt": "a blue star", "image": { "url": uri } });
    let (content_type, body) = form(
        &[("model", "maker/gpt"), ("prompt", "a blue star")],
        &[("image", &source)],
    );
    let multipart = Request::post("/v1/images/edits")
        .bearer(&key.secret)
        .header("content-type", &content_type)
        .body(body);
    let mut pictures = vec![base64(&source)];
    for request in [
        generation(&key, &ask("maker/gpt", &json!({}))),
        edit(&key, &json),
        multipart,
    ] {
        let answer = gateway.send(&request).await.ok().json();
        pictures.push(answer["data"][0]["b64_json"].as_str().unwrap().to_owned());
    }
    let rows = eventually("three rows with bodies", async || {
        let output = gateway.cli(&["logs", "--json"]).await;
        let rows: Vec<Value> = output
            .stdout
            .lines()
            .filter_map(|row| serde_json::from_str(row).ok())
            .collect();
        (rows.len() == 3).then_some(rows)
    })
    .await;
    assert_eq!(rows.len(), 3);
    let mut kept = serde_json::to_vec(&rows).unwrap();
    // The files of the embedded database might contain data that the command does not show.
    for entry in std::fs::read_dir(gateway.folder().join("data"))
        .into_iter()
        .flatten()
    {
        kept.extend(std::fs::read(entry.unwrap().path()).unwrap());
    }
    let holds = |needle: &[u8]| kept.windows(needle.len()).any(|it| it == needle);
    assert!(holds(b"a blue star"), "bodies are kept");
    assert!(holds(b"base64, "), "markers stand for pictures");
    for picture in &pictures {
        for at in [0, 20, picture.len() / 2, picture.len() - 70] {
            let run = &picture.as_bytes()[at..at + 65];
            assert!(!holds(run), "a run of a picture stands in the database");
        }
    }
}
