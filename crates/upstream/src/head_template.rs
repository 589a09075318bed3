//! A channel's requests: what is the same for all of them is built once.

use std::fmt;
use std::io::Write as _;

use http::HeaderValue;
use protocol::Dialect;

use crate::address::Address;
use crate::endpoint::Endpoint;
use crate::error::ChannelError;
use crate::preset::{Auth, Base, Preset};
use crate::request::UpstreamRequest;
use crate::secret::Secret;
use crate::socket::{SocketEndpoint, SocketRequest};

/// The version that Messages upstreams demand to be told. It is ours to choose, whatever a
/// caller names (`docs/api/authentication.md`).
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// What we call ourselves.
pub(crate) const USER_AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

/// The headers of a caller that may go on to an upstream, by their names on the wire.
const FORWARDED: [&str; 1] = ["anthropic-beta"];

/// What never changes between the requests of a channel.
pub(crate) struct HeadTemplate {
    /// Whole header lines. The credential is among them.
    lines: Box<[u8]>,
    /// The line of the credential alone; empty without one.
    credential: Box<[u8]>,
    chat: Box<str>,
    responses: Box<str>,
    messages: Box<str>,
    response_count: Box<str>,
    message_count: Box<str>,
    interactions: Box<str>,
    embeddings: Box<str>,
    image_generations: Box<str>,
    image_edits: Box<str>,
    speech: Box<str>,
    voices: Box<str>,
    transcript: Box<str>,
    video_generations: Box<str>,
    video_edits: Box<str>,
    video_extensions: Box<str>,
    videos: Box<str>,
    realtime: Box<str>,
    /// What stands before an operation's name.
    operations: Box<str>,
    content_tasks: Box<str>,
    /// What stands before a model's name.
    generate: Box<str>,
}

impl HeadTemplate {
    pub(crate) fn new(
        preset: Preset,
        address: &Address,
        credential: Option<&Secret>,
    ) -> Result<Self, ChannelError> {
        let path = address.path.as_str();
        // What a vendor's SDK would add to this base. Protocols that are not the vendor's
        // own stand where its compatible endpoints and the usual servers have them.
        let (openai_like, root) = match preset.base() {
            Base::Versioned => (path.to_owned(), address.root()),
            Base::Bare => (format!("{path}/v1"), path),
            Base::BareBeta => (format!("{path}/v1beta/openai"), path),
        };
        Ok(Self {
            lines: lines(preset, address, credential)?,
            credential: credential_line(preset, credential)?,
            chat: format!("{openai_like}/chat/completions").into(),
            responses: format!("{openai_like}/responses").into(),
            messages: format!("{root}/v1/messages").into(),
            response_count: format!("{openai_like}/responses/input_tokens").into(),
            message_count: format!("{root}/v1/messages/count_tokens").into(),
            interactions: format!("{root}/v1beta/interactions").into(),
            embeddings: format!("{openai_like}/embeddings").into(),
            image_generations: format!("{openai_like}/images/generations").into(),
            image_edits: format!("{openai_like}/images/edits").into(),
            speech: format!("{openai_like}/tts").into(),
            voices: format!("{openai_like}/tts/voices").into(),
            transcript: format!("{openai_like}/stt").into(),
            video_generations: format!("{openai_like}/videos/generations").into(),
            video_edits: format!("{openai_like}/videos/edits").into(),
            video_extensions: format!("{openai_like}/videos/extensions").into(),
            videos: format!("{openai_like}/videos").into(),
            realtime: format!("{openai_like}/realtime").into(),
            operations: format!("{root}/v1beta").into(),
            content_tasks: format!("{openai_like}/contents/generations/tasks").into(),
            generate: format!("{root}/v1beta/models/").into(),
        })
    }

    /// Writes the head of a call. A header value cannot hold a line end, and paths are made
    /// of checked parts, so nothing can be smuggled in.
    pub(crate) fn write_head(&self, call: &UpstreamRequest, head: &mut Vec<u8>) {
        let bodiless = call.endpoint.bodiless();
        head.extend_from_slice(bodiless.unwrap_or("POST").as_bytes());
        head.push(b' ');
        self.write_target(call, head);
        head.extend_from_slice(b" HTTP/1.1\r\n");
        head.extend_from_slice(&self.lines);
        if bodiless.is_some() {
            head.extend_from_slice(b"\r\n");
            return;
        }
        write_line(head, "content-type", &call.content_type);
        for name in FORWARDED {
            for value in call.extra.get_all(name) {
                write_line(head, name, value);
            }
        }
        if call.endpoint.dialect() == Dialect::Messages {
            write_line(
                head,
                "anthropic-version",
                &HeaderValue::from_static(ANTHROPIC_VERSION),
            );
        }
        head.extend_from_slice(b"content-length: ");
        head.extend_from_slice(itoa::Buffer::new().format(call.length()).as_bytes());
        head.extend_from_slice(b"\r\n\r\n");
    }

    /// Writes the wish for a session.
    pub(crate) fn write_handshake(&self, ask: SocketRequest<'_>, key: &str, head: &mut Vec<u8>) {
        let path = match ask.endpoint {
            SocketEndpoint::Realtime => &self.realtime,
            SocketEndpoint::Speech => &self.speech,
            SocketEndpoint::Transcript => &self.transcript,
        };
        let mark = if ask.query.is_empty() { "" } else { "?" };
        // Writing into a Vec cannot fail.
        let _ = write!(head, "GET {path}{mark}{} HTTP/1.1\r\n", ask.query);
        head.extend_from_slice(&self.lines);
        let _ = write!(
            head,
            "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: {key}\r\n\r\n"
        );
    }

    /// Writes the line that names us, for a fetch from the upstream's own origin.
    pub(crate) fn write_credential(&self, head: &mut Vec<u8>) {
        head.extend_from_slice(&self.credential);
    }

    fn write_target(&self, call: &UpstreamRequest, head: &mut Vec<u8>) {
        let (path, action) = match call.endpoint {
            Endpoint::Text { dialect, stream } => match dialect {
                Dialect::Chat => (&self.chat, None),
                Dialect::Responses => (&self.responses, None),
                Dialect::Messages => (&self.messages, None),
                Dialect::Interactions => (&self.interactions, None),
                Dialect::Generate if stream => {
                    (&self.generate, Some(":streamGenerateContent?alt=sse"))
                }
                Dialect::Generate => (&self.generate, Some(":generateContent")),
            },
            Endpoint::TokenCount(Dialect::Messages) => (&self.message_count, None),
            Endpoint::TokenCount(Dialect::Generate) => (&self.generate, Some(":countTokens")),
            Endpoint::TokenCount(_) => (&self.response_count, None),
            Endpoint::Embeddings => (&self.embeddings, None),
            Endpoint::EmbedContent { batch: true } => (&self.generate, Some(":batchEmbedContents")),
            Endpoint::EmbedContent { batch: false } => (&self.generate, Some(":embedContent")),
            Endpoint::ImageGenerations => (&self.image_generations, None),
            Endpoint::ImageEdits => (&self.image_edits, None),
            Endpoint::Speech => (&self.speech, None),
            Endpoint::Transcript => (&self.transcript, None),
            Endpoint::Voices => (&self.voices, None),
            Endpoint::VideoGenerations => (&self.video_generations, None),
            Endpoint::VideoEdits => (&self.video_edits, None),
            Endpoint::VideoExtensions => (&self.video_extensions, None),
            Endpoint::Video => (&self.videos, None),
            Endpoint::PredictLongRunning => (&self.generate, Some(":predictLongRunning")),
            Endpoint::Operation => (&self.operations, None),
            Endpoint::ContentTasks | Endpoint::ContentTask | Endpoint::ContentTaskDeletion => {
                (&self.content_tasks, None)
            }
        };
        head.extend_from_slice(path.as_bytes());
        // An action stands behind the model's name.
        if let Some(action) = action {
            write_segment(&call.upstream_model, head);
            head.extend_from_slice(action.as_bytes());
        }
        match call.item.as_deref() {
            // The name of an operation is a path itself.
            Some(name) if call.endpoint == Endpoint::Operation => {
                for part in name.split('/') {
                    head.push(b'/');
                    write_segment(part, head);
                }
            }
            Some(item) => {
                head.push(b'/');
                write_segment(item, head);
            }
            None => {}
        }
    }
}

impl fmt::Debug for HeadTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadTemplate")
            .field("chat", &self.chat)
            .finish_non_exhaustive()
    }
}

fn lines(
    preset: Preset,
    address: &Address,
    credential: Option<&Secret>,
) -> Result<Box<[u8]>, ChannelError> {
    let mut lines = Vec::new();
    let host = HeaderValue::try_from(&address.authority).map_err(|_| {
        ChannelError::BaseUrl(
            address.authority.clone(),
            "has a host that no header can carry",
        )
    })?;
    write_line(&mut lines, "host", &host);
    lines.extend_from_slice(&credential_line(preset, credential)?);
    for (name, value) in [
        ("user-agent", USER_AGENT),
        ("accept", "application/json"),
        // We read usage out of every answer and pass its bytes on: no inflating.
        ("accept-encoding", "identity"),
    ] {
        write_line(&mut lines, name, &HeaderValue::from_static(value));
    }
    Ok(lines.into())
}

fn credential_line(preset: Preset, credential: Option<&Secret>) -> Result<Box<[u8]>, ChannelError> {
    let mut line = Vec::new();
    let credential = credential.map(Secret::expose);
    if let Some(secret) = credential.or(preset.own_credential()) {
        let (name, value) = match preset.auth() {
            Auth::Bearer => ("authorization", format!("Bearer {secret}")),
            Auth::Header(name) => (name, secret.to_owned()),
        };
        let value = HeaderValue::try_from(value).map_err(|_| ChannelError::Credential)?;
        write_line(&mut line, name, &value);
    }
    Ok(line.into())
}

pub(crate) fn write_line(head: &mut Vec<u8>, name: &str, value: &HeaderValue) {
    for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
        head.extend_from_slice(part);
    }
}

/// One path segment; a slash in a model's name stays inside it.
fn write_segment(text: &str, head: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            head.push(byte);
        } else {
            let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
            head.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

#[cfg(test)]
mod tests;
