//! Tests answers and streams of Generate Content.

use super::harness::{asking, events, generate, google, joined, stream};
use crate::client::{PIXEL, start, with};
use serde_json::{Value, json};

#[tokio::test]
async fn an_answer_has_everything_the_vendor_sends() {
    let sim = start().await;
    let answer = generate(&sim, "sim-chat", &asking("say exactly: Hello, world!")).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().starts_with("{\n  \"candidates\""), "indented");
    let mut body = answer.json();
    assert!(body["responseId"].as_str().unwrap().len() > 10);
    let signature = body["candidates"][0]["content"]["parts"][0]["thoughtSignature"].take();
    assert!(signature.as_str().unwrap().len() > 100);
    body["responseId"] = Value::Null;
    assert_eq!(
        body,
        json!({
            "candidates": [{"content": {"parts": [{"text": "Hello, world!", "thoughtSignature": null}],
                "role": "model"}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 15, "candidatesTokenCount": 4,
                "totalTokenCount": 19,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 15}]},
            "modelVersion": "sim-chat-2026-01-01", "responseId": null
        })
    );
}

#[tokio::test]
async fn a_stream_is_as_the_vendor_sends_it() {
    let sim = start().await;
    let answer = stream(&sim, "sim-chat", &asking("say exactly: Hello, world!")).await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    let events = events(&answer);
    assert_eq!(events.len(), 5);
    for (event, (text, tokens)) in
        events
            .iter()
            .zip([("Hello", 1), (",", 2), (" world", 3), ("!", 4), ("", 4)])
    {
        let candidate = &event["candidates"][0];
        assert_eq!(candidate["content"]["parts"][0]["text"], text);
        assert_eq!(candidate["content"]["role"], "model");
        assert_eq!(event["usageMetadata"]["candidatesTokenCount"], tokens);
        assert_eq!(event["modelVersion"], "sim-chat-2026-01-01");
        assert_eq!(event["responseId"], events[0]["responseId"]);
    }
    let finishes: Vec<_> = events
        .iter()
        .map(|event| event["candidates"][0]["finishReason"].as_str())
        .collect();
    assert_eq!(finishes, [None, None, None, None, Some("STOP")]);
    let last = &events[4]["candidates"][0]["content"]["parts"][0];
    assert!(last["thoughtSignature"].is_string());
}

#[tokio::test]
async fn a_stream_without_alt_is_an_array() {
    let sim = start().await;
    let path = "/v1/models/sim-chat:streamGenerateContent";
    let answer = google(&sim, path, &asking("Count to 3")).await;
    assert_eq!(
        answer.header("content-type"),
        Some("application/json; charset=UTF-8")
    );
    let Value::Array(items) = answer.json() else {
        panic!("an array");
    };
    assert_eq!(joined(&items, false), "1, 2, 3");
    let path = "/v1/models/sim-chat+error-event=1:streamGenerateContent";
    let items = google(&sim, path, &asking("Count to 3")).await.json();
    assert_eq!(items[1]["error"]["code"], 500);
    let path = "/v1/models/missing-x:streamGenerateContent";
    let answer = google(&sim, path, &asking("hi")).await;
    assert_eq!(
        (answer.status, &answer.json()[0]["error"]["code"]),
        (404, &json!(404))
    );
    let path = "/v1/models/sim-chat+empty-object:streamGenerateContent";
    assert_eq!(google(&sim, path, &asking("hi")).await.json(), json!([{}]));
}

#[tokio::test]
async fn parameters_are_honoured() {
    let sim = start().await;
    for (config, pointer, expected) in [
        (
            json!({"maxOutputTokens": 2}),
            "/candidates/0/content/parts/0/text",
            json!("1,"),
        ),
        (
            json!({"max_output_tokens": 2}),
            "/candidates/0/finishReason",
            json!("MAX_TOKENS"),
        ),
        (
            json!({"stopSequences": [", 3"]}),
            "/candidates/0/content/parts/0/text",
            json!("1, 2"),
        ),
        (
            json!({"candidateCount": 2, "topK": 3.0, "seed": 1}),
            "/candidates/1/index",
            json!(1),
        ),
        (
            json!({"candidateCount": 2}),
            "/usageMetadata/candidatesTokenCount",
            json!(10),
        ),
        (
            json!({"responseLogprobs": true, "logprobs": 2}),
            "/candidates/0/logprobsResult/topCandidates/1/candidates/0/token",
            json!(","),
        ),
        (
            json!({"responseLogprobs": true}),
            "/candidates/0/logprobsResult/chosenCandidates/1/token",
            json!(","),
        ),
        (
            json!({"responseMimeType": "text/x.enum",
                "responseSchema": {"type": "STRING", "enum": ["no", "count"]}}),
            "/candidates/0/content/parts/0/text",
            json!("count"),
        ),
    ] {
        let request = with(asking("Count to 3"), json!({"generationConfig": config}));
        let body = generate(&sim, "sim-chat", &request).await.json();
        assert_eq!(body.pointer(pointer), Some(&expected), "{config} {pointer}");
    }
    let asked = with(
        asking("What are your instructions?"),
        json!({"system_instruction": {"parts": [{"text": "Be kind."}]}}),
    );
    let body = generate(&sim, "sim-chat", &asked).await.json();
    assert_eq!(
        body["candidates"][0]["content"]["parts"][0]["text"],
        "My instructions are: Be kind."
    );
}

#[tokio::test]
async fn thoughts_are_counted_and_shown_when_asked_for() {
    let sim = start().await;
    let thinking = |config: Value| {
        with(
            asking("say exactly: yes"),
            json!({"generationConfig": {"thinkingConfig": config}}),
        )
    };
    let silent = generate(&sim, "sim-chat", &thinking(json!({"thinkingLevel": "low"}))).await;
    let silent = silent.json();
    let tokens = silent["usageMetadata"]["thoughtsTokenCount"]
        .as_u64()
        .unwrap();
    assert!(tokens > 5);
    assert_eq!(silent["usageMetadata"]["candidatesTokenCount"], 1);
    assert_eq!(
        silent["candidates"][0]["content"]["parts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    let shown = thinking(json!({"thinking_level": "LOW", "include_thoughts": true}));
    let whole = generate(&sim, "sim-chat", &shown).await.json();
    let parts = &whole["candidates"][0]["content"]["parts"];
    assert_eq!(parts[0]["thought"], true);
    assert!(parts[0].get("thoughtSignature").is_none());
    assert!(parts[1]["thoughtSignature"].is_string());
    let thought = parts[0]["text"].as_str().unwrap();
    assert_eq!(sim::count_tokens(thought), tokens);

    let events = events(&stream(&sim, "sim-chat", &shown).await);
    assert_eq!(joined(&events, true), thought);
    assert_eq!(joined(&events, false), "yes");
    assert_eq!(
        events.last().unwrap()["usageMetadata"],
        whole["usageMetadata"]
    );
}

#[tokio::test]
async fn images_go_in_and_out() {
    let sim = start().await;
    for part in [
        json!({"inlineData": {"mime_type": "image/png", "data": PIXEL.replace('+', "-")}}),
        json!({"inline_data": {"mimeType": "image/png", "data": PIXEL}}),
    ] {
        let request = json!({"contents": [{"parts": [part, {"text": "what?"}]}]});
        let body = generate(&sim, "sim-chat", &request).await.json();
        let text = body["candidates"][0]["content"]["parts"][0]["text"]
            .as_str()
            .unwrap();
        assert!(text.contains("one 1x1 PNG image of 70 bytes"), "{text}");
        assert_eq!(
            body["usageMetadata"]["promptTokensDetails"][1]["modality"],
            "IMAGE"
        );
    }
    let linked = json!({"contents": [{"parts": [
        {"fileData": {"file_uri": "https://example.com/a.png", "mime_type": "image/png"}}]}]});
    assert!(
        generate(&sim, "sim-chat", &linked)
            .await
            .text()
            .contains("example.com/a.png")
    );

    let request = with(
        asking("a cat"),
        json!({"generationConfig": {"responseModalities": ["IMAGE"],
            "imageConfig": {"aspectRatio": "16:9", "imageSize": "2K"}}}),
    );
    let body = generate(&sim, "sim-image", &request).await.json();
    let parts = body["candidates"][0]["content"]["parts"]
        .as_array()
        .unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0]["inlineData"]["mimeType"], "image/png");
    let data = parts[0]["inlineData"]["data"].as_str().unwrap();
    assert!(data.starts_with("iVBORw0KGgo"));
    assert_eq!(
        body["usageMetadata"]["candidatesTokensDetails"],
        json!([{"modality": "IMAGE", "tokenCount": 1680}])
    );
    let events = events(&stream(&sim, "sim-image", &request).await);
    let streamed = &events[0]["candidates"][0]["content"]["parts"][0]["inlineData"]["data"];
    assert_eq!(streamed, data);
}

#[tokio::test]
async fn answers_end_in_all_the_vendors_ways() {
    let sim = start().await;
    for (script, reason, text) in [
        ("content-filter", "SAFETY", "1, 2"),
        ("finish=RECITATION", "RECITATION", "1, 2, 3, 4"),
        (
            "finish=MALFORMED_FUNCTION_CALL",
            "MALFORMED_FUNCTION_CALL",
            "",
        ),
        (
            "refuse",
            "STOP",
            "I'm sorry, but I can't help with that request.",
        ),
    ] {
        let model = format!("sim-chat+{script}");
        let body = generate(&sim, &model, &asking("Count to 4")).await.json();
        let candidate = &body["candidates"][0];
        assert_eq!(candidate["finishReason"], reason);
        let parts = candidate["content"]["parts"].as_array();
        let whole: String = parts
            .into_iter()
            .flatten()
            .filter_map(|part| part["text"].as_str())
            .collect();
        assert_eq!(whole.trim_end_matches(','), text, "{script}");
        let events = events(&stream(&sim, &model, &asking("Count to 4")).await);
        assert_eq!(joined(&events, false), whole, "{script}");
        let last = &events.last().unwrap()["candidates"][0];
        assert_eq!(last["finishReason"], reason, "{script}");
        assert_eq!(last.get("safetyRatings").is_some(), reason == "SAFETY");
    }

    for streamed in [false, true] {
        let model = "sim-chat+blocked=PROHIBITED_CONTENT";
        let body = if streamed {
            events(&stream(&sim, model, &asking("hi")).await).remove(0)
        } else {
            generate(&sim, model, &asking("hi")).await.json()
        };
        assert_eq!(body["promptFeedback"]["blockReason"], "PROHIBITED_CONTENT");
        assert!(body.get("candidates").is_none());
        assert_eq!(
            body["usageMetadata"]["totalTokenCount"],
            body["usageMetadata"]["promptTokenCount"]
        );
    }
}

#[tokio::test]
async fn a_continuation_gives_the_rest() {
    let sim = start().await;
    let model = "sim-chat+continuation";
    let body = generate(&sim, model, &asking("Count to 6")).await.json();
    let first = &body["candidates"][0];
    assert_eq!(first["finishReason"], "CONTINUATION");
    let token = &first["continuationToken"];
    let next = with(asking("Count to 6"), json!({"continuationToken": token}));
    let body = generate(&sim, model, &next).await.json();
    let second = &body["candidates"][0];
    assert_eq!(second["finishReason"], "STOP");
    let text = |candidate: &Value| {
        let text = candidate["content"]["parts"][0]["text"].as_str();
        text.unwrap().to_owned()
    };
    assert_eq!(text(first) + &text(second), "1, 2, 3, 4, 5, 6");
    let wrong = with(asking("Count to 6"), json!({"continuationToken": "AAAA"}));
    assert_eq!(generate(&sim, model, &wrong).await.status, 400);
}

#[tokio::test]
async fn pages_are_cited_by_bytes() {
    let sim = start().await;
    let request = asking("say exactly: Grüße, cite https://a.example/b");
    let body = generate(&sim, "sim-chat", &request).await.json();
    let candidate = &body["candidates"][0];
    let text = candidate["content"]["parts"][0]["text"].as_str().unwrap();
    let grounding = &candidate["groundingMetadata"];
    assert_eq!(
        (
            &grounding["groundingChunks"],
            &grounding["groundingSupports"]
        ),
        (
            &json!([{"web": {"uri": "https://a.example/b", "title": "A page of a.example"}}]),
            &json!([{"segment": {"endIndex": text.len(), "text": text}, "groundingChunkIndices": [0]}])
        )
    );
    let events = events(&stream(&sim, "sim-chat", &request).await);
    let (last, before) = events.split_last().unwrap();
    assert_eq!(&last["candidates"][0]["groundingMetadata"], grounding);
    assert!(!before.is_empty(), "{events:?}");
    assert!(
        before
            .iter()
            .all(|event| event["candidates"][0].get("groundingMetadata").is_none())
    );
}

#[tokio::test]
async fn kept_contents_are_told_as_cached() {
    let sim = start().await;
    let long = json!({"contents": [{"parts": [{"text": "word ".repeat(1200)}]},
        {"role": "model", "parts": [{"text": "Yes."}]}, {"parts": [{"text": "hi"}]}]});
    let body = generate(&sim, "sim-chat", &long).await.json();
    assert!(
        body["usageMetadata"]["cachedContentTokenCount"]
            .as_u64()
            .unwrap()
            >= 1024
    );
    let short = |name: &str| {
        let kept = json!({"cachedContent": name, "systemInstruction": {"parts": [{"text": "word ".repeat(1200)}]}});
        with(asking("hi"), kept)
    };
    let body = generate(&sim, "sim-chat", &short("cachedContents/abc"))
        .await
        .json();
    assert!(
        body["usageMetadata"]["cachedContentTokenCount"]
            .as_u64()
            .unwrap()
            >= 1024
    );
    let lost = generate(&sim, "sim-chat", &short("cachedContents/missing")).await;
    assert_eq!(lost.status, 404);
}
