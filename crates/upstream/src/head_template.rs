//! Writes request heads. The parts that all requests of a channel share are built once.

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

/// The API version that Messages upstreams require. We choose it; the client's header is not
/// forwarded (`docs/api/authentication.md`).
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The value of our `user-agent` header.
pub(crate) const USER_AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

/// The client headers that are forwarded to upstreams.
const FORWARDED: [&str; 1] = ["anthropic-beta"];

/// The constant parts of a channel's requests.
pub(crate) struct HeadTemplate {
    /// Complete header lines, including the credential.
    lines: Box<[u8]>,
    /// The credential's header line alone; empty without a credential.
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
    /// The path before the name of an operation.
    operations: Box<str>,
    content_tasks: Box<str>,
    /// The path before the name of a model.
    generate: Box<str>,
}

impl HeadTemplate {
    pub(crate) fn new(
        preset: Preset,
        address: &Address,
        credential: Option<&Secret>,
    ) -> Result<Self, ChannelError> {
        let path = address.path.as_str();
        // The paths that the vendor's SDK would append. Protocols of other vendors use the paths of
        // the vendor's compatible endpoints and of common servers.
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

    /// Writes the head of a request. Header values cannot contain line breaks and paths are built
    /// from checked parts, so nothing can be injected.
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

    /// Writes the head of a WebSocket handshake.
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

    /// Writes the credential's header line, for a fetch from the upstream's own origin.
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
        // The action follows the name of the model.
        if let Some(action) = action {
            write_segment(&call.upstream_model, head);
            head.extend_from_slice(action.as_bytes());
        }
        match call.item.as_deref() {
            // The name of an operation is itself a path.
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
            "has a host that is not a valid header value",
        )
    })?;
    write_line(&mut lines, "host", &host);
    lines.extend_from_slice(&credential_line(preset, credential)?);
    for (name, value) in [
        ("user-agent", USER_AGENT),
        ("accept", "application/json"),
        // We read the usage from every response and forward its bytes, so it must not be
        // compressed.
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

/// Writes one path segment. A slash in a model's name is escaped.
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
