//! Accepts the three kinds of WebSocket sessions and runs them.

mod realtime;
mod session_socket;
mod synthesize;
mod transcribe;

use super::refusal::{invalid, short};
use crate::catalog;
use crate::fault::{Script, SubstituteReply, split_model};
use crate::openai;
use crate::percent;
use crate::protocol::IncomingCall;
use crate::reply::Reply;
use crate::true_usage::SessionUsage;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, StatusCode};
use std::collections::HashMap;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use session_socket::SessionSocket;

/// The kind of a session, which its path determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Realtime,
    Speech,
    Transcript,
}

impl Path {
    /// The kind of session that a request asks for; `None` if it does not ask for a session.
    pub(crate) fn of(path: &str, headers: &HeaderMap) -> Option<Self> {
        let wants = headers.get(UPGRADE)?.as_bytes();
        if !wants.eq_ignore_ascii_case(b"websocket") {
            return None;
        }
        match path {
            "/v1/realtime" => Some(Self::Realtime),
            "/v1/tts" => Some(Self::Speech),
            "/v1/stt" => Some(Self::Transcript),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    path: Path,
    /// The model's name without its script.
    pub(crate) name: String,
    pub(crate) faults: String,
    query: HashMap<String, String>,
    script: Script,
}

impl Session {
    /// Checks the credential, the query and the script. `queued` returns the queued faults of a model.
    pub(crate) fn read(
        path: Path,
        call: &IncomingCall<'_>,
        queued: impl FnOnce(&str) -> String,
    ) -> Result<Self, Reply> {
        openai::authorise(&call.parts.headers, call.settings)
            .map_err(|refusal| openai::failure(&refusal))?;
        let query: HashMap<String, String> = call
            .parts
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (percent::decoded(name), percent::decoded(value)))
            .collect();
        let model = match (path, query.get("model")) {
            (Path::Speech, None) => "sim-tts",
            (Path::Speech, Some(_)) => return Err(invalid("unknown parameter `model`")),
            (_, Some(model)) => model.as_str(),
            (_, None) => return Err(invalid("model is required")),
        };
        let (name, own) = split_model(model);
        if !catalog::exists(name) {
            let message = format!("The model {name} does not exist.");
            return Err(short(StatusCode::NOT_FOUND, "model_not_found", &message));
        }
        if path == Path::Speech && !query.contains_key("language") {
            return Err(invalid("language is required"));
        }
        let queued = queued(name);
        let mut script = Script::default();
        script
            .apply(own)
            .and_then(|()| script.apply(&queued))
            .map_err(|error| openai::failure(&openai::Refusal::bad_script(&error)))?;
        if let Some(SubstituteReply::Status(status)) = &script.substitute {
            return Err(openai::of_status(status, name));
        }
        Ok(Self {
            path,
            name: name.to_owned(),
            faults: queued,
            query: query.clone(),
            script,
        })
    }

    /// Runs the session until one side ends it, and returns its true usage.
    pub(crate) async fn run<S>(self, io: S) -> SessionUsage
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send,
    {
        let socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        let socket = SessionSocket::new(socket, self.script.stop);
        match self.path {
            Path::Realtime => realtime::run(socket, &self.name).await,
            Path::Speech => synthesize::run(socket, &self.query).await,
            Path::Transcript => transcribe::run(socket, &self.query).await,
        }
    }
}

pub(crate) fn switching(headers: &HeaderMap) -> HeaderMap {
    let key = headers.get("sec-websocket-key");
    let proof = derive_accept_key(key.map(HeaderValue::as_bytes).unwrap_or_default());
    let mut switching = HeaderMap::new();
    switching.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    switching.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(proof) = HeaderValue::try_from(proof) {
        switching.insert("sec-websocket-accept", proof);
    }
    switching
}
