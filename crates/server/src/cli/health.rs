//! `tollgate health`: reports whether the gateway is ready, for container health checks.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::context::Context;
use super::terminal::CommandError;
use crate::gateway::local_address;

/// The size limit of an answer of `/readyz`, which is short.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Args)]
pub(super) struct Health {
    /// The address of the admin listener; the configured one if left out.
    #[arg(long)]
    address: Option<SocketAddr>,
    /// How long to wait for an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    timeout: u64,
}

/// Sends a request to `/readyz` of the admin listener, and fails if the answer is not 200.
pub(super) async fn run(command: Health, context: &mut Context) -> Result<(), CommandError> {
    let config = context.config_or_default()?;
    let address = command
        .address
        .unwrap_or_else(|| local_address(config.admin.listen));
    let ask = async {
        let socket = TcpStream::connect(address).await?;
        if config.admin.tls.is_none() {
            return ask(socket).await;
        }
        let name = ServerName::IpAddress(address.ip().into());
        let connector = TlsConnector::from(Arc::new(tls_config()?));
        ask(connector.connect(name, socket).await?).await
    };
    let asked = tokio::time::timeout(Duration::from_secs(command.timeout), ask).await;
    let (status, text) = asked
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(|error| CommandError::message(format!("no answer from {address}: {error}")))?;
    let ready = status == StatusCode::OK;
    if context.json {
        let answer = json!({ "ready": ready, "status": status.as_u16(), "answer": text });
        context.out.json(&answer)?;
    } else if ready {
        context.out.line("ready")?;
    }
    match (ready, context.json) {
        (true, _) => Ok(()),
        (false, true) => Err(CommandError::Reported),
        (false, false) => Err(CommandError::message(format!(
            "not ready ({status}): {text}"
        ))),
    }
}

async fn ask<S>(socket: S) -> io::Result<(StatusCode, String)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket))
        .await
        .map_err(io::Error::other)?;
    let connection = tokio::spawn(connection);
    let request = Request::get("/readyz")
        .header("host", "localhost")
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let answer = sender
        .send_request(request)
        .await
        .map_err(io::Error::other)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX);
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    connection.abort();
    Ok((status, String::from_utf8_lossy(&body).trim().to_owned()))
}

fn tls_config() -> io::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyName(provider)))
        .with_no_client_auth();
    Ok(config)
}

/// Accepts every certificate, because certificates are issued for the public name of the listener, but the command
/// connects to an IP address. No secret is sent, and the answer only says whether the node is ready.
#[derive(Debug)]
struct AnyName(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
