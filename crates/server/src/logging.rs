//! The log: one line per noteworthy event on standard error, none per healthy request.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts the log at `level` and above, unless `TOLLGATE_LOG` says otherwise (`debug`, or
/// `info,upstream=debug`); JSON lines when standard error is not a terminal.
pub(crate) fn start(level: LevelFilter) {
    let asked = std::env::var("TOLLGATE_LOG").ok();
    let targets = asked.and_then(|text| text.parse::<Targets>().ok());
    let targets = targets.unwrap_or_else(|| Targets::new().with_default(level));
    let log = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let registry = tracing_subscriber::registry().with(targets);
    // A second start in one process (tests) keeps the first.
    let _ = if std::io::stderr().is_terminal() {
        registry.with(log).try_init()
    } else {
        let log = log.with_ansi(false).json().flatten_event(true);
        registry.with(log).try_init()
    };
}
