//! The log: one line per noteworthy event on standard error, none per healthy request.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

/// Starts the log at `level` and above, unless `TOLLGATE_LOG` says otherwise; JSON lines when
/// standard error is not a terminal.
pub(crate) fn start(level: &str) {
    let filter = EnvFilter::try_from_env("TOLLGATE_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let log = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    // A second start in one process (tests) keeps the first.
    let _ = if std::io::stderr().is_terminal() {
        log.try_init()
    } else {
        log.with_ansi(false).json().flatten_event(true).try_init()
    };
}
