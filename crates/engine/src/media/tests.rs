//! Tests of copies with a real HTTP server and a real media folder.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use protocol::canon::base64::Encoder;
use protocol::video::{HostedMedium, MediaKind, Medium, Source};
use store::{Media, MediaId, MediaName, MediaPlace, MediaSettings, MediaType, Store};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use upstream::{AddressPolicy, Channel, ChannelSpec, Secret, Timeouts};

use super::copy_error::CopyError;
use crate::clock;
use crate::engine::Engine;
use crate::settings::Settings;

const KEY: &str = "upstream-key";

/// A server with a fixed answer for each path, which records the requests.
struct Origin {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    async fn start(answers: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Self {
        let answers: HashMap<_, _> = answers.into_iter().collect();
        let (answers, requests) = (Arc::new(answers), Arc::new(Mutex::new(Vec::new())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::clone(&requests);
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(socket.read_u8().await.unwrap());
                }
                let request = String::from_utf8(request).unwrap();
                let path = request.split(' ').nth(1).unwrap().to_owned();
                heard.lock().push(request);
                let missing = || answer("404 Not Found", b"nothing here");
                let answer = answers.get(&*path).cloned().unwrap_or_else(missing);
                let _ = socket.write_all(&answer).await;
            }
        });
        Self { address, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

struct Scene {
    engine: Engine,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self::with(&["127.0.0.0/8"], |_| {})
    }

    fn with(allow: &[&str], change: impl FnOnce(&mut Settings)) -> Self {
        let folder = TempDir::new().unwrap();
        let mut database = store::Settings::at(folder.path().join("tollgate.db"));
        database.disk_floor_bytes = 0;
        let (store, _) = Store::open(&database).unwrap();
        let media = Media::open(&MediaSettings {
            place: MediaPlace::Folder(folder.path().join("media")),
            disk_floor_bytes: 0,
            ..MediaSettings::default()
        });
        let mut settings = Settings {
            outbound: AddressPolicy {
                allow: allow.iter().map(|it| it.parse().unwrap()).collect(),
                ..AddressPolicy::default()
            },
            ..Settings::default()
        };
        change(&mut settings);
        Self {
            engine: Engine::new(store, media.unwrap(), settings),
            folder,
        }
    }

    async fn copy(&self, kind: MediaKind, source: Source) -> Result<HostedMedium, CopyError> {
        self.copy_from(kind, source, None).await
    }

    async fn copy_from(
        &self,
        kind: MediaKind,
        source: Source,
        home: Option<&Channel>,
    ) -> Result<HostedMedium, CopyError> {
        let medium = Medium {
            kind,
            source,
            is_optional: false,
        };
        let copied = self
            .engine
            .copy_medium(&medium, home, MediaId::random())
            .await;
        let on_their_way = std::fs::read_dir(self.folder.path().join("media/incoming"));
        assert_eq!(on_their_way.unwrap().count(), 0, "nothing stays on its way");
        copied
    }

    async fn is_kept(&self, hosted: &HostedMedium, kind: MediaType, bytes: usize) -> bool {
        let id = MediaId::parse(&hosted.id).unwrap();
        let head = self
            .engine
            .media()
            .head(MediaName { id, kind }, clock::now());
        let head = head.await.unwrap();
        head.is_some_and(|head| usize::try_from(head.bytes) == Ok(bytes))
    }

    fn kept_count(&self) -> usize {
        // This includes the folder for incoming files.
        std::fs::read_dir(self.folder.path().join("media"))
            .unwrap()
            .count()
            - 1
    }
}

fn channel(base: &Origin) -> Channel {
    let spec = ChannelSpec {
        name: "home".to_owned(),
        preset: "openai".parse().unwrap(),
        base_url: Some(base.url("/v1")),
        credential: Some(Secret::new(KEY)),
        account: upstream::Account::default(),
        protocols: None,
        private_network: false,
        keeps_output_limit: None,
        client_gone_drain: None,
        counts_tokens: None,
        sends_traceparent: false,
    };
    let time = std::time::Duration::from_secs(10);
    let times = Timeouts {
        connect: time,
        first_byte: time,
        idle: time,
        total: time,
    };
    Channel::new(spec, times).unwrap()
}

fn boxed(kind: &[u8], payload: &[u8]) -> Vec<u8> {
    let size = u32::try_from(payload.len() + 8).unwrap();
    [&size.to_be_bytes()[..], kind, payload].concat()
}

/// The headers of a film with this duration.
fn film(brand: &[u8], duration_ms: u32) -> Vec<u8> {
    let mut mvhd = vec![0; 100];
    mvhd[12..16].copy_from_slice(&1000_u32.to_be_bytes());
    mvhd[16..20].copy_from_slice(&duration_ms.to_be_bytes());
    let mut hdlr = vec![0; 25];
    hdlr[8..12].copy_from_slice(b"vide");
    let trak = boxed(b"trak", &boxed(b"mdia", &boxed(b"hdlr", &hdlr)));
    let moov = boxed(b"moov", &[boxed(b"mvhd", &mvhd), trak].concat());
    let ftyp = boxed(b"ftyp", &[brand, &[0; 4]].concat());
    [ftyp, moov, boxed(b"mdat", &vec![7; 300_000])].concat()
}

fn base64(bytes: &[u8]) -> Source {
    let mut encoder = Encoder::default();
    encoder.push(bytes);
    Source::Base64(Bytes::from(encoder.finish()))
}

#[tokio::test]
async fn films_are_kept_as_what_they_are() {
    let scene = Scene::new();
    let (mp4, mov) = (film(b"isom", 8042), film(b"qt  ", 3000));
    let origin = Origin::start([
        ("/mp4", answer("200 OK", &mp4)),
        ("/mov", answer("200 OK", &mov)),
    ])
    .await;
    for (wanted, source, kind, stored, seconds) in [
        (
            MediaKind::Mp4,
            Source::Url(origin.url("/mp4")),
            MediaKind::Mp4,
            MediaType::Mp4,
            8,
        ),
        (
            MediaKind::Mp4,
            base64(&mp4),
            MediaKind::Mp4,
            MediaType::Mp4,
            8,
        ),
        (
            MediaKind::Mov,
            Source::Url(origin.url("/mov")),
            MediaKind::Mov,
            MediaType::Mov,
            3,
        ),
        (
            MediaKind::Mov,
            base64(&mp4),
            MediaKind::Mp4,
            MediaType::Mp4,
            8,
        ),
    ] {
        let hosted = scene.copy(wanted, source).await.unwrap();
        assert_eq!((hosted.kind, hosted.seconds), (kind, Some(seconds)));
        assert!(scene.is_kept(&hosted, stored, mp4.len()).await);
    }
}

#[tokio::test]
async fn a_copy_made_again_takes_the_place_of_the_first() {
    let scene = Scene::new();
    let medium = Medium {
        kind: MediaKind::Mp4,
        source: base64(&film(b"isom", 1000)),
        is_optional: false,
    };
    let id = MediaId::random();
    for _ in 0..2 {
        scene.engine.copy_medium(&medium, None, id).await.unwrap();
    }
    assert_eq!(scene.kept_count(), 1);
}

#[tokio::test]
async fn what_is_not_what_it_should_be_is_unfit() {
    let scene = Scene::with(&["127.0.0.0/8"], |settings| {
        settings.media.video_bytes_max = 400_000;
    });
    let good = film(b"isom", 1000);
    let large = [good.clone(), boxed(b"mdat", &vec![0; 200_000])].concat();
    let endless = [
        &b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n7a120\r\n"[..],
        &vec![0; 500_000],
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let origin = Origin::start([
        (
            "/page",
            answer("200 OK", b"<!doctype html><title>Sorry</title>"),
        ),
        ("/empty", answer("200 OK", b"")),
        ("/cut", answer("200 OK", &good[..good.len() - 1])),
        ("/mov", answer("200 OK", &film(b"qt  ", 1000))),
        ("/large", answer("200 OK", &large)),
        ("/endless", endless),
        ("/film", answer("200 OK", &good)),
    ])
    .await;
    let url = |path| Source::Url(origin.url(path));
    for (name, kind, source) in [
        ("a page", MediaKind::Mp4, url("/page")),
        ("nothing, inline", MediaKind::Mp4, base64(b"")),
        ("half a film", MediaKind::Mp4, url("/cut")),
        ("another container", MediaKind::Mp4, url("/mov")),
        ("too large, as it says", MediaKind::Mp4, url("/large")),
        (
            "too large, as it turns out",
            MediaKind::Mp4,
            url("/endless"),
        ),
        ("too large, inline", MediaKind::Mp4, base64(&large)),
        ("a film for a picture", MediaKind::Png, url("/film")),
        (
            "no base64",
            MediaKind::Mp4,
            Source::Base64(Bytes::from_static(b"!!")),
        ),
        (
            "no address",
            MediaKind::Mp4,
            Source::Url("film.mp4".to_owned()),
        ),
    ] {
        let copied = scene.copy(kind, source).await;
        assert!(
            matches!(copied, Err(CopyError::Invalid(_))),
            "{name}: {copied:?}"
        );
    }
    // The file may not be there yet.
    let copied = scene.copy(MediaKind::Mp4, url("/empty")).await;
    assert!(matches!(copied, Err(CopyError::StaleUrl(_))), "{copied:?}");
    assert_eq!(scene.kept_count(), 0);
}

#[tokio::test]
async fn trouble_on_the_way_is_told_apart() {
    let scene = Scene::new();
    let broken = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf".to_vec();
    let origin = Origin::start([
        ("/busy", answer("503 Busy", b"")),
        ("/slow-down", answer("429 Slow down", b"")),
        ("/expired", answer("403 Forbidden", b"expired")),
        ("/broken", broken),
        ("/round", redirect("/round")),
    ])
    .await;
    for (path, word) in [
        ("/busy", "later"),
        ("/slow-down", "later"),
        ("/broken", "later"),
        ("/expired", "stale"),
        ("/missing", "stale"),
        ("/round", "stale"),
    ] {
        let copied = scene
            .copy(MediaKind::Mp4, Source::Url(origin.url(path)))
            .await;
        assert_eq!(copied.unwrap_err().label(), word, "{path}");
    }
    // The first request is followed by five redirects.
    let rounds = origin
        .requests()
        .iter()
        .filter(|it| it.contains("/round"))
        .count();
    assert_eq!(rounds, 6);
}

#[tokio::test]
async fn storage_that_is_gone_or_full_is_tried_again() {
    let scene = Scene::new();
    let film = film(b"isom", 1000);
    let media = scene.folder.path().join("media");
    let away = scene.folder.path().join("away");
    std::fs::rename(&media, &away).unwrap();
    let medium = Medium {
        kind: MediaKind::Mp4,
        source: base64(&film),
        is_optional: false,
    };
    let id = MediaId::random();
    let copied = scene.engine.copy_medium(&medium, None, id).await;
    assert!(matches!(copied, Err(CopyError::Retryable(_))), "{copied:?}");
    std::fs::rename(&away, &media).unwrap();
    let hosted = scene.engine.copy_medium(&medium, None, id).await.unwrap();
    assert!(scene.is_kept(&hosted, MediaType::Mp4, film.len()).await);
}

#[tokio::test]
async fn only_the_channels_own_origin_sees_its_key() {
    let scene = Scene::new();
    let film = film(b"isom", 1000);
    let elsewhere = Origin::start([("/film", answer("200 OK", &film))]).await;
    let home = Origin::start([
        ("/v1/files/film", answer("200 OK", &film)),
        ("/v1/files/away", redirect(&elsewhere.url("/film"))),
    ])
    .await;
    let channel = channel(&home);
    for path in ["/v1/files/film", "/v1/files/away"] {
        let source = Source::Url(home.url(path));
        scene
            .copy_from(MediaKind::Mp4, source, Some(&channel))
            .await
            .unwrap();
    }
    let source = Source::Url(elsewhere.url("/film"));
    scene
        .copy_from(MediaKind::Mp4, source, Some(&channel))
        .await
        .unwrap();
    assert!(home.requests().iter().all(|request| request.contains(KEY)));
    assert_eq!(elsewhere.requests().len(), 2);
    assert!(
        !elsewhere
            .requests()
            .iter()
            .any(|request| request.contains(KEY))
    );
}

#[tokio::test]
async fn the_address_policy_holds_but_for_the_channels_own_origin() {
    let scene = Scene::with(&[], |_| {});
    let film = film(b"isom", 1000);
    let elsewhere = Origin::start([("/film", answer("200 OK", &film))]).await;
    let home = Origin::start([
        ("/v1/film", answer("200 OK", &film)),
        ("/v1/away", redirect(&elsewhere.url("/film"))),
    ])
    .await;
    let channel = channel(&home);
    let source = Source::Url(home.url("/v1/film"));
    scene
        .copy_from(MediaKind::Mp4, source, Some(&channel))
        .await
        .unwrap();
    for url in [home.url("/v1/away"), elsewhere.url("/film")] {
        let source = Source::Url(url);
        let copied = scene
            .copy_from(MediaKind::Mp4, source, Some(&channel))
            .await;
        assert!(matches!(copied, Err(CopyError::Invalid(_))), "{copied:?}");
    }
    let copied = scene
        .copy(MediaKind::Mp4, Source::Url(home.url("/v1/film")))
        .await;
    assert!(matches!(copied, Err(CopyError::Invalid(_))), "{copied:?}");
    assert!(elsewhere.requests().is_empty());
    assert_eq!(home.requests().len(), 2);
}

#[tokio::test]
async fn a_node_that_leaves_gives_its_copies_up() {
    let scene = Scene::new();
    scene.engine.finish(Duration::from_secs(30)).await;
    let copied = scene
        .copy(MediaKind::Mp4, base64(&film(b"isom", 1000)))
        .await;
    assert!(matches!(copied, Err(CopyError::Retryable(_))), "{copied:?}");
}
