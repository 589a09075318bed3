//! Accepts TLS connections with the current certificate.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::certificate::{TlsFiles, load};
use crate::file_stamp::{FileStamp, file_stamp};

/// How often the files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The HTTP versions that are offered in the handshake (ALPN), the preferred one first.
pub type HttpVersions = &'static [&'static [u8]];
/// For listeners that serve HTTP/2 and HTTP/1.1.
pub const HTTP_1_AND_2: HttpVersions = &[b"h2", b"http/1.1"];
/// For listeners that serve HTTP/1.1 alone.
pub const HTTP_1: HttpVersions = &[b"http/1.1"];

/// Performs the TLS handshakes of a listener.
#[derive(Debug)]
pub struct TlsAcceptor {
    files: TlsFiles,
    versions: HttpVersions,
    config: ArcSwap<ServerConfig>,
}

impl TlsAcceptor {
    /// Loads the files. `Err` says which file cannot be used, and why.
    pub fn new(files: TlsFiles, versions: HttpVersions) -> Result<Arc<Self>, String> {
        let config = load_for(&files, versions)?;
        Ok(Arc::new(Self {
            files,
            versions,
            config: ArcSwap::new(config),
        }))
    }

    /// Performs the handshake of a connection.
    pub async fn accept(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = self.config.load_full();
        tokio_rustls::TlsAcceptor::from(config).accept(socket).await
    }

    /// Reloads the files whenever they change, forever. If the new files cannot be used, the old certificate stays.
    pub async fn follow_files(self: Arc<Self>) {
        let mut last = self.stamp();
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let now = self.stamp();
            if now == last {
                continue;
            }
            last = now;
            let acceptor = Arc::clone(&self);
            let load = move || load_for(&acceptor.files, acceptor.versions);
            match tokio::task::spawn_blocking(load).await {
                Ok(Ok(config)) => {
                    self.config.store(config);
                    let file = self.files.certificate.display();
                    tracing::info!(%file, "the certificate is reloaded");
                }
                // Perhaps only the certificate has been written so far. Writing the key will be another change.
                Ok(Err(why)) => {
                    tracing::warn!(why, "the new certificate is not used; the old one stays");
                }
                Err(error) => tracing::error!(%error, "the certificate cannot be reloaded"),
            }
        }
    }

    /// The stamps of all files, which change whenever a file does.
    fn stamp(&self) -> Vec<Option<FileStamp>> {
        self.files.paths().map(file_stamp).collect()
    }
}

fn load_for(files: &TlsFiles, versions: HttpVersions) -> Result<Arc<ServerConfig>, String> {
    let mut config = load(files)?;
    config.alpn_protocols = versions.iter().map(|version| version.to_vec()).collect();
    Ok(Arc::new(config))
}
