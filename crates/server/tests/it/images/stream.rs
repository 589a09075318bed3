//! Streams of pictures: previews, results, failures and charges.

use serde_json::{Value, json};

use super::generations::{ENTRIES, gateway, generation};
use crate::harness::pictures::{bytes_of, decoded};
use crate::harness::{
    BodyEnd, Connection, Event, GatewayBuilder, Key, Streaming, TestGateway, assert_openai_error,
    eventually, with,
};

async fn stream(gateway: &TestGateway, key: &Key, body: &Value) -> Vec<Event> {
    let body = with(body.clone(), &json!({ "stream": true }));
    let mut connection = Connection::open(gateway.address()).await;
    connection.send(&generation(key, &body)).await;
    let head = connection.head().await.expect("an answer");
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let (events, ended) = Streaming::new(head, connection).rest().await;
    assert_eq!(ended, BodyEnd::Complete);
    for event in events.iter().filter(|event| !event.is_done()) {
        assert_eq!(event.json()["type"].as_str(), event.name.as_deref());
    }
    events
}

fn ask(model: &str, more: &Value) -> Value {
    with(
        json!({ "model": model, "prompt": "a red circle", "size": "64x64" }),
        more,
    )
}

#[tokio::test]
async fn previews_sharpen_and_the_result_carries_usage() {
    let (gateway, key) = gateway().await;
    let body = ask(
        "maker/gpt",
        &json!({ "partial_images": 2, "quality": "low" }),
    );
    let events = stream(&gateway, &key, &body).await;
    let kinds: Vec<_> = events
        .iter()
        .map(|event| event.json()["type"].clone())
        .collect();
    assert_eq!(
        kinds,
        [
            "image_generation.partial_image",
            "image_generation.partial_image",
            "image_generation.completed"
        ]
    );
    let picture = |event: &Event| decoded(&bytes_of(&event.json()["b64_json"]));
    let whole = picture(&events[2]);
    let differing = |event: &Event| {
        let preview = picture(event);
        let pixels = preview.pixels().iter().zip(whole.pixels());
        pixels.filter(|(one, other)| one != other).count()
    };
    assert!(differing(&events[0]) > differing(&events[1]));
    assert_eq!(events[1].json()["partial_image_index"], 1);
    let usage = events[2].json()["usage"].clone();
    let count = |name: &str| usage[name].as_u64().unwrap();
    let charge = count("input_tokens") * 5 + count("output_tokens") * 30;
    assert_eq!(gateway.usage(&key).await, charge);
    gateway.verify().await;
}

#[tokio::test]
async fn single_results_pass_and_the_completion_carries_the_last() {
    let (gateway, key) = gateway().await;
    let body = ask(
        "maker/content",
        &json!({ "sequential_image_generation": "auto", "size": "64x64",
                 "sequential_image_generation_options": { "max_images": 2 } }),
    );
    let events = stream(&gateway, &key, &body).await;
    let (last, results) = events.split_last().unwrap();
    assert!(last.is_done());
    let results: Vec<Value> = results.iter().map(Event::json).collect();
    assert_eq!(results.len(), 3);
    assert_eq!(results[0]["type"], "image_generation.partial_succeeded");
    assert_eq!(results[0]["model"], "maker/content");
    assert_eq!(results[2]["type"], "image_generation.completed");
    assert_eq!(results[2]["url"], results[1]["url"]);
    assert_eq!(gateway.usage(&key).await, 2 * 45_000);
    gateway.verify().await;
}

/// S2: a stream that breaks ends with an error event that clients raise. The delivered pictures are charged, also one of
/// which only previews were delivered.
#[tokio::test]
async fn a_broken_stream_ends_with_an_error_event() {
    let cases = [
        ("a", "sim-paint+error-event=1", 100_000),
        ("b", "sim-paint+cut=content", 100_000),
        ("c", "sim-paint+no-finish", 100_000),
        ("d", "sim-paint+garbage-event=1", 100_000),
        ("e", "sim-paint-content+error-event=1", 100_000),
    ];
    let entry = |(id, model, _): &(&str, &str, u64)| {
        let base = if model.contains("content") {
            "content-image"
        } else {
            "gpt-image"
        };
        format!(
            "[[model]]\nid = \"maker/{id}\"\nkind = \"image\"\n\
             routes = [{{ channel = \"main\", model = \"{model}\" }}]\n\
             price = {{ image = \"0.1\" }}\nprofile = {{ base = \"{base}\" }}\n"
        )
    };
    let entries: String = cases.iter().map(entry).collect();
    let builder = GatewayBuilder::default().entries(ENTRIES).entries(&entries);
    let (gateway, key) = builder.funded().await;
    let mut spent = 0;
    for (id, script, micro) in cases {
        let mut body = ask(&format!("maker/{id}"), &json!({}));
        if !script.contains("content") || script.contains("cut=content") {
            body["partial_images"] = 2.into();
        }
        let events = stream(&gateway, &key, &body).await;
        let last = events.last().unwrap().json();
        assert_eq!(last["type"], "error", "{script}: {last}");
        assert_openai_error(&last["error"]);
        let completed = |event: &Event| event.data.contains(".completed");
        assert!(!events.iter().any(completed), "{script}");
        spent += micro;
        assert_eq!(gateway.usage(&key).await, spent, "{script}");
    }
    assert_eq!(gateway.frozen(&key).await, 0);
    gateway.verify().await;
}

/// B2: a caller who leaves after the previews of a picture pays for the picture, however it is priced.
#[tokio::test]
async fn leaving_after_a_preview_costs_the_picture() {
    let entry = |id: &str, price: &str| {
        format!(
            "[[model]]\nid = \"maker/{id}\"\nkind = \"image\"\n\
             routes = [{{ channel = \"main\", model = \"sim-paint\" }}]\n\
             price = {{ {price} }}\nprofile = {{ base = \"gpt-image\", image_tokens_max = 1000 }}\n"
        )
    };
    let entries = [
        entry("pieces", r#"image = "0.1""#),
        entry("tokens", r#"input = "0", image_output = "30""#),
    ];
    let (gateway, key) = GatewayBuilder::default()
        .entries(&entries.concat())
        .setting("timeouts", "client_gone_drain_ms = 100")
        .funded()
        .await;
    let mut spent = 0;
    for (model, charge) in [("maker/pieces", 100_000), ("maker/tokens", 30_000)] {
        gateway
            .sim
            .queue_faults("sim-paint", "hang=content", 1)
            .unwrap();
        let body = with(
            ask(model, &json!({ "partial_images": 3 })),
            &json!({ "stream": true }),
        );
        let mut connection = Connection::open(gateway.address()).await;
        connection.send(&generation(&key, &body)).await;
        let head = connection.head().await.expect("an answer");
        let mut stream = Streaming::new(head, connection);
        let first = stream.next().await.expect("a preview");
        assert_eq!(
            first.name.as_deref(),
            Some("image_generation.partial_image")
        );
        stream.leave();
        spent += charge;
        eventually("the charge", async || {
            (gateway.usage(&key).await == spent).then_some(())
        })
        .await;
    }
    gateway.verify().await;
}

#[tokio::test]
async fn a_stream_that_fails_at_once_is_an_error_answer() {
    let entries = "[[model]]\nid = \"maker/a\"\nkind = \"image\"\n\
        routes = [{ channel = \"main\", model = \"sim-paint+error-in-200\" }]\n\
        price = { image = \"0.1\" }\nprofile = { base = \"gpt-image\" }\n";
    let (gateway, key) = GatewayBuilder::default().entries(entries).funded().await;
    let body = with(ask("maker/a", &json!({})), &json!({ "stream": true }));
    let answer = gateway.send(&generation(&key, &body)).await;
    assert_eq!(answer.failure(), (502, "upstream_error".to_owned()));
    assert_eq!(gateway.usage(&key).await, 0);
}
