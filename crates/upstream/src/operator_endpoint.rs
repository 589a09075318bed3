//! Sends documents to an address that the operator has configured, such as a telemetry collector.

use std::fmt;
use std::io::Write as _;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use crate::address::Address;
use crate::error::{CallError, ChannelError, TimeoutStage};
use crate::header_line::{USER_AGENT, write_line};
use crate::response::Body;
use crate::wire::{Connection, Connector};

const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Sends documents by POST. The rules for calls to upstreams apply: deadlines, public root certificates, no redirects.
/// The address policy does not apply, because the operator has chosen the address. Each document uses its own
/// connection.
pub struct OperatorEndpoint {
    address: Address,
    connector: Connector,
}

/// The answer of the endpoint.
#[derive(Debug)]
pub struct PostAnswer {
    pub status: u16,
    /// How long the endpoint asks us to wait.
    pub retry_after: Option<Duration>,
    pub body: Bytes,
}

impl OperatorEndpoint {
    /// Creates an endpoint for this URL.
    pub fn new(url: &str) -> Result<Self, ChannelError> {
        let address = Address::parse(url)?;
        Ok(Self {
            connector: Connector::new(&address)?,
            address,
        })
    }

    /// Sends a document to a path below the URL. `headers` are sent unchanged.
    pub async fn post(
        &self,
        path: &str,
        content_type: &HeaderValue,
        headers: &HeaderMap,
        body: Bytes,
        within: Duration,
    ) -> Result<PostAnswer, CallError> {
        let deadline = Instant::now() + within;
        let stream = self.connector.connect(deadline).await?;
        let mut conn = Box::new(Connection::new(stream, deadline));
        let write = |head: &mut Vec<u8>| {
            // Writing into a Vec cannot fail.
            let _ = write!(
                head,
                "POST {}{path} HTTP/1.1\r\nhost: {}\r\nuser-agent: {USER_AGENT}\r\n\
                 accept: application/json\r\naccept-encoding: identity\r\nconnection: close\r\n",
                self.address.path, self.address.authority,
            );
            write_line(head, "content-type", content_type);
            for (name, value) in headers {
                write_line(head, name.as_str(), value);
            }
            let _ = write!(head, "content-length: {}\r\n\r\n", body.len());
        };
        conn.begin(write, std::slice::from_ref(&body), None);
        let head = conn.answer(deadline, TimeoutStage::FirstByte).await?;
        let answer = Body::new(conn, head.framing, within, deadline);
        Ok(PostAnswer {
            status: head.status,
            retry_after: head.retry_after.map(|it| it.wait(SystemTime::now)),
            body: answer.collect(ANSWER_BYTES_MAX).await?,
        })
    }
}

impl fmt::Debug for OperatorEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorEndpoint")
            .field("host", &self.address.authority)
            .finish_non_exhaustive()
    }
}
