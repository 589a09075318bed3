//! Generates the `OpenAPI` document from the table of operations.

use std::sync::LazyLock;

use bytes::Bytes;
use protocol::Family;
use serde_json::{Map, Value, json};

use super::operations::{Answer, Body, Kind, OPERATIONS, Operation};
use crate::assets::Asset;

const SCHEMAS: &str = include_str!("schemas.json");

/// The document that `/openapi.json` serves.
pub(crate) fn description() -> &'static Asset {
    static DESCRIPTION: LazyLock<Asset> =
        LazyLock::new(|| Asset::new("application/json", Bytes::from(text())));
    &DESCRIPTION
}

pub(super) fn text() -> String {
    const TAGS: [&str; 8] = [
        "text",
        "embeddings",
        "images",
        "videos",
        "voice",
        "catalog",
        "media",
        "about",
    ];
    let mut paths = Map::new();
    let mut refused = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = describe(operation);
        for (status, why) in refusals(operation) {
            let name = refusal_name(operation, status);
            refused
                .entry(name)
                .or_insert_with(|| refusal(operation, status, why));
        }
    }
    let tags = TAGS.map(|name| json!({ "name": name }));
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": "1",
            "description": "One API for many models. Requests, answers, streams and errors have the form of the protocol of the endpoint. Members that this document does not name pass to the model or are named in `x-dropped-params`.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": tags,
        "paths": paths,
        "components": {
            "responses": refused,
            "schemas": serde_json::from_str::<Value>(SCHEMAS).unwrap_or_default(),
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "x-api-key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "x-goog-api-key": { "type": "apiKey", "in": "header", "name": "x-goog-api-key" },
                "key": { "type": "apiKey", "in": "query", "name": "key" },
            },
        },
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn describe(operation: &Operation) -> Value {
    let mut described = json!({
        "operationId": operation_id(operation),
        "tags": [operation.tag],
        "summary": operation.summary,
        "security": security(operation),
        "parameters": parameters(operation),
        "responses": responses(operation),
    });
    if let Some(content) = body(operation.body) {
        described["requestBody"] = json!({ "required": true, "content": content });
    }
    described
}

/// An id such as `post_v1_chat_completions`, which changes only if the path does.
fn operation_id(operation: &Operation) -> String {
    let words = operation
        .path
        .split(|sign: char| !sign.is_ascii_alphanumeric());
    let words = std::iter::once(operation.method).chain(words.filter(|word| !word.is_empty()));
    words.collect::<Vec<_>>().join("_")
}

fn security(operation: &Operation) -> Value {
    let more: &[&str] = match (operation.kind, operation.family) {
        (Kind::Open, _) => return json!([]),
        (_, Family::OpenAi) => &[],
        (_, Family::Messages) => &["x-api-key"],
        (_, Family::Google) => &["x-goog-api-key", "key"],
        (_, Family::Interactions) => &["x-goog-api-key"],
    };
    let names = std::iter::once("bearer").chain(more.iter().copied());
    names.map(|name| json!({ name: [] })).collect()
}

fn parameters(operation: &Operation) -> Value {
    let placeholders = operation.path.split('{').skip(1);
    let names = placeholders.filter_map(|rest| rest.split_once('}'));
    let mut parameters: Vec<Value> = names
        .map(|(name, _)| {
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } })
        })
        .collect();
    let names_model_in_query =
        operation.answer == Answer::WebSocket || operation.path.starts_with("/v1/tts/voices");
    if names_model_in_query {
        parameters.push(json!({
            "name": "model", "in": "query", "required": true,
            "schema": { "$ref": "#/components/schemas/ModelId" },
        }));
    }
    if operation.method == "get" && operation.path == "/v1/contents/generations/tasks" {
        for (name, kind) in [
            ("page_num", "integer"),
            ("page_size", "integer"),
            ("filter.status", "string"),
            ("filter.model", "string"),
            ("filter.task_ids", "string"),
        ] {
            parameters.push(json!({ "name": name, "in": "query", "schema": { "type": kind } }));
        }
    }
    Value::Array(parameters)
}

fn body(body: Body) -> Option<Value> {
    let (json, form) = match body {
        Body::None => return None,
        Body::Json(json) => (Some(json), None),
        Body::Form(form) => (None, Some(form)),
        Body::JsonOrForm(json, form) => (Some(json), Some(form)),
    };
    let mut content = Map::new();
    for (media_type, name) in [("application/json", json), ("multipart/form-data", form)] {
        if let Some(name) = name {
            content.insert(media_type.to_owned(), json!({ "schema": reference(name) }));
        }
    }
    Some(Value::Object(content))
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn responses(operation: &Operation) -> Value {
    let mut responses = Map::new();
    let (status, success) = success(operation.answer);
    responses.insert(status.to_owned(), success);
    match operation.answer {
        Answer::Media => {
            responses.insert(
                "206".to_owned(),
                success_of("A range of the file.", &["*/*"]),
            );
            responses.insert(
                "304".to_owned(),
                json!({ "description": "The client has it already." }),
            );
        }
        Answer::Page => {
            responses.insert(
                "304".to_owned(),
                json!({ "description": "The client has it already." }),
            );
        }
        _ => {}
    }
    for (status, _) in refusals(operation) {
        let name = refusal_name(operation, status);
        let shared = json!({ "$ref": format!("#/components/responses/{name}") });
        responses.insert((*status).to_owned(), shared);
    }
    Value::Object(responses)
}

/// The name of the error response that all operations of the same kind and family share.
fn refusal_name(operation: &Operation, status: &str) -> String {
    let kind = match operation.kind {
        Kind::Call => "Call",
        Kind::Read => "Read",
        Kind::Open => "Open",
    };
    format!("{}{kind}{status}", envelope(operation.family))
}

fn refusal(operation: &Operation, status: &str, why: &str) -> Value {
    let mut refusal = json!({
        "description": why,
        "content": { "application/json": { "schema": reference(envelope(operation.family)) } },
    });
    if matches!(status, "429" | "503") {
        refusal["headers"] = json!({ "retry-after": { "description": "Seconds.", "schema": { "type": "integer" } } });
    }
    refusal
}

fn success(answer: Answer) -> (&'static str, Value) {
    let json = |name| json!({ "schema": reference(name) });
    let events = json!({ "schema": { "type": "string", "description": "Server-sent events of the protocol." } });
    let success = match answer {
        Answer::Json(name) => json!({ "application/json": json(name) }),
        Answer::JsonOrEvents(name) => {
            json!({ "application/json": json(name), "text/event-stream": events })
        }
        Answer::Events => json!({ "text/event-stream": events }),
        Answer::Audio => json!({ "audio/*": {}, "application/json": json("OpenObject") }),
        Answer::Media => return ("200", success_of("The file.", &["*/*"])),
        Answer::Page => {
            json!({ "text/html": { "schema": { "type": "string" } }, "application/json": json("OpenObject") })
        }
        Answer::WebSocket => {
            return (
                "101",
                json!({ "description": "The connection becomes a WebSocket." }),
            );
        }
    };
    let headers = json!({
        "x-request-id": { "schema": { "type": "string" } },
        "x-dropped-params": { "description": "Members that could not be passed on.", "schema": { "type": "string" } },
    });
    (
        "200",
        json!({ "description": "Success.", "headers": headers, "content": success }),
    )
}

fn success_of(description: &str, types: &[&str]) -> Value {
    let content: Map<_, _> = types
        .iter()
        .map(|name| ((*name).to_owned(), json!({})))
        .collect();
    json!({ "description": description, "content": content })
}

fn envelope(family: Family) -> &'static str {
    match family {
        Family::OpenAi => "OpenAiError",
        Family::Messages => "MessagesError",
        Family::Google => "GoogleError",
        Family::Interactions => "InteractionsError",
    }
}

/// The error responses of an operation. `docs/api/errors.md` has their codes.
fn refusals(operation: &Operation) -> &'static [(&'static str, &'static str)] {
    const CALL: &[(&str, &str)] = &[
        (
            "400",
            "The request is not valid, or the model cannot do this here.",
        ),
        ("401", "No valid key: `invalid_api_key`."),
        ("402", "`insufficient_quota` or `key_limit_reached`."),
        (
            "403",
            "`wallet_disabled`, or the key may not call the model.",
        ),
        ("404", "`model_not_found`."),
        ("408", "The body did not arrive in time."),
        ("413", "The body is too large."),
        ("415", "The body has a type that is not read."),
        ("426", "`upgrade_required` or `websocket_not_supported`."),
        (
            "429",
            "`rate_limit_exceeded` or `concurrency_limit_exceeded`.",
        ),
        (
            "4XX",
            "The model's own service refused the request: `upstream_rejected`.",
        ),
        ("500", "A fault of the gateway: `internal_error`."),
        ("502", "`upstream_error`."),
        ("503", "`upstream_overloaded` or `service_unavailable`."),
        ("504", "`upstream_timeout`."),
    ];
    const READ: &[(&str, &str)] = &[
        ("400", "The query is not valid."),
        ("401", "No valid key: `invalid_api_key`."),
        ("404", "`model_not_found`, `task_not_found` or `not_found`."),
        ("409", "`task_running` or `task_cancelled`, of a deletion."),
        ("414", "The request target is too long."),
        ("426", "`websocket_not_supported`."),
        ("429", "`concurrency_limit_exceeded`."),
        ("431", "The headers are too large."),
        ("500", "A fault of the gateway: `internal_error`."),
        ("503", "`service_unavailable`."),
    ];
    const OPEN: &[(&str, &str)] = &[
        ("404", "No such file, or the page is switched off."),
        ("414", "The request target is too long."),
        ("416", "The range lies beyond the end of the file."),
        ("426", "`websocket_not_supported`."),
        ("429", "Too many reads of one address."),
        ("431", "The headers are too large."),
        ("500", "A fault of the gateway: `internal_error`."),
        ("503", "`service_unavailable`."),
    ];
    match operation.kind {
        Kind::Call => CALL,
        Kind::Read => READ,
        Kind::Open => OPEN,
    }
}
