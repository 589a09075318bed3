//! Makes plain HTTP calls to a server on this machine, for the demo's sample and its customers.

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// The size limit of an answer, larger than any answer in the demo.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Sends a call with an optional JSON body and reads the JSON answer. A status other than 200 is an error.
pub(crate) async fn json(
    address: SocketAddr,
    method: Method,
    path: &str,
    key: &str,
    body: &str,
) -> Result<Value, Fault> {
    let (status, answer) = send(address, method, path, key, body).await?;
    if status != StatusCode::OK {
        let text = String::from_utf8_lossy(&answer);
        return Err(format!("{path} answered {status}: {text}").into());
    }
    Ok(serde_json::from_slice(&answer)?)
}

/// Sends a call with an optional JSON body and reads the answer to its end.
pub(crate) async fn send(
    address: SocketAddr,
    method: Method,
    path: &str,
    key: &str,
    body: &str,
) -> Result<(StatusCode, Bytes), Fault> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address.to_string())
        .header(header::AUTHORIZATION, format!("Bearer {key}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body.to_owned())))?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX)
        .collect()
        .await?
        .to_bytes();
    drop(sender);
    connection.await??;
    Ok((head.status, body))
}
