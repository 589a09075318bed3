//! The page for callers at `/`, which needs no key.

use crate::harness::{Connection, GatewayBuilder, Request, TestGateway};

/// A GET with the `accept` header of a browser.
fn browser(target: &str) -> Request {
    Request::get(target).header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
}

/// The paths that a page loads, from its `href` and `src` attributes.
fn loaded(page: &str) -> Vec<String> {
    let attributes = page.split(['"', '\'']).skip(1).step_by(2);
    attributes
        .filter(|value| value.starts_with("/page/"))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn a_browser_gets_a_page_that_loads_nothing_from_elsewhere() {
    let gateway = TestGateway::start().await;
    let answer = gateway.send(&browser("/")).await.ok();
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert_eq!(answer.header("set-cookie"), None);
    let policy = answer.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    let page = answer.text();
    assert!(
        page.contains(&gateway.address().to_string()),
        "its own address is filled in"
    );
    assert!(!page.contains("{{"), "every place is filled in");
    assert!(
        !page.contains("style=\"") && !page.contains("<script>"),
        "nothing inline"
    );
    let files = loaded(page);
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let answer = gateway.send(&Request::get(&file)).await.ok();
        let cache = answer.header("cache-control").unwrap();
        assert!(cache.ends_with("immutable"), "{file}: {cache}");
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{file}"
        );
    }
    assert_eq!(gateway.upstream_calls(), 0);
}

#[tokio::test]
async fn programs_get_json_and_head_gets_no_content() {
    let gateway = TestGateway::start().await;
    for accept in ["*/*", "application/json"] {
        let answer = gateway
            .send(&Request::get("/").header("accept", accept))
            .await
            .ok();
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.json()["openapi"], "/openapi.json");
        assert!(answer.header("vary").unwrap().contains("accept"));
    }
    let shown = gateway.send(&browser("/")).await.ok();
    let mut connection = Connection::open(gateway.address()).await;
    let head = Request::new("HEAD", "/").header("accept", "text/html");
    connection.send(&head).await;
    let head = connection.head().await.unwrap();
    assert_eq!(head.status, 200);
    assert_eq!(head.header("etag"), shown.header("etag"));
    let length = shown.text().len().to_string();
    assert_eq!(head.header("content-length"), Some(&*length));
    // The answer to HEAD has no content: the next answer follows the head directly.
    connection.send(&browser("/")).await;
    assert_eq!(connection.answer().await.text(), shown.text());
}

#[tokio::test]
async fn a_browser_that_has_the_page_is_told_so() {
    let gateway = TestGateway::start().await;
    let first = gateway.send(&browser("/")).await.ok();
    let again = browser("/").header("if-none-match", first.header("etag").unwrap());
    let mut connection = Connection::open(gateway.address()).await;
    connection.send(&again).await;
    let head = connection.head().await.unwrap();
    assert_eq!((head.status, head.header("content-type")), (304, None));
    assert_eq!(head.header("etag"), first.header("etag"));
    connection.send(&browser("/")).await;
    assert_eq!(connection.answer().await.text(), first.text());
}

#[tokio::test]
async fn models_are_listed_to_strangers_only_where_the_operator_says_so() {
    let gateway = TestGateway::start().await;
    let page = gateway.send(&browser("/")).await.ok();
    assert!(!page.text().contains("maker/chat"));
    let gateway = GatewayBuilder::default()
        .setting("server", "page_models = true")
        .start()
        .await;
    let page = gateway.send(&browser("/")).await.ok();
    for shown in [
        "maker/chat",
        "1.25 ",
        "input / M tokens",
        "400K",
        "reads images",
    ] {
        assert!(page.text().contains(shown), "{shown}");
    }
}

#[tokio::test]
async fn a_page_that_is_switched_off_is_not_there() {
    let gateway = TestGateway::start().await;
    let files = loaded(gateway.send(&browser("/")).await.ok().text());
    let gateway = GatewayBuilder::default()
        .setting("server", "page = false")
        .start()
        .await;
    for target in ["/", &files[0]] {
        let answer = gateway.send(&browser(target)).await;
        assert_eq!(answer.failure(), (404, "not_found".to_owned()), "{target}");
    }
}

#[tokio::test]
async fn the_description_of_the_api_needs_neither_key_nor_page() {
    let gateway = GatewayBuilder::default()
        .setting("server", "page = false")
        .start()
        .await;
    let answer = gateway.send(&Request::get("/openapi.json")).await.ok();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let document = answer.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/v1/chat/completions"]["post"].is_object());
}

#[tokio::test]
async fn a_file_that_is_not_of_the_page_is_not_there() {
    let gateway = TestGateway::start().await;
    for target in [
        "/page/0123/page.js",
        "/page/",
        "/page/../Cargo.toml",
        "/page",
        "/favicon.ico",
    ] {
        let answer = gateway.send(&browser(target)).await;
        assert_eq!(answer.failure(), (404, "not_found".to_owned()), "{target}");
    }
}
