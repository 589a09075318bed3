//! Runs a session of streaming transcription: receives audio, sends text.

use super::session_socket::{PeerMessage, SessionOver, SessionSocket};
use crate::true_usage::SessionUsage;
use serde_json::{Value, json};
use std::collections::HashMap;
use tokio::io::{AsyncRead, AsyncWrite};

pub(super) async fn run<S>(
    mut socket: SessionSocket<S>,
    query: &HashMap<String, String>,
) -> SessionUsage
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let number = |name: &str, usual: usize| {
        let value = query.get(name).and_then(|it| it.parse().ok());
        value.unwrap_or(usual)
    };
    let sample_bytes = match query.get("encoding").map(String::as_str) {
        Some("mulaw" | "alaw") => 1,
        _ => 2,
    };
    // `channels` has an effect only with `multichannel`.
    let channels = match query.get("multichannel").map(String::as_str) {
        Some("true") => number("channels", 2),
        _ => 1,
    };
    let per_second = number("sample_rate", 16_000) * sample_bytes * channels;
    let _ = listen(&mut socket, per_second.max(1)).await;
    socket.usage
}

async fn listen<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut SessionSocket<S>,
    per_second: usize,
) -> Result<(), SessionOver> {
    socket
        .send_event(json!({"type": "transcript.created"}))
        .await?;
    let mut bytes = 0;
    loop {
        match socket.next().await? {
            PeerMessage::Audio(more) => {
                bytes += more;
                let heard_us = bytes * 1_000_000 / per_second;
                socket.usage.heard_us = u64::try_from(heard_us).unwrap_or_default();
            }
            PeerMessage::Event(event) if event["type"] == "audio.done" => {
                let hundredths = (bytes * 100).div_ceil(per_second);
                let duration = format!("{}.{:02}", hundredths / 100, hundredths % 100);
                let duration: Value = serde_json::from_str(&duration).unwrap_or_default();
                socket
                    .send_event(
                        json!({"type": "transcript.partial", "text": "It sounds like tones.",
                    "words": [], "is_final": true, "speech_final": true, "start": 0.0,
                    "duration": duration}),
                    )
                    .await?;
                socket
                    .send_event(json!({"type": "transcript.done", "text": "", "words": [],
                    "duration": duration}))
                    .await?;
                socket.close().await;
                return Err(SessionOver);
            }
            PeerMessage::Event(_) => {
                socket
                    .send_event(json!({"type": "error", "message": "unknown event"}))
                    .await?;
                socket.close().await;
                return Err(SessionOver);
            }
        }
    }
}
