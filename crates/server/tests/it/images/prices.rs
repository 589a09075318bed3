//! Holds and charges for pictures, for every kind of request and every kind of model.

use serde_json::{Value, json};

use super::generations::{ENTRIES, generation};
use crate::harness::pictures::{form, png};
use crate::harness::{
    CANNED_MODEL, CannedUpstream, Dialect, GatewayBuilder, Key, Request, TestGateway, with,
};

/// A test gateway with a model whose upstream answers with `answer`.
async fn canned(answer: &str, price: &str, profile: &str) -> (CannedUpstream, TestGateway, Key) {
    let canned = CannedUpstream::json(answer).await;
    let entries = canned.entries_of("image", price, profile);
    let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
    (canned, gateway, key)
}

fn ask(more: &Value) -> Value {
    with(json!({ "model": CANNED_MODEL, "prompt": "x" }), more)
}

const ONE: &str = r#"{"data":[{"b64_json":"QUJD"}]}"#;

#[tokio::test]
async fn no_word_beside_a_quality_makes_it_cheaper() {
    let price = r#"{ image = { default = "0.17", low = "0.02", medium = "0.07" } }"#;
    let (_canned, gateway, key) = canned(ONE, price, r#"{ base = "gpt-image" }"#).await;
    for size in ["low", "medium", "default", "1024", "k", ""] {
        let body = ask(&json!({ "quality": "high", "size": size }));
        let refused = gateway.send(&generation(&key, &body)).await;
        assert_eq!(refused.failure(), (400, "invalid_request".to_owned()));
        assert_eq!(refused.openai_error()["param"], "size");
    }
    assert_eq!(gateway.usage(&key).await, 0);
    let mut spent = 0;
    for (more, micro) in [
        (json!({ "quality": "high", "size": "1024x1024" }), 170_000),
        (json!({ "quality": "high" }), 170_000),
        (json!({ "quality": "low", "size": "1024x1024" }), 20_000),
        (json!({}), 170_000),
    ] {
        gateway.send(&generation(&key, &ask(&more))).await.ok();
        spent += micro;
        assert_eq!(gateway.usage(&key).await, spent, "{more}");
    }
    gateway.verify().await;
}

#[tokio::test]
async fn what_an_answer_tells_is_heeded_where_it_is_dearer() {
    let price = r#"{ image = { default = "0.04", low = "0.02", high = "0.17", "2k" = "0.07" } }"#;
    for (reported, asked, micro) in [
        (r#""quality":"high""#, "low", 170_000),
        (r#""quality":"ultra""#, "low", 40_000),
        (r#""size":"2048x2048""#, "low", 70_000),
        (r#""resolution":"2k""#, "low", 70_000),
        (r#""quality":"low""#, "high", 170_000),
    ] {
        let answer = format!(r#"{{"data":[{{"b64_json":"QUJD"}}],{reported}}}"#);
        let (_canned, gateway, key) = canned(&answer, price, "{}").await;
        let body = ask(&json!({ "quality": asked }));
        gateway.send(&generation(&key, &body)).await.ok();
        assert_eq!(gateway.usage(&key).await, micro, "{reported}");
    }
}

/// The gateway does not send a size to models of the video-A family, so a size changes neither the hold nor the charge.
#[tokio::test]
async fn a_member_that_is_not_sent_has_no_price() {
    let price = r#"{ image = { default = "0.04", "2k" = "0.07" } }"#;
    let (canned, gateway, key) = canned(ONE, price, r#"{ base = "video-a-image" }"#).await;
    let body = ask(&json!({ "size": "2048x2048" }));
    let answer = gateway.send(&generation(&key, &body)).await.ok();
    assert_eq!(answer.header("x-dropped-params"), Some("size"));
    assert_eq!(answer.json().get("size"), None);
    assert_eq!(gateway.usage(&key).await, 40_000);
    let body = ask(&json!({ "size": "64x64", "resolution": "2k" }));
    gateway.send(&generation(&key, &body)).await.ok();
    assert_eq!(gateway.usage(&key).await, 110_000);
    let sent: Value = serde_json::from_slice(&canned.bodies()[1]).unwrap();
    assert_eq!(
        (&sent["resolution"], sent.get("size")),
        (&json!("2k"), None)
    );
}

/// A sequence in a form needs the same hold as in JSON, in every accepted spelling.
#[tokio::test]
async fn a_sequence_in_a_form_needs_credits_for_all_it_may_give() {
    const OPTIONS: &str = "sequential_image_generation_options";
    let gateway = GatewayBuilder::default().entries(ENTRIES).start().await;
    gateway.wallet("w", &["--balance", "0.2"]).await;
    let key = gateway.key("w", &[]).await;
    let picture = png(16, 16, [9, 9, 9, 255]);
    let edit = |more: &[(&str, &str)]| {
        let fields = [
            ("model", "maker/content"),
            ("prompt", "x"),
            ("size", "1024x1024"),
            ("sequential_image_generation", "auto"),
        ];
        let fields: Vec<_> = fields.iter().chain(more).copied().collect();
        let (content_type, body) = form(&fields, &[("image", &picture)]);
        Request::post("/v1/images/edits")
            .bearer(&key.secret)
            .header("content-type", &content_type)
            .body(body)
    };
    let (bracket, dot) = (
        format!("{OPTIONS}[max_images]"),
        format!("{OPTIONS}.max_images"),
    );
    let too_many = [
        vec![],
        vec![(OPTIONS, r#"{"max_images":5}"#)],
        vec![(bracket.as_str(), "5")],
        vec![(dot.as_str(), "5")],
    ];
    for more in too_many {
        let refused = gateway.send(&edit(&more)).await;
        let expected = (402, "insufficient_quota".to_owned());
        assert_eq!(refused.failure(), expected, "{more:?}");
    }
    for more in [
        vec![(OPTIONS, "five")],
        vec![(bracket.as_str(), "0")],
        vec![(dot.as_str(), "1"), (OPTIONS, r#"{"max_images":5}"#)],
        vec![("N", "4")],
        vec![("sequential_image_generation", "disabled")],
    ] {
        let refused = gateway.send(&edit(&more)).await;
        assert_eq!(
            refused.failure(),
            (400, "invalid_request".to_owned()),
            "{more:?}"
        );
    }
    assert_eq!(gateway.upstream_calls(), 0);
    for more in [
        (OPTIONS, r#"{"max_images":1}"#),
        (bracket.as_str(), "1"),
        (dot.as_str(), " 01 "),
    ] {
        gateway.send(&edit(&[more])).await.ok();
        let sent = gateway.sim.calls().pop().unwrap();
        let sent: Value = serde_json::from_slice(&sent.body).unwrap();
        assert_eq!(sent[OPTIONS], json!({ "max_images": 1 }), "{more:?}");
    }
    assert_eq!(gateway.usage(&key).await, 3 * 45_000);
    gateway.verify().await;
}

/// An answer of a native image model with this usage object.
fn native(usage: &str) -> String {
    let parts = r#"[{"text":"Here."},{"inlineData":{"mimeType":"image/png","data":"QUJD"}},
        {"thought":true,"inlineData":{"mimeType":"image/png","data":"QUJD"}}]"#;
    let usage = if usage.is_empty() {
        String::new()
    } else {
        format!(r#","usageMetadata":{usage}"#)
    };
    format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":{parts}}},"finishReason":"STOP"}}]{usage}}}"#
    )
}

const NATIVE_PRICE: &str = r#"{ input = "1", output = "2", image_output = "120" }"#;
const NATIVE_PROFILE: &str = r#"{ base = "native-image", image_tokens_max = 2000, context_tokens = 64, max_output_tokens = 64 }"#;

#[tokio::test]
async fn a_native_picture_costs_its_tokens_also_where_they_are_not_told() {
    let body = json!({ "contents": [{ "role": "user", "parts": [{ "text": "x" }] }] });
    // An upper bound for the cost of the counted text, in micro-credits.
    let text = 60;
    let picture = 2_000 * 120;
    for (usage, micro, text) in [
        (
            r#"{"promptTokenCount":5,"candidatesTokenCount":1302,"candidatesTokensDetails":[{"modality":"IMAGE","tokenCount":1300}]}"#,
            5 + 2 * 2 + 1_300 * 120,
            0,
        ),
        (
            r#"{"promptTokenCount":5,"candidatesTokenCount":1300}"#,
            5 + 1_300 * 120,
            0,
        ),
        (r#"{"promptTokenCount":5}"#, 5 + picture, text),
        (
            r#"{"promptTokenCount":5,"thoughtsTokenCount":9}"#,
            5 + 9 * 2 + picture,
            text,
        ),
        ("", picture, text),
    ] {
        let answer = native(usage);
        for stream in [false, true] {
            let canned = if stream {
                let one_line = answer.replace('\n', " ");
                CannedUpstream::stream(&format!("data: {one_line}\n\n")).await
            } else {
                CannedUpstream::json(&answer).await
            };
            let entries = canned.entries_of("image", NATIVE_PRICE, NATIVE_PROFILE);
            let (gateway, key) = GatewayBuilder::default().entries(&entries).funded().await;
            let call = Dialect::Generate.call(&key.secret, CANNED_MODEL, body.clone(), stream);
            gateway.send(&call).await.ok();
            let frozen = async || (gateway.frozen(&key).await == 0).then_some(());
            crate::harness::eventually("the settlement", frozen).await;
            let charge = gateway.usage(&key).await;
            let expected = micro..=micro + text;
            assert!(expected.contains(&charge), "{stream} {usage}: {charge}");
            gateway.verify().await;
        }
    }
}

/// A wallet that cannot pay for one picture is refused before the upstream is called.
#[tokio::test]
async fn a_native_picture_is_held_for() {
    let canned = CannedUpstream::json(&native("")).await;
    let entries = canned.entries_of("image", NATIVE_PRICE, NATIVE_PROFILE);
    let gateway = GatewayBuilder::default().entries(&entries).start().await;
    gateway.wallet("w", &["--balance", "0.13"]).await;
    let key = gateway.key("w", &[]).await;
    let body = json!({ "contents": [{ "role": "user", "parts": [{ "text": "x" }] }] });
    let call = Dialect::Generate.call(&key.secret, CANNED_MODEL, body.clone(), false);
    let refused = gateway.send(&call).await;
    let expected = (402, "insufficient_quota".to_owned());
    assert_eq!(Dialect::Generate.failure(&refused), expected);
    // Two candidates may produce two pictures.
    gateway.wallet("v", &["--balance", "0.3"]).await;
    let key = gateway.key("v", &[]).await;
    let two = with(
        body.clone(),
        &json!({ "generationConfig": { "candidateCount": 2 } }),
    );
    let call = Dialect::Generate.call(&key.secret, CANNED_MODEL, two, false);
    assert_eq!(
        Dialect::Generate.failure(&gateway.send(&call).await),
        expected
    );
    assert!(canned.bodies().is_empty());
    let call = Dialect::Generate.call(&key.secret, CANNED_MODEL, body, false);
    gateway.send(&call).await.ok();
    gateway.verify().await;
}
