//! Writes the parts of a `content` object.

use crate::canon::arguments;
use crate::json::write::{Object, object};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Answer,
    Thought,
}

pub(super) fn text(out: &mut Vec<u8>, text: &str, voice: TextKind, signature: Option<&str>) {
    object(out, |part| {
        part.text("text", text);
        if voice == TextKind::Thought {
            part.boolean("thought", true);
        }
        sign(part, signature);
    });
}

pub(super) fn call(out: &mut Vec<u8>, id: &str, name: &str, args: &str, signature: Option<&str>) {
    object(out, |part| {
        part.object("functionCall", |call| {
            call.text("id", id).text("name", name);
            call.raw("args", &arguments::object(args));
        });
        sign(part, signature);
    });
}

pub(super) fn inline(out: &mut Vec<u8>, mime: &str, data: &str) {
    object(out, |part| {
        part.object("inlineData", |inline| {
            inline.text("mimeType", mime).text("data", data);
        });
    });
}

pub(super) fn file(out: &mut Vec<u8>, uri: &str, mime: Option<&str>) {
    object(out, |part| {
        part.object("fileData", |file| {
            if let Some(mime) = mime {
                file.text("mimeType", mime);
            }
            file.text("fileUri", uri);
        });
    });
}

fn sign(part: &mut Object<'_>, signature: Option<&str>) {
    if let Some(signature) = signature {
        part.text("thoughtSignature", signature);
    }
}
