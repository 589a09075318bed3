//! The listener for Messages: named events, blocks one at a time.

use serde_json::Value;

use super::{
    Call, ClientAnswer, ClientError, End, Frame, arguments, ensure, frames, list, number, text,
};

pub(super) fn read_stream(stream: &str) -> Result<ClientAnswer, ClientError> {
    let mut listener = Listener::default();
    for frame in frames(stream)? {
        listener.event(&frame)?;
    }
    Ok(listener.heard)
}

#[derive(Default)]
struct Listener {
    heard: ClientAnswer,
    started: bool,
    stopped: bool,
    delta: bool,
    blocks: u64,
    open: Option<Open>,
    usage: Usage,
}

/// An open block: its start, its content so far, and its signature.
struct Open {
    start: Value,
    pieces: String,
    signature: Option<String>,
}

#[derive(Default)]
struct Usage {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
}

impl Usage {
    /// A later report replaces an earlier one, member by member.
    fn update(&mut self, usage: &Value) -> Result<(), ClientError> {
        self.output = number(usage, "output_tokens")?;
        for (member, place) in [
            ("input_tokens", &mut self.input),
            ("cache_read_input_tokens", &mut self.cache_read),
            ("cache_creation_input_tokens", &mut self.cache_write),
        ] {
            if !usage[member].is_null() {
                *place = number(usage, member)?;
            }
        }
        Ok(())
    }

    fn total(&self) -> (u64, u64) {
        (self.input + self.cache_read + self.cache_write, self.output)
    }
}

impl Listener {
    fn event(&mut self, frame: &Frame<'_>) -> Result<(), ClientError> {
        let (name, event) = frame.named("type")?;
        let over = self.stopped || matches!(self.heard.end, End::Failed(_));
        ensure(!over, || format!("`{name}` follows the end"))?;
        match name.as_str() {
            "ping" => return Ok(()),
            "error" => {
                self.heard.end = End::Failed(read_error(&event)?);
                return Ok(());
            }
            "message_start" => return self.start(&event["message"]),
            _ => ensure(self.started, || format!("`{name}` comes before the start"))?,
        }
        match name.as_str() {
            "content_block_start" => self.block_start(&event),
            "content_block_delta" => self.block_delta(&event),
            "content_block_stop" => self.block_stop(&event),
            "message_delta" => self.message_delta(&event),
            "message_stop" => {
                ensure(self.delta, || {
                    "no `message_delta` before the stop".to_owned()
                })?;
                self.stopped = true;
                self.heard.usage = Some(self.usage.total());
                Ok(())
            }
            _ => Err(format!("an unknown event: {name}")),
        }
    }

    fn start(&mut self, message: &Value) -> Result<(), ClientError> {
        ensure(!self.started, || "a second start".to_owned())?;
        self.started = true;
        check_message(message)?;
        ensure(list(message, "content")?.is_empty(), || {
            "the start has content".to_owned()
        })?;
        ensure(message["stop_reason"].is_null(), || {
            "the start has a stop reason".to_owned()
        })?;
        number(&message["usage"], "input_tokens")?;
        self.usage.update(&message["usage"])
    }

    fn block_start(&mut self, event: &Value) -> Result<(), ClientError> {
        ensure(self.open.is_none(), || {
            format!("two blocks are open: {event}")
        })?;
        ensure(!self.delta, || "a block follows `message_delta`".to_owned())?;
        let index = number(event, "index")?;
        ensure(index == self.blocks, || {
            format!("the index leaves a gap: {event}")
        })?;
        let start = event["content_block"].clone();
        let skeleton = match text(&start, "type")? {
            "text" => start["text"] == "",
            "thinking" => start["thinking"] == "" && start["signature"] == "",
            "redacted_thinking" => start["data"].is_string(),
            "tool_use" => {
                let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                let id = text(&start, "id")?;
                !id.is_empty() && id.chars().all(safe) && start["input"].is_object()
            }
            _ => false,
        };
        ensure(skeleton, || format!("no beginning of a block: {start}"))?;
        self.open = Some(Open {
            start,
            pieces: String::new(),
            signature: None,
        });
        Ok(())
    }

    fn block_delta(&mut self, event: &Value) -> Result<(), ClientError> {
        let index = number(event, "index")?;
        let open = self.open.as_mut().filter(|_| index == self.blocks);
        let open = open.ok_or_else(|| format!("a delta of no open block: {event}"))?;
        let delta = &event["delta"];
        let block = text(&open.start, "type")?;
        match (block, text(delta, "type")?) {
            ("text", "text_delta") => open.pieces.push_str(text(delta, "text")?),
            ("thinking", "thinking_delta") => {
                let late = open.signature.is_some();
                ensure(!late, || "thinking follows its signature".to_owned())?;
                open.pieces.push_str(text(delta, "thinking")?);
            }
            ("thinking", "signature_delta") => {
                let again = open.signature.replace(text(delta, "signature")?.to_owned());
                ensure(again.is_none(), || "two signatures".to_owned())?;
            }
            ("tool_use", "input_json_delta") => {
                open.pieces.push_str(text(delta, "partial_json")?);
            }
            ("text", "citations_delta") => {}
            (block, delta) => return Err(format!("a {delta} in a {block} block")),
        }
        Ok(())
    }

    fn block_stop(&mut self, event: &Value) -> Result<(), ClientError> {
        let index = number(event, "index")?;
        let open = self.open.take().filter(|_| index == self.blocks);
        let open = open.ok_or_else(|| format!("a stop of no open block: {event}"))?;
        self.blocks += 1;
        let mut block = open.start;
        match text(&block, "type")? {
            "text" => block["text"] = open.pieces.into(),
            "thinking" => {
                let signature = open.signature.ok_or("a thinking block has no signature")?;
                block["thinking"] = open.pieces.into();
                block["signature"] = signature.into();
            }
            "tool_use" if !open.pieces.is_empty() => block["input"] = arguments(&open.pieces),
            _ => {}
        }
        self.heard.block(&block)
    }

    fn message_delta(&mut self, event: &Value) -> Result<(), ClientError> {
        ensure(self.open.is_none(), || {
            "a block is still open at the end".to_owned()
        })?;
        ensure(!self.delta, || "a second `message_delta`".to_owned())?;
        self.delta = true;
        let delta = &event["delta"];
        ensure(delta.get("stop_sequence").is_some(), || {
            format!("no stop sequence: {delta}")
        })?;
        self.heard.end = End::Finished(text(delta, "stop_reason")?.to_owned());
        // Some clients read the input only here.
        number(&event["usage"], "input_tokens")?;
        self.usage.update(&event["usage"])
    }
}

impl ClientAnswer {
    fn block(&mut self, block: &Value) -> Result<(), ClientError> {
        match text(block, "type")? {
            "text" => self.text.push_str(text(block, "text")?),
            "thinking" => {
                self.thoughts.push_str(text(block, "thinking")?);
                let signature = text(block, "signature")?;
                if !signature.is_empty() {
                    self.opaque.push(signature.to_owned());
                }
            }
            "redacted_thinking" => self.opaque.push(text(block, "data")?.to_owned()),
            "tool_use" => self.calls.push(Call {
                id: text(block, "id")?.to_owned(),
                name: text(block, "name")?.to_owned(),
                arguments: block["input"].clone(),
            }),
            other => return Err(format!("an unknown block: {other}")),
        }
        Ok(())
    }
}

fn check_message(message: &Value) -> Result<(), ClientError> {
    ensure(text(message, "id")?.starts_with("msg_"), || {
        format!("no id of ours: {message}")
    })?;
    let shape = message["type"] == "message" && message["role"] == "assistant";
    ensure(shape, || format!("no message: {message}"))?;
    text(message, "model").map(drop)
}

pub(super) fn read(body: &Value) -> Result<ClientAnswer, ClientError> {
    check_message(body)?;
    let mut heard = ClientAnswer::default();
    for block in list(body, "content")? {
        heard.block(block)?;
    }
    let kept = body.get("stop_sequence").is_some() && body.get("stop_details").is_some();
    ensure(kept, || format!("stop members are kept when null: {body}"))?;
    heard.end = End::Finished(text(body, "stop_reason")?.to_owned());
    let mut usage = Usage::default();
    number(&body["usage"], "input_tokens")?;
    usage.update(&body["usage"])?;
    heard.usage = Some(usage.total());
    Ok(heard)
}

fn read_error(event: &Value) -> Result<String, ClientError> {
    let error = &event["error"];
    text(event, "request_id")?;
    text(error, "type")?;
    text(error, "message")?;
    Ok(text(error, "code")?.to_owned())
}
