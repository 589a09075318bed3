//! Times reads of the admin API.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::filled_gateway::TOKEN;

#[derive(Clone)]
pub(super) struct AdminClient {
    http: Client<HttpConnector, Empty<Bytes>>,
    address: SocketAddr,
}

pub(super) struct Timed {
    pub(super) median_ms: f64,
    pub(super) max_ms: f64,
    /// The number of rows in the answer, or its size in bytes if it has no rows.
    pub(super) size: String,
}

impl AdminClient {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            http: Client::builder(TokioExecutor::new()).build_http(),
            address,
        }
    }

    /// Reads a path of the admin listener. Any status other than 200 is an error.
    pub(super) async fn bytes(&self, path: &str) -> io::Result<Bytes> {
        let request = Request::get(format!("http://{}{path}", self.address))
            .header("authorization", format!("Bearer {TOKEN}"))
            .body(Empty::new())
            .map_err(io::Error::other)?;
        let response = self.http.request(request).await.map_err(io::Error::other)?;
        let status = response.status();
        let body = response.into_body().collect().await;
        let body = body.map_err(io::Error::other)?.to_bytes();
        if status == StatusCode::OK {
            return Ok(body);
        }
        let said = String::from_utf8_lossy(&body).into_owned();
        Err(io::Error::other(format!("{path}: {status} {said}")))
    }

    pub(super) async fn json(&self, path: &str) -> io::Result<Value> {
        Ok(serde_json::from_slice(&self.bytes(path).await?)?)
    }

    pub(super) async fn time(&self, path: &str, times: usize) -> io::Result<Timed> {
        let mut taken = Vec::with_capacity(times);
        let mut body = Bytes::new();
        for _ in 0..times.max(1) {
            let began = Instant::now();
            body = self.bytes(path).await?;
            taken.push(milliseconds(began.elapsed()));
        }
        taken.sort_by(f64::total_cmp);
        let rows = serde_json::from_slice::<Value>(&body).ok();
        let rows = rows.and_then(|body| Some(body["data"].as_array()?.len()));
        Ok(Timed {
            median_ms: taken.get(taken.len() / 2).copied().unwrap_or(0.0),
            max_ms: taken.last().copied().unwrap_or(0.0),
            size: rows.map_or_else(|| format!("{} B", body.len()), |rows| rows.to_string()),
        })
    }
}

#[expect(clippy::float_arithmetic, reason = "for people")]
pub(super) fn milliseconds(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
