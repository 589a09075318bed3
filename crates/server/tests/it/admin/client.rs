//! A client of the admin API.

use serde_json::Value;

use crate::harness::{Answer, Connection, GatewayBuilder, Request, TestGateway};

/// The admin token that [`with_token`] configures.
pub(crate) const TOKEN: &str = "a-long-admin-token-0123456789abcdef";

/// Configures the admin API to accept [`TOKEN`].
pub(crate) fn with_token(builder: GatewayBuilder) -> GatewayBuilder {
    builder
        .setting("admin", "token = { file = \"admin-token\" }")
        .file("admin-token", TOKEN)
}

/// A client that sends its requests with a token or without one.
#[derive(Debug, Clone)]
pub(crate) struct AdminClient<'s> {
    gateway: &'s TestGateway,
    token: Option<String>,
}

impl<'s> AdminClient<'s> {
    pub(crate) fn new(gateway: &'s TestGateway) -> Self {
        Self::with_token(gateway, TOKEN)
    }

    pub(crate) fn with_token(gateway: &'s TestGateway, token: &str) -> Self {
        Self {
            gateway,
            token: Some(token.to_owned()),
        }
    }

    pub(crate) fn without_token(gateway: &'s TestGateway) -> Self {
        Self {
            gateway,
            token: None,
        }
    }

    /// Sends a request to a path under `/admin/v1`.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let request = Request::new(method, &format!("/admin/v1{path}"));
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        self.send_as_is(request).await
    }

    /// Sends a request, with the token if there is one.
    pub(crate) async fn send_as_is(&self, request: Request) -> Answer {
        let request = match &self.token {
            Some(token) => request.bearer(token),
            None => request,
        };
        let mut connection = Connection::open(self.gateway.admin()).await;
        connection.send(&request).await;
        connection.answer().await
    }

    /// Sends a GET that must succeed, and returns its JSON.
    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send("GET", path, None).await.ok().json()
    }

    /// Sends a POST that must succeed with any 2xx status, and returns its JSON.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.send("POST", path, Some(body)).await;
        assert!(
            answer.status() < 300,
            "{}: {}",
            answer.status(),
            answer.text()
        );
        answer.json()
    }
}

/// Checks status, code and envelope of an error response, and returns its `param`.
#[track_caller]
pub(crate) fn assert_refused(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!(
        answer.status(),
        status,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let whole = answer.json();
    let members: Vec<_> = whole.as_object().unwrap().keys().collect();
    assert_eq!(members, ["error"], "{whole}");
    let error = &whole["error"];
    let mut members: Vec<_> = error.as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(
        members,
        ["code", "message", "param", "request_id"],
        "{error}"
    );
    assert_eq!(error["code"], code, "{error}");
    assert!(!error["message"].as_str().unwrap().is_empty());
    assert_eq!(error["request_id"].as_str(), answer.header("x-request-id"));
    assert!(answer.header("x-request-id").unwrap().starts_with("req_"));
    error["param"].clone()
}
