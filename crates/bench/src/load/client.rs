//! One keep-alive connection of the load generator.

use std::io::{self, IoSlice};
use std::net::SocketAddr;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::request::{Dialect, Request, Shape};
use crate::answer::{CONTENT_CHUNKS, STREAM_END};
use crate::wire::{Head, ReadBuffer};

/// Requests up to this size are sent in one write, with head and body copied together.
const ONE_WRITE_BYTES_MAX: usize = 16 * 1024;
const ERROR_BYTES_MAX: usize = 300;
/// The last bytes of every complete Messages stream.
const MESSAGES_STREAM_END: &[u8; STREAM_END.len()] = b"ssage_stop\"}\n\n";

pub(crate) struct Client {
    socket: TcpStream,
    buffer: ReadBuffer,
    outgoing: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self {
            socket,
            buffer: ReadBuffer::new(),
            outgoing: Vec::new(),
        })
    }

    /// Sends a request and reads the whole answer. `sink` receives the content.
    async fn call(
        &mut self,
        request: &Request,
        key: &str,
        mut sink: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        self.send(request, key).await?;
        let (ok, mut head) = self.read_head().await?;
        let mut error_of = Vec::new();
        while !head.body.is_done() {
            if self.buffer.bytes().is_empty() {
                self.fill().await?;
            }
            let taken = head.body.take(self.buffer.bytes(), &mut |content| {
                if ok {
                    sink(content);
                } else {
                    error_of.extend_from_slice(content);
                }
            })?;
            self.buffer.consume(taken);
        }
        if ok {
            return Ok(());
        }
        error_of.truncate(ERROR_BYTES_MAX);
        Err(io::Error::other(
            String::from_utf8_lossy(&error_of).into_owned(),
        ))
    }

    /// Sends a request and checks only the end of the answer, which is cheap.
    pub(crate) async fn call_and_check_end(
        &mut self,
        request: &Request,
        key: &str,
        shape: Shape,
    ) -> io::Result<()> {
        let mut tail = Tail::default();
        self.call(request, key, |content| tail.push(content))
            .await?;
        let complete = match (shape.is_stream(), request.language) {
            (true, Dialect::Chat) => tail.0 == *STREAM_END,
            (true, Dialect::Messages) => tail.0 == *MESSAGES_STREAM_END,
            (false, _) => tail.0.ends_with(b"}"),
        };
        if complete {
            Ok(())
        } else {
            Err(io::Error::other("an answer without its end"))
        }
    }

    pub(crate) async fn call_and_check_all(
        &mut self,
        request: &Request,
        key: &str,
        shape: Shape,
    ) -> io::Result<()> {
        let mut answer = Vec::new();
        self.call(request, key, |content| answer.extend_from_slice(content))
            .await?;
        match (shape.is_stream(), request.language) {
            (true, Dialect::Chat) => check_stream(&answer),
            (true, Dialect::Messages) => check_messages_stream(&answer),
            (false, Dialect::Chat) => check_answer(&answer),
            (false, Dialect::Messages) => check_message(&answer),
        }
    }

    /// Opens a stream and returns when its first content has arrived.
    pub(crate) async fn open_stream(&mut self, request: &Request, key: &str) -> io::Result<()> {
        self.send(request, key).await?;
        let (ok, _) = self.read_head().await?;
        if !ok {
            return Err(io::Error::other("a stream was refused"));
        }
        while self.buffer.bytes().is_empty() {
            self.fill().await?;
        }
        Ok(())
    }

    /// Reads and discards bytes until the server closes the connection.
    pub(crate) async fn read_on(&mut self) -> io::Result<()> {
        loop {
            let count = self.buffer.bytes().len();
            self.buffer.consume(count);
            self.fill().await?;
        }
    }

    async fn send(&mut self, request: &Request, key: &str) -> io::Result<()> {
        request.write_head(key, &mut self.outgoing);
        if request.body.len() <= ONE_WRITE_BYTES_MAX {
            self.outgoing.extend_from_slice(&request.body);
            self.socket.write_all(&self.outgoing).await
        } else {
            write_both(&mut self.socket, &self.outgoing, &request.body).await
        }
    }

    /// Reads a response head. Returns whether the status is 200, and the framing of the body.
    async fn read_head(&mut self) -> io::Result<(bool, Head)> {
        loop {
            if let Some(head) = Head::read(self.buffer.bytes())? {
                let ok = self.buffer.bytes().starts_with(b"HTTP/1.1 200");
                self.buffer.consume(head.length);
                return Ok((ok, head));
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.buffer.fill(&mut self.socket).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

async fn write_both(
    socket: &mut (impl AsyncWrite + Unpin),
    head: &[u8],
    body: &[u8],
) -> io::Result<()> {
    let mut written = 0;
    while written < head.len() {
        let slices = [IoSlice::new(&head[written..]), IoSlice::new(body)];
        written += match socket.write_vectored(&slices).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => count,
        };
    }
    socket.write_all(&body[written - head.len()..]).await
}

#[derive(Default)]
struct Tail([u8; STREAM_END.len()]);

impl Tail {
    fn push(&mut self, content: &[u8]) {
        if let Some(last) = content.last_chunk() {
            self.0 = *last;
        } else {
            self.0.rotate_left(content.len());
            let start = self.0.len() - content.len();
            self.0[start..].copy_from_slice(content);
        }
    }
}

fn check_answer(answer: &[u8]) -> io::Result<()> {
    let answer: serde_json::Value = serde_json::from_slice(answer)?;
    let whole = answer["choices"][0]["message"]["content"].is_string()
        && answer["usage"]["total_tokens"].is_u64();
    if whole {
        Ok(())
    } else {
        Err(io::Error::other("an answer without content or usage"))
    }
}

fn check_stream(answer: &[u8]) -> io::Result<()> {
    if !answer.ends_with(STREAM_END) {
        return Err(io::Error::other("a stream without its end"));
    }
    let text = str::from_utf8(answer).map_err(io::Error::other)?;
    let mut contents = 0;
    let mut usages = 0;
    for data in text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|&data| data != "[DONE]")
    {
        let chunk: serde_json::Value = serde_json::from_str(data)?;
        contents += usize::from(chunk["choices"][0]["delta"]["content"].is_string());
        usages += usize::from(chunk["usage"].is_object());
    }
    if (contents, usages) == (CONTENT_CHUNKS, 1) {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "a stream with {contents} contents and {usages} usages"
        )))
    }
}

fn check_message(answer: &[u8]) -> io::Result<()> {
    let answer: serde_json::Value = serde_json::from_slice(answer)?;
    let whole =
        answer["content"][0]["text"].is_string() && answer["usage"]["output_tokens"].is_u64();
    if whole {
        Ok(())
    } else {
        Err(io::Error::other("a message without content or usage"))
    }
}

fn check_messages_stream(answer: &[u8]) -> io::Result<()> {
    if !answer.ends_with(MESSAGES_STREAM_END) {
        return Err(io::Error::other("a stream without its end"));
    }
    let text = str::from_utf8(answer).map_err(io::Error::other)?;
    let mut contents = 0;
    let mut usages = 0;
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: serde_json::Value = serde_json::from_str(data)?;
        contents += usize::from(event["type"] == "content_block_delta");
        usages += usize::from(event["usage"]["output_tokens"] == 100);
    }
    if (contents, usages) == (CONTENT_CHUNKS, 1) {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "a stream with {contents} contents and {usages} usages"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_is_the_last_bytes_however_they_come() {
        let answer: Vec<u8> = (0..60).chain(*STREAM_END).collect();
        for step in 1..answer.len() {
            let mut tail = Tail::default();
            answer.chunks(step).for_each(|piece| tail.push(piece));
            assert_eq!(tail.0, *STREAM_END, "{step}");
        }
    }

    #[test]
    fn incomplete_answers_are_found_out() {
        for (answer, whole) in [
            (
                r#"{"choices":[{"message":{"content":"x"}}],"usage":{"total_tokens":1}}"#,
                true,
            ),
            (r#"{"choices":[{"message":{"content":"x"}}]}"#, false),
            (r#"{"choices":[],"usage":{"total_tokens":1}}"#, false),
            (r#"{"choices":"#, false),
        ] {
            assert_eq!(check_answer(answer.as_bytes()).is_ok(), whole, "{answer}");
        }
    }

    #[test]
    fn streams_are_counted() {
        let content = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
        let usage = "data: {\"choices\":[],\"usage\":{}}\n\n";
        let end = "data: [DONE]\n\n";
        for (contents, tail, whole) in [
            (CONTENT_CHUNKS, [usage, end].concat(), true),
            (CONTENT_CHUNKS - 1, [usage, end].concat(), false),
            (CONTENT_CHUNKS, end.to_owned(), false),
            (CONTENT_CHUNKS, usage.to_owned(), false),
        ] {
            let stream = content.repeat(contents) + &tail;
            assert_eq!(check_stream(stream.as_bytes()).is_ok(), whole);
        }
    }
}
