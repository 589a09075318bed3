//! Tests videos of the two Google protocols: operations, slow interactions, and files.

use crate::client::{Answer, KEY, call};
use serde_json::{Value, json};
use sim::Sim;

async fn google(sim: &Sim, method: &str, path: &str, body: &Value) -> Answer {
    let head = format!("x-goog-api-key: {KEY}\r\ncontent-type: application/json\r\n");
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    call(sim, method, path, &head, body.as_bytes()).await
}

fn path_of(uri: &str) -> &str {
    let rest = uri.strip_prefix("http://").unwrap();
    &rest[rest.find('/').unwrap()..]
}

async fn create(sim: &Sim, prompt: &str) -> String {
    let path = "/v1beta/models/sim-veo:predictLongRunning";
    let body = json!({
        "instances": [{ "prompt": prompt }],
        "parameters": { "sampleCount": 1, "durationSeconds": 4, "resolution": "720p" },
    });
    let answer = google(sim, "POST", path, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["name"].as_str().unwrap().to_owned()
}

/// Polls an operation until it is done. Returns the operation and the number of polls.
async fn done(sim: &Sim, name: &str) -> (Value, u32) {
    for polls in 1..10 {
        let operation = google(sim, "GET", &format!("/v1beta/{name}"), &Value::Null).await;
        let operation = operation.json();
        assert_eq!(operation["name"], name);
        if operation["done"] == true {
            return (operation, polls);
        }
    }
    panic!("{name} does not end");
}

#[tokio::test]
async fn an_operation_ends_with_a_film_that_needs_the_key() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let name = create(&sim, "a boat").await;
    let (operation, polls) = done(&sim, &name).await;
    assert_eq!(polls, 3);
    let video = &operation["response"]["generateVideoResponse"]["generatedSamples"][0]["video"];
    let uri = video["uri"].as_str().unwrap();
    let path = path_of(uri);
    let film = google(&sim, "GET", path, &Value::Null).await;
    assert_eq!((film.status, &film.body[4..8]), (200, &b"ftyp"[..]));
    assert_eq!(call(&sim, "GET", path, "", b"").await.status, 403);
    let resource = path.split_once(':').unwrap().0;
    let resource = google(&sim, "GET", resource, &Value::Null).await.json();
    assert_eq!(
        (&resource["state"], &resource["downloadUri"]),
        (&json!("ACTIVE"), &json!(uri))
    );
}

#[tokio::test]
async fn words_in_the_prompt_change_the_end_of_an_operation() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    for (prompt, place) in [
        ("[fail] [polls=0]", "/error/code"),
        (
            "[refuse]",
            "/response/generateVideoResponse/raiMediaFilteredReasons/0",
        ),
        (
            "[inline]",
            "/response/generateVideoResponse/generatedSamples/0/video/encodedVideo",
        ),
        ("[vertex]", "/response/videos/0/bytesBase64Encoded"),
    ] {
        let (operation, _) = done(&sim, &create(&sim, prompt).await).await;
        assert!(operation.pointer(place).is_some(), "{prompt}: {operation}");
    }
    let name = create(&sim, "[expire]").await;
    let path = format!("/v1beta/{name}");
    assert_eq!(google(&sim, "GET", &path, &Value::Null).await.status, 404);
}

#[tokio::test]
async fn a_file_that_has_moved_needs_no_key() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let (operation, _) = done(&sim, &create(&sim, "[redirect]").await).await;
    let video = &operation["response"]["generateVideoResponse"]["generatedSamples"][0]["video"];
    let path = path_of(video["uri"].as_str().unwrap());
    let moved = google(&sim, "GET", path, &Value::Null).await;
    assert_eq!(moved.status, 302);
    let place = moved.header("location").unwrap();
    let path = path_of(place);
    assert_eq!(call(&sim, "GET", path, "", b"").await.status, 200);
}

#[tokio::test]
async fn the_vendor_refuses_what_it_does_not_know() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    let path = "/v1beta/models/sim-veo:predictLongRunning";
    for body in [
        json!({ "instances": [] }),
        json!({ "instances": [{ "prompt": "x" }], "callback_url": "https://c" }),
        json!({ "instances": [{ "prompt": "x" }], "parameters": { "numberOfVideos": 1 } }),
        json!({ "instances": [{ "prompt": "x" }], "parameters": { "durationSeconds": 5 } }),
        json!({ "instances": [{ "prompt": "x" }], "parameters": { "durationSeconds": 4, "resolution": "4k" } }),
    ] {
        let answer = google(&sim, "POST", path, &body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(answer.json()["error"]["status"], "INVALID_ARGUMENT");
    }
    // Without this member, the vendor accepts the same request.
    let mut omni = interaction("fog");
    omni["callback_url"] = json!("https://c");
    let answer = google(&sim, "POST", "/v1beta/interactions", &omni).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(answer.text().contains("callback_url"), "{}", answer.text());
}

fn interaction(text: &str) -> Value {
    json!({
        "model": "sim-omni",
        "input": [{ "type": "user_input", "content": [{ "type": "text", "text": text }] }],
        "response_format": { "type": "video", "duration": "3s", "delivery": "uri" },
        "generation_config": { "video_config": { "task": "text_to_video" } },
        "store": false,
        "background": false,
        "stream": false,
    })
}

#[tokio::test]
async fn an_interaction_answers_with_a_film_or_says_why_not() {
    let sim = Sim::start("127.0.0.1:0").await.unwrap();
    for (text, status, place) in [
        ("fog", "completed", "/steps/2/content/1/uri"),
        ("[inline]", "completed", "/steps/2/content/1/data"),
        ("[refuse]", "completed", "/steps/2/content/0/text"),
        ("[fail]", "failed", "/steps/2/error/message"),
        ("[cancel]", "cancelled", "/usage/total_tokens"),
        ("[incomplete]", "incomplete", "/usage/total_tokens"),
        ("[budget]", "budget_exceeded", "/usage/total_tokens"),
    ] {
        let answer = google(&sim, "POST", "/v1beta/interactions", &interaction(text)).await;
        let body = answer.json();
        assert_eq!(
            (answer.status, &body["status"]),
            (200, &json!(status)),
            "{body}"
        );
        assert!(body.pointer(place).is_some(), "{text}: {body}");
    }
}
