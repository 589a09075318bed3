//! A thread that runs a function periodically until its handle is dropped.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

#[derive(Debug)]
pub(crate) struct Ticker {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(crate) fn start(
        name: &str,
        every: Duration,
        mut tick: impl FnMut() + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn({
            let stop = Arc::clone(&stop);
            move || {
                loop {
                    let mut stopped = stop.0.lock();
                    if !*stopped {
                        stop.1.wait_for(&mut stopped, every);
                    }
                    if *stopped {
                        return;
                    }
                    drop(stopped);
                    tick();
                }
            }
        })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_one();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
