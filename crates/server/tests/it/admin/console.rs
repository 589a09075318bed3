//! The console's page and files, as a browser gets them from the admin listener.

use std::io::Read as _;

use flate2::read::GzDecoder;

use super::{AdminClient, TOKEN, assert_refused, with_token};
use crate::harness::{Answer, Connection, GatewayBuilder, Request, TestGateway, UPSTREAM_KEY};

async fn gateway() -> TestGateway {
    with_token(GatewayBuilder::default()).start().await
}

/// A request to the admin listener, without a token.
async fn send(gateway: &TestGateway, request: Request) -> Answer {
    AdminClient::without_token(gateway)
        .send_as_is(request)
        .await
}

async fn get(gateway: &TestGateway, path: &str) -> Answer {
    send(gateway, Request::get(path)).await
}

/// Checks that a request with a matching `ETag` gets 304 and no body: the next answer follows directly.
async fn assert_not_modified(gateway: &TestGateway, path: &str, tag: &str) {
    let mut connection = Connection::open(gateway.admin()).await;
    let request = Request::get(path).header("if-none-match", tag);
    connection.send(&request).await;
    assert_eq!(connection.head().await.unwrap().status, 304, "{path}");
    connection.send(&Request::get("/healthz")).await;
    assert_eq!(connection.answer().await.status(), 200, "{path}");
}

/// The versioned paths of the files that a page or module refers to.
fn files_of(page: &str) -> Vec<String> {
    let quoted = page.split(['"', '\'']);
    let files = quoted.filter(|it| it.starts_with("console/"));
    files.map(|file| format!("/{file}")).collect()
}

#[tokio::test]
async fn the_page_needs_no_token_and_loads_nothing_from_elsewhere() {
    let gateway = gateway().await;
    let page = get(&gateway, "/").await.ok();
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.header("set-cookie"), None);
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ] {
        assert!(
            policy.split("; ").any(|it| it == part),
            "{part} in {policy}"
        );
    }
    // The public listener serves the media of tasks.
    let media = format!("http://{}", gateway.address());
    assert!(policy.contains(&format!("media-src 'self' data: blob: {media};")));
    assert!(
        !policy.contains("unsafe") && !policy.contains('*'),
        "{policy}"
    );
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let text = page.text();
    assert!(!text.contains("<script>") && !text.contains("style=\""));
    assert!(
        !text.contains("http://") && !text.contains("https://"),
        "{text}"
    );
}

#[tokio::test]
async fn files_are_named_by_their_content_and_kept_for_ever() {
    let gateway = gateway().await;
    let page = get(&gateway, "/").await.ok();
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let files = files_of(page.text());
    assert!(files.len() > 5, "{files:?}");
    for file in &files {
        let answer = get(&gateway, file).await.ok();
        let cache = answer.header("cache-control").unwrap();
        assert_eq!(cache, "public, max-age=31536000, immutable", "{file}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let tag = answer.header("etag").unwrap();
        assert_not_modified(&gateway, file, tag).await;
    }
    let tag = page.header("etag").unwrap();
    assert_not_modified(&gateway, "/", tag).await;
    let changed = send(&gateway, Request::get("/").header("if-none-match", "\"x\"")).await;
    assert_eq!(changed.ok().body, page.body);
}

#[tokio::test]
async fn files_are_compressed_for_those_who_read_gzip() {
    let gateway = gateway().await;
    let page = get(&gateway, "/").await.ok();
    for file in files_of(page.text())
        .iter()
        .filter(|it| it.rsplit('.').next() == Some("js"))
    {
        let plain = get(&gateway, file).await.ok();
        assert_eq!(plain.header("content-encoding"), None);
        let request = Request::get(file).header("accept-encoding", "br, gzip");
        let answer = send(&gateway, request).await.ok();
        assert!(answer.header("vary").unwrap().contains("accept-encoding"));
        if answer.header("content-encoding").is_none() {
            // Compression does not make a file of a few bytes smaller.
            assert!(plain.body.len() < 200, "{file}");
            continue;
        }
        assert_eq!(answer.header("content-encoding"), Some("gzip"), "{file}");
        assert!(answer.body.len() < plain.body.len(), "{file}");
        let mut read = Vec::new();
        GzDecoder::new(&*answer.body)
            .read_to_end(&mut read)
            .unwrap();
        assert_eq!(read, plain.body, "{file}");
        let request = Request::get(file).header("accept-encoding", "gzip;q=0");
        let answer = send(&gateway, request).await.ok();
        assert_eq!(answer.header("content-encoding"), None, "{file}");
    }
}

#[tokio::test]
async fn head_has_the_headers_and_no_content() {
    let gateway = gateway().await;
    let page = get(&gateway, "/").await.ok();
    let file = files_of(page.text()).remove(0);
    for path in ["/", &file] {
        let shown = get(&gateway, path).await.ok();
        let mut connection = Connection::open(gateway.admin()).await;
        connection.send(&Request::new("HEAD", path)).await;
        let head = connection.head().await.unwrap();
        assert_eq!(head.status, 200);
        assert_eq!(head.header("etag"), shown.header("etag"));
        let length = shown.body.len().to_string();
        assert_eq!(head.header("content-length"), Some(&*length), "{path}");
        // The previous answer had no content, so the next one follows directly.
        connection.send(&Request::get("/healthz")).await;
        assert_eq!(connection.answer().await.status(), 200);
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_not_the_console_s() {
    let gateway = gateway().await;
    let page = get(&gateway, "/").await.ok();
    let file = files_of(page.text()).remove(0);
    let (folder, name) = file.rsplit_once('/').unwrap();
    let version = folder.trim_start_matches("/console/");
    for path in [
        "/index.html",
        "/console/",
        &format!("/console/0{version}/{name}"),
        &format!("/console/{name}"),
        &format!("{folder}/nothing.js"),
        &format!("{folder}/../{name}"),
        &format!("{folder}/%2e%2e/Cargo.toml"),
        "/favicon.ico",
    ] {
        // A request without a token does not learn what exists.
        assert_refused(&get(&gateway, path).await, 401, "invalid_admin_token");
        let answer = AdminClient::new(&gateway)
            .send_as_is(Request::get(path))
            .await;
        assert_refused(&answer, 404, "not_found");
    }
    for path in ["/", &file] {
        let answer = send(&gateway, Request::post(path).body("x")).await;
        assert_refused(&answer, 401, "invalid_admin_token");
    }
}

/// The page is the same on every gateway, so it must not contain the secrets of this gateway.
#[tokio::test]
async fn nothing_that_is_served_is_a_secret() {
    let gateway = gateway().await;
    let page = get(&gateway, "/").await.ok();
    let mut texts = vec![page.text().to_owned()];
    for file in files_of(page.text()) {
        texts.push(get(&gateway, &file).await.ok().text().to_owned());
    }
    for text in texts {
        for secret in [TOKEN, UPSTREAM_KEY] {
            assert!(!text.contains(secret), "{secret}");
        }
    }
}
