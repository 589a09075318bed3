//! HTTPS on both listeners: HTTP versions, renewed certificates, client certificates, and invalid files.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::harness::{Connection, GatewayBuilder, Key, Request, TestGateway, eventually, within};

const AUTHORITY: &str = include_str!("tls_files/authority.pem");
const FIRST: [&str; 2] = [
    include_str!("tls_files/first.pem"),
    include_str!("tls_files/first-key.pem"),
];
const SECOND: [&str; 2] = [
    include_str!("tls_files/second.pem"),
    include_str!("tls_files/second-key.pem"),
];
const CLIENT: [&str; 2] = [
    include_str!("tls_files/client.pem"),
    include_str!("tls_files/client-key.pem"),
];

const FILES: &str = r#"tls = { cert_file = "cert.pem", key_file = "key.pem" }"#;

fn with_files([certificate, key]: [&str; 2]) -> GatewayBuilder {
    GatewayBuilder::default()
        .file("cert.pem", certificate)
        .file("key.pem", key)
        .file("authority.pem", AUTHORITY)
}

/// A client that trusts our test authority and offers these HTTP versions.
fn client(versions: &[&[u8]], certificate: Option<[&str; 2]>) -> TlsConnector {
    let authority = CertificateDer::from_pem_slice(AUTHORITY.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        Some([certificate, key]) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder
                .with_client_auth_cert(vec![certificate], key)
                .unwrap()
        }
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = versions.iter().map(|version| version.to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

async fn connect(
    client: &TlsConnector,
    address: SocketAddr,
    name: &'static str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(address).await?;
    let name = ServerName::try_from(name).unwrap();
    within("a handshake", client.connect(name, socket)).await
}

fn chat(key: &Key) -> http::Request<Full<Bytes>> {
    let body =
        json!({ "model": "maker/chat", "messages": [{ "role": "user", "content": "hello" }] });
    http::Request::post("https://first.test/v1/chat/completions")
        .header("host", "first.test")
        .header("authorization", format!("Bearer {}", key.secret))
        .body(Full::from(body.to_string()))
        .unwrap()
}

/// Sends a request with the HTTP version that the handshake has chosen.
async fn send(socket: TlsStream<TcpStream>, request: http::Request<Full<Bytes>>) -> (u16, Value) {
    let is_http2 = socket.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(socket);
    let answer = if is_http2 {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        within("an answer", sender.send_request(request)).await
    } else {
        let (mut sender, connection) = http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        within("an answer", sender.send_request(request)).await
    };
    let answer = answer.unwrap();
    let status = answer.status().as_u16();
    let body = within("a body", answer.into_body().collect())
        .await
        .unwrap();
    (
        status,
        serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
    )
}

#[tokio::test]
async fn calls_are_served_and_billed_over_tls_with_either_version_of_http() {
    let (gateway, key) = with_files(FIRST).setting("server", FILES).funded().await;
    for (offered, chosen) in [
        (&[b"h2".as_slice(), b"http/1.1"][..], Some(b"h2".as_slice())),
        (&[b"http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let client = client(offered, None);
        let socket = connect(&client, gateway.address(), "first.test")
            .await
            .unwrap();
        assert_eq!(socket.get_ref().1.alpn_protocol(), chosen);
        let (status, answer) = send(socket, chat(&key)).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["object"], "chat.completion");
    }
    gateway.verify().await;
}

#[tokio::test]
async fn whoever_speaks_plain_http_to_it_gets_nothing() {
    let (gateway, key) = with_files(FIRST).setting("server", FILES).funded().await;
    let mut connection = Connection::open(gateway.address()).await;
    connection
        .send(&Request::get("/v1/models").bearer(&key.secret))
        .await;
    let answer = connection.rest().await;
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
}

#[tokio::test]
async fn a_client_that_never_ends_its_handshake_is_let_go() {
    let gateway = with_files(FIRST)
        .setting("server", FILES)
        .setting("timeouts", "client_header_ms = 300")
        .start()
        .await;
    let mut connection = Connection::open(gateway.address()).await;
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn a_new_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    let (gateway, key) = with_files(FIRST).setting("server", FILES).funded().await;
    let client = client(&[], None);
    // The key of the first certificate does not match the second certificate, so the change is refused.
    let write = |name: &str, text: &str| std::fs::write(gateway.folder().join(name), text).unwrap();
    write("cert.pem", SECOND[0]);
    gateway
        .logged("a refused certificate", |line| {
            line.contains("the old one stays")
        })
        .await;
    connect(&client, gateway.address(), "first.test")
        .await
        .unwrap();

    let open = connect(&client, gateway.address(), "first.test")
        .await
        .unwrap();
    write("key.pem", SECOND[1]);
    let renewed = eventually("the new certificate", async || {
        connect(&client, gateway.address(), "second.test")
            .await
            .ok()
    });
    let (status, _) = send(renewed.await, chat(&key)).await;
    assert_eq!(status, 200);
    // A connection that was open before the change continues.
    let (status, _) = send(open, chat(&key)).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn operators_may_need_a_certificate() {
    let files = r#"tls = { cert_file = "cert.pem", key_file = "key.pem", client_ca_file = "authority.pem" }"#;
    let gateway = with_files(FIRST).setting("admin", files).start().await;
    let health = || {
        let request = http::Request::get("/healthz").header("host", "first.test");
        request.body(Full::default()).unwrap()
    };
    let known = client(&[b"h2", b"http/1.1"], Some(CLIENT));
    let socket = connect(&known, gateway.admin(), "first.test")
        .await
        .unwrap();
    assert_eq!(send(socket, health()).await.0, 200);

    // With TLS 1.3, a client sees the refusal only at its first read.
    let unknown = client(&[], None);
    let refused = async {
        let socket = connect(&unknown, gateway.admin(), "first.test").await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.unwrap();
        tokio::spawn(connection);
        let answer = within("an answer", sender.send_request(health())).await;
        answer.map_err(std::io::Error::other)
    };
    assert!(refused.await.is_err());
}

#[tokio::test]
async fn check_names_every_file_that_cannot_be_used() {
    let gateway = TestGateway::start().await;
    let check = async |tls: &str| {
        let text = std::fs::read_to_string(gateway.config_file()).unwrap();
        let text = text.replacen("[server]\n", &format!("[server]\n{tls}\n"), 1);
        let file = gateway.folder().join("other.toml");
        std::fs::write(&file, text).unwrap();
        let arguments = ["check", "--config", "other.toml"];
        let output = crate::harness::run(&arguments, gateway.folder()).await;
        assert!(!output.status.success(), "{tls}");
        output.stderr + &output.stdout
    };
    for (name, text) in [
        ("cert.pem", FIRST[0]),
        ("key.pem", SECOND[1]),
        ("empty.pem", ""),
    ] {
        std::fs::write(gateway.folder().join(name), text).unwrap();
    }
    for (tls, expected) in [
        (
            r#"tls = { cert_file = "none.pem", key_file = "key.pem" }"#,
            "none.pem",
        ),
        (
            r#"tls = { cert_file = "empty.pem", key_file = "key.pem" }"#,
            "contains no certificate",
        ),
        (
            r#"tls = { cert_file = "cert.pem", key_file = "cert.pem" }"#,
            "cert.pem cannot be used",
        ),
        (FILES, "server.tls"),
        (
            r#"tls = { cert_file = "cert.pem" }"#,
            "server.tls.key_file: is missing",
        ),
        (
            r#"tls = { cert_file = "cert.pem", key_file = "key.pem", client_ca_file = "a" }"#,
            "unknown setting",
        ),
    ] {
        let said = check(tls).await;
        assert!(said.contains(expected), "{tls}: {said}");
    }
}
