//! The log: one line per noteworthy event on standard error, none per healthy request.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

/// What is logged unless `TOLLGATE_LOG` says otherwise.
const DEFAULT_FILTER: &str = "info";

/// Starts the log; JSON lines when standard error is not a terminal.
pub(crate) fn start() {
    let filter =
        EnvFilter::try_from_env("TOLLGATE_LOG").unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
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
