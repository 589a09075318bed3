//! Writes request heads. The parts that all requests of a channel share are built once.

use std::fmt;
use std::io::Write as _;

use http::HeaderValue;
use protocol::Dialect;

use crate::address::Address;
use crate::credential::{Account, RequestAuth};
use crate::endpoint::Endpoint;
use crate::error::ChannelError;
use crate::header_line::{USER_AGENT, write_line};
use crate::preset::{AddressForm, Preset};
use crate::request::UpstreamRequest;
use crate::socket::{SocketEndpoint, SocketRequest};

/// The API version that Messages upstreams require. We choose it; the client's header is not
/// forwarded (`docs/api/authentication.md`).
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The client headers that are forwarded to upstreams.
const FORWARDED: [&str; 1] = ["anthropic-beta"];

/// The parts of request heads that are the same for all calls of a channel.
pub(crate) struct HeadTemplate {
    /// Complete header lines. They include the credential if it is the same in all requests.
    lines: Box<[u8]>,
    chat: Target,
    responses: Target,
    messages: Target,
    messages_stream: Target,
    response_count: Target,
    message_count: Target,
    converse: Target,
    converse_stream: Target,
    interactions: Target,
    embeddings: Target,
    image_generations: Target,
    image_edits: Target,
    speech: Target,
    voices: Target,
    transcript: Target,
    video_generations: Target,
    video_edits: Target,
    video_extensions: Target,
    videos: Target,
    realtime: Target,
    /// The path before the name of an operation.
    operations: Target,
    content_tasks: Target,
    /// The path of a model, to which a verb is appended.
    generate: Target,
    /// The list of models, with the largest page size that the vendor allows.
    models: Target,
    /// Whether requests for the list of models carry the version header of Messages.
    models_need_version: bool,
    /// Whether Messages requests carry their version in a header.
    messages_need_version: bool,
    /// The `anthropic-beta` values that are forwarded; `None` forwards all of them.
    betas: Option<&'static [String]>,
}

/// A path. If it contains the model's name, it is split there: `path` is the part before the name.
#[derive(Debug)]
struct Target {
    path: Box<str>,
    after_model: Option<Box<str>>,
}

impl Target {
    fn new(path: &str) -> Self {
        match path.split_once("{model}") {
            Some((before, after)) => Self {
                path: before.into(),
                after_model: Some(after.into()),
            },
            None => Self {
                path: path.into(),
                after_model: None,
            },
        }
    }

    fn write(&self, model: &str, head: &mut Vec<u8>) {
        head.extend_from_slice(self.path.as_bytes());
        if let Some(after) = &self.after_model {
            write_segment(model, head);
            head.extend_from_slice(after.as_bytes());
        }
    }
}

impl HeadTemplate {
    pub(crate) fn new(
        preset: Preset,
        account: &Account,
        address: &Address,
        credential_line: &[u8],
    ) -> Result<Self, ChannelError> {
        let path = address.path.as_str();
        // The paths that the vendor's SDK would append. For protocols of other vendors, the paths are those of the
        // vendor's compatible endpoints and of common servers.
        let (openai_like, root) = match preset.address_form() {
            AddressForm::Versioned => (path.to_owned(), address.root()),
            AddressForm::Bare => (format!("{path}/v1"), path),
            AddressForm::BareBeta => (format!("{path}/v1beta/openai"), path),
        };
        let paths = preset.paths();
        let named = |own: &Option<String>, usual: String| match own {
            Some(own) => preset.fill_path(own, account).map(|own| Target::new(&own)),
            None => Ok(Target::new(&usual)),
        };
        let openai = |tail: &str| Target::new(&format!("{openai_like}{tail}"));
        let named_openai =
            |own: &Option<String>, tail: &str| named(own, format!("{openai_like}{tail}"));
        let messages = match &paths.messages {
            Some(own) => preset.fill_path(own, account)?,
            None => format!("{root}/v1/messages"),
        };
        Ok(Self {
            lines: lines(address, credential_line)?,
            chat: named_openai(&paths.chat, "/chat/completions")?,
            responses: named_openai(&paths.responses, "/responses")?,
            messages: Target::new(&messages),
            message_count: named(&paths.message_count, format!("{messages}/count_tokens"))?,
            messages_stream: named(&paths.messages_stream, messages)?,
            response_count: openai("/responses/input_tokens"),
            converse: Target::new(&format!("{path}/model/{{model}}/converse")),
            converse_stream: Target::new(&format!("{path}/model/{{model}}/converse-stream")),
            interactions: Target::new(&format!("{root}/v1beta/interactions")),
            embeddings: named_openai(&paths.embeddings, "/embeddings")?,
            image_generations: named_openai(&paths.image_generations, "/images/generations")?,
            image_edits: named_openai(&paths.image_edits, "/images/edits")?,
            speech: openai("/tts"),
            voices: openai("/tts/voices"),
            transcript: openai("/stt"),
            video_generations: openai("/videos/generations"),
            video_edits: openai("/videos/edits"),
            video_extensions: openai("/videos/extensions"),
            videos: openai("/videos"),
            realtime: openai("/realtime"),
            operations: Target::new(&format!("{root}/v1beta")),
            content_tasks: openai("/contents/generations/tasks"),
            generate: named(&paths.generate, format!("{root}/v1beta/models/{{model}}"))?,
            models: Target::new(&match preset.address_form() {
                AddressForm::Versioned => format!("{path}/models"),
                AddressForm::Bare => format!("{path}/v1/models?limit=1000"),
                AddressForm::BareBeta => format!("{path}/v1beta/models?pageSize=1000"),
            }),
            models_need_version: preset.address_form() == AddressForm::Bare,
            messages_need_version: preset.hosted_messages().is_none(),
            betas: preset.betas(),
        })
    }

    /// Writes the head of a request. Header values cannot contain line breaks, and paths are built from checked parts,
    /// so a client cannot inject headers.
    pub(crate) fn write_head(
        &self,
        call: &UpstreamRequest,
        request_auth: &RequestAuth,
        head: &mut Vec<u8>,
    ) {
        let bodiless = call.endpoint.bodiless();
        head.extend_from_slice(bodiless.unwrap_or("POST").as_bytes());
        head.push(b' ');
        self.write_target(call, head);
        head.extend_from_slice(b" HTTP/1.1\r\n");
        head.extend_from_slice(&self.lines);
        if bodiless.is_some() {
            if call.endpoint == Endpoint::Models && self.models_need_version {
                write_version(head);
            }
        } else {
            write_line(head, "content-type", &call.content_type);
            self.write_forwarded(call, head);
            if let Some(traceparent) = &call.traceparent {
                write_line(head, "traceparent", traceparent);
            }
            if call.endpoint.is_native_messages() && self.messages_need_version {
                write_version(head);
            }
            head.extend_from_slice(b"content-length: ");
            head.extend_from_slice(itoa::Buffer::new().format(call.length()).as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        request_auth.write(head);
        head.extend_from_slice(b"\r\n");
    }

    /// Forwards those headers of the client that the upstream understands.
    fn write_forwarded(&self, call: &UpstreamRequest, head: &mut Vec<u8>) {
        for name in FORWARDED {
            for value in call.extra.get_all(name) {
                match self.betas {
                    None => write_line(head, name, value),
                    Some(known) => {
                        if let Some(value) = known_values(value, known) {
                            write_line(head, name, &value);
                        }
                    }
                }
            }
        }
    }

    pub(crate) fn write_handshake(
        &self,
        ask: SocketRequest<'_>,
        key: &str,
        request_auth: &RequestAuth,
        head: &mut Vec<u8>,
    ) {
        let target = match ask.endpoint {
            SocketEndpoint::Realtime => &self.realtime,
            SocketEndpoint::Speech => &self.speech,
            SocketEndpoint::Transcript => &self.transcript,
        };
        let mark = if ask.query.is_empty() { "" } else { "?" };
        // Writing into a Vec cannot fail.
        let _ = write!(head, "GET {}{mark}{} HTTP/1.1\r\n", target.path, ask.query);
        head.extend_from_slice(&self.lines);
        if let Some(traceparent) = ask.traceparent {
            write_line(head, "traceparent", traceparent);
        }
        request_auth.write(head);
        let _ = write!(
            head,
            "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: {key}\r\n\r\n"
        );
    }

    fn write_target(&self, call: &UpstreamRequest, head: &mut Vec<u8>) {
        let (target, verb) = match call.endpoint {
            Endpoint::Text { dialect, stream } => match dialect {
                Dialect::Chat => (&self.chat, ""),
                Dialect::Responses => (&self.responses, ""),
                Dialect::Messages if stream => (&self.messages_stream, ""),
                Dialect::Messages => (&self.messages, ""),
                Dialect::Interactions => (&self.interactions, ""),
                Dialect::Generate if stream => (&self.generate, ":streamGenerateContent?alt=sse"),
                Dialect::Generate => (&self.generate, ":generateContent"),
            },
            Endpoint::Converse { stream: false } => (&self.converse, ""),
            Endpoint::Converse { stream: true } => (&self.converse_stream, ""),
            Endpoint::TokenCount(Dialect::Messages) => (&self.message_count, ""),
            Endpoint::TokenCount(Dialect::Generate) => (&self.generate, ":countTokens"),
            Endpoint::TokenCount(_) => (&self.response_count, ""),
            Endpoint::Embeddings => (&self.embeddings, ""),
            Endpoint::EmbedContent { batch: true } => (&self.generate, ":batchEmbedContents"),
            Endpoint::EmbedContent { batch: false } | Endpoint::EmbedHostedContent => {
                (&self.generate, ":embedContent")
            }
            Endpoint::EmbedInstances => (&self.generate, ":predict"),
            Endpoint::ImageGenerations => (&self.image_generations, ""),
            Endpoint::ImageEdits => (&self.image_edits, ""),
            Endpoint::Speech => (&self.speech, ""),
            Endpoint::Transcript => (&self.transcript, ""),
            Endpoint::Voices => (&self.voices, ""),
            Endpoint::VideoGenerations => (&self.video_generations, ""),
            Endpoint::VideoEdits => (&self.video_edits, ""),
            Endpoint::VideoExtensions => (&self.video_extensions, ""),
            Endpoint::Video => (&self.videos, ""),
            Endpoint::PredictLongRunning => (&self.generate, ":predictLongRunning"),
            Endpoint::Operation => (&self.operations, ""),
            Endpoint::FetchOperation => (&self.generate, ":fetchPredictOperation"),
            Endpoint::ContentTasks | Endpoint::ContentTask | Endpoint::ContentTaskDeletion => {
                (&self.content_tasks, "")
            }
            Endpoint::Models => (&self.models, ""),
        };
        target.write(&call.upstream_model, head);
        head.extend_from_slice(verb.as_bytes());
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

fn lines(address: &Address, credential_line: &[u8]) -> Result<Box<[u8]>, ChannelError> {
    let mut lines = Vec::new();
    let host = HeaderValue::try_from(&address.authority).map_err(|_| {
        ChannelError::BaseUrl(
            address.authority.clone(),
            "has a host that is not a valid header value",
        )
    })?;
    write_line(&mut lines, "host", &host);
    lines.extend_from_slice(credential_line);
    for (name, value) in [
        ("user-agent", USER_AGENT),
        ("accept", "application/json"),
        // We read the usage in every response and forward the bytes unchanged, so the response must not be compressed.
        ("accept-encoding", "identity"),
    ] {
        write_line(&mut lines, name, &HeaderValue::from_static(value));
    }
    Ok(lines.into())
}

/// The values of a comma-separated header that are known; `None` if there are none.
fn known_values(value: &HeaderValue, known: &[String]) -> Option<HeaderValue> {
    let values = value.to_str().ok()?.split(',').map(str::trim);
    let kept: Vec<_> = values
        .filter(|it| known.iter().any(|name| name == it))
        .collect();
    if kept.is_empty() {
        return None;
    }
    HeaderValue::try_from(kept.join(",")).ok()
}

fn write_version(head: &mut Vec<u8>) {
    let version = HeaderValue::from_static(ANTHROPIC_VERSION);
    write_line(head, "anthropic-version", &version);
}

/// Writes one path segment. A slash in a model's name is escaped; `@` is not, because it is common in model names.
fn write_segment(text: &str, head: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            head.push(byte);
        } else {
            let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
            head.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

#[cfg(test)]
mod cloud_tests;
#[cfg(test)]
mod tests;
