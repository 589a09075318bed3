//! The listener for Interactions: named events, steps one at a time, ended by `done`.

use serde_json::{Value, json};

use super::{Call, ClientAnswer, ClientError, End, arguments, ensure, frames, list, number, text};

pub(super) fn read_stream(stream: &str) -> Result<ClientAnswer, ClientError> {
    let mut listener = Listener::default();
    for frame in frames(stream)? {
        let over = listener.done || matches!(listener.heard.end, End::Failed(_));
        ensure(!over, || "something follows the end".to_owned())?;
        if frame.data == "[DONE]" {
            ensure(frame.name == Some("done"), || {
                "the end is named `done`".to_owned()
            })?;
            let finished = matches!(listener.heard.end, End::Finished(_));
            ensure(finished, || "a clean end was made up".to_owned())?;
            listener.done = true;
            continue;
        }
        let (name, event) = frame.named("event_type")?;
        listener.event(&name, &event)?;
    }
    let left = matches!(listener.heard.end, End::Finished(_)) && !listener.done;
    ensure(!left, || "`done` is missing".to_owned())?;
    Ok(listener.heard)
}

#[derive(Default)]
struct Listener {
    heard: ClientAnswer,
    id: Option<String>,
    updated: bool,
    done: bool,
    steps: u64,
    open: Option<Value>,
}

impl Listener {
    fn event(&mut self, name: &str, event: &Value) -> Result<(), ClientError> {
        ensure(self.heard.end == End::Open, || {
            format!("`{name}` follows the end")
        })?;
        if name == "error" {
            text(&event["error"], "message")?;
            self.heard.end = End::Failed(text(&event["error"], "code")?.to_owned());
            return Ok(());
        }
        if name == "interaction.created" {
            ensure(self.id.is_none(), || "created twice".to_owned())?;
            let interaction = &event["interaction"];
            self.id = Some(check_interaction(interaction)?.to_owned());
            let status = interaction["status"] == "in_progress";
            return ensure(status, || format!("not in progress: {event}"));
        }
        let id = self
            .id
            .as_deref()
            .ok_or_else(|| format!("`{name}` comes before created"))?;
        if name == "interaction.status_update" {
            ensure(!self.updated, || "the status is sent once".to_owned())?;
            ensure(text(event, "interaction_id")? == id, || {
                format!("another id: {event}")
            })?;
            self.updated = true;
            return text(event, "status").map(drop);
        }
        ensure(self.updated, || format!("`{name}` comes before the status"))?;
        match name {
            "step.start" => self.step_start(event),
            "step.delta" => self.step_delta(event),
            "step.stop" => self.step_stop(event),
            "interaction.completed" => {
                ensure(self.open.is_none(), || "a step is still open".to_owned())?;
                let interaction = &event["interaction"];
                ensure(check_interaction(interaction)? == id, || {
                    format!("another id: {event}")
                })?;
                ensure(interaction.get("steps").is_none(), || {
                    "steps are not repeated".to_owned()
                })?;
                self.heard.end = End::Finished(read_status(interaction)?);
                self.heard.usage = Some(read_usage(&interaction["usage"])?);
                Ok(())
            }
            _ => Err(format!("an unknown event: {name}")),
        }
    }

    fn step_start(&mut self, event: &Value) -> Result<(), ClientError> {
        ensure(self.open.is_none(), || {
            format!("two steps are open: {event}")
        })?;
        let index = number(event, "index")?;
        ensure(index == self.steps, || {
            format!("the index leaves a gap: {event}")
        })?;
        let mut step = event["step"].clone();
        match text(&step, "type")? {
            "thought" => step["summary"] = json!([]),
            "model_output" => step["content"] = json!([]),
            "function_call" => {
                ensure(step["arguments"] == json!({}), || {
                    format!("arguments come later: {step}")
                })?;
                step["pieces"] = "".into();
            }
            other => return Err(format!("an unknown step: {other}")),
        }
        self.open = Some(step);
        Ok(())
    }

    fn step_delta(&mut self, event: &Value) -> Result<(), ClientError> {
        let index = number(event, "index")?;
        let open = self.open.as_mut().filter(|_| index == self.steps);
        let step = open.ok_or_else(|| format!("a delta of no open step: {event}"))?;
        let delta = &event["delta"];
        let kind = text(step, "type")?.to_owned();
        match (kind.as_str(), text(delta, "type")?) {
            ("model_output", "text") => {
                let piece = json!({"type": "text", "text": text(delta, "text")?});
                step["content"].as_array_mut().unwrap().push(piece);
            }
            ("model_output", "image") => {
                ensure(text(delta, "mime_type")?.contains('/'), || {
                    format!("no type of a picture: {delta}")
                })?;
                let piece = json!({"type": "image", "data": text(delta, "data")?});
                step["content"].as_array_mut().unwrap().push(piece);
            }
            ("model_output", "text_annotation_delta") => drop(list(delta, "annotations")?),
            ("thought", "thought_summary") => {
                ensure(delta["content"]["type"] == "text", || {
                    format!("no summary: {delta}")
                })?;
                let piece = delta["content"].clone();
                step["summary"].as_array_mut().unwrap().push(piece);
            }
            ("thought", "thought_signature") => {
                ensure(step.get("signature").is_none(), || {
                    "two signatures".to_owned()
                })?;
                step["signature"] = text(delta, "signature")?.into();
            }
            ("function_call", "arguments_delta") => {
                let pieces = format!("{}{}", text(step, "pieces")?, text(delta, "arguments")?);
                step["pieces"] = pieces.into();
            }
            (step, delta) => return Err(format!("a {delta} in a {step}")),
        }
        Ok(())
    }

    fn step_stop(&mut self, event: &Value) -> Result<(), ClientError> {
        let index = number(event, "index")?;
        let open = self.open.take().filter(|_| index == self.steps);
        let mut step = open.ok_or_else(|| format!("a stop of no open step: {event}"))?;
        self.steps += 1;
        if let Some(pieces) = step["pieces"].as_str().filter(|pieces| !pieces.is_empty()) {
            step["arguments"] = arguments(pieces);
        }
        self.heard.step(&step)
    }
}

impl ClientAnswer {
    fn step(&mut self, step: &Value) -> Result<(), ClientError> {
        match text(step, "type")? {
            "model_output" => {
                for content in list(step, "content")? {
                    if content["type"] == "text" {
                        self.text.push_str(text(content, "text")?);
                    }
                }
            }
            "thought" => {
                for summary in step["summary"].as_array().into_iter().flatten() {
                    self.thoughts.push_str(text(summary, "text")?);
                }
                self.opaque
                    .extend(step["signature"].as_str().map(str::to_owned));
            }
            "function_call" => self.calls.push(Call {
                id: text(step, "id")?.to_owned(),
                name: text(step, "name")?.to_owned(),
                arguments: step["arguments"].clone(),
            }),
            other => return Err(format!("an unknown step: {other}")),
        }
        Ok(())
    }
}

fn check_interaction(interaction: &Value) -> Result<&str, ClientError> {
    ensure(interaction["object"] == "interaction", || {
        format!("no interaction: {interaction}")
    })?;
    text(interaction, "model")?;
    let id = text(interaction, "id")?;
    ensure(id.starts_with("int_"), || format!("no id of ours: {id}"))?;
    Ok(id)
}

fn read_status(interaction: &Value) -> Result<String, ClientError> {
    let status = text(interaction, "status")?;
    let known = ["completed", "requires_action", "incomplete"].contains(&status);
    ensure(known, || format!("no status: {status}"))?;
    for time in ["created", "updated"] {
        let time = text(interaction, time)?;
        ensure(time.len() >= 20 && time.ends_with('Z'), || {
            format!("no time: {time}")
        })?;
    }
    Ok(status.to_owned())
}

pub(super) fn read(body: &Value) -> Result<ClientAnswer, ClientError> {
    check_interaction(body)?;
    let mut heard = ClientAnswer {
        end: End::Finished(read_status(body)?),
        usage: Some(read_usage(&body["usage"])?),
        ..ClientAnswer::default()
    };
    for step in list(body, "steps")? {
        if step["type"] == "function_call" {
            ensure(step["arguments"].is_object(), || {
                format!("arguments are an object: {step}")
            })?;
        }
        heard.step(step)?;
    }
    Ok(heard)
}

fn read_usage(usage: &Value) -> Result<(u64, u64), ClientError> {
    let count = |member: &str| match &usage[member] {
        Value::Null => Ok(0),
        _ => number(usage, member),
    };
    let input = number(usage, "total_input_tokens")? + count("total_tool_use_tokens")?;
    let output = number(usage, "total_output_tokens")? + count("total_thought_tokens")?;
    if usage.get("total_tokens").is_some() {
        let total = number(usage, "total_tokens")?;
        ensure(total == input + output, || {
            format!("the total is off: {usage}")
        })?;
    }
    Ok((input, output))
}
