//! The listener for Generate Content: data-only chunks, each with a part. The stream ends when it closes.

use serde_json::Value;

use super::{Call, ClientAnswer, ClientError, End, ensure, frames, list, number, text};

pub(super) fn read_stream(stream: &str) -> Result<ClientAnswer, ClientError> {
    let mut heard = ClientAnswer::default();
    let mut identity = None;
    for frame in frames(stream)? {
        ensure(frame.name.is_none(), || {
            "a name ends the stream for clients".to_owned()
        })?;
        let chunk = frame.json()?;
        ensure(heard.end == End::Open, || {
            format!("a chunk follows the last: {chunk}")
        })?;
        if let Some(error) = chunk.get("error") {
            heard.end = End::Failed(read_error(error)?);
            continue;
        }
        let said = (chunk["responseId"].clone(), chunk["modelVersion"].clone());
        ensure(said.0.is_string() && said.1.is_string(), || {
            format!("no identity: {chunk}")
        })?;
        let known = identity.get_or_insert_with(|| said.clone());
        ensure(*known == said, || format!("another identity: {chunk}"))?;
        let parts = candidate(&chunk, &mut heard)?;
        ensure(parts > 0, || {
            format!("a chunk without a part is lost: {chunk}")
        })?;
    }
    Ok(heard)
}

/// Reads the candidate of a chunk or an answer. Returns the number of its parts.
fn candidate(chunk: &Value, heard: &mut ClientAnswer) -> Result<usize, ClientError> {
    let [candidate] = list(chunk, "candidates")?.as_slice() else {
        return Err(format!("there must be one candidate: {chunk}"));
    };
    let index = candidate.get("index").is_none_or(|index| index == 0);
    ensure(index, || format!("another candidate: {chunk}"))?;
    let content = &candidate["content"];
    ensure(content["role"] == "model", || format!("no role: {chunk}"))?;
    let parts = list(content, "parts")?;
    for part in parts {
        heard.part(part)?;
    }
    if let Some(reason) = candidate["finishReason"].as_str() {
        let known = [
            "STOP",
            "MAX_TOKENS",
            "SAFETY",
            "RECITATION",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "LANGUAGE",
            "OTHER",
        ];
        ensure(known.contains(&reason), || {
            format!("no finish reason: {reason}")
        })?;
        heard.end = End::Finished(reason.to_owned());
    }
    if let Some(usage) = chunk.get("usageMetadata") {
        heard.usage = Some(read_usage(usage)?);
    }
    let has_usage = heard.end == End::Open || heard.usage.is_some();
    ensure(has_usage, || "usage comes with the finish".to_owned())?;
    Ok(parts.len())
}

impl ClientAnswer {
    fn part(&mut self, part: &Value) -> Result<(), ClientError> {
        let members = part.as_object().ok_or_else(|| format!("no part: {part}"))?;
        let data = ["text", "functionCall", "inlineData"];
        let count = data
            .iter()
            .filter(|name| members.contains_key(**name))
            .count();
        ensure(count == 1, || format!("a part says one thing: {part}"))?;
        if let Some(call) = members.get("functionCall") {
            ensure(call["args"].is_object(), || {
                format!("arguments are an object: {part}")
            })?;
            self.calls.push(Call {
                id: text(call, "id")?.to_owned(),
                name: text(call, "name")?.to_owned(),
                arguments: call["args"].clone(),
            });
        } else if let Some(said) = members.get("text") {
            let said = said.as_str().ok_or_else(|| format!("no text: {part}"))?;
            let heard = match members.get("thought") {
                Some(Value::Bool(true)) => &mut self.thoughts,
                None => &mut self.text,
                Some(other) => return Err(format!("a thought is true or absent: {other}")),
            };
            heard.push_str(said);
        }
        if let Some(signature) = members.get("thoughtSignature") {
            let signature = signature.as_str().ok_or("a signature is a string")?;
            self.opaque.push(signature.to_owned());
        }
        Ok(())
    }
}

pub(super) fn read(body: &Value) -> Result<ClientAnswer, ClientError> {
    text(body, "responseId")?;
    text(body, "modelVersion")?;
    let mut heard = ClientAnswer::default();
    candidate(body, &mut heard)?;
    ensure(heard.end != End::Open, || {
        format!("no finish reason: {body}")
    })?;
    Ok(heard)
}

fn read_usage(usage: &Value) -> Result<(u64, u64), ClientError> {
    let count = |member: &str| match &usage[member] {
        Value::Null => Ok(0),
        _ => number(usage, member),
    };
    let input = count("promptTokenCount")? + count("toolUsePromptTokenCount")?;
    let output = count("candidatesTokenCount")? + count("thoughtsTokenCount")?;
    let total = number(usage, "totalTokenCount")?;
    ensure(total == input + output, || {
        format!("the total is off: {usage}")
    })?;
    Ok((input, output))
}

/// Reads the error object. The gateway's code is at the start of its message.
fn read_error(error: &Value) -> Result<String, ClientError> {
    number(error, "code")?;
    text(error, "status")?;
    let (code, _) = text(error, "message")?
        .split_once(": ")
        .ok_or("no code in the message")?;
    Ok(code.to_owned())
}
