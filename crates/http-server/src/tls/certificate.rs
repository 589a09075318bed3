//! Loads a certificate and its key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

/// The certificate files of a listener, in PEM format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by the intermediate certificates.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The authorities that sign client certificates. If set, every client needs a certificate from one of them.
    pub client_authorities: Option<PathBuf>,
}

impl TlsFiles {
    /// The paths of the files that are set.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let files = [
            Some(&self.certificate),
            Some(&self.key),
            self.client_authorities.as_ref(),
        ];
        files.into_iter().flatten().map(PathBuf::as_path)
    }
}

/// Reads the files and checks that certificate and key match. Offers TLS 1.2 and 1.3. `Err` says which file cannot be
/// used, and why.
pub fn load(files: &TlsFiles) -> Result<ServerConfig, String> {
    let chain = certificates(&files.certificate)?;
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(|error| unusable(&files.key, &error))?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match &files.client_authorities {
        Some(authorities) => {
            builder.with_client_cert_verifier(client_verifier(authorities, provider)?)
        }
        None => builder.with_no_client_auth(),
    };
    builder
        .with_single_cert(chain, key)
        .map_err(|error| unusable(&files.certificate, &error))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(file).map_err(|error| unusable(file, &error))?;
    let found: Result<Vec<_>, _> = found.collect();
    let found = found.map_err(|error| unusable(file, &error))?;
    if found.is_empty() {
        return Err(unusable(file, &"it contains no certificate"));
    }
    Ok(found)
}

/// A verifier that accepts clients with a certificate signed by one of the authorities in `file`.
fn client_verifier(
    file: &Path,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(file)? {
        roots
            .add(authority)
            .map_err(|error| unusable(file, &error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| unusable(file, &error))
}

fn unusable(file: &Path, why: &dyn std::fmt::Display) -> String {
    format!("file {} cannot be used: {why}", file.display())
}
