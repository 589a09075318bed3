//! The listener for Responses: named and numbered events, one item at a time, and all items repeated at the end.

use serde_json::{Value, json};

use super::{Call, ClientAnswer, ClientError, End, arguments, ensure, frames, list, number, text};

pub(super) fn read_stream(stream: &str) -> Result<ClientAnswer, ClientError> {
    let mut listener = Listener::default();
    for (at, frame) in frames(stream)?.iter().enumerate() {
        let (name, event) = frame.named("type")?;
        let sequence = number(&event, "sequence_number")?;
        ensure(sequence == at as u64, || {
            format!("a number is out of order: {event}")
        })?;
        ensure(event.get("error").is_none(), || {
            "clients throw on `error`".to_owned()
        })?;
        listener.event(&name, &event)?;
    }
    Ok(listener.heard)
}

#[derive(Default)]
struct Listener {
    heard: ClientAnswer,
    created: Option<Value>,
    in_progress: bool,
    /// Complete items.
    output: Vec<Value>,
    item: Option<Value>,
    /// The open part of the open item.
    part: Option<Part>,
}

struct Part {
    index: u64,
    sent: Value,
    text: String,
    /// Whether its whole text has been sent.
    whole: bool,
}

impl Listener {
    fn event(&mut self, name: &str, event: &Value) -> Result<(), ClientError> {
        ensure(self.heard.end == End::Open, || {
            format!("`{name}` follows the end")
        })?;
        match name {
            "response.created" => return self.created(&event["response"]),
            "error" => {
                text(event, "message")?;
                self.heard.end = End::Failed(text(event, "code")?.to_owned());
                return Ok(());
            }
            _ => {}
        }
        let created = self
            .created
            .as_ref()
            .ok_or_else(|| format!("`{name}` before created"))?;
        if let Some(response) = event.get("response") {
            ensure(response["id"] == created["id"], || {
                format!("another id: {event}")
            })?;
            check_response(response)?;
        }
        match name {
            "response.in_progress" => {
                ensure(!self.in_progress, || "in progress twice".to_owned())?;
                self.in_progress = true;
                ensure(event["response"]["status"] == "in_progress", || {
                    format!("no: {event}")
                })
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.finish(name, &event["response"])
            }
            _ => {
                ensure(self.in_progress, || format!("`{name}` before in progress"))?;
                self.output(name, event)
            }
        }
    }

    fn created(&mut self, response: &Value) -> Result<(), ClientError> {
        ensure(self.created.is_none(), || "created twice".to_owned())?;
        check_response(response)?;
        ensure(response["status"] == "in_progress", || {
            format!("not in progress: {response}")
        })?;
        ensure(list(response, "output")?.is_empty(), || {
            "output at the start".to_owned()
        })?;
        ensure(response["usage"].is_null(), || {
            "usage at the start".to_owned()
        })?;
        self.created = Some(response.clone());
        Ok(())
    }

    fn output(&mut self, name: &str, event: &Value) -> Result<(), ClientError> {
        let index = number(event, "output_index")?;
        ensure(index == self.output.len() as u64, || {
            format!("an index is off: {event}")
        })?;
        if name == "response.output_item.added" {
            return self.added(&event["item"]);
        }
        let item = self
            .item
            .as_mut()
            .ok_or_else(|| format!("no item is open: {event}"))?;
        if name == "response.output_item.done" {
            return self.done(&event["item"]);
        }
        ensure(event["item_id"] == item["id"], || {
            format!("another item: {event}")
        })?;
        match name {
            "response.content_part.added" => self.part_added("content", "content_index", event),
            "response.reasoning_summary_part.added" => {
                self.part_added("summary", "summary_index", event)
            }
            "response.output_text.delta" => self.delta("output_text", "content_index", event),
            "response.refusal.delta" => self.delta("refusal", "content_index", event),
            "response.reasoning_summary_text.delta" => {
                self.delta("summary_text", "summary_index", event)
            }
            "response.output_text.done" => self.whole("text", "content_index", event),
            "response.refusal.done" => self.whole("refusal", "content_index", event),
            "response.reasoning_summary_text.done" => self.whole("text", "summary_index", event),
            "response.content_part.done" => self.part_done("content", "content_index", event),
            "response.reasoning_summary_part.done" => {
                self.part_done("summary", "summary_index", event)
            }
            "response.output_text.annotation.added" => {
                let part = self.open_part("content_index", event)?;
                let annotations = part.sent["annotations"].as_array_mut();
                let annotations = annotations.ok_or("a text part has annotations")?;
                let place = number(event, "annotation_index")?;
                ensure(place == annotations.len() as u64, || {
                    format!("out of order: {event}")
                })?;
                check_annotation(&event["annotation"])?;
                annotations.push(event["annotation"].clone());
                Ok(())
            }
            "response.function_call_arguments.delta" => {
                let said = text(item, "arguments")?;
                let said = format!("{said}{}", text(event, "delta")?);
                item["arguments"] = said.into();
                Ok(())
            }
            "response.function_call_arguments.done" => {
                let whole = item["arguments"] == event["arguments"];
                ensure(whole, || format!("other arguments than came: {event}"))?;
                item["arguments_sent"] = true.into();
                Ok(())
            }
            _ => Err(format!("an unknown event: {name}")),
        }
    }

    fn added(&mut self, item: &Value) -> Result<(), ClientError> {
        ensure(self.item.is_none(), || {
            format!("two items are open: {item}")
        })?;
        let id = text(item, "id")?;
        let taken = self.output.iter().any(|known| known["id"] == id);
        ensure(!id.is_empty() && !taken, || {
            format!("no id of its own: {item}")
        })?;
        let skeleton = match text(item, "type")? {
            "message" => item["content"] == json!([]) && item["role"] == "assistant",
            "reasoning" => item["summary"] == json!([]),
            "function_call" => {
                text(item, "call_id")?;
                text(item, "name")?;
                item["arguments"] == ""
            }
            _ => false,
        };
        ensure(skeleton, || format!("no beginning of an item: {item}"))?;
        self.item = Some(item.clone());
        Ok(())
    }

    fn part_added(&mut self, member: &str, index: &str, event: &Value) -> Result<(), ClientError> {
        ensure(self.part.is_none(), || {
            format!("two parts are open: {event}")
        })?;
        let item = self.item.as_ref().ok_or("no item is open")?;
        let index = number(event, index)?;
        ensure(index == list(item, member)?.len() as u64, || {
            format!("a gap: {event}")
        })?;
        let part = event["part"].clone();
        let skeleton = match text(&part, "type")? {
            "output_text" => part["text"] == "" && part["annotations"] == json!([]),
            "refusal" => part["refusal"] == "",
            "summary_text" => part["text"] == "",
            _ => false,
        };
        ensure(skeleton, || format!("no beginning of a part: {part}"))?;
        self.part = Some(Part {
            index,
            sent: part,
            text: String::new(),
            whole: false,
        });
        Ok(())
    }

    fn open_part(&mut self, index: &str, event: &Value) -> Result<&mut Part, ClientError> {
        let index = number(event, index)?;
        let part = self
            .part
            .as_mut()
            .filter(|part| part.index == index && !part.whole);
        part.ok_or_else(|| format!("no part is open: {event}"))
    }

    fn delta(&mut self, kind: &str, index: &str, event: &Value) -> Result<(), ClientError> {
        let part = self.open_part(index, event)?;
        ensure(part.sent["type"] == kind, || {
            format!("another kind of part: {event}")
        })?;
        part.text.push_str(text(event, "delta")?);
        Ok(())
    }

    fn whole(&mut self, member: &str, index: &str, event: &Value) -> Result<(), ClientError> {
        let part = self.open_part(index, event)?;
        let same = text(event, member)? == part.text;
        ensure(same, || format!("another text than came: {event}"))?;
        part.sent[member] = event[member].clone();
        part.whole = true;
        Ok(())
    }

    fn part_done(&mut self, member: &str, index: &str, event: &Value) -> Result<(), ClientError> {
        let index = number(event, index)?;
        let part = self
            .part
            .take()
            .filter(|part| part.index == index && part.whole);
        let part = part.ok_or_else(|| format!("no part is whole: {event}"))?;
        let done = &event["part"];
        for (name, value) in part.sent.as_object().unwrap() {
            ensure(done[name] == *value, || {
                format!("another part than came: {event}")
            })?;
        }
        let item = self.item.as_mut().ok_or("no item is open")?;
        item[member].as_array_mut().unwrap().push(done.clone());
        Ok(())
    }

    fn done(&mut self, done: &Value) -> Result<(), ClientError> {
        ensure(self.part.is_none(), || "a part is still open".to_owned())?;
        let item = self.item.take().ok_or("no item is open")?;
        for member in [
            "id",
            "type",
            "call_id",
            "name",
            "content",
            "summary",
            "arguments",
        ] {
            let same = item.get(member) == done.get(member);
            ensure(same, || format!("another `{member}` than came: {done}"))?;
        }
        if item["type"] == "function_call" {
            ensure(item["arguments_sent"] == true, || {
                format!("the arguments are not sent: {done}")
            })?;
        }
        self.output.push(done.clone());
        Ok(())
    }

    fn finish(&mut self, name: &str, response: &Value) -> Result<(), ClientError> {
        if name == "response.failed" {
            ensure(response["status"] == "failed", || {
                format!("not failed: {response}")
            })?;
            text(&response["error"], "message")?;
            self.heard.end = End::Failed(text(&response["error"], "code")?.to_owned());
            return Ok(());
        }
        ensure(self.item.is_none(), || "an item is still open".to_owned())?;
        let output = list(response, "output")?;
        ensure(*output == self.output, || {
            format!("another output than came: {response}")
        })?;
        let heard = read(response)?;
        let status = text(response, "status")?;
        ensure(name == format!("response.{status}"), || {
            format!("{name}, but {status}")
        })?;
        self.heard = heard;
        Ok(())
    }
}

fn check_response(response: &Value) -> Result<(), ClientError> {
    let id = text(response, "id")?;
    ensure(id.starts_with("resp_"), || format!("no id of ours: {id}"))?;
    ensure(response["object"] == "response", || {
        format!("no response: {response}")
    })?;
    ensure(response["store"] == false, || {
        format!("nothing is stored: {response}")
    })?;
    text(response, "model")?;
    number(response, "created_at")?;
    list(response, "output")?;
    list(response, "tools")?;
    let typed =
        response["parallel_tool_calls"].is_boolean() && response.get("tool_choice").is_some();
    ensure(typed, || format!("members that types require: {response}"))
}

pub(super) fn read(body: &Value) -> Result<ClientAnswer, ClientError> {
    check_response(body)?;
    let mut heard = ClientAnswer::default();
    for item in list(body, "output")? {
        heard.item(item)?;
    }
    let status = text(body, "status")?;
    let reason = &body["incomplete_details"]["reason"];
    heard.end = End::Finished(match (status, reason.as_str()) {
        ("completed", None) => status.to_owned(),
        ("incomplete", Some(reason)) => format!("{status}: {reason}"),
        _ => return Err(format!("no end: {body}")),
    });
    heard.usage = Some(read_usage(&body["usage"])?);
    Ok(heard)
}

impl ClientAnswer {
    fn item(&mut self, item: &Value) -> Result<(), ClientError> {
        match text(item, "type")? {
            "message" => {
                text(item, "status")?;
                for part in list(item, "content")? {
                    if part["type"] == "refusal" {
                        self.refusal.push_str(text(part, "refusal")?);
                        continue;
                    }
                    ensure(part["type"] == "output_text", || format!("no part: {part}"))?;
                    self.text.push_str(text(part, "text")?);
                    list(part, "annotations")?
                        .iter()
                        .try_for_each(check_annotation)?;
                }
            }
            "reasoning" => {
                for part in list(item, "summary")? {
                    ensure(part["type"] == "summary_text", || {
                        format!("no summary: {part}")
                    })?;
                    self.thoughts.push_str(text(part, "text")?);
                }
                self.opaque
                    .extend(item["encrypted_content"].as_str().map(str::to_owned));
            }
            "function_call" => {
                text(item, "status")?;
                self.calls.push(Call {
                    id: text(item, "call_id")?.to_owned(),
                    name: text(item, "name")?.to_owned(),
                    arguments: arguments(text(item, "arguments")?),
                });
            }
            other => return Err(format!("an unknown item: {other}")),
        }
        Ok(())
    }
}

fn check_annotation(annotation: &Value) -> Result<(), ClientError> {
    ensure(annotation["type"] == "url_citation", || {
        format!("no source: {annotation}")
    })?;
    text(annotation, "url")?;
    text(annotation, "title")?;
    let order = number(annotation, "start_index")? <= number(annotation, "end_index")?;
    ensure(order, || {
        format!("a source ends before it begins: {annotation}")
    })
}

fn read_usage(usage: &Value) -> Result<(u64, u64), ClientError> {
    let (input, output) = (
        number(usage, "input_tokens")?,
        number(usage, "output_tokens")?,
    );
    number(&usage["input_tokens_details"], "cached_tokens")?;
    number(&usage["input_tokens_details"], "cache_write_tokens")?;
    number(&usage["output_tokens_details"], "reasoning_tokens")?;
    let total = number(usage, "total_tokens")?;
    ensure(total == input + output, || {
        format!("the total is off: {usage}")
    })?;
    Ok((input, output))
}
