//! The threads for all work outside the ledger, so that nothing delays the ledger.

use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::error::OpenError;
use crate::postgres::connection::connect::Target;

pub(super) struct StoreThreads {
    /// Runs lookups, tasks, the lease and the sweeper.
    pub(super) side: BackgroundThread,
    /// Runs the journal's writer and the searches, because counting calls and assembling reports would delay lookups on
    /// the same thread.
    pub(super) journal: BackgroundThread,
}

/// A thread for work that must not delay the ledger or other work. It ends when its handle is dropped.
pub(super) struct BackgroundThread {
    thread: Option<JoinHandle<()>>,
    pub(super) runtime: tokio::runtime::Handle,
    stop: Arc<Notify>,
}

impl BackgroundThread {
    pub(super) fn start(name: &str, target: &Target) -> Result<Self, OpenError> {
        let io = |source: std::io::Error| OpenError::Server {
            place: target.place().to_owned(),
            reason: source.to_string(),
        };
        let runtime = runtime().map_err(io)?;
        let handle = runtime.handle().clone();
        let stop = Arc::new(Notify::new());
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn({
            let stop = Arc::clone(&stop);
            move || runtime.block_on(stop.notified())
        });
        Ok(Self {
            thread: Some(thread.map_err(io)?),
            runtime: handle,
            stop,
        })
    }

    /// Runs a task on the thread and blocks until it has ended.
    pub(super) fn block_on<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let (reply, answer) = std::sync::mpsc::channel();
        self.runtime.spawn(async move {
            // The caller is waiting, so the channel is open.
            drop(reply.send(task.await));
        });
        answer
            .recv()
            .expect("the thread lives as long as this, and a task that panics says so itself")
    }
}

impl Drop for BackgroundThread {
    fn drop(&mut self) {
        self.stop.notify_one();
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("a thread of the store panicked");
        }
    }
}

pub(super) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
