//! The certificates that we trust when we connect to the database and the media storage.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// A TLS configuration that trusts the public authorities and those in `ca_file`.
pub(crate) fn trusting(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    if let Some(path) = ca_file {
        let unusable = |why: String| format!("{}: {why}", path.display());
        let found =
            CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
        let mut count = 0;
        for certificate in found {
            let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
            roots
                .add(certificate)
                .map_err(|error| unusable(error.to_string()))?;
            count += 1;
        }
        if count == 0 {
            return Err(unusable("holds no certificate".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
