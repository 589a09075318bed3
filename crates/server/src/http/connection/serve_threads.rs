//! A gate for each core: a thread with a runtime of its own, which serves the connections it was given.
//!
//! A call is a few moments of work between two waits. A runtime that shares its tasks among threads
//! wakes a second thread to look for work with nearly every one of them, and hands the call from core
//! to core; that cost a seventh of a small call. What outlives connections (tasks, sweeps, the
//! operators' listener) stays on the shared runtime.
//!
//! One HTTP/2 connection can carry the work of many. Its streams stay with it while they are few; when
//! its thread serves many more streams than another one, new streams are given to that.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// A thread may serve so many more HTTP/2 streams than the one that serves the fewest. To wake another
/// thread for a stream costs more than a small call can wait.
const STREAMS_AHEAD_MAX: usize = 8;

/// All gates of a node. They close when this is dropped, and what they still serve is cut off.
#[derive(Debug)]
pub(crate) struct Gates {
    open: Vec<Gate>,
    threads: Arc<[StreamThread]>,
    closing: CancellationToken,
}

#[derive(Debug)]
struct Gate {
    runtime: Handle,
    thread: JoinHandle<()>,
}

impl Gates {
    /// Opens as many as the runtime that this is called on has threads.
    pub(crate) fn open() -> io::Result<Self> {
        let count = Handle::current().metrics().num_workers();
        let closing = CancellationToken::new();
        let open = (0..count).map(|number| Gate::open(number, closing.clone()));
        let open = open.collect::<io::Result<Vec<_>>>()?;
        let threads = open.iter().map(|gate| StreamThread {
            runtime: gate.runtime.clone(),
            streams: AtomicUsize::new(0),
        });
        Ok(Self {
            threads: threads.collect(),
            open,
            closing,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.open.len()
    }

    /// The gate that has the least to do: its number and its runtime.
    pub(crate) fn emptiest(&self) -> Option<(usize, &Handle)> {
        let runtimes = self.open.iter().map(|gate| &gate.runtime);
        let runtimes = runtimes.enumerate();
        runtimes.min_by_key(|(_, runtime)| runtime.metrics().num_alive_tasks())
    }

    /// Where the streams of a connection run that is served at this gate.
    pub(crate) fn stream_threads(&self, home: usize) -> StreamThreads {
        StreamThreads {
            threads: Arc::clone(&self.threads),
            home,
        }
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        self.closing.cancel();
        for gate in self.open.drain(..) {
            if gate.thread.join().is_err() {
                tracing::error!("a gate panicked");
            }
        }
    }
}

impl Gate {
    fn open(number: usize, closing: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new()
            .name(format!("gate-{number}"))
            .spawn(move || runtime.block_on(closing.cancelled()))?;
        Ok(Self {
            runtime: handle,
            thread,
        })
    }
}

/// The threads that serve HTTP/2 streams, as seen from the connection's own. It does not keep the gates
/// open, since its users run there.
#[derive(Debug, Clone)]
pub(crate) struct StreamThreads {
    threads: Arc<[StreamThread]>,
    home: usize,
}

/// One gate, and the streams that run there.
#[derive(Debug)]
struct StreamThread {
    runtime: Handle,
    streams: AtomicUsize,
}

impl StreamThread {
    fn count(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }
}

impl StreamThreads {
    /// Runs a stream at home, unless home serves many more streams than another thread.
    pub(crate) fn spawn<F>(&self, stream: F) -> AbortHandle
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let running = Running::begin(Arc::clone(&self.threads), self.choose());
        let runtime = running.thread().map(|thread| thread.runtime.clone());
        let serve = async move {
            let _running = running;
            stream.await;
        };
        match runtime {
            Some(runtime) => runtime.spawn(serve).abort_handle(),
            None => tokio::spawn(serve).abort_handle(),
        }
    }

    fn choose(&self) -> usize {
        let counts = self.threads.iter().map(StreamThread::count).enumerate();
        let fewest = counts.min_by_key(|(_, count)| *count);
        let at_home = self.threads.get(self.home).map_or(0, StreamThread::count);
        match fewest {
            Some((other, count)) if at_home > count + STREAMS_AHEAD_MAX => other,
            _ => self.home,
        }
    }
}

/// One stream that is counted where it runs.
struct Running {
    threads: Arc<[StreamThread]>,
    at: usize,
}

impl Running {
    fn begin(threads: Arc<[StreamThread]>, at: usize) -> Self {
        let running = Self { threads, at };
        if let Some(thread) = running.thread() {
            thread.streams.fetch_add(1, Ordering::Relaxed);
        }
        running
    }

    fn thread(&self) -> Option<&StreamThread> {
        self.threads.get(self.at)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread() {
            thread.streams.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::future::pending;

    use tokio::sync::{mpsc, oneshot};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn connections_spread_over_the_gates_and_end_with_them() {
        let gates = Gates::open().unwrap();
        let (open, mut ended) = mpsc::channel::<()>(1);
        let mut threads = HashSet::new();
        for _ in 0..6 {
            let (tell, told) = oneshot::channel();
            let open = open.clone();
            let (_, gate) = gates.emptiest().unwrap();
            gate.spawn(async move {
                tell.send(thread::current().name().map(str::to_owned))
                    .unwrap();
                pending::<()>().await;
                drop(open);
            });
            threads.insert(told.await.unwrap());
        }
        assert_eq!(threads.len(), 3, "{threads:?}");
        drop((open, gates));
        assert_eq!(ended.recv().await, None);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn few_streams_stay_with_their_connection_and_many_are_spread() {
        let gates = Gates::open().unwrap();
        let (tell, mut told) = mpsc::channel(1000);
        let mut open = Vec::new();
        let mut at_home = async |count: usize| {
            for _ in 0..count {
                let tell = tell.clone();
                open.push(gates.stream_threads(1).spawn(async move {
                    let name = thread::current().name().map(str::to_owned);
                    tell.send(name).await.unwrap();
                    pending::<()>().await;
                }));
            }
            let mut names = Vec::new();
            for _ in 0..count {
                names.push(told.recv().await.unwrap());
            }
            names
                .iter()
                .filter(|it| it.as_deref() == Some("gate-1"))
                .count()
        };
        assert_eq!(at_home(STREAMS_AHEAD_MAX).await, STREAMS_AHEAD_MAX);
        // 100 of 192 in the end: home is ahead by its bound.
        assert_eq!(
            at_home(192 - STREAMS_AHEAD_MAX).await,
            100 - STREAMS_AHEAD_MAX
        );

        let running = || gates.threads.iter().map(StreamThread::count).sum::<usize>();
        assert_eq!(running(), 192);
        for stream in open {
            stream.abort();
        }
        while running() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
