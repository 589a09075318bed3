//! Connections within this process, to an upstream that needs no socket.

use std::io;

use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;

/// The maximum number of connections that wait to be accepted.
const BACKLOG: usize = 128;
/// The maximum number of bytes that wait in each direction of a connection.
const BUFFER_BYTES: usize = 64 << 10;

/// Accepts the connections of a channel that was created by
/// [`Channel::in_memory`](crate::Channel::in_memory). When the listener is dropped, connections are
/// refused.
#[derive(Debug)]
pub struct MemoryListener(mpsc::Receiver<DuplexStream>);

impl MemoryListener {
    /// The upstream's end of the next connection; `None` when the channel is gone.
    pub async fn accept(&mut self) -> Option<DuplexStream> {
        self.0.recv().await
    }
}

/// Opens connections to a [`MemoryListener`].
#[derive(Clone, Debug)]
pub(crate) struct MemoryDialer(mpsc::Sender<DuplexStream>);

impl MemoryDialer {
    pub(crate) fn new() -> (Self, MemoryListener) {
        let (dialer, listener) = mpsc::channel(BACKLOG);
        (Self(dialer), MemoryListener(listener))
    }

    pub(crate) async fn connect(&self) -> io::Result<DuplexStream> {
        let (near, far) = duplex(BUFFER_BYTES);
        let sent = self.0.send(far).await;
        sent.map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        Ok(near)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use protocol::Dialect;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use crate::{
        CallErrorKind, Channel, ChannelSpec, Endpoint, Sent, TimeoutStage, Timeouts,
        UpstreamRequest,
    };

    fn spec() -> ChannelSpec {
        ChannelSpec {
            name: "beside".to_owned(),
            preset: "sim".parse().unwrap(),
            base_url: Some("http://beside/v1".to_owned()),
            credential: None,
            account: crate::Account::default(),
            protocols: None,
            private_network: false,
            keeps_output_limit: None,
            client_gone_drain: None,
            counts_tokens: None,
            sends_traceparent: false,
        }
    }

    fn request() -> UpstreamRequest {
        let dialect = Dialect::Chat;
        let stream = false;
        let body = vec![Bytes::from_static(b"{}")];
        UpstreamRequest::json(Endpoint::Text { dialect, stream }, "any", body)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_answered_without_a_socket() {
        let (channel, mut listener) = Channel::in_memory(spec(), Timeouts::default()).unwrap();
        let upstream = async {
            let mut conn = listener.accept().await.unwrap();
            let mut head = [0; 4];
            conn.read_exact(&mut head).await.unwrap();
            assert_eq!(&head, b"POST");
            tokio::time::sleep(Duration::from_secs(60)).await;
            conn.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                .await
                .unwrap();
        };
        let (answer, ()) = tokio::join!(
            async {
                channel
                    .send(&request())
                    .await
                    .unwrap()
                    .body
                    .collect(9)
                    .await
            },
            upstream
        );
        assert_eq!(answer.unwrap(), "ok");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_sent_where_nobody_listens_or_accepts() {
        let (channel, listener) = Channel::in_memory(spec(), Timeouts::default()).unwrap();
        drop(listener);
        let error = channel.send(&request()).await.unwrap_err();
        assert_eq!((error.sent, error.kind), (Sent::No, CallErrorKind::Connect));

        let (channel, listener) = Channel::in_memory(spec(), Timeouts::default()).unwrap();
        let error = channel.send(&request()).await.unwrap_err();
        let late = CallErrorKind::Timeout(TimeoutStage::FirstByte);
        assert_eq!((error.sent, error.kind), (Sent::Maybe, late));
        drop(listener);
    }
}
