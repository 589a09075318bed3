//! A gate for each core: a thread with a runtime of its own, which serves the connections it was given.
//!
//! A call is a few moments of work between two waits. A runtime that shares its tasks among threads
//! wakes a second thread to look for work with nearly every one of them, and hands the call from core
//! to core; that cost a seventh of a small call. What outlives connections (tasks, sweeps, the
//! operators' listener) stays on the shared runtime.

use std::io;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// All gates of a node. They close when this is dropped, and what they still serve is cut off.
#[derive(Debug)]
pub(crate) struct Gates {
    gates: Vec<Gate>,
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
        let gates = (0..count).map(|number| Gate::open(number, closing.clone()));
        Ok(Self {
            gates: gates.collect::<io::Result<_>>()?,
            closing,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.gates.len()
    }

    /// The gate that has the least to do: its number and its runtime.
    pub(crate) fn emptiest(&self) -> Option<(usize, &Handle)> {
        let runtimes = self.gates.iter().map(|gate| &gate.runtime);
        let runtimes = runtimes.enumerate();
        runtimes.min_by_key(|(_, runtime)| runtime.metrics().num_alive_tasks())
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        self.closing.cancel();
        for gate in self.gates.drain(..) {
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
}
