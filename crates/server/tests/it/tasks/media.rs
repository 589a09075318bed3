//! Stored media as anyone sees them: served by their URL alone, whole and in ranges, until they expire.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::harness::{
    ACCESS_KEY, Answer, BUCKET, Connection, GatewayBuilder, Request, S3, SECRET_KEY, TestGateway,
    eventually,
};

const ID: &str = "0123456789abcdefghijklmnopqrstuv";

/// Consecutive numbers of four bytes each, so that no two long ranges are equal.
fn distinct_bytes() -> Vec<u8> {
    (0..50_000_u32).flat_map(u32::to_be_bytes).collect()
}

/// Puts a file into the media folder of a test gateway.
fn keep(gateway: &TestGateway, name: &str, bytes: &[u8]) -> PathBuf {
    let path = gateway.folder().join("tollgate-data/media").join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

async fn get(gateway: &TestGateway, target: &str, headers: &[(&str, &str)]) -> Answer {
    let request = Request::get(target);
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(name, value)
    });
    gateway.send(&request).await
}

#[tokio::test]
async fn media_are_served_without_a_key_under_fixed_types() {
    let gateway = TestGateway::start().await;
    for (ending, content_type) in [
        ("mp4", "video/mp4"),
        ("mov", "video/quicktime"),
        ("png", "image/png"),
    ] {
        let name = format!("{ID}.{ending}");
        keep(&gateway, &name, &distinct_bytes());
        let answer = get(&gateway, &format!("/media/{name}"), &[]).await.ok();
        assert_eq!(answer.body, distinct_bytes());
        let disposition = format!("inline; filename=\"{name}\"");
        for (header, expected) in [
            ("content-type", content_type),
            ("content-length", "200000"),
            ("accept-ranges", "bytes"),
            ("x-content-type-options", "nosniff"),
            ("content-disposition", &disposition),
        ] {
            assert_eq!(answer.header(header), Some(expected), "{header}");
        }
        let cached = answer.header("cache-control").unwrap();
        let seconds = cached.strip_prefix("private, max-age=").unwrap();
        assert!(seconds.parse::<u64>().unwrap() <= 24 * 3600, "{cached}");
        for header in ["etag", "last-modified", "expires", "x-request-id"] {
            assert!(answer.header(header).is_some(), "{header}");
        }
    }
}

#[tokio::test]
async fn clients_of_generate_content_find_their_file() {
    let gateway = TestGateway::start().await;
    keep(&gateway, &format!("{ID}.mp4"), &distinct_bytes());
    // The newest SDK uses `/v1`.
    for version in ["v1beta", "v1"] {
        let target = format!("/{version}/files/{ID}:download?alt=media");
        let answer = get(&gateway, &target, &[]).await.ok();
        assert_eq!(answer.body, distinct_bytes());
        assert_eq!(answer.header("content-type"), Some("video/mp4"));
        let disposition = format!("attachment; filename=\"{ID}.mp4\"");
        assert_eq!(answer.header("content-disposition"), Some(&*disposition));
        // The SDK sends its key along, which must not cause a refusal.
        let answer = get(&gateway, &target, &[("x-goog-api-key", "whatever")]).await;
        assert_eq!(answer.ok().body, distinct_bytes());
    }
}

#[tokio::test]
async fn one_range_is_served() {
    let gateway = TestGateway::start().await;
    keep(&gateway, &format!("{ID}.mp4"), &distinct_bytes());
    let target = format!("/media/{ID}.mp4");
    for (range, span) in [
        ("bytes=0-0", 0..1),
        ("bytes=100-99999", 100..100_000),
        ("bytes=199990-", 199_990..200_000),
        ("bytes=-10", 199_990..200_000),
        ("bytes=65000-67000", 65_000..67_001),
    ] {
        let answer = get(&gateway, &target, &[("range", range)]).await;
        assert_eq!(answer.status(), 206, "{range}");
        let expected = format!("bytes {}-{}/200000", span.start, span.end - 1);
        assert_eq!(answer.header("content-range"), Some(&*expected), "{range}");
        let length = span.len().to_string();
        assert_eq!(answer.header("content-length"), Some(&*length), "{range}");
        assert!(answer.body == distinct_bytes()[span], "{range}");
    }
    for range in ["bytes=0-1,5-6", "items=0-1", "bytes=9-2"] {
        let answer = get(&gateway, &target, &[("range", range)]).await.ok();
        assert!(answer.body == distinct_bytes(), "{range}");
    }
    let answer = get(&gateway, &target, &[("range", "bytes=200000-")]).await;
    assert_eq!(answer.status(), 416);
    assert_eq!(answer.header("content-range"), Some("bytes */200000"));
    assert_eq!(answer.json()["error"]["code"], "invalid_request");
}

#[tokio::test]
async fn conditions_are_judged_by_the_mark() {
    let gateway = TestGateway::start().await;
    let name = format!("{ID}.mp4");
    keep(&gateway, &name, &distinct_bytes());
    let target = format!("/media/{name}");
    let etag = get(&gateway, &target, &[]).await.ok();
    let etag = etag.header("etag").unwrap().to_owned();

    let range = ("range", "bytes=0-9");
    let answer = get(&gateway, &target, &[range, ("if-range", &etag)]).await;
    assert_eq!((answer.status(), answer.body.len()), (206, 10));
    let answer = get(&gateway, &target, &[range, ("if-range", "\"other\"")]).await;
    assert_eq!((answer.status(), answer.body.len()), (200, 200_000));

    let mut connection = Connection::open(gateway.address()).await;
    let request = Request::get(&target).header("if-none-match", &etag);
    connection.send(&request).await;
    let head = connection.head().await.unwrap();
    assert_eq!((head.status, head.header("etag")), (304, Some(&*etag)));

    // Another file under the same name has another ETag.
    keep(&gateway, &name, b"another film");
    let answer = get(&gateway, &target, &[range, ("if-range", &etag)]).await;
    assert_eq!(
        (answer.status(), &*answer.body),
        (200, &b"another film"[..])
    );
    let answer = get(&gateway, &target, &[("if-none-match", &etag)]).await;
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn a_head_tells_what_a_get_would() {
    let gateway = TestGateway::start().await;
    keep(&gateway, &format!("{ID}.mp4"), &distinct_bytes());
    let target = format!("/media/{ID}.mp4");
    let got = get(&gateway, &target, &[]).await.ok();
    let mut connection = Connection::open(gateway.address()).await;
    connection.send(&Request::new("HEAD", &target)).await;
    let head = connection.head().await.unwrap();
    assert_eq!(head.status, 200);
    for header in [
        "content-length",
        "content-type",
        "etag",
        "accept-ranges",
        "last-modified",
    ] {
        assert_eq!(head.header(header), got.header(header), "{header}");
    }
    // The previous answer had no body, so the next one begins with its head.
    connection
        .send(&Request::get(&target).header("range", "bytes=0-3"))
        .await;
    let answer = connection.answer().await;
    assert_eq!(
        (answer.status(), &*answer.body),
        (206, &distinct_bytes()[..4])
    );
}

#[tokio::test]
async fn what_is_missing_expired_or_misspelt_is_the_same_404() {
    let gateway = TestGateway::start().await;
    let expired = "expired0expired0expired0expired0";
    let path = keep(&gateway, &format!("{expired}.mp4"), &distinct_bytes());
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(24 * 3600 + 1);
    file.set_modified(long_ago).unwrap();
    std::fs::write(
        gateway.folder().join("tollgate-data/media/notes.txt"),
        "ours",
    )
    .unwrap();
    let mut bodies = Vec::new();
    for target in [
        format!("/media/{ID}.mp4"),
        format!("/media/{expired}.mp4"),
        format!("/media/{expired}.exe"),
        "/media/notes.txt".to_owned(),
        "/media/".to_owned(),
        "/media/incoming/x.part".to_owned(),
        "/media/../tollgate.toml".to_owned(),
        "/media/%2e%2e%2ftollgate.toml".to_owned(),
    ] {
        let answer = get(&gateway, &target, &[]).await;
        assert_eq!(answer.status(), 404, "{target}");
        assert_eq!(answer.json()["error"]["code"], "not_found", "{target}");
        bodies.push(answer.body);
        let mut connection = Connection::open(gateway.address()).await;
        connection.send(&Request::new("HEAD", &target)).await;
        assert_eq!(connection.head().await.unwrap().status, 404, "{target}");
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
    for id in [ID, expired, "files"] {
        for version in ["v1beta", "v1"] {
            let target = format!("/{version}/files/{id}:download?alt=media");
            let answer = get(&gateway, &target, &[]).await;
            assert_eq!(answer.status(), 404, "{target}");
            assert_eq!(answer.json()["error"]["status"], "NOT_FOUND", "{target}");
        }
    }
}

#[tokio::test]
async fn a_storage_that_is_away_is_no_missing_file() {
    let gateway = TestGateway::start().await;
    keep(&gateway, &format!("{ID}.mp4"), &distinct_bytes());
    let media = gateway.folder().join("tollgate-data/media");
    let away = gateway.folder().join("away");
    std::fs::rename(&media, &away).unwrap();
    let target = format!("/media/{ID}.mp4");
    let answer = get(&gateway, &target, &[]).await;
    assert_eq!(answer.status(), 503);
    assert!(answer.header("retry-after").is_some());
    std::fs::rename(&away, &media).unwrap();
    assert_eq!(
        get(&gateway, &target, &[]).await.ok().body,
        distinct_bytes()
    );
}

#[tokio::test]
async fn a_start_sweeps_what_has_expired_and_counts_what_is_there() {
    let mut gateway = TestGateway::start().await;
    let kept = keep(&gateway, &format!("{ID}.mp4"), &distinct_bytes());
    let expired = keep(
        &gateway,
        "expired0expired0expired0expired0.mp4",
        &distinct_bytes(),
    );
    let file = std::fs::File::options().write(true).open(&expired).unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(24 * 3600 + 1);
    file.set_modified(long_ago).unwrap();
    gateway.restart().await;
    eventually("the sweep", async || (!expired.exists()).then_some(())).await;
    assert!(kept.exists());
    let is_counted = async || {
        let metrics = gateway.admin_get("/metrics").await.ok();
        let text = metrics.text();
        let has_line = |line: &str| text.lines().any(|other| other == line);
        let all = has_line("tollgate_media_swept_total 1")
            && has_line("tollgate_media_kept 1")
            && has_line("tollgate_media_kept_bytes 200000");
        all.then_some(())
    };
    eventually("the count", is_counted).await;
    get(&gateway, &format!("/media/{ID}.mp4"), &[]).await.ok();
    let metrics = gateway.admin_get("/metrics").await.ok();
    assert!(
        metrics
            .text()
            .contains("tollgate_media_served_bytes_total 200000\n")
    );
}

/// A gateway that stores its media in a bucket.
fn in_bucket(address: SocketAddr) -> GatewayBuilder {
    GatewayBuilder::default()
        .setting("media", &format!("url = \"s3://{BUCKET}/videos\""))
        .setting("media", &format!("endpoint = \"http://{address}\""))
        .setting("media", "access_key_id = { file = \"s3-id\" }")
        .setting("media", "secret_access_key = { file = \"s3-secret\" }")
        .file("s3-id", ACCESS_KEY)
        .file("s3-secret", SECRET_KEY)
}

#[tokio::test]
async fn media_in_a_bucket_are_served_alike() {
    let s3 = S3::start().await;
    let gateway = in_bucket(s3.address).start().await;
    let folder = s3.bucket().join("videos");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(format!("{ID}.mp4")), distinct_bytes()).unwrap();
    let target = format!("/media/{ID}.mp4");
    let answer = get(&gateway, &target, &[]).await.ok();
    assert!(answer.body == distinct_bytes());
    assert_eq!(answer.header("content-type"), Some("video/mp4"));
    assert!(answer.header("etag").is_some());
    let answer = get(&gateway, &target, &[("range", "bytes=7-70000")]).await;
    assert_eq!(answer.status(), 206);
    assert!(answer.body == distinct_bytes()[7..=70_000]);
    let answer = get(&gateway, &format!("/media/{ID}.png"), &[]).await;
    assert_eq!(answer.status(), 404);
    s3.stop().await;
    let answer = get(&gateway, &target, &[]).await;
    assert_eq!(answer.status(), 503);
    assert!(!answer.text().contains("127.0.0.1"), "{}", answer.text());
}

#[tokio::test]
async fn readers_beyond_the_bound_are_refused_until_one_has_gone() {
    let gateway = GatewayBuilder::default()
        .setting("limits", "media_reads = 1")
        .start()
        .await;
    let target = format!("/media/{ID}.mp4");
    // More than the socket buffers hold, so the answer cannot end before it is read.
    keep(&gateway, &format!("{ID}.mp4"), &vec![7; 64 << 20]);
    let mut reader = Connection::open(gateway.address()).await;
    reader.send(&Request::get(&target)).await;
    assert_eq!(reader.head().await.unwrap().status, 200);
    for request in [
        Request::get(&target),
        Request::get(&target).header("range", "bytes=0-3"),
    ] {
        let refused = gateway.send(&request).await;
        assert_eq!(refused.failure(), (503, "service_unavailable".to_owned()));
        assert!(refused.header("retry-after").is_some());
    }
    // A request with an invalid name does not count as a media read, so it is still answered with 404.
    assert_eq!(get(&gateway, "/media/none", &[]).await.status(), 404);
    drop(reader);
    let is_served = async || {
        let answer = get(&gateway, &target, &[("range", "bytes=0-3")]).await;
        (answer.status() == 206).then_some(())
    };
    eventually("the place is given back", is_served).await;
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_cut_off() {
    let gateway = GatewayBuilder::default()
        .setting("timeouts", "media_read_ms = 1")
        .start()
        .await;
    keep(&gateway, &format!("{ID}.mp4"), &vec![7; 64 << 20]);
    let mut reader = Connection::open(gateway.address()).await;
    let request = Request::get(&format!("/media/{ID}.mp4"));
    reader.send(&request).await;
    assert!(reader.rest().await.len() < 64 << 20);
}

async fn storage_becomes(gateway: &TestGateway, word: &str) {
    let is_reported = async || {
        let ready = gateway.admin_get("/readyz").await.ok().json();
        (ready["storage"] == word).then_some(())
    };
    eventually("the storage's state", is_reported).await;
}

/// Calls that need no storage are served, so the node is ready. `/readyz` reports that the bucket cannot be reached.
#[tokio::test]
async fn readiness_tells_of_a_bucket_that_cannot_be_reached() {
    let s3 = S3::start().await;
    let address = s3.address;
    s3.stop().await;
    let gateway = in_bucket(address).start().await;
    storage_becomes(&gateway, "failing").await;
    let metrics = gateway.admin_get("/metrics").await.ok();
    assert!(metrics.text().contains("tollgate_media_storage_up 0\n"));

    let healthy = TestGateway::start().await;
    storage_becomes(&healthy, "ok").await;
}
