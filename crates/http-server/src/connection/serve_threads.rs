//! The serving threads, one for each core. Each has its own runtime and runs the connections that are assigned to it.
//!
//! A call is a few microseconds of work between two waits. A runtime that shares its tasks among threads wakes a second
//! thread for nearly every call and moves calls from core to core, which took a seventh of the time of a small call
//! (`docs/decisions/019`). Work that outlives connections (tasks, sweeps, the operators' listener) stays on the shared
//! runtime.
//!
//! One HTTP/2 connection can carry as much work as many connections. Its streams run on the connection's own thread
//! until that thread serves many more streams than another. New streams then run on the other thread.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// A new stream runs on another thread only if its connection's own thread serves over this many more streams than the
/// thread with the fewest. A lower number would make more small calls wait until another thread wakes.
const STREAMS_AHEAD_MAX: usize = 8;

/// The serving threads of a node. Dropping this stops them and aborts their remaining work.
#[derive(Debug)]
pub struct ServeThreads {
    threads: Vec<ServeThread>,
    streams: Arc<[StreamThread]>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct ServeThread {
    runtime: Handle,
    thread: JoinHandle<()>,
}

impl ServeThreads {
    /// Starts as many threads as the current runtime has workers.
    pub fn start() -> io::Result<Self> {
        let count = Handle::current().metrics().num_workers();
        let stop = CancellationToken::new();
        let threads = (0..count).map(|number| ServeThread::start(number, stop.clone()));
        let threads = threads.collect::<io::Result<Vec<_>>>()?;
        let streams = threads.iter().map(|thread| StreamThread {
            runtime: thread.runtime.clone(),
            streams: AtomicUsize::new(0),
        });
        Ok(Self {
            streams: streams.collect(),
            threads,
            stop,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }

    /// The number and the runtime of the thread that has the fewest tasks.
    pub(crate) fn least_busy(&self) -> Option<(usize, &Handle)> {
        let runtimes = self.threads.iter().map(|thread| &thread.runtime);
        let runtimes = runtimes.enumerate();
        runtimes.min_by_key(|(_, runtime)| runtime.metrics().num_alive_tasks())
    }

    /// The threads for the streams of a connection whose own thread is `home`.
    pub(crate) fn stream_threads(&self, home: usize) -> StreamThreads {
        StreamThreads {
            threads: Arc::clone(&self.streams),
            home,
        }
    }
}

impl Drop for ServeThreads {
    fn drop(&mut self) {
        self.stop.cancel();
        for thread in self.threads.drain(..) {
            if thread.thread.join().is_err() {
                tracing::error!("a serving thread panicked");
            }
        }
    }
}

impl ServeThread {
    fn start(number: usize, stop: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new()
            .name(format!("serve-{number}"))
            .spawn(move || runtime.block_on(stop.cancelled()))?;
        Ok(Self {
            runtime: handle,
            thread,
        })
    }
}

/// Chooses the thread for each HTTP/2 stream of one connection. It holds only handles of the runtimes,
/// because its users run on these threads and must not keep them alive.
#[derive(Debug, Clone)]
pub(crate) struct StreamThreads {
    threads: Arc<[StreamThread]>,
    home: usize,
}

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
    /// Runs a stream on its connection's own thread, unless that thread serves many more streams than another.
    pub(crate) fn spawn<F>(&self, stream: F) -> AbortHandle
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        let running = RunningStream::begin(Arc::clone(&self.threads), self.choose());
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

/// Counts a stream among those of its thread until the stream ends.
struct RunningStream {
    threads: Arc<[StreamThread]>,
    at: usize,
}

impl RunningStream {
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

impl Drop for RunningStream {
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
    async fn connections_spread_over_the_threads_and_end_with_them() {
        let serving = ServeThreads::start().unwrap();
        let (open, mut ended) = mpsc::channel::<()>(1);
        let mut threads = HashSet::new();
        for _ in 0..6 {
            let (sender, name) = oneshot::channel();
            let open = open.clone();
            let (_, runtime) = serving.least_busy().unwrap();
            runtime.spawn(async move {
                sender
                    .send(thread::current().name().map(str::to_owned))
                    .unwrap();
                pending::<()>().await;
                drop(open);
            });
            threads.insert(name.await.unwrap());
        }
        assert_eq!(threads.len(), 3, "{threads:?}");
        drop((open, serving));
        assert_eq!(ended.recv().await, None);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn few_streams_stay_with_their_connection_and_many_are_spread() {
        let serving = ServeThreads::start().unwrap();
        let (sender, mut receiver) = mpsc::channel(1000);
        let mut open = Vec::new();
        let mut at_home = async |count: usize| {
            for _ in 0..count {
                let sender = sender.clone();
                open.push(serving.stream_threads(1).spawn(async move {
                    let name = thread::current().name().map(str::to_owned);
                    sender.send(name).await.unwrap();
                    pending::<()>().await;
                }));
            }
            let mut names = Vec::new();
            for _ in 0..count {
                names.push(receiver.recv().await.unwrap());
            }
            names
                .iter()
                .filter(|it| it.as_deref() == Some("serve-1"))
                .count()
        };
        assert_eq!(at_home(STREAMS_AHEAD_MAX).await, STREAMS_AHEAD_MAX);
        // 100 of the 192 streams run on the connection's own thread, which is `STREAMS_AHEAD_MAX` ahead of the other.
        assert_eq!(
            at_home(192 - STREAMS_AHEAD_MAX).await,
            100 - STREAMS_AHEAD_MAX
        );

        let running = || {
            serving
                .streams
                .iter()
                .map(StreamThread::count)
                .sum::<usize>()
        };
        assert_eq!(running(), 192);
        for stream in open {
            stream.abort();
        }
        while running() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
