//! Reads `contents`: the turns, and the order of function calls, signatures and responses.

use super::parts::{CONTENT, CallPart, Content, Part, PartKind, Response, Role};
use crate::google::{Field, Refusal, SignatureError, Signer};
use crate::model::{PastCall, Turn};

pub(super) fn read(body: &Field<'_>, signer: Signer<'_>) -> Result<Vec<Turn>, Refusal> {
    let contents = body.children("contents", CONTENT)?;
    if contents.is_empty() {
        return Err(Refusal::invalid(
            "* GenerateContentRequest.contents: contents is not specified\n",
        )
        .field("contents"));
    }
    let contents: Vec<_> = contents
        .iter()
        .map(Content::read)
        .collect::<Result<_, _>>()?;
    if let [
        Content {
            role: Role::Model, ..
        },
    ] = contents.as_slice()
    {
        return Err(Refusal::invalid(
            "Please ensure that single turn requests end with a user role or the role field is \
             empty.",
        ));
    }
    // Signatures are required only for calls after the user's last question.
    let current = contents
        .iter()
        .rposition(Content::is_question)
        .unwrap_or_default();
    let mut reader = Reader {
        signer,
        turns: Vec::new(),
        pending: Vec::new(),
        after_model: false,
    };
    for (index, content) in contents.into_iter().enumerate() {
        reader.content(content, index, index >= current)?;
    }
    reader.check_all_answered()?;
    Ok(reader.turns)
}

/// A call that has no result yet.
struct PendingCall {
    id: String,
    /// Whether the caller's history contains the id.
    client_knows_id: bool,
    name: String,
}

struct Reader<'a> {
    signer: Signer<'a>,
    turns: Vec<Turn>,
    pending: Vec<PendingCall>,
    /// Whether the previous content item was the model's. If so, the model's next content item continues the same turn.
    after_model: bool,
}

impl Reader<'_> {
    fn content(
        &mut self,
        content: Content<'_>,
        index: usize,
        current: bool,
    ) -> Result<(), Refusal> {
        match content.role {
            Role::Model => self.model(content.parts, index, current),
            Role::User => self.user(content.parts),
        }
    }

    /// Reads a content item of the model. Clients send a streamed answer back as one content item for each event.
    /// Consecutive content items of the model are one turn, and only the first call of a turn must be signed.
    fn model(&mut self, parts: Vec<Part<'_>>, index: usize, current: bool) -> Result<(), Refusal> {
        let mut answer = String::new();
        let mut calls = Vec::new();
        for part in parts {
            match part.kind {
                PartKind::Text(text) => {
                    self.check_text(part.signature)?;
                    answer.push_str(text);
                }
                PartKind::Call(call) => {
                    self.check_call(&call, part.signature, current, index)?;
                    // A call without an id gets one that is derived from its position.
                    let place = self.turns.len() * 100 + self.pending.len();
                    let id = call.id.map_or_else(|| format!("#{place}"), str::to_owned);
                    self.pending.push(PendingCall {
                        id: id.clone(),
                        client_knows_id: call.id.is_some(),
                        name: call.name.to_owned(),
                    });
                    calls.push(PastCall {
                        id,
                        name: call.name.to_owned(),
                        arguments: call.arguments,
                    });
                }
                PartKind::Media(_) | PartKind::Thought | PartKind::Other => {
                    self.check_text(part.signature)?;
                }
                PartKind::Response(response) => {
                    return Err(Refusal::invalid(
                        "Please ensure that function response turn comes immediately after a \
                         function call turn.",
                    )
                    .field(&response.path));
                }
            }
        }
        if let (true, Some(Turn::Assistant { text, calls: made })) =
            (self.after_model, self.turns.last_mut())
        {
            text.push_str(&answer);
            made.extend(calls);
        } else {
            self.turns.push(Turn::Assistant {
                text: answer,
                calls,
            });
        }
        self.after_model = true;
        Ok(())
    }

    fn check_call(
        &self,
        call: &CallPart<'_>,
        signature: Option<&str>,
        current: bool,
        index: usize,
    ) -> Result<(), Refusal> {
        match self.signer.check_call(call.name, signature) {
            Ok(()) => Ok(()),
            Err(SignatureError::Missing) if !current || !self.pending.is_empty() => Ok(()),
            Err(SignatureError::Missing) => Err(Refusal::invalid(format!(
                "Function call is missing a thought_signature in functionCall parts. This is \
                 required for tools to work correctly, and missing thought_signature may lead to \
                 degraded model performance. Additional data, function call \
                 `default_api:{}` , position {}. Please refer to \
                 https://ai.sim-upstream.example/gemini-api/docs/thought-signatures for more \
                 details.",
                call.name,
                index + 1
            ))),
            Err(SignatureError::Corrupted) => Err(corrupted()),
        }
    }

    fn check_text(&self, signature: Option<&str>) -> Result<(), Refusal> {
        match signature.map(|signature| self.signer.check_text(signature)) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(corrupted()),
        }
    }

    fn user(&mut self, parts: Vec<Part<'_>>) -> Result<(), Refusal> {
        self.after_model = false;
        let responses = parts
            .iter()
            .filter(|part| matches!(part.kind, PartKind::Response(_)))
            .count();
        if responses != self.pending.len() {
            return Err(if self.pending.is_empty() {
                Refusal::invalid(
                    "Please ensure that function response turn comes immediately after a \
                     function call turn.",
                )
            } else {
                unequal()
            });
        }
        let mut texts: Vec<&str> = Vec::new();
        let mut seen = Vec::new();
        let mut spoken = false;
        for part in parts {
            match part.kind {
                PartKind::Response(response) => self.result(response)?,
                PartKind::Call(_) => {
                    return Err(Refusal::invalid(
                        "Please ensure that function call turn comes immediately after a user \
                         turn or after a function response turn.",
                    ));
                }
                PartKind::Text(text) => {
                    spoken = true;
                    texts.push(text);
                }
                PartKind::Media(media) => {
                    spoken = true;
                    seen.push(media);
                }
                PartKind::Thought | PartKind::Other => {}
            }
        }
        if spoken {
            self.turns.push(Turn::User {
                text: texts.join("\n"),
                media: seen,
            });
        }
        Ok(())
    }

    /// Matches a result to its call: by id if it has one, otherwise by name and order.
    fn result(&mut self, response: Response<'_>) -> Result<(), Refusal> {
        let place = match response.id {
            Some(id) => self
                .pending
                .iter()
                .position(|pending| pending.client_knows_id && pending.id == id),
            None => self
                .pending
                .iter()
                .position(|pending| pending.name == response.name),
        };
        let Some(place) = place else {
            let what = response.id.unwrap_or(response.name);
            return Err(Refusal::invalid(format!(
                "Function response '{what}' does not match any function call of the function call \
                 turn."
            ))
            .field(&response.path));
        };
        let pending = self.pending.remove(place);
        if pending.name != response.name {
            return Err(Refusal::invalid(format!(
                "Function response for '{}' is named '{}'.",
                pending.name, response.name
            ))
            .field(&response.path));
        }
        self.turns.push(Turn::Result {
            call_id: pending.id,
            text: response.text,
            media: response.media,
            failed: response.failed,
        });
        Ok(())
    }

    fn check_all_answered(&self) -> Result<(), Refusal> {
        if self.pending.is_empty() {
            Ok(())
        } else {
            Err(unequal())
        }
    }
}

fn corrupted() -> Refusal {
    Refusal::invalid("Corrupted thought signature.")
}

fn unequal() -> Refusal {
    Refusal::invalid(
        "Please ensure that the number of function response parts is equal to the number of \
         function call parts of the function call turn.",
    )
}
