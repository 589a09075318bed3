//! Transcripts: `/v1/stt` and its alias.

use serde_json::json;

use crate::harness::{Connection, GatewayBuilder, Key, Request, TestGateway, eventually};

const ENTRIES: &str = r#"
[[model]]
id = "maker/ears"
kind = "audio"
routes = [{ channel = "main", model = "sim-ears-secret" }]
price = { stt_second = "0.001" }
[[model]]
id = "maker/vague"
kind = "audio"
routes = [{ channel = "main", model = "sim-ears-secret+no-usage" }]
price = { stt_second = "0.001" }
"#;

async fn gateway() -> (TestGateway, Key) {
    GatewayBuilder::default().entries(ENTRIES).funded().await
}

/// A multipart form with its parts in this order.
fn form(key: &Key, path: &str, parts: &[(&str, Vec<u8>)]) -> Request {
    let mut body = Vec::new();
    for (name, data) in parts {
        body.extend_from_slice(b"--b0\r\ncontent-disposition: form-data; name=\"");
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(b"\"");
        if *name == "file" {
            body.extend_from_slice(b"; filename=\"a.wav\"\r\ncontent-type: audio/wav");
        }
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(data);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--b0--\r\n");
    Request::post(path)
        .header("content-type", "multipart/form-data; boundary=b0")
        .bearer(&key.secret)
        .body(body)
}

/// A WAV file of silence, 16 bits at 16 kHz.
fn wav(millis: usize) -> Vec<u8> {
    let data = 32 * millis;
    let mut wav = b"RIFF".to_vec();
    wav.extend_from_slice(&u32::try_from(data + 36).unwrap().to_le_bytes());
    wav.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    wav.extend_from_slice(&16_000u32.to_le_bytes());
    wav.extend_from_slice(&32_000u32.to_le_bytes());
    wav.extend_from_slice(b"\x02\0\x10\0data");
    wav.extend_from_slice(&u32::try_from(data).unwrap().to_le_bytes());
    wav.resize(44 + data, 0);
    wav
}

fn text(value: &str) -> Vec<u8> {
    value.as_bytes().to_vec()
}

#[tokio::test]
async fn a_file_is_heard_last_and_costs_what_it_lasts() {
    let (gateway, key) = gateway().await;
    let parts = [
        ("file", wav(2_340)),
        ("keyterm", text("b")),
        ("model", text("maker/ears")),
        ("keyterm", text("a")),
        ("unknown", text("kept")),
    ];
    let answer = gateway.send(&form(&key, "/v1/stt", &parts)).await.ok();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json()["duration"], json!(2.34));
    // Three seconds at 0.001 credits.
    assert_eq!(gateway.usage(&key).await, 3_000);
    assert_eq!(gateway.frozen(&key).await, 0);
    let call = gateway.sim.calls().remove(0);
    let sent = String::from_utf8_lossy(&call.body).into_owned();
    let places: Vec<usize> = [
        "name=\"model\"\r\n\r\nsim-ears-secret\r\n",
        "name=\"keyterm\"\r\n\r\nb\r\n",
        "name=\"keyterm\"\r\n\r\na\r\n",
        "name=\"unknown\"\r\n\r\nkept\r\n",
        "name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF",
    ]
    .iter()
    .map(|part| sent.find(part).expect(part))
    .collect();
    assert!(places.is_sorted(), "{places:?}");
    gateway.verify().await;
}

#[tokio::test]
async fn a_url_holds_six_hours_and_no_duration_costs_the_bound() {
    let (gateway, key) = gateway().await;
    let url = ("url", text("https://audio.example/a.mp3"));
    let parts = [("model", text("maker/ears")), url.clone()];
    let answer = gateway.send(&form(&key, "/v1/stt", &parts)).await;
    assert_eq!(answer.ok().json()["duration"], json!(90.0));
    assert_eq!(gateway.usage(&key).await, 90_000);
    // Six hours cost 21.6 credits, which is more than this key may spend.
    let poor = gateway.key("w", &["--limit", "21"]).await;
    let answer = gateway.send(&form(&poor, "/v1/stt", &parts)).await;
    assert_eq!(answer.failure(), (402, "key_limit_reached".to_owned()));
    let parts = [("model", text("maker/vague")), ("file", wav(1_000))];
    gateway.send(&form(&key, "/v1/stt", &parts)).await.ok();
    // 32,044 bytes are at most 43 seconds.
    assert_eq!(gateway.usage(&key).await, 90_000 + 43_000);
    gateway.verify().await;
}

#[tokio::test]
async fn the_sdks_name_leaves_out_what_the_upstream_does_not_know() {
    let (gateway, key) = gateway().await;
    let parts = [
        ("file", wav(1_000)),
        ("model", text("maker/ears")),
        ("response_format", text("json")),
        ("temperature", text("0.2")),
        ("language", text("en")),
    ];
    let request = form(&key, "/v1/audio/transcriptions", &parts);
    let answer = gateway.send(&request).await.ok();
    assert_eq!(answer.header("x-dropped-params"), Some("temperature"));
    assert_eq!(answer.json()["text"], "It sounds like tones.");
    assert_eq!(gateway.usage(&key).await, 1_000);
}

/// Large uploads are spooled to the media folder. If the folder cannot be used, they are refused.
#[tokio::test]
async fn an_upload_that_cannot_be_kept_is_refused_before_money_moves() {
    let (gateway, key) = gateway().await;
    let media = gateway.folder().join("tollgate-data/media");
    std::fs::rename(&media, gateway.folder().join("away")).unwrap();
    let model = ("model", text("maker/ears"));
    // Two megabytes, which are too large to be kept in memory.
    let parts = [model.clone(), ("file", wav(65_000))];
    let refused = gateway.send(&form(&key, "/v1/stt", &parts)).await;
    assert_eq!(refused.failure(), (503, "service_unavailable".to_owned()));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(gateway.sim.calls().len(), 0);
    let parts = [model, ("file", wav(1_000))];
    gateway.send(&form(&key, "/v1/stt", &parts)).await.ok();
    assert_eq!(gateway.usage(&key).await, 1_000);
}

#[tokio::test]
async fn bad_forms_reach_no_upstream() {
    let (gateway, key) = gateway().await;
    let model = || ("model", text("maker/ears"));
    for (parts, status, code) in [
        (vec![("file", wav(1))], 400, "invalid_request"),
        (vec![model()], 400, "invalid_request"),
        (
            vec![
                model(),
                ("file", wav(1)),
                ("url", text("https://a.example/")),
            ],
            400,
            "invalid_request",
        ),
        (
            vec![model(), model(), ("file", wav(1))],
            400,
            "invalid_request",
        ),
        (
            vec![model(), ("file", wav(1)), ("provider", text("x"))],
            400,
            "routing_not_supported",
        ),
        (
            vec![model(), ("file", wav(1)), ("service_tier", text("flex"))],
            400,
            "service_tier_not_supported",
        ),
        (
            vec![("model", text("maker/chat")), ("file", wav(1))],
            400,
            "model_not_supported",
        ),
    ] {
        let answer = gateway.send(&form(&key, "/v1/stt", &parts)).await;
        assert_eq!(answer.failure(), (status, code.to_owned()));
    }
    let json = Request::post("/v1/stt")
        .json(&json!({"model": "maker/ears"}))
        .bearer(&key.secret);
    let answer = gateway.send(&json).await;
    assert_eq!(answer.failure(), (415, "unsupported_media_type".to_owned()));
    assert_eq!(gateway.upstream_calls(), 0);
}

#[tokio::test]
async fn large_files_pass_by_the_disk_and_larger_ones_do_not() {
    // The memory is less than a tenth of the file.
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "body_memory_bytes = 4000000")
        .entries(ENTRIES)
        .funded()
        .await;
    let model = ("model", text("maker/ears"));
    let before = peak_kib(gateway.pid());
    for file_first in [false, true] {
        let mut parts = vec![model.clone(), ("file", vec![1; 45_000_000])];
        if file_first {
            parts.reverse();
        }
        gateway.send(&form(&key, "/v1/stt", &parts)).await.ok();
    }
    let taken = peak_kib(gateway.pid()) - before;
    assert!(taken < 32 * 1024, "{taken} KiB");
    assert_eq!(gateway.sim.calls()[0].body_bytes / 1_000_000, 45);
    let parts = [model, ("file", vec![1; 50_000_001])];
    let answer = gateway.send(&form(&key, "/v1/stt", &parts)).await;
    assert_eq!(answer.failure(), (413, "request_too_large".to_owned()));
    assert_eq!(gateway.upstream_calls(), 2);
}

/// The peak memory of a process, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap().trim().trim_end_matches(" kB");
    peak.parse().unwrap()
}

/// A field that the upstream could take for the model is refused.
#[tokio::test]
async fn the_model_is_named_in_one_way_alone() {
    let (gateway, key) = gateway().await;
    for name in [
        "Model",
        "model[]",
        "model[0]",
        " model",
        "model ",
        "model_id",
        "modelId",
        "model\0",
        "mo\\del",
        "%6dodel",
        "MODEL",
        "model\\",
        "m\u{f6}del",
    ] {
        for path in ["/v1/stt", "/v1/audio/transcriptions"] {
            let parts = [
                ("model", text("maker/ears")),
                (name, text("other")),
                ("file", wav(100)),
            ];
            let answer = gateway.send(&form(&key, path, &parts)).await;
            let refused = (400, "invalid_request".to_owned());
            assert_eq!(answer.failure(), refused, "{name:?}");
        }
    }
    assert_eq!(gateway.upstream_calls(), 0);
    assert_eq!(gateway.frozen(&key).await, 0);
}

/// Audio is on the disk while it is uploaded. The uploads of one wallet must leave room for other wallets.
#[tokio::test]
async fn uploads_of_a_wallet_leave_room_on_the_disk() {
    let (gateway, key) = GatewayBuilder::default()
        .setting("limits", "upload_disk_wallet_bytes = 3000000")
        .entries(ENTRIES)
        .funded()
        .await;
    let sibling = gateway.key("w", &[]).await;
    gateway.wallet("other", &["--balance", "100"]).await;
    let other = gateway.key("other", &[]).await;
    let upload = |key: &Key| {
        let parts = [("model", text("maker/ears")), ("file", wav(62_500))];
        form(key, "/v1/stt", &parts)
    };
    gateway.send(&upload(&sibling)).await.ok();

    let begin =
        b"--b0\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n";
    let head = Request::post("/v1/stt")
        .header("content-type", "multipart/form-data; boundary=b0")
        .header("content-length", "3000000")
        .bearer(&key.secret);
    // The gateway refuses the upload that it reads later. If that is the stalled upload, try both again.
    let (stalled, refused) = eventually("the wallet's limit", async || {
        let mut stalled = Connection::open(gateway.address()).await;
        stalled.write(&head.head()).await;
        stalled.write(begin).await;
        stalled.write(&vec![0; 2_500_000]).await;
        let answer = gateway.send(&upload(&sibling)).await;
        (answer.status() == 429).then_some((stalled, answer))
    })
    .await;
    let code = "concurrency_limit_exceeded".to_owned();
    assert_eq!(refused.failure(), (429, code));
    assert!(refused.header("retry-after").is_some());
    gateway.send(&upload(&other)).await.ok();
    drop(stalled);
    eventually("room again", async || {
        let answer = gateway.send(&upload(&sibling)).await;
        (answer.status() == 200).then_some(())
    })
    .await;
}
