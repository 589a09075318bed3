//! Checks credentials of Vertex AI, and converts its paths and requests to the vendors' protocols.

use super::convert::{AnswerChange, ConvertedRequest, bearer, header, rewritten_parts};
use super::issued_tokens::{IssuedTokens, Issuer};
use super::vertex_video;
use crate::percent::decoded;
use crate::predict::HOSTED;
use crate::reply::{Content, Reply};
use crate::settings::Settings;
use crate::tokens::count_tokens;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

const VERSION: &str = "vertex-2023-10-16";
/// The verbs that Vertex AI shares with Generate Content.
const TEXT_VERBS: [&str; 3] = ["generateContent", "streamGenerateContent", "countTokens"];

const POLL: &str = "fetchPredictOperation";
const VIDEO_VERBS: [&str; 2] = ["predictLongRunning", POLL];

/// The parsed path of a publisher's model.
struct Target<'a> {
    publisher: &'a str,
    model: String,
    verb: &'a str,
}

/// Checks the credential and converts the request to the vendor's protocol.
pub(super) fn convert(
    parts: &Parts,
    body: &Bytes,
    settings: &Settings,
    issued_tokens: &IssuedTokens,
) -> Result<ConvertedRequest, Reply> {
    let path = parts.uri.path();
    let is_stream = path.contains(":stream");
    let (target, is_express) = read(path).ok_or_else(|| not_found(path, is_stream))?;
    let is_let_in = match (is_express, bearer(parts), header(parts, "x-goog-api-key")) {
        (false, Some(token), None) => issued_tokens.accept(token, Issuer::Google),
        (true, None, Some(key)) => !key.is_empty() && !settings.refuses(key),
        _ => false,
    };
    if !is_let_in {
        return Err(refusal(
            StatusCode::UNAUTHORIZED,
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.",
            is_stream,
        ));
    }
    if target.model.starts_with("sim-misplaced") {
        let name = path
            .trim_start_matches("/v1/")
            .rsplit_once(':')
            .map_or("", |(name, _)| name);
        let message = format!("Invalid resource field value in the request: `{name}`.");
        return Err(refusal(
            StatusCode::BAD_REQUEST,
            "INVALID_ARGUMENT",
            &message,
            is_stream,
        ));
    }
    match target.publisher {
        "google" if target.verb == "predict" => embeddings(parts, body, &target),
        "google" if target.verb == "embedContent" => one_embedding(parts, body, &target),
        "google" if VIDEO_VERBS.contains(&target.verb) => videos(parts, body, target.verb),
        "google" if TEXT_VERBS.contains(&target.verb) => {
            let query = parts.uri.query();
            let query = query.map(|it| format!("?{it}")).unwrap_or_default();
            let named = path.rsplit_once("/models/").map_or("", |(_, rest)| rest);
            check_roles(body, is_stream)?;
            Ok(ConvertedRequest {
                parts: rewritten_parts(
                    parts,
                    &format!("/v1beta/models/{named}{query}"),
                    "x-goog-api-key",
                ),
                body: body.clone(),
                answer_change: AnswerChange::None,
            })
        }
        "anthropic" => hosted(parts, body, &target),
        _ => Err(not_found(path, is_stream)),
    }
}

/// Converts a request that creates or polls a video to the vendor's protocol.
fn videos(parts: &Parts, body: &Bytes, verb: &str) -> Result<ConvertedRequest, Reply> {
    let path = parts.uri.path();
    let is_poll = verb == POLL;
    let found = if is_poll {
        vertex_video::poll(path, body)
    } else {
        Ok(vertex_video::creation(path))
    };
    let (path, publisher) = found
        .map_err(|message| refusal(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", &message, false))?;
    let mut converted = ConvertedRequest {
        parts: rewritten_parts(parts, &path, "x-goog-api-key"),
        body: body.clone(),
        answer_change: AnswerChange::Operation(publisher),
    };
    if is_poll {
        converted.parts.method = Method::GET;
        let mark = http::HeaderValue::from_static("1");
        converted.parts.headers.insert(HOSTED, mark);
        converted.body = Bytes::new();
    }
    Ok(converted)
}

/// Parses a path. The second value is true in express mode, which has API keys and no project.
fn read(path: &str) -> Option<(Target<'_>, bool)> {
    let (rest, is_express) = match path.strip_prefix("/v1/projects/") {
        Some(rest) => {
            let mut parts = rest.splitn(4, '/');
            let project = parts.next()?;
            let (word, location) = (parts.next()?, parts.next()?);
            if project.is_empty() || word != "locations" || location.is_empty() {
                return None;
            }
            (parts.next()?.strip_prefix("publishers/")?, false)
        }
        None => (path.strip_prefix("/v1/publishers/")?, true),
    };
    let (publisher, rest) = rest.split_once("/models/")?;
    let (model, verb) = rest.rsplit_once(':')?;
    let target = Target {
        publisher,
        model: decoded(model),
        verb,
    };
    (!model.is_empty()).then_some((target, is_express))
}

/// Refuses content items without a role, because Vertex AI requires a role.
fn check_roles(body: &Bytes, is_stream: bool) -> Result<(), Reply> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let contents = request["contents"].as_array();
    let is_without = |content: &Value| !content["role"].is_string();
    if contents.is_some_and(|contents| contents.iter().any(is_without)) {
        let message = "Please use a valid role: user, model.";
        return Err(refusal(
            StatusCode::BAD_REQUEST,
            "INVALID_ARGUMENT",
            message,
            is_stream,
        ));
    }
    Ok(())
}

/// Converts a request for embeddings to the vendor's protocol.
fn embeddings(parts: &Parts, body: &Bytes, target: &Target<'_>) -> Result<ConvertedRequest, Reply> {
    let bad = |message: &str| refusal(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message, false);
    let request: Value = serde_json::from_slice(body).map_err(|_| bad("not JSON"))?;
    let instances = request["instances"].as_array();
    let instances = instances.ok_or_else(|| bad("instances: is required"))?;
    let mut requests = Vec::new();
    let mut tokens = Vec::new();
    for instance in instances {
        let text = instance["content"].as_str();
        let text = text.ok_or_else(|| bad("content: is required"))?;
        tokens.push(count_tokens(text));
        let mut one = json!({
            "model": format!("models/{}", target.model),
            "content": { "parts": [{ "text": text }] },
        });
        if let Some(dimensions) = request["parameters"].get("outputDimensionality") {
            one["outputDimensionality"] = dimensions.clone();
        }
        requests.push(one);
    }
    let named = parts
        .uri
        .path()
        .rsplit_once("/models/")
        .map_or("", |(_, rest)| rest);
    let named = named.strip_suffix(":predict").unwrap_or(named);
    let path = format!("/v1beta/models/{named}:batchEmbedContents");
    Ok(ConvertedRequest {
        parts: rewritten_parts(parts, &path, "x-goog-api-key"),
        body: json!({ "requests": requests }).to_string().into(),
        answer_change: AnswerChange::Predictions(tokens),
    })
}

/// Converts a request for one embedding to the vendor's protocol. All parts of the content item make one vector.
fn one_embedding(
    parts: &Parts,
    body: &Bytes,
    target: &Target<'_>,
) -> Result<ConvertedRequest, Reply> {
    let bad = |message: &str| refusal(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message, false);
    let request: Value = serde_json::from_slice(body).map_err(|_| bad("not JSON"))?;
    let members = request.as_object().ok_or_else(|| bad("not an object"))?;
    let is_known = |name: &String| ["content", "embedContentConfig"].contains(&name.as_str());
    if let Some(unknown) = members.keys().find(|name| !is_known(name)) {
        return Err(bad(&format!("Unknown name \"{unknown}\"")));
    }
    if !request["content"]["role"].is_string() {
        return Err(bad("Please use a valid role: user, model."));
    }
    let texts = request["content"]["parts"].as_array().into_iter().flatten();
    let tokens = texts
        .filter_map(|part| part["text"].as_str())
        .map(count_tokens);
    let tokens = tokens.sum();
    let model = format!("models/{}", target.model);
    let mut one = json!({ "model": model, "content": request["content"] });
    if let Some(dimensions) = request["embedContentConfig"].get("outputDimensionality") {
        one["outputDimensionality"] = dimensions.clone();
    }
    let path = parts.uri.path();
    let named = path.rsplit_once("/models/").map_or("", |(_, rest)| rest);
    Ok(ConvertedRequest {
        parts: rewritten_parts(parts, &format!("/v1beta/models/{named}"), "x-goog-api-key"),
        body: one.to_string().into(),
        answer_change: AnswerChange::Embedding(tokens),
    })
}

/// Adds the usage to an answer with one vector.
pub(super) fn embedding(reply: Reply, tokens: u64) -> Reply {
    let Content::Whole(bytes) = &reply.content else {
        return reply;
    };
    let mut answer: Value = serde_json::from_slice(bytes).unwrap_or_default();
    if !answer["embedding"].is_object() {
        return reply;
    }
    answer["usageMetadata"] = json!({ "promptTokenCount": tokens });
    answer["truncated"] = false.into();
    Reply::json(reply.status, answer.to_string())
}

/// Converts the vectors of an answer to predictions.
pub(super) fn predictions(reply: Reply, tokens: &[u64]) -> Reply {
    let Content::Whole(bytes) = &reply.content else {
        return reply;
    };
    let answer: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let Some(vectors) = answer["embeddings"].as_array() else {
        return reply;
    };
    let predictions = vectors.iter().zip(tokens).map(|(vector, tokens)| {
        let statistics = json!({ "truncated": false, "token_count": tokens });
        json!({ "embeddings": { "statistics": statistics, "values": vector["values"] } })
    });
    let predictions: Vec<Value> = predictions.collect();
    let body = json!({ "predictions": predictions, "metadata": { "billableCharacterCount": 31 } });
    Reply::json(reply.status, body.to_string())
}

/// Applies Vertex AI's checks to a Messages request, and converts it to the vendor's protocol.
fn hosted(parts: &Parts, body: &Bytes, target: &Target<'_>) -> Result<ConvertedRequest, Reply> {
    let is_stream = target.verb == "streamRawPredict";
    let bad = |message: &str| {
        refusal(
            StatusCode::BAD_REQUEST,
            "INVALID_ARGUMENT",
            message,
            is_stream,
        )
    };
    if !is_stream && target.verb != "rawPredict" {
        return Err(not_found(parts.uri.path(), is_stream));
    }
    let request = serde_json::from_slice::<Map<String, Value>>(body);
    let mut request = request.map_err(|_| bad("the body is not a JSON object"))?;
    if header(parts, "anthropic-version").is_some() {
        return Err(bad("the version belongs into the body"));
    }
    if request.remove("anthropic_version") != Some(VERSION.into()) {
        return Err(bad("anthropic_version: unexpected value"));
    }
    let is_count = target.model == "count-tokens";
    if is_count != request.contains_key("model") {
        return Err(bad("model: Extra inputs are not permitted"));
    }
    if !is_count {
        let streams = request
            .get("stream")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        if streams != is_stream {
            return Err(bad("stream: does not agree with the method"));
        }
        request.insert("model".to_owned(), target.model.as_str().into());
    }
    let betas = header(parts, "anthropic-beta").unwrap_or_default();
    if let Some(unknown) = betas.split(',').find(|beta| beta.contains("unknown")) {
        let message = format!("Unexpected value(s) `{unknown}` for the `anthropic-beta` header.");
        return Err(bad(&message));
    }
    let path = if is_count {
        "/v1/messages/count_tokens"
    } else {
        "/v1/messages"
    };
    let mut parts = rewritten_parts(parts, path, "x-api-key");
    let version = http::HeaderValue::from_static("2023-06-01");
    parts.headers.insert("anthropic-version", version);
    Ok(ConvertedRequest {
        parts,
        body: Value::Object(request).to_string().into(),
        answer_change: AnswerChange::None,
    })
}

fn not_found(path: &str, is_stream: bool) -> Reply {
    let message = format!(
        "Publisher Model `{}` was not found or your project does not have access to it.",
        path.trim_start_matches("/v1/")
    );
    refusal(StatusCode::NOT_FOUND, "NOT_FOUND", &message, is_stream)
}

/// An error in Google's form. Streaming verbs send it inside a list.
fn refusal(status: StatusCode, word: &str, message: &str, is_stream: bool) -> Reply {
    let error = json!({ "error": { "code": status.as_u16(), "message": message, "status": word } });
    let body = if is_stream { json!([error]) } else { error };
    Reply::json(status, body.to_string())
}
