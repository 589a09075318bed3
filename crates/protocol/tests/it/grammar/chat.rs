//! The listener for Chat Completions: data-only chunks, ended by `[DONE]`.

use serde_json::Value;

use super::{Call, ClientAnswer, ClientError, End, arguments, ensure, frames, list, number, text};

pub(super) fn read_stream(stream: &str) -> Result<ClientAnswer, ClientError> {
    let mut listener = Listener::default();
    let mut done = false;
    for frame in frames(stream)? {
        ensure(frame.name.is_none(), || "chunks have no names".to_owned())?;
        ensure(!done, || "something follows the end".to_owned())?;
        if frame.data == "[DONE]" {
            done = true;
            continue;
        }
        listener.chunk(&frame.json()?)?;
    }
    let mut heard = listener.heard;
    match heard.end {
        End::Finished(_) => ensure(done, || "`[DONE]` is missing".to_owned())?,
        End::Failed(_) | End::Open => ensure(!done, || "a clean end was made up".to_owned())?,
    }
    for (call, text) in heard.calls.iter_mut().zip(listener.arguments) {
        call.arguments = arguments(&text);
    }
    Ok(heard)
}

#[derive(Default)]
struct Listener {
    heard: ClientAnswer,
    identity: Option<[Value; 4]>,
    arguments: Vec<String>,
}

impl Listener {
    fn chunk(&mut self, chunk: &Value) -> Result<(), ClientError> {
        ensure(!matches!(self.heard.end, End::Failed(_)), || {
            "something follows the error".into()
        })?;
        if let Some(error) = chunk.get("error") {
            self.heard.end = End::Failed(read_error(error)?);
            return Ok(());
        }
        ensure(self.heard.usage.is_none(), || {
            "something follows the usage".to_owned()
        })?;
        ensure(chunk["object"] == "chat.completion.chunk", || {
            format!("no chunk: {chunk}")
        })?;
        let identity = ["id", "object", "created", "model"].map(|member| chunk[member].clone());
        ensure(identity.iter().all(|value| !value.is_null()), || {
            format!("no identity: {chunk}")
        })?;
        let is_first = self.identity.is_none();
        let known = self.identity.get_or_insert_with(|| identity.clone());
        ensure(*known == identity, || format!("another identity: {chunk}"))?;
        let choices = list(chunk, "choices")?;
        if choices.is_empty() {
            let finished = matches!(self.heard.end, End::Finished(_));
            ensure(finished, || "usage comes before the finish".to_owned())?;
            self.heard.usage = Some(read_usage(&chunk["usage"])?);
            return Ok(());
        }
        ensure(chunk["usage"].is_null(), || {
            "usage comes beside a choice".to_owned()
        })?;
        let [choice] = choices.as_slice() else {
            return Err(format!("more than one choice: {chunk}"));
        };
        ensure(choice["index"] == 0, || format!("another choice: {chunk}"))?;
        ensure(self.heard.end == End::Open, || {
            "a choice follows its finish".to_owned()
        })?;
        self.delta(&choice["delta"], is_first)?;
        match &choice["finish_reason"] {
            Value::Null => {}
            Value::String(reason) => self.heard.end = End::Finished(reason.clone()),
            other => return Err(format!("no finish reason: {other}")),
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, is_first: bool) -> Result<(), ClientError> {
        let members = delta
            .as_object()
            .ok_or_else(|| format!("no delta: {delta}"))?;
        ensure(members.contains_key("role") == is_first, || {
            format!("the role, once: {delta}")
        })?;
        for (name, value) in members {
            let heard = match name.as_str() {
                "role" => {
                    ensure(value == "assistant", || format!("the role {value}"))?;
                    continue;
                }
                "tool_calls" => {
                    for piece in list(delta, "tool_calls")? {
                        self.call(piece)?;
                    }
                    continue;
                }
                "annotations" => {
                    check_annotations(value)?;
                    continue;
                }
                "content" => &mut self.heard.text,
                "reasoning_content" => &mut self.heard.thoughts,
                "refusal" => &mut self.heard.refusal,
                _ => return Err(format!("an unknown member: {delta}")),
            };
            heard.push_str(text(delta, name)?);
        }
        Ok(())
    }

    fn call(&mut self, piece: &Value) -> Result<(), ClientError> {
        let index = usize::try_from(number(piece, "index")?).unwrap();
        let function = &piece["function"];
        if index == self.heard.calls.len() {
            ensure(piece["type"] == "function", || {
                format!("a call has no type: {piece}")
            })?;
            let id = text(piece, "id")?;
            let name = text(function, "name")?;
            ensure(!id.is_empty() && !name.is_empty(), || {
                format!("no id or name: {piece}")
            })?;
            self.heard.calls.push(Call {
                id: id.to_owned(),
                name: name.to_owned(),
                arguments: Value::Null,
            });
            self.arguments.push(text(function, "arguments")?.to_owned());
        } else {
            let known = index < self.heard.calls.len();
            ensure(known, || format!("an index leaves a gap: {piece}"))?;
            let again = ["id", "type"]
                .iter()
                .any(|member| piece.get(member).is_some());
            ensure(!again && function.get("name").is_none(), || {
                format!("said twice: {piece}")
            })?;
            if !function.is_null() {
                self.arguments[index].push_str(text(function, "arguments")?);
            }
        }
        let signature = &piece["extra_content"]["google"]["thought_signature"];
        self.heard
            .opaque
            .extend(signature.as_str().map(str::to_owned));
        Ok(())
    }
}

pub(super) fn read(body: &Value) -> Result<ClientAnswer, ClientError> {
    ensure(body["object"] == "chat.completion", || {
        format!("no completion: {body}")
    })?;
    text(body, "id")?;
    text(body, "model")?;
    number(body, "created")?;
    let [choice] = list(body, "choices")?.as_slice() else {
        return Err("there must be one choice".to_owned());
    };
    ensure(choice["index"] == 0, || {
        "the choice has no index".to_owned()
    })?;
    let message = &choice["message"];
    ensure(message["role"] == "assistant", || {
        format!("no role: {message}")
    })?;
    let kept = message.get("content").is_some() && message.get("refusal").is_some();
    ensure(kept, || {
        format!("content and refusal are kept when null: {message}")
    })?;
    let said = |member: &str| message[member].as_str().unwrap_or_default().to_owned();
    let mut heard = ClientAnswer {
        text: said("content"),
        thoughts: said("reasoning_content"),
        refusal: said("refusal"),
        end: End::Finished(text(choice, "finish_reason")?.to_owned()),
        usage: Some(read_usage(&body["usage"])?),
        ..ClientAnswer::default()
    };
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        ensure(call["type"] == "function", || {
            format!("a call has no type: {call}")
        })?;
        heard.calls.push(Call {
            id: text(call, "id")?.to_owned(),
            name: text(&call["function"], "name")?.to_owned(),
            arguments: arguments(text(&call["function"], "arguments")?),
        });
        let signature = &call["extra_content"]["google"]["thought_signature"];
        heard.opaque.extend(signature.as_str().map(str::to_owned));
    }
    if let Some(annotations) = message.get("annotations") {
        check_annotations(annotations)?;
    }
    Ok(heard)
}

fn check_annotations(annotations: &Value) -> Result<(), ClientError> {
    for annotation in annotations.as_array().ok_or("annotations are a list")? {
        ensure(annotation["type"] == "url_citation", || {
            format!("no source: {annotation}")
        })?;
        let source = &annotation["url_citation"];
        text(source, "url")?;
        text(source, "title")?;
        let order = number(source, "start_index")? <= number(source, "end_index")?;
        ensure(order, || {
            format!("a source ends before it begins: {annotation}")
        })?;
    }
    Ok(())
}

/// Reads the error object, with all members that the SDK reads.
pub(super) fn read_error(error: &Value) -> Result<String, ClientError> {
    text(error, "message")?;
    text(error, "type")?;
    ensure(error.get("param").is_some(), || {
        format!("no param: {error}")
    })?;
    Ok(text(error, "code")?.to_owned())
}

fn read_usage(usage: &Value) -> Result<(u64, u64), ClientError> {
    let [input, output, total] =
        ["prompt_tokens", "completion_tokens", "total_tokens"].map(|member| number(usage, member));
    let (input, output) = (input?, output?);
    ensure(total? == input + output, || {
        format!("the total is off: {usage}")
    })?;
    Ok((input, output))
}
