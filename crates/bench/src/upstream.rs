//! The fixed upstream: chat completions that are always the same, at the least cost.
//!
//! How it answers is said in the path, before `/v1`, so that a channel's base URL can choose it
//! and whatever stands between forwards it unchanged: `/delay-50/v1/chat/completions` waits 50 ms,
//! `pace-100` rests between the writes of a stream, `writes-102` cuts a stream into that many
//! writes, `large` answers with a megabyte. Whether to stream stands in the body, as always. A
//! request that asks for a session gets one (`session.rs`).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::answer::Answers;
use crate::session::Session;
use crate::wire::{Head, Inbox, target};

/// A busy connection brings a stream of a hundred events in about three reads.
const WRITES: usize = 3;
/// How much of a request body is looked at for `stream`; the rest is read and forgotten.
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
    crate::part::announce(listener.local_addr()?, args.until_stdin_closes)?;
    let answers = Arc::new(Answers::new());
    loop {
        let (socket, _) = listener.accept().await?;
        let answers = Arc::clone(&answers);
        tokio::spawn(async move {
            // A peer that leaves or breaks the framing ends its own connection only.
            let _ = converse(socket, &answers).await;
        });
    }
}

async fn converse(mut socket: TcpStream, answers: &Answers) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut inbox = Inbox::new();
    let mut opening = Vec::with_capacity(OPENING_BYTES_MAX);
    while let Some(asked) = read_request(&mut socket, &mut inbox, &mut opening).await? {
        let manner = match asked {
            Asked::Answer(manner) => manner,
            Asked::Session(session) => return session.hold(socket, inbox).await,
        };
        if !manner.delay.is_zero() {
            sleep(manner.delay).await;
        }
        if is_true(&opening, b"\"stream\":") {
            let usage = is_true(&opening, b"\"include_usage\":");
            let stream = if usage {
                &answers.stream_with_usage
            } else {
                &answers.stream
            };
            for (index, write) in stream.writes(manner.writes).enumerate() {
                if index > 0 {
                    manner.rest().await;
                }
                socket.write_all(write).await?;
            }
        } else {
            let answer = if manner.large {
                &answers.large
            } else {
                &answers.plain
            };
            socket.write_all(answer).await?;
        }
    }
    Ok(())
}

/// What a request wants.
enum Asked {
    Answer(Manner),
    Session(Session),
}

/// Reads one request and keeps the beginning of its body in `opening`; `None` at the end.
async fn read_request(
    socket: &mut TcpStream,
    inbox: &mut Inbox,
    opening: &mut Vec<u8>,
) -> io::Result<Option<Asked>> {
    let mut head = loop {
        match Head::read(inbox.bytes())? {
            Some(head) => break head,
            None if inbox.fill(socket).await? == 0 => return Ok(None),
            None => {}
        }
    };
    let head_bytes = &inbox.bytes()[..head.length];
    let asked = match Session::asked_for(head_bytes) {
        Some(session) => Asked::Session(session),
        None => Asked::Answer(Manner::of(head_bytes)),
    };
    inbox.consume(head.length);
    opening.clear();
    while !head.body.is_done() {
        if inbox.bytes().is_empty() && inbox.fill(socket).await? == 0 {
            return Ok(None);
        }
        let taken = head.body.take(inbox.bytes(), &mut |content| {
            let room = OPENING_BYTES_MAX - opening.len();
            opening.extend_from_slice(&content[..content.len().min(room)]);
        })?;
        inbox.consume(taken);
    }
    Ok(Some(asked))
}

/// How to answer, as the path says.
#[derive(Debug, PartialEq, Eq)]
struct Manner {
    delay: Duration,
    pace: Duration,
    writes: usize,
    large: bool,
}

impl Manner {
    fn of(head: &[u8]) -> Self {
        let mut manner = Self {
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
                "delay" => manner.delay = Duration::from_millis(number.into()),
                "pace" => manner.pace = Duration::from_millis(number.into()),
                "writes" => manner.writes = number as usize,
                "large" => manner.large = true,
                _ => break,
            }
        }
        manner
    }

    async fn rest(&self) {
        if self.pace.is_zero() {
            // Others have their turn between two writes, as on a busy server.
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
        let plain = || Manner {
            delay: Duration::ZERO,
            pace: Duration::ZERO,
            writes: WRITES,
            large: false,
        };
        let ms = Duration::from_millis;
        for (target, manner) in [
            ("/v1/chat/completions", plain()),
            (
                "/delay-50/v1/chat/completions",
                Manner {
                    delay: ms(50),
                    ..plain()
                },
            ),
            (
                "/pace-100/writes-102/v1/x",
                Manner {
                    pace: ms(100),
                    writes: 102,
                    ..plain()
                },
            ),
            (
                "/large/v1/delay-50",
                Manner {
                    large: true,
                    ..plain()
                },
            ),
        ] {
            let head = format!("POST {target} HTTP/1.1\r\n\r\n");
            assert_eq!(Manner::of(head.as_bytes()), manner, "{target}");
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
