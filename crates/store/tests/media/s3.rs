//! An S3 server for tests. It checks signatures, supports ranges and multipart uploads, and stores objects in a
//! temporary folder.

use std::net::SocketAddr;
use std::path::Path;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) const ACCESS_KEY: &str = "access";
pub(crate) const SECRET_KEY: &str = "not so secret";
pub(crate) const BUCKET: &str = "media";

/// A server that runs until it is stopped, or until its test ends.
pub(crate) struct S3 {
    folder: tempfile::TempDir,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    running: TaskTracker,
}

impl S3 {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let mut service = S3ServiceBuilder::new(FileSystem::new(folder.path()).unwrap());
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = service.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, running) = (CancellationToken::new(), TaskTracker::new());
        let (stopped, connections) = (stop.clone(), running.clone());
        running.spawn(stopped.clone().run_until_cancelled_owned(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let service = service.clone();
                let serve = async move {
                    let http = Builder::new(TokioExecutor::new());
                    let _ = http.serve_connection(TokioIo::new(socket), service).await;
                };
                connections.spawn(stopped.clone().run_until_cancelled_owned(serve));
            }
        }));
        Self {
            folder,
            address,
            stop,
            running,
        }
    }

    /// Stops the server. Its port and all connections are closed when this returns.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.running.close();
        self.running.wait().await;
    }

    /// The folder of the bucket.
    pub(crate) fn bucket(&self) -> std::path::PathBuf {
        self.folder.path().join(Path::new(BUCKET))
    }
}
