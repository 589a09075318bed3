//! Generate Content: answers, streams, signatures, refusals.

use crate::client::{Answer, KEY, call};
use serde_json::{Value, json};
use sim::Sim;

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async fn start() -> Sim {
    Sim::start("127.0.0.1:0").await.unwrap()
}

pub(crate) async fn generate(sim: &Sim, model: &str, request: &Value) -> Answer {
    let path = format!("/v1beta/models/{model}:generateContent");
    google(sim, &path, request).await
}

pub(crate) async fn stream(sim: &Sim, model: &str, request: &Value) -> Answer {
    let path = format!("/v1beta/models/{model}:streamGenerateContent?alt=sse");
    google(sim, &path, request).await
}

async fn google(sim: &Sim, path: &str, request: &Value) -> Answer {
    let head = format!("x-goog-api-key: {KEY}\r\ncontent-type: application/json\r\n");
    call(sim, "POST", path, &head, request.to_string().as_bytes()).await
}

/// The events of a stream, which end with CRLF.
pub(crate) fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    assert!(text.is_empty() || text.ends_with("\r\n\r\n"), "{text}");
    text.split_terminator("\r\n\r\n")
        .map(|event| event.strip_prefix("data: ").expect("a data event"))
        .map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data)))
        .collect()
}

/// The parts of a stream's first candidate, joined as a client would.
fn joined(events: &[Value], thought: bool) -> String {
    events
        .iter()
        .filter_map(|event| event.pointer("/candidates/0/content/parts")?.as_array())
        .flatten()
        .filter(|part| part["thought"].as_bool().unwrap_or(false) == thought)
        .filter_map(|part| part["text"].as_str())
        .collect()
}

fn asking(question: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": question}]}]})
}

fn with(mut request: Value, members: Value) -> Value {
    let (Value::Object(request_map), Value::Object(members)) = (&mut request, members) else {
        panic!("both are objects");
    };
    request_map.extend(members);
    request
}

fn weather_tools() -> Value {
    let tool = |name: &str| {
        json!({"name": name, "parametersJsonSchema": {"type": "object",
            "properties": {"city": {"type": "string"}}, "required": ["city"]}})
    };
    json!([{"functionDeclarations": [tool("get_weather"), tool("get_time")]}])
}

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

/// Continues a conversation with the model's content and the results of its calls.
fn answered(mut request: Value, content: &Value, results: &[Value]) -> Value {
    let contents = request["contents"].as_array_mut().unwrap();
    contents.push(content.clone());
    contents.push(json!({"role": "user", "parts": results}));
    request
}

fn result(name: &str, id: &Value, text: &str) -> Value {
    json!({"functionResponse": {"name": name, "id": id, "response": {"output": text}}})
}

#[tokio::test]
async fn parallel_calls_are_signed_once_and_answered_together() {
    let sim = start().await;
    let request = with(
        asking("What are the weather and the time in Paris?"),
        json!({"tools": weather_tools()}),
    );
    let body = generate(&sim, "sim-chat", &request).await.json();
    let candidate = &body["candidates"][0];
    assert_eq!(candidate["finishReason"], "STOP");
    let parts = candidate["content"]["parts"].as_array().unwrap();
    let calls: Vec<_> = parts.iter().map(|part| &part["functionCall"]).collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(
        (&calls[0]["name"], &calls[0]["args"]),
        (&json!("get_weather"), &json!({"city": "Paris"}))
    );
    assert!(parts[0]["thoughtSignature"].is_string());
    assert!(parts[1].get("thoughtSignature").is_none());
    assert_ne!(calls[0]["id"], calls[1]["id"]);

    let told = "The get_weather result is 18 degrees. The get_time result is noon.";
    for results in [
        [
            result("get_weather", &calls[0]["id"], "18 degrees"),
            result("get_time", &calls[1]["id"], "noon"),
        ],
        // Without ids, results are matched by name.
        [
            result("get_weather", &Value::Null, "18 degrees"),
            result("get_time", &Value::Null, "noon"),
        ],
    ] {
        let next = answered(request.clone(), &candidate["content"], &results);
        let body = generate(&sim, "sim-chat", &next).await.json();
        let text = &body["candidates"][0]["content"]["parts"][0]["text"];
        assert_eq!(text, told);
    }

    let streamed = events(&stream(&sim, "sim-chat", &request).await);
    assert_eq!(streamed.len(), 3, "a call each, and the end");
    let mut history = request.clone();
    for event in &streamed {
        // Clients send one content for each event back.
        let content = event["candidates"][0]["content"].clone();
        history["contents"].as_array_mut().unwrap().push(content);
    }
    history["contents"]
        .as_array_mut()
        .unwrap()
        .push(json!({"parts": [
        result("get_weather", &Value::Null, "18 degrees"),
        result("get_time", &Value::Null, "noon")]}));
    let body = generate(&sim, "sim-chat", &history).await.json();
    assert_eq!(body["candidates"][0]["content"]["parts"][0]["text"], told);
}

#[tokio::test]
async fn signatures_of_open_calls_must_come_back_unaltered() {
    let sim = start().await;
    let request = with(
        asking("The weather in Paris"),
        json!({"tools": weather_tools()}),
    );
    let body = generate(&sim, "sim-chat", &request).await.json();
    let content = &body["candidates"][0]["content"];
    let signature = content["parts"][0]["thoughtSignature"].as_str().unwrap();
    let url_safe = signature.replace('+', "-").replace('/', "_");
    let altered = signature.replacen("++", "+A", 1);
    let result =
        [json!({"function_response": {"name": "get_weather", "response": {"result": "ok"}}})];
    for (model, signature, status, part) in [
        ("sim-chat", json!(signature), 200, "ok"),
        ("sim-chat", json!(url_safe), 200, "ok"),
        (
            "sim-chat",
            json!("skip_thought_signature_validator"),
            200,
            "ok",
        ),
        ("sim-chat", Value::Null, 400, "missing a thought_signature"),
        (
            "sim-chat",
            json!(altered),
            400,
            "Corrupted thought signature.",
        ),
        (
            "sim-mini",
            json!(signature),
            400,
            "Corrupted thought signature.",
        ),
        ("sim-chat+unsigned", Value::Null, 200, "ok"),
        ("sim-chat+unsigned", json!("c2ln"), 200, "ok"),
    ] {
        let mut content = content.clone();
        content["parts"][0]["thoughtSignature"] = signature.clone();
        let next = answered(request.clone(), &content, &result);
        let answer = generate(&sim, model, &next).await;
        assert_eq!(answer.status, status, "{model} {signature}");
        assert!(answer.text().contains(part), "{}", answer.text());
        let streamed = stream(&sim, model, &next).await;
        assert_eq!(streamed.status, status, "{model} {signature}");
    }

    // In earlier turns a signature may be missing, but not altered.
    for (signature, status) in [(Value::Null, 200), (json!(altered), 400)] {
        let mut content = content.clone();
        content["parts"][0]["thoughtSignature"] = signature;
        let mut next = answered(request.clone(), &content, &result);
        next["contents"]
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "parts": [{"text": "hi"}]}));
        assert_eq!(generate(&sim, "sim-chat", &next).await.status, status);
    }
    // The signature is bound to its call.
    let mut moved = content.clone();
    moved["parts"][0]["functionCall"]["name"] = json!("get_time");
    let result = [json!({"functionResponse": {"name": "get_time", "response": {}}})];
    let next = answered(request, &moved, &result);
    assert_eq!(generate(&sim, "sim-chat", &next).await.status, 400);
}

#[tokio::test]
async fn every_step_of_a_loop_is_signed() {
    let sim = start().await;
    let mut request = with(
        asking("First the weather, then the time in Rome"),
        json!({"tools": weather_tools()}),
    );
    let mut names = Vec::new();
    for _ in 0..2 {
        let body = generate(&sim, "sim-reason", &request).await.json();
        let content = body["candidates"][0]["content"].clone();
        let name = content["parts"][0]["functionCall"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(content["parts"][0]["thoughtSignature"].is_string());
        let id = content["parts"][0]["functionCall"]["id"].clone();
        request = answered(request, &content, &[result(&name, &id, "fine")]);
        names.push(name);
    }
    assert_eq!(names, ["get_weather", "get_time"]);
    assert_eq!(generate(&sim, "sim-reason", &request).await.status, 200);
    // The signature of the first step is still required.
    request["contents"][1]["parts"][0]["thoughtSignature"] = Value::Null;
    assert_eq!(generate(&sim, "sim-reason", &request).await.status, 400);
}

#[tokio::test]
async fn results_may_hold_pictures_and_failures() {
    let sim = start().await;
    let request = with(
        asking("The weather in Paris"),
        json!({"tools": weather_tools()}),
    );
    let body = generate(&sim, "sim-chat+no-call-ids", &request)
        .await
        .json();
    let content = &body["candidates"][0]["content"];
    assert!(content["parts"][0]["functionCall"].get("id").is_none());
    for (response, part) in [
        (
            json!({"name": "get_weather", "response": {"output": "see"},
                "parts": [{"inline_data": {"mime_type": "image/png", "data": PIXEL}}]}),
            "result is see. I received one 1x1 PNG image",
        ),
        (
            json!({"name": "get_weather", "response": {"error": "no such city"}}),
            "call failed: no such city",
        ),
        (
            json!({"name": "get_weather", "response": {"sky": "blue"}}),
            "result is {\"sky\":\"blue\"}",
        ),
    ] {
        let next = answered(
            request.clone(),
            content,
            &[json!({"functionResponse": response})],
        );
        let body = generate(&sim, "sim-chat", &next).await.json();
        let text = body["candidates"][0]["content"]["parts"][0]["text"]
            .as_str()
            .unwrap();
        assert!(text.contains(part), "{text}");
    }
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

#[tokio::test]
async fn wrong_histories_are_refused() {
    let sim = start().await;
    let user = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let skip = "skip_thought_signature_validator";
    let called = json!({"role": "model", "parts": [
        {"functionCall": {"name": "f", "args": {}, "id": "c1"}, "thoughtSignature": skip}]});
    let response = |name: &str, id: &str| json!({"role": "user", "parts": [{"functionResponse": {"name": name, "id": id, "response": {}}}]});
    for (contents, part) in [
        (json!([]), "contents is not specified"),
        (json!([{"role": "user", "parts": []}]), "must not be empty"),
        (
            json!([{"role": "king", "parts": [{"text": "x"}]}]),
            "valid role",
        ),
        (
            json!([{"role": "model", "parts": [{"text": "x"}]}]),
            "single turn requests",
        ),
        (json!([{"parts": [{}]}]), "required oneof field 'data'"),
        (
            json!([{"parts": [{"text": "x", "inlineData": {"mimeType": "image/png", "data": PIXEL}}]}]),
            "oneof field 'data' is already set",
        ),
        (
            json!([{"parts": [{"type": "text", "text": "x"}]}]),
            "Unknown name \"type\"",
        ),
        (
            json!([{"parts": [{"inlineData": {"mimeType": "image/png", "data": "***"}}]}]),
            "Base64 decoding failed",
        ),
        (
            json!([{"parts": [{"fileData": {"fileUri": "ftp://x"}}]}]),
            "Unsupported file uri",
        ),
        (
            json!([user("x"), called]),
            "number of function response parts",
        ),
        (
            json!([user("x"), called, user("y")]),
            "number of function response parts",
        ),
        (
            json!([user("x"), response("f", "c1")]),
            "function response turn comes",
        ),
        (
            json!([user("x"), called, response("f", "c2")]),
            "does not match any function call",
        ),
        (
            json!([user("x"), called, response("g", "c1")]),
            "is named 'g'",
        ),
        (
            json!([user("x"), called, {"parts": [{"functionResponse": {"name": "f", "response": "ok"}}]}]),
            "google.protobuf.Struct",
        ),
    ] {
        let answer = generate(&sim, "sim-chat", &json!({"contents": contents})).await;
        assert_eq!(answer.status, 400, "{contents}");
        let error = &answer.json()["error"];
        assert_eq!(
            (&error["code"], &error["status"]),
            (&json!(400), &json!("INVALID_ARGUMENT"))
        );
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn keys_paths_and_models_are_checked() {
    let sim = start().await;
    let body = asking("hi").to_string();
    let path = "/v1beta/models/sim-chat:generateContent";
    for (path, head, status, label) in [
        (path, "", 403, "PERMISSION_DENIED"),
        (
            path,
            "x-goog-api-key: sim-bad-key\r\n",
            400,
            "INVALID_ARGUMENT",
        ),
        (
            path,
            "authorization: Bearer sim-poor-key\r\n",
            429,
            "RESOURCE_EXHAUSTED",
        ),
        ("/v1beta/models/sim-chat:nothing", "", 404, "NOT_FOUND"),
        ("/v1beta/nothing", "", 404, "NOT_FOUND"),
    ] {
        let answer = call(&sim, "POST", path, head, body.as_bytes()).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["status"]),
            (status, &json!(label)),
            "{path} {head}"
        );
    }
    for path in [
        "/v1/models/maker/sim-chat:generateContent?key=k",
        "/v1beta/models/maker%2Fsim-chat:generateContent?key=k",
    ] {
        let answer = call(&sim, "POST", path, "", body.as_bytes()).await;
        assert_eq!(answer.json()["modelVersion"], "maker/sim-chat-2026-01-01");
        let calls = sim.calls();
        assert_eq!(
            calls.last().unwrap().model.as_deref(),
            Some("maker/sim-chat")
        );
    }
    assert_eq!(generate(&sim, "missing-x", &asking("hi")).await.status, 404);
    assert_eq!(call(&sim, "GET", path, "", b"").await.status, 405);
    let unread = call(&sim, "POST", path, "x-goog-api-key: k\r\n", b"{").await;
    assert_eq!(unread.status, 400);
}

#[tokio::test]
async fn scripts_bend_answers_and_streams() {
    let sim = start().await;
    let request = asking("Count to 20");
    let faulty = |faults: &str| format!("sim-chat+{faults}");
    let answer = generate(&sim, &faulty("status=429:retry-after=7"), &request).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("7"))
    );
    assert_eq!(answer.json()["error"]["details"][0]["retryDelay"], "7s");
    for status in [400, 401, 402, 403, 404, 413, 500, 502, 503, 504] {
        let answer = stream(&sim, &faulty(&format!("status={status}")), &request).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.json()["error"]["code"], status);
    }
    let answer = generate(&sim, &faulty("error-in-200"), &request).await;
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (200, &json!(500))
    );
    let shown = events(&stream(&sim, &faulty("error-in-200"), &request).await);
    assert_eq!(shown[0]["error"]["status"], "INTERNAL");
    assert_eq!(
        generate(&sim, &faulty("empty-object"), &request)
            .await
            .text(),
        "{}"
    );
    assert_eq!(
        stream(&sim, &faulty("empty-object"), &request).await.text(),
        "data: {}\r\n\r\n"
    );
    assert!(
        stream(&sim, &faulty("wrong-type=swapped"), &request)
            .await
            .json()["candidates"]
            .is_array()
    );
    assert!(events(&generate(&sim, &faulty("wrong-type=swapped"), &request).await).len() > 3);

    let shown = events(&stream(&sim, &faulty("error-event=3"), &request).await);
    assert_eq!((shown.len(), &shown[3]["error"]["code"]), (4, &json!(500)));
    let shown = events(&stream(&sim, &faulty("garbage-event=2"), &request).await);
    assert!(shown[2].is_string() && shown.last().unwrap().is_object());
    let answer = stream(&sim, &faulty("no-finish"), &request).await;
    assert!(!answer.text().contains("finishReason"));
    assert_eq!(
        joined(&events(&answer), false),
        joined(&events(&stream(&sim, "sim-chat", &request).await), false)
    );

    for (faults, total) in [
        ("usage=zero", json!(0)),
        ("usage=negative", json!(-5)),
        ("usage=string", json!("49")),
        ("tool-use=7", json!(56)),
    ] {
        let whole = generate(&sim, &faulty(faults), &request).await.json();
        assert_eq!(whole["usageMetadata"]["totalTokenCount"], total, "{faults}");
        let shown = events(&stream(&sim, &faulty(faults), &request).await);
        let last = &shown.last().unwrap()["usageMetadata"];
        assert_eq!(last["totalTokenCount"], total, "{faults}");
    }
    for faults in ["no-usage", "usage=on-finish"] {
        let shown = events(&stream(&sim, &faulty(faults), &request).await);
        let told = shown
            .iter()
            .filter(|event| event.get("usageMetadata").is_some());
        assert_eq!(told.count(), usize::from(faults == "usage=on-finish"));
    }
    let whole = generate(&sim, &faulty("cached=4"), &request).await.json();
    assert_eq!(whole["usageMetadata"]["cachedContentTokenCount"], 4);
    let answer = stream(&sim, &faulty("cut=100"), &request).await;
    assert_eq!(answer.body.len(), 100);
    let shown = events(&stream(&sim, &faulty("chunks=100+pieces=64"), &request).await);
    assert_eq!(shown.len(), 101);
    let wrong = generate(&sim, &faulty("nonsense"), &request).await;
    assert!(wrong.status == 400 && wrong.text().contains("script is wrong:"));
}
