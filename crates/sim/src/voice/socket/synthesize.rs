//! Runs a session of streaming speech: receives text, sends tones.

use super::super::sound::{Codec, tone};
use super::super::speech::CHAR_MS;
use super::super::voices::pitch;
use super::session_socket::{PeerMessage, SessionOver, SessionSocket};
use crate::seal;
use crate::true_usage::SessionUsage;
use serde_json::json;
use std::collections::HashMap;
use tokio::io::{AsyncRead, AsyncWrite};

pub(super) async fn run<S>(
    mut socket: SessionSocket<S>,
    query: &HashMap<String, String>,
) -> SessionUsage
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let text = |name: &str| query.get(name).map(String::as_str);
    let voice = text("voice").unwrap_or("eve");
    let Some(pitch) = pitch(voice) else {
        let error = json!({"type": "error", "message": format!("no voice {voice}")});
        let _ = socket.send_event(error).await;
        socket.close().await;
        return socket.usage;
    };
    let codec = match text("codec") {
        Some("pcm") => Codec::Pcm,
        Some("wav") => Codec::Wav,
        Some("mulaw" | "ulaw") => Codec::Mulaw,
        Some("alaw") => Codec::Alaw,
        _ => Codec::Mp3 { bit_rate: 128_000 },
    };
    let rate = text("sample_rate").and_then(|it| it.parse().ok());
    let _ = speak(&mut socket, codec, rate.unwrap_or(24_000), pitch).await;
    socket.usage
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut SessionSocket<S>,
    codec: Codec,
    rate: u32,
    pitch: u32,
) -> Result<(), SessionOver> {
    loop {
        let PeerMessage::Event(event) = socket.next().await? else {
            continue;
        };
        match event["type"].as_str() {
            Some("text.delta") => {
                let delta = event["delta"].as_str().unwrap_or_default();
                let characters = u64::try_from(delta.chars().count()).unwrap_or_default();
                socket.usage.characters += characters;
                let sound = tone(codec, rate, pitch, characters * CHAR_MS);
                let delta = seal::encode(&sound);
                socket
                    .send_event(json!({"type": "audio.delta", "delta": delta}))
                    .await?;
            }
            Some("text.done") => {
                let trace = format!("trace-{}", socket.usage.characters);
                socket
                    .send_event(json!({"type": "audio.done", "trace_id": trace}))
                    .await?;
            }
            Some("text.clear") => socket.send_event(json!({"type": "audio.clear"})).await?,
            _ => {
                socket
                    .send_event(json!({"type": "error", "message": "unknown event"}))
                    .await?;
            }
        }
    }
}
