//! Writes the turns of the common form as the messages of a chat request.

use std::borrow::Cow;

use super::EXTRA;
use crate::canon::{
    Dropped, Image, ImageDetail, ImageSource, Part, Role, Target, ToolCall, ToolResult, Turn,
    data_uri,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::write::{Array, Object};
use crate::shared::signature;

/// Replaces an image in a tool's result. The image follows in a user message.
const PICTURE: &str = "[image]";

pub(super) struct Messages<'w, 'o> {
    pub(super) target: &'w Target<'w>,
    pub(super) dropped: &'w mut Dropped,
    /// The detail level for images that do not set one.
    pub(super) detail: Option<ImageDetail>,
    pub(super) list: &'w mut Array<'o>,
}

impl Messages<'_, '_> {
    pub(super) fn turn(&mut self, turn: &Turn) -> Result<(), Failure> {
        match turn.role {
            // Only reasoning models accept the newer role name.
            Role::Developer if self.target.profile.reasoning == Some(true) => {
                self.system("developer", turn);
            }
            Role::System | Role::Developer => self.system("system", turn),
            Role::User => return self.user(turn),
            Role::Assistant => self.assistant(turn),
        }
        Ok(())
    }

    fn system(&mut self, role: &str, turn: &Turn) {
        let mut texts = Vec::with_capacity(turn.parts.len());
        for (path, part) in &turn.parts {
            match part {
                Part::Text(text) => texts.push(ContentPart::Text(text)),
                _ => self.dropped.path(*path),
            }
        }
        if !texts.is_empty() {
            self.message(role, &texts, |_| {});
        }
    }

    /// Writes a user turn: one message for each tool result, then one for the rest of the turn.
    fn user(&mut self, turn: &Turn) -> Result<(), Failure> {
        let mut pieces = Vec::with_capacity(turn.parts.len());
        let mut results = false;
        let mut lost = None;
        for (path, part) in &turn.parts {
            match part {
                Part::ToolResult(result) => {
                    self.tool_result(result, &mut pieces);
                    results = true;
                }
                Part::Text(text) | Part::Refusal(text) => pieces.push(ContentPart::Text(text)),
                Part::Image(image) => pieces.push(ContentPart::Image(image, self.detail)),
                Part::Document(document) => pieces.push(ContentPart::File {
                    uri: data_uri::join(&document.mime, &document.data),
                    name: document.file_name(),
                }),
                Part::Thought(_) | Part::ToolCall(_) | Part::Foreign => {
                    self.dropped.path(*path);
                    lost = Some(*path);
                }
            }
        }
        match lost {
            // An empty message would hide from the model that the user asked something.
            Some(path) if pieces.is_empty() && !results => {
                let message = format!("Nothing of `{path}` can be sent to this model.");
                Err(Failure::invalid(message).param(path.to_string()))
            }
            _ if pieces.is_empty() && results => Ok(()),
            _ => {
                self.message("user", &pieces, |_| {});
                Ok(())
            }
        }
    }

    /// Writes a tool result. Chat allows only text in it, so images follow in a user message.
    fn tool_result<'p>(&mut self, result: &'p ToolResult, pictures: &mut Vec<ContentPart<'p>>) {
        let mut texts = Vec::with_capacity(result.parts.len());
        for (path, part) in &result.parts {
            match part {
                Part::Text(text) => texts.push(ContentPart::Text(text)),
                Part::Image(image) => {
                    texts.push(ContentPart::Text(PICTURE));
                    pictures.push(ContentPart::Image(image, self.detail));
                }
                _ => self.dropped.path(*path),
            }
        }
        self.message("tool", &texts, |it| {
            it.text("tool_call_id", &result.call_id);
        });
    }

    fn assistant(&mut self, turn: &Turn) {
        let mut content = String::new();
        let mut refusal = String::new();
        let mut calls = Vec::new();
        for (path, part) in &turn.parts {
            match part {
                Part::Text(text) => content.push_str(text),
                Part::Refusal(text) => refusal.push_str(text),
                Part::ToolCall(call) => {
                    let signature = self.signature(call);
                    if signature.is_none() && call.opaque.is_some() {
                        self.dropped.signature(*path, call);
                    }
                    calls.push((call, signature));
                }
                _ => self.dropped.path(*path),
            }
        }
        // Many upstreams refuse an assistant message without content.
        if content.is_empty() && refusal.is_empty() && calls.is_empty() {
            return;
        }
        self.list.object(|it| {
            it.text("role", "assistant");
            if content.is_empty() {
                it.null("content");
            } else {
                it.text("content", &content);
            }
            if !refusal.is_empty() {
                it.text("refusal", &refusal);
            }
            if !calls.is_empty() {
                it.array("tool_calls", |list| {
                    for (call, signature) in calls {
                        list.object(|it| write_call(it, call, signature));
                    }
                });
            }
        });
    }

    /// The signature of a call, if this upstream made it.
    fn signature<'c>(&self, call: &'c ToolCall) -> Option<&'c str> {
        let opaque = call.opaque.as_ref();
        signature::for_upstream(opaque, Dialect::Chat, self.target.public_model)
    }

    fn message(
        &mut self,
        role: &str,
        pieces: &[ContentPart<'_>],
        more: impl FnOnce(&mut Object<'_>),
    ) {
        self.list.object(|it| {
            it.text("role", role);
            more(it);
            match pieces {
                [] => {
                    it.text("content", "");
                }
                [ContentPart::Text(text)] => {
                    it.text("content", text);
                }
                pieces => {
                    it.array("content", |list| {
                        for piece in pieces {
                            list.object(|it| piece.write(it));
                        }
                    });
                }
            }
        });
    }
}

fn write_call(it: &mut Object<'_>, call: &ToolCall, signature: Option<&str>) {
    it.text("id", &call.id).text("type", "function");
    it.object("function", |it| {
        it.text("name", &call.name)
            .text("arguments", &call.arguments);
    });
    if let Some(signature) = signature {
        write_extra(it, signature);
    }
}

/// Writes a signature into its extension member.
pub(in crate::chat) fn write_extra(it: &mut Object<'_>, signature: &str) {
    let [extra, vendor, member] = EXTRA;
    it.object(extra, |it| {
        it.object(vendor, |it| {
            it.text(member, signature);
        });
    });
}

enum ContentPart<'p> {
    Text(&'p str),
    /// An image, and the detail level to use if it does not set one.
    Image(&'p Image, Option<ImageDetail>),
    File {
        uri: String,
        name: &'p str,
    },
}

impl ContentPart<'_> {
    fn write(&self, it: &mut Object<'_>) {
        match self {
            Self::Text(text) => {
                it.text("type", "text").text("text", text);
            }
            Self::Image(image, detail) => {
                let url = match &image.source {
                    ImageSource::Url(url) => Cow::Borrowed(url.as_str()),
                    ImageSource::Inline { mime, data } => Cow::Owned(data_uri::join(mime, data)),
                };
                it.text("type", "image_url").object("image_url", |it| {
                    it.text("url", &url);
                    if let Some(detail) = image.detail.or(*detail) {
                        it.text("detail", detail_word(detail));
                    }
                });
            }
            Self::File { uri, name } => {
                it.text("type", "file").object("file", |it| {
                    it.text("filename", name).text("file_data", uri);
                });
            }
        }
    }
}

const fn detail_word(detail: ImageDetail) -> &'static str {
    match detail {
        ImageDetail::Auto => "auto",
        ImageDetail::Low => "low",
        ImageDetail::High => "high",
        ImageDetail::Original => "original",
    }
}
