//! Converts requests of Converse to those of Messages, and applies the vendor's checks.

use serde_json::{Map, Value, json};

use crate::seal;

/// A value, or the message with which the vendor refuses it.
type ReadResult<T> = Result<T, String>;

const MEMBERS: [&str; 7] = [
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "outputConfig",
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
];

/// Checks a body and converts it to a Messages request.
pub(super) fn read_request(body: &[u8]) -> ReadResult<Value> {
    let request: Value = serde_json::from_slice(body).map_err(|_| "not JSON".to_owned())?;
    refuse_unknown(&request, "request", &MEMBERS)?;
    let mut read = Map::new();
    let mut turns: Vec<Value> = Vec::new();
    for turn in list(&request["messages"], "messages")? {
        refuse_unknown(turn, "message", &["role", "content"])?;
        list(&turn["content"], "content")?;
        if turns
            .last()
            .is_some_and(|before| before["role"] == turn["role"])
        {
            return Err("roles must alternate between user and assistant".to_owned());
        }
        turns.push(
            json!({ "role": turn["role"], "content": content(&turn["content"], BlockContainer::Turn)? }),
        );
    }
    let uses_tools = turns.iter().any(holds_tools);
    if uses_tools && request.get("toolConfig").is_none() {
        return Err(
            "The toolConfig field must be defined when using toolUse and toolResult content blocks."
                .to_owned(),
        );
    }
    read.insert("messages".to_owned(), turns.into());
    if let Some(system) = request.get("system") {
        list(system, "system")?;
        read.insert("system".to_owned(), content(system, BlockContainer::Turn)?);
    }
    read_inference(&request, &mut read)?;
    if let Some(config) = request.get("toolConfig") {
        read_tools(config, &mut read)?;
    }
    if let Some(config) = request.get("outputConfig") {
        read.insert("output_config".to_owned(), output(config)?);
    }
    match request.get("additionalModelRequestFields") {
        None => {}
        Some(Value::Object(fields)) => {
            let own = |(name, _): &(&String, &Value)| *name != "anthropic_beta";
            read.extend(
                fields
                    .iter()
                    .filter(own)
                    .map(|(name, value)| (name.clone(), value.clone())),
            );
        }
        Some(_) => return Err("additionalModelRequestFields must be a structure".to_owned()),
    }
    Ok(Value::Object(read))
}

fn read_inference(request: &Value, read: &mut Map<String, Value>) -> ReadResult<()> {
    let empty = json!({});
    let inference = request.get("inferenceConfig").unwrap_or(&empty);
    let members = [
        ("maxTokens", "max_tokens"),
        ("temperature", "temperature"),
        ("topP", "top_p"),
        ("stopSequences", "stop_sequences"),
    ];
    refuse_unknown(inference, "inferenceConfig", &members.map(|(name, _)| name))?;
    read.insert("max_tokens".to_owned(), json!(4096));
    for (name, own) in members {
        if let Some(value) = inference.get(name) {
            read.insert(own.to_owned(), value.clone());
        }
    }
    Ok(())
}

fn output(config: &Value) -> ReadResult<Value> {
    refuse_unknown(config, "outputConfig", &["effort", "textFormat"])?;
    let mut read = Map::new();
    if let Some(effort) = config.get("effort") {
        read.insert("effort".to_owned(), effort.clone());
    }
    if let Some(format) = config.get("textFormat") {
        let schema = format["structure"]["jsonSchema"]["schema"].as_str();
        let schema = schema.ok_or("jsonSchema.schema must be a string")?;
        let schema: Value = serde_json::from_str(schema).map_err(|_| "schema is not JSON")?;
        let format = json!({ "type": "json_schema", "schema": schema });
        read.insert("format".to_owned(), format);
    }
    Ok(Value::Object(read))
}

fn read_tools(config: &Value, read: &mut Map<String, Value>) -> ReadResult<()> {
    refuse_unknown(config, "toolConfig", &["tools", "toolChoice"])?;
    let mut tools = Vec::new();
    for tool in list(&config["tools"], "tools")? {
        match only_member(tool, "tool")? {
            ("toolSpec", spec) => {
                refuse_unknown(
                    spec,
                    "toolSpec",
                    &["name", "description", "inputSchema", "strict"],
                )?;
                matches(&spec["name"], "name", "_-")?;
                if spec["description"] == "" {
                    return Err("toolSpec.description must not be empty".to_owned());
                }
                let schema = &spec["inputSchema"]["json"];
                let mut declared = json!({ "name": spec["name"], "input_schema": schema });
                for name in ["description", "strict"] {
                    if let Some(value) = spec.get(name) {
                        declared[name] = value.clone();
                    }
                }
                tools.push(declared);
            }
            ("cachePoint", point) => mark_cache_end(tools.last_mut(), point)?,
            (other, _) => return Err(format!("unknown tool {other}")),
        }
    }
    read.insert("tools".to_owned(), tools.into());
    if let Some(choice) = config.get("toolChoice") {
        let choice = match only_member(choice, "toolChoice")? {
            (kind @ ("auto" | "any"), _) => json!({ "type": kind }),
            ("tool", tool) => json!({ "type": "tool", "name": tool["name"] }),
            (other, _) => return Err(format!("unknown choice {other}")),
        };
        read.insert("tool_choice".to_owned(), choice);
    }
    Ok(())
}

/// The container of a list of content blocks: a turn or a tool result. The system prompt counts as a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockContainer {
    Turn,
    Result,
}

fn content(blocks: &Value, container: BlockContainer) -> ReadResult<Value> {
    let mut read: Vec<Value> = Vec::new();
    for block in blocks.as_array().ok_or("content must be a list")? {
        let (kind, value) = only_member(block, "content block")?;
        let block = match kind {
            "text" => {
                if value.as_str().is_none_or(|text| text.trim().is_empty()) {
                    return Err("The text field in the ContentBlock object is blank.".to_owned());
                }
                json!({ "type": "text", "text": value })
            }
            "image" => image(value)?,
            "document" => document(value)?,
            _ if container == BlockContainer::Result => {
                return Err(format!("a result cannot hold {kind}"));
            }
            "toolUse" => {
                matches(&value["toolUseId"], "toolUseId", "_.:-")?;
                json!({
                    "type": "tool_use", "id": value["toolUseId"], "name": value["name"], "input": value["input"],
                })
            }
            "toolResult" => {
                matches(&value["toolUseId"], "toolUseId", "_.:-")?;
                json!({
                    "type": "tool_result",
                    "tool_use_id": value["toolUseId"],
                    "content": content(&value["content"], BlockContainer::Result)?,
                    "is_error": value["status"] == "error",
                })
            }
            "reasoningContent" => match only_member(value, "reasoningContent")? {
                ("reasoningText", thought) => json!({
                    "type": "thinking", "thinking": thought["text"], "signature": thought["signature"],
                }),
                (_, data) => json!({ "type": "redacted_thinking", "data": data }),
            },
            "cachePoint" => {
                mark_cache_end(read.last_mut(), value)?;
                continue;
            }
            other => return Err(format!("unknown content {other}")),
        };
        read.push(block);
    }
    Ok(read.into())
}

fn image(value: &Value) -> ReadResult<Value> {
    refuse_unknown(value, "image", &["format", "source"])?;
    let format = value["format"].as_str().unwrap_or_default();
    if !["png", "jpeg", "gif", "webp"].contains(&format) {
        return Err(format!(
            "image.format {format} is not one of png, jpeg, gif, webp"
        ));
    }
    let data = bytes(&value["source"])?;
    let source = json!({ "type": "base64", "media_type": format!("image/{format}"), "data": data });
    Ok(json!({ "type": "image", "source": source }))
}

fn document(value: &Value) -> ReadResult<Value> {
    refuse_unknown(
        value,
        "document",
        &["format", "name", "source", "context", "citations"],
    )?;
    let name = value["name"].as_str().unwrap_or_default();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || " -()[]".contains(c);
    if name.is_empty() || name.len() > 200 || name.contains("  ") || !name.chars().all(is_allowed) {
        return Err("document.name has characters that are not allowed".to_owned());
    }
    let data = bytes(&value["source"])?;
    let source = match value["format"].as_str() {
        Some("pdf") => json!({ "type": "base64", "media_type": "application/pdf", "data": data }),
        Some("txt") => {
            let text = seal::decode(data).ok_or("bytes are not base64")?;
            let text = String::from_utf8_lossy(&text);
            json!({ "type": "text", "media_type": "text/plain", "data": text })
        }
        _ => return Err("document.format is not known".to_owned()),
    };
    Ok(json!({ "type": "document", "title": name, "source": source }))
}

fn bytes(source: &Value) -> ReadResult<&str> {
    let (kind, data) = only_member(source, "source")?;
    let data = data.as_str().filter(|_| kind == "bytes");
    data.ok_or_else(|| format!("source.{kind} is not supported"))
}

/// Marks a block as the end of the cached prefix.
fn mark_cache_end(block: Option<&mut Value>, point: &Value) -> ReadResult<()> {
    let block = block.ok_or("a cachePoint must follow something")?;
    let mut control = json!({ "type": "ephemeral" });
    match point.get("ttl").map(Value::as_str) {
        None => {}
        Some(Some(ttl @ ("5m" | "1h"))) => control["ttl"] = ttl.into(),
        Some(_) => return Err("cachePoint.ttl must be 5m or 1h".to_owned()),
    }
    block["cache_control"] = control;
    Ok(())
}

fn holds_tools(turn: &Value) -> bool {
    let blocks = turn["content"].as_array().into_iter().flatten();
    blocks
        .into_iter()
        .any(|block| block["type"] == "tool_use" || block["type"] == "tool_result")
}

/// The name and value of the only member of a union.
fn only_member<'a>(value: &'a Value, at: &str) -> ReadResult<(&'a str, &'a Value)> {
    let members = value.as_object().filter(|members| members.len() == 1);
    let member = members.and_then(|members| members.iter().next());
    let (name, value) = member.ok_or_else(|| format!("{at} must have exactly one member"))?;
    Ok((name, value))
}

fn refuse_unknown(value: &Value, at: &str, known: &[&str]) -> ReadResult<()> {
    let members = value.as_object();
    let members = members.ok_or_else(|| format!("{at} must be a structure"))?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{at} has the unknown member {name}")),
        None => Ok(()),
    }
}

fn list<'a>(value: &'a Value, at: &str) -> ReadResult<&'a [Value]> {
    let items = value.as_array().filter(|items| !items.is_empty());
    let items = items.map(Vec::as_slice);
    items.ok_or_else(|| format!("{at} must be a list with members"))
}

/// Checks that a name consists of 1 to 64 letters, digits and the given other characters.
fn matches(value: &Value, at: &str, signs: &str) -> ReadResult<()> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    let name = value.as_str().unwrap_or_default();
    if (1..=64).contains(&name.len()) && name.chars().all(is_allowed) {
        return Ok(());
    }
    Err(format!("{at} must be 1 to 64 letters, digits or {signs}"))
}
