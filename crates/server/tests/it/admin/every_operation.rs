//! Rules that every operation of the admin API follows, checked for each operation in the API description.

use serde_json::{Value, json};

use super::{AdminClient, assert_refused, with_token};
use crate::harness::{Answer, GatewayBuilder, Request, TestGateway};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// A content length above the limit of every operation.
const TOO_LARGE: &str = "2000000";

/// An operation of the API description.
struct Operation {
    /// The template with a value for each parameter.
    path: String,
    template: String,
    method: &'static str,
    description: Value,
}

impl Operation {
    fn request(&self) -> Request {
        Request::new(&self.method.to_uppercase(), &self.path)
    }

    fn has_body(&self) -> bool {
        self.description["requestBody"].is_object()
    }

    fn has_parameter(&self, name: &str) -> bool {
        let parameters = self.description["parameters"].as_array();
        parameters.is_some_and(|all| {
            all.iter()
                .any(|it| it["name"] == *name && it["in"] == "query")
        })
    }

    /// Whether the body is passed to the public API unchanged.
    fn is_play(&self) -> bool {
        self.template.contains("/play/")
    }

    fn is_sign_in(&self) -> bool {
        self.template == "/admin/v1/session" && self.method == "post"
    }

    /// Checks the refusal of a wrong body or query. An operation may look up the resource in its path first and answer
    /// 404.
    #[track_caller]
    fn assert_refused_unless_missing(&self, answer: &Answer, status: u16, code: &str) {
        if self.template.contains('{') && answer.status() == 404 {
            return self.assert_refused(answer, 404, "not_found");
        }
        self.assert_refused(answer, status, code);
    }

    /// Checks that the answer is this refusal, and that the description lists its status.
    #[track_caller]
    fn assert_refused(&self, answer: &Answer, status: u16, code: &str) {
        let what = format!("{} {}", self.method, self.template);
        assert_eq!(
            answer.status(),
            status,
            "{what}: {}",
            String::from_utf8_lossy(&answer.body)
        );
        assert_refused(answer, status, code);
        let known = self.description["responses"].get(status.to_string());
        assert!(known.is_some(), "{what} does not tell of {status}");
    }
}

async fn operations(gateway: &TestGateway) -> Vec<Operation> {
    let description = gateway.admin_get("/openapi.json").await.ok().json();
    let mut operations = Vec::new();
    for (template, item) in description["paths"].as_object().unwrap() {
        let parts = template
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        for method in METHODS.into_iter().filter(|it| item[*it].is_object()) {
            operations.push(Operation {
                path: path.clone(),
                template: template.clone(),
                method,
                description: item[method].clone(),
            });
        }
    }
    assert!(operations.len() >= 6);
    operations
}

#[tokio::test]
async fn every_operation_needs_a_token() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    for operation in operations(&gateway).await {
        if operation.is_sign_in() {
            continue;
        }
        let answer = AdminClient::without_token(&gateway)
            .send_as_is(operation.request())
            .await;
        operation.assert_refused(&answer, 401, "invalid_admin_token");
    }
}

#[tokio::test]
async fn no_viewer_changes_anything() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let body = json!({"name": "eyes", "role": "viewer"});
    let made = AdminClient::new(&gateway).post("/tokens", &body).await;
    let viewer = AdminClient::with_token(&gateway, made["secret"].as_str().unwrap());
    for operation in operations(&gateway).await {
        if operation.method == "get" || operation.template == "/admin/v1/session" {
            continue;
        }
        let request = operation.request().json(&json!({}));
        let answer = viewer.send_as_is(request).await;
        operation.assert_refused(&answer, 403, "role_not_sufficient");
    }
}

#[tokio::test]
async fn no_operation_takes_a_body_that_is_not_one() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    for operation in operations(&gateway).await {
        if !operation.has_body() || operation.is_play() {
            continue;
        }
        let typed = || {
            operation
                .request()
                .header("content-type", "application/json")
        };
        for request in [
            typed().body("{\"a\":"),
            typed().body("\u{fffd}"),
            typed().body("[]"),
            typed().body("{\"no_such_member\":1}"),
            typed().body("{} {}"),
            operation
                .request()
                .header("content-type", "text/plain")
                .body("{}"),
            operation.request().body("{}"),
        ] {
            let answer = admin.send_as_is(request).await;
            operation.assert_refused_unless_missing(&answer, 400, "invalid_request");
        }
        let answer = admin
            .send_as_is(typed().header("content-length", TOO_LARGE))
            .await;
        operation.assert_refused_unless_missing(&answer, 413, "request_too_large");
    }
}

#[tokio::test]
async fn no_list_takes_a_query_that_is_not_one() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let admin = AdminClient::new(&gateway);
    for operation in operations(&gateway).await {
        let mut queries = Vec::new();
        if operation.has_parameter("limit") {
            queries.extend(["limit=0", "limit=501", "limit=x", "no_such_parameter=1"]);
        }
        if operation.has_parameter("cursor") {
            queries.extend(["cursor=!", "cursor=bnVsbA"]);
        }
        for query in queries {
            let target = format!("{}?{query}", operation.path);
            let request = Request::new(&operation.method.to_uppercase(), &target);
            let answer = admin.send_as_is(request).await;
            operation.assert_refused_unless_missing(&answer, 400, "invalid_request");
        }
    }
}

#[tokio::test]
async fn a_method_that_a_path_does_not_have_is_told_with_those_it_has() {
    let gateway = with_token(GatewayBuilder::default()).start().await;
    let operations = operations(&gateway).await;
    for operation in &operations {
        let of_path = || {
            operations
                .iter()
                .filter(|it| it.template == operation.template)
        };
        let has = |method| of_path().any(|it| it.method == method);
        let Some(missing) = METHODS.into_iter().find(|method| !has(*method)) else {
            continue;
        };
        let request = Request::new(&missing.to_uppercase(), &operation.path);
        let answer = AdminClient::new(&gateway).send_as_is(request).await;
        assert_refused(&answer, 405, "method_not_allowed");
        let allowed = answer.header("allow").unwrap();
        for known in of_path() {
            let method = known.method.to_uppercase();
            assert!(
                allowed.split(',').any(|it| it.trim() == method),
                "{allowed}: {method}"
            );
        }
    }
}
