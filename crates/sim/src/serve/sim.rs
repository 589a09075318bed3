//! Runs the simulator: its handle and its accept loop.

use super::exchange::exchange;
use super::state::State;
use super::wire::{Socket, SocketState};
use crate::call_log::{Call, Counts};
use crate::content_task::TaskRecord;
use crate::fault::{QueueError, QueuedFaults, ScriptError};
use crate::settings::Settings;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};

const HEADER_TIME_MAX: Duration = Duration::from_secs(30);
const HEADERS_MAX: usize = 200;
const HEADER_BYTES_MAX: usize = 256 * 1024;
/// The pause after a failed accept. The usual cause is that no file descriptors are left.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// The handle of a simulator on the current runtime. The simulator ends when the handle is stopped or dropped.
#[derive(Debug)]
#[must_use = "the simulator ends when its handle is dropped"]
pub struct Sim {
    address: SocketAddr,
    state: Arc<State>,
    /// Dropping the sender stops the simulator.
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Sim {
    /// Starts a simulator with default settings. Port 0 selects a free port.
    pub async fn start(address: impl ToSocketAddrs) -> io::Result<Self> {
        Self::start_with(address, Settings::default()).await
    }

    pub async fn start_with(address: impl ToSocketAddrs, settings: Settings) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State::new(settings));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(accept(listener, Arc::clone(&state), async {
            // The sender never sends a value, so this future ends when the sender is dropped.
            let _ = stopped.await;
        }));
        Ok(Self {
            address,
            state,
            stop: Some(stop),
            task,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://ADDRESS`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes the listener and all connections, and waits until this is done. WebSocket sessions are aborted, but not
    /// waited for.
    pub async fn stop(mut self) {
        self.stop = None;
        // The runtime has already reported a panic of the task.
        let _ = (&mut self.task).await;
    }

    /// Counts of calls since the start, by how they ended.
    pub fn stats(&self) -> Counts {
        self.state.calls.counts()
    }

    /// The logged calls, oldest first.
    pub fn calls(&self) -> Vec<Call> {
        self.state.calls.rows(None)
    }

    /// The logged calls with a higher number than `seq`, oldest first.
    pub fn calls_after(&self, seq: u64) -> Vec<Call> {
        self.state.calls.after(seq)
    }

    /// The logged calls of one model, which is named without its script.
    pub fn calls_of(&self, model: &str) -> Vec<Call> {
        self.state.calls.rows(Some(model))
    }

    /// Waits until the logged calls satisfy a condition, and returns them. The condition is checked at once, and again
    /// when a call arrives or ends, but not when the log of a running call changes. The caller should add a timeout.
    pub async fn calls_until(&self, wanted: impl Fn(&[Call]) -> bool) -> Vec<Call> {
        let mut changes = self.state.calls.changes();
        loop {
            changes.mark_unchanged();
            let calls = self.calls();
            if wanted(&calls) {
                return calls;
            }
            if changes.changed().await.is_err() {
                return calls;
            }
        }
    }

    /// The content tasks with their state and billing, oldest first.
    pub fn content_tasks(&self) -> Vec<TaskRecord> {
        self.state.content_tasks.records()
    }

    pub fn forget_calls(&self) {
        self.state.calls.forget();
    }

    /// Queues faults for the next calls of a model, or of any model (`*`).
    pub fn queue_faults(&self, model: &str, faults: &str, times: u32) -> Result<(), ScriptError> {
        let row = QueuedFaults {
            model: model.to_owned(),
            faults: faults.to_owned(),
            times,
        };
        self.state.queue.push(row).map_err(QueueError::into_script)
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(state.settings.connections_max));
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        while connections.try_join_next().is_some() {}
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut stop => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, _)) => {
                let state = Arc::clone(&state);
                connections.spawn(async move {
                    connection(stream, state).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_REST).await,
        }
    }
    drop(listener);
    state.sessions.lock().abort_all();
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, state: Arc<State>) {
    // With Nagle's algorithm, small events would wait for the peer's delayed acknowledgements.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let wire = Arc::new(SocketState::default());
    let socket = Socket::new(stream, Arc::clone(&wire));
    let service =
        service_fn(move |request| exchange(request, Arc::clone(&state), Arc::clone(&wire)));
    // An error means that the peer or a script broke the connection, or that the peer sent no valid request head. It
    // needs no handling, because the call log records how a received call ended.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades()
        .await;
}
