//! Writes the turns of a conversation as input items.

use std::borrow::Cow;

use crate::canon::{
    Document, Dropped, Image, ImageDetail, ImageSource, Part, Path, Role, Target, Thought,
    ToolCall, ToolResult, Turn, data_uri,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::write::{Array, Object};

/// The maximum length of a call id that upstreams accept.
const CALL_ID_BYTES_MAX: usize = 64;

pub(super) fn write(
    items: &mut Array<'_>,
    turns: &[Turn],
    detail: Option<ImageDetail>,
    target: &Target<'_>,
    dropped: &mut Dropped,
) -> Result<(), Failure> {
    for turn in turns {
        let mut writer = Writer {
            items,
            role: turn.role,
            said: Vec::new(),
            target,
            detail,
            dropped,
            kept: false,
            lost: None,
        };
        for (path, part) in &turn.parts {
            writer.part(*path, part);
        }
        writer.close_message();
        if let (Role::User, Some(path), false) = (turn.role, writer.lost, writer.kept) {
            // Without this turn, the model would not know that the user asked something.
            let message = format!("Nothing of `{path}` can be sent to this model.");
            return Err(Failure::invalid(message).param(path.to_string()));
        }
    }
    Ok(())
}

struct Writer<'w, 'i, 'p> {
    items: &'w mut Array<'i>,
    role: Role,
    /// The parts of the current message.
    said: Vec<&'p Part>,
    target: &'w Target<'w>,
    /// The detail level for images that do not set one.
    detail: Option<ImageDetail>,
    dropped: &'w mut Dropped,
    kept: bool,
    lost: Option<Path>,
}

impl<'p> Writer<'_, '_, 'p> {
    fn part(&mut self, path: Path, part: &'p Part) {
        let kept = match (self.role, part) {
            (_, Part::Text(_))
            | (Role::User, Part::Image(_) | Part::Document(_))
            | (Role::Assistant, Part::Refusal(_)) => {
                self.said.push(part);
                true
            }
            (Role::Assistant, Part::ToolCall(call)) => {
                self.close_message();
                // Calls have no member for a signature.
                if call.opaque.is_some() {
                    self.dropped.signature(path, call);
                }
                self.items.object(|it| write_call(it, call));
                true
            }
            (Role::User, Part::ToolResult(result)) => {
                self.close_message();
                for (path, part) in &result.parts {
                    if !is_output(part) {
                        self.dropped.path(*path);
                    }
                }
                let detail = self.detail;
                self.items.object(|it| write_result(it, result, detail));
                true
            }
            (Role::Assistant, Part::Thought(thought)) => self.thought(thought),
            _ => false,
        };
        self.kept |= kept;
        if !kept {
            self.dropped.path(path);
            self.lost = Some(path);
        }
    }

    /// Writes reasoning, if this model made it and its encrypted form is known. Without the
    /// encrypted form the upstream would look for the item in its store.
    fn thought(&mut self, thought: &Thought) -> bool {
        let Some(opaque) = &thought.opaque else {
            return false;
        };
        let own = opaque.model.is_empty() || *opaque.model == *self.target.public_model;
        if opaque.origin != Dialect::Responses || !own {
            return false;
        }
        self.close_message();
        self.items.object(|it| {
            it.text("type", "reasoning");
            it.array("summary", |it| {
                if !thought.text.is_empty() {
                    it.object(|it| {
                        it.text("type", "summary_text").text("text", &thought.text);
                    });
                }
            });
            it.text("encrypted_content", &opaque.text);
        });
        true
    }

    fn close_message(&mut self) {
        let said = std::mem::take(&mut self.said);
        if said.is_empty() {
            return;
        }
        let role = match self.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
            Role::Developer => "developer",
        };
        let text = if self.role == Role::Assistant {
            "output_text"
        } else {
            "input_text"
        };
        let detail = self.detail;
        self.items.object(|it| {
            it.text("type", "message").text("role", role);
            if let ([Part::Text(said)], true) = (said.as_slice(), self.role != Role::Assistant) {
                it.text("content", said);
                return;
            }
            it.array("content", |it| {
                for part in said {
                    it.object(|it| write_part(it, part, text, detail));
                }
            });
        });
    }
}

fn is_output(part: &Part) -> bool {
    matches!(part, Part::Text(_) | Part::Image(_) | Part::Document(_))
}

fn write_part(it: &mut Object<'_>, part: &Part, text_type: &str, detail: Option<ImageDetail>) {
    match part {
        Part::Text(text) => drop(it.text("type", text_type).text("text", text)),
        Part::Refusal(text) => drop(it.text("type", "refusal").text("refusal", text)),
        Part::Image(image) => write_image(it, image, detail),
        Part::Document(document) => write_document(it, document),
        Part::Thought(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Foreign => {
            debug_assert!(false, "no part of a message");
        }
    }
}

fn write_image(it: &mut Object<'_>, image: &Image, detail: Option<ImageDetail>) {
    it.text("type", "input_image");
    match &image.source {
        ImageSource::Url(url) => it.text("image_url", url),
        ImageSource::Inline { mime, data } => it.text("image_url", &data_uri::join(mime, data)),
    };
    let detail = image.detail.or(detail).map(|detail| match detail {
        ImageDetail::Auto => "auto",
        ImageDetail::Low => "low",
        ImageDetail::High => "high",
        ImageDetail::Original => "original",
    });
    if let Some(detail) = detail {
        it.text("detail", detail);
    }
}

fn write_document(it: &mut Object<'_>, document: &Document) {
    it.text("type", "input_file");
    it.text("filename", document.file_name());
    it.text("file_data", &data_uri::join(&document.mime, &document.data));
}

fn write_call(it: &mut Object<'_>, call: &ToolCall) {
    it.text("type", "function_call");
    it.text("call_id", &call_id(&call.id));
    it.text("name", &call.name);
    it.text("arguments", &call.arguments);
}

fn write_result(it: &mut Object<'_>, result: &ToolResult, detail: Option<ImageDetail>) {
    it.text("type", "function_call_output");
    it.text("call_id", &call_id(&result.call_id));
    let parts = result.parts.iter().map(|(_, part)| part);
    let parts: Vec<&Part> = parts.filter(|part| is_output(part)).collect();
    match parts.as_slice() {
        [] => drop(it.text("output", "")),
        [Part::Text(text)] => drop(it.text("output", text)),
        parts => drop(it.array("output", |it| {
            for part in parts {
                it.object(|it| write_part(it, part, "input_text", detail));
            }
        })),
    }
}

/// Shortens an id that is too long. A hash of the whole id keeps it distinct. Calls and results are
/// shortened alike.
fn call_id(id: &str) -> Cow<'_, str> {
    const SUM_CHARS: usize = 16;
    if id.len() <= CALL_ID_BYTES_MAX {
        return Cow::Borrowed(id);
    }
    // FNV-1a.
    let sum = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut keep = CALL_ID_BYTES_MAX - SUM_CHARS;
    while !id.is_char_boundary(keep) {
        keep -= 1;
    }
    let start = id.get(..keep).unwrap_or_default();
    Cow::Owned(format!("{start}{sum:016x}"))
}
