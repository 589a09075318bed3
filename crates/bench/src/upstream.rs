//! The fixed upstream: serves constant chat completions at minimal cost.
//!
//! The path before `/v1` selects the behaviour, so that the base URL of a channel can choose it and proxies pass it on.
//! `/delay-50/v1/chat/completions` waits 50 ms. `pace-100` pauses 100 ms between the writes of a stream, `writes-102`
//! splits a stream into 102 writes, and `large` answers with a megabyte. The body determines whether the answer is
//! streamed. A WebSocket handshake opens a session (`upstream_session.rs`).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::answer::Answers;
use crate::upstream_session::UpstreamSession;
use crate::wire::{Head, ReadBuffer, target};

/// The number of writes of a stream, unless the path sets another. On a busy connection, a stream of
/// a hundred events usually arrives in about three reads.
const WRITES: usize = 3;
/// The number of bytes of a request body that are searched for `stream`. The rest is read and
/// discarded.
const OPENING_BYTES_MAX: usize = 8 * 1024;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

pub(crate) async fn serve(args: Args) -> io::Result<()> {
    let listener = TcpListener::bind(args.listen).await?;
    crate::process::announce(listener.local_addr()?, args.until_stdin_closes)?;
    let answers = Arc::new(Answers::new());
    loop {
        let (socket, _) = listener.accept().await?;
        let answers = Arc::clone(&answers);
        tokio::spawn(async move {
            // An error ends only this connection.
            let _ = converse(socket, &answers).await;
        });
    }
}

async fn converse(mut socket: TcpStream, answers: &Answers) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = ReadBuffer::new();
    let mut opening = Vec::with_capacity(OPENING_BYTES_MAX);
    while let Some(kind) = read_request(&mut socket, &mut buffer, &mut opening).await? {
        let options = match kind {
            RequestKind::Answer(options) => options,
            RequestKind::Session(session) => return session.hold(socket, buffer).await,
        };
        if !options.delay.is_zero() {
            sleep(options.delay).await;
        }
        if is_true(&opening, b"\"stream\":") {
            let usage = is_true(&opening, b"\"include_usage\":");
            let stream = if usage {
                &answers.stream_with_usage
            } else {
                &answers.stream
            };
            for (index, write) in stream.writes(options.writes).enumerate() {
                if index > 0 {
                    options.pause().await;
                }
                socket.write_all(write).await?;
            }
        } else {
            let answer = if options.large {
                &answers.large
            } else {
                &answers.plain
            };
            socket.write_all(answer).await?;
        }
    }
    Ok(())
}

enum RequestKind {
    Answer(AnswerOptions),
    Session(UpstreamSession),
}

/// Reads one request and keeps the beginning of its body in `opening`; `None` at the end of the
/// connection.
async fn read_request(
    socket: &mut TcpStream,
    buffer: &mut ReadBuffer,
    opening: &mut Vec<u8>,
) -> io::Result<Option<RequestKind>> {
    let mut head = loop {
        match Head::read(buffer.bytes())? {
            Some(head) => break head,
            None if buffer.fill(socket).await? == 0 => return Ok(None),
            None => {}
        }
    };
    let head_bytes = &buffer.bytes()[..head.length];
    let kind = match UpstreamSession::requested_by(head_bytes) {
        Some(session) => RequestKind::Session(session),
        None => RequestKind::Answer(AnswerOptions::of(head_bytes)),
    };
    buffer.consume(head.length);
    opening.clear();
    while !head.body.is_done() {
        if buffer.bytes().is_empty() && buffer.fill(socket).await? == 0 {
            return Ok(None);
        }
        let taken = head.body.take(buffer.bytes(), &mut |content| {
            let room = OPENING_BYTES_MAX - opening.len();
            opening.extend_from_slice(&content[..content.len().min(room)]);
        })?;
        buffer.consume(taken);
    }
    Ok(Some(kind))
}

/// How to answer, as selected by the path.
#[derive(Debug, PartialEq, Eq)]
struct AnswerOptions {
    delay: Duration,
    pace: Duration,
    writes: usize,
    large: bool,
}

impl AnswerOptions {
    fn of(head: &[u8]) -> Self {
        let mut options = Self {
            delay: Duration::ZERO,
            pace: Duration::ZERO,
            writes: WRITES,
            large: false,
        };
        for part in target(head).split(|&byte| byte == b'/').skip(1) {
            let part = std::str::from_utf8(part).unwrap_or_default();
            let (word, number) = part.split_once('-').unwrap_or((part, ""));
            let number: u32 = number.parse().unwrap_or(0);
            match word {
                "delay" => options.delay = Duration::from_millis(number.into()),
                "pace" => options.pace = Duration::from_millis(number.into()),
                "writes" => options.writes = number as usize,
                "large" => options.large = true,
                _ => break,
            }
        }
        options
    }

    async fn pause(&self) {
        if self.pace.is_zero() {
            // Let other tasks run between two writes, as on a busy server.
            tokio::task::yield_now().await;
        } else {
            sleep(self.pace).await;
        }
    }
}

fn is_true(opening: &[u8], name: &[u8]) -> bool {
    memmem::find(opening, name).is_some_and(|at| {
        opening[at + name.len()..]
            .trim_ascii_start()
            .starts_with(b"true")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_says_how_to_answer() {
        let plain = || AnswerOptions {
            delay: Duration::ZERO,
            pace: Duration::ZERO,
            writes: WRITES,
            large: false,
        };
        let ms = Duration::from_millis;
        for (target, options) in [
            ("/v1/chat/completions", plain()),
            (
                "/delay-50/v1/chat/completions",
                AnswerOptions {
                    delay: ms(50),
                    ..plain()
                },
            ),
            (
                "/pace-100/writes-102/v1/x",
                AnswerOptions {
                    pace: ms(100),
                    writes: 102,
                    ..plain()
                },
            ),
            (
                "/large/v1/delay-50",
                AnswerOptions {
                    large: true,
                    ..plain()
                },
            ),
        ] {
            let head = format!("POST {target} HTTP/1.1\r\n\r\n");
            assert_eq!(AnswerOptions::of(head.as_bytes()), options, "{target}");
        }
    }

    #[test]
    fn stream_is_read_with_and_without_spaces_and_not_from_its_options() {
        for (body, stream) in [
            (r#"{"stream":true}"#, true),
            (r#"{"stream": true}"#, true),
            (r#"{"stream":false}"#, false),
            (r#"{"stream_options":{"include_usage":true}}"#, false),
        ] {
            assert_eq!(is_true(body.as_bytes(), b"\"stream\":"), stream, "{body}");
        }
    }
}
