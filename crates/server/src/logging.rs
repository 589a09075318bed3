//! The log on standard error: a line for each noteworthy event, none for a healthy request.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts the log. It shows `level` and above, unless `TOLLGATE_LOG` is set (`debug`, or
/// `info,upstream=debug`). If standard error is not a terminal, each line is JSON.
pub(crate) fn start(level: LevelFilter) {
    let setting = std::env::var("TOLLGATE_LOG").ok();
    let targets = setting.and_then(|text| text.parse::<Targets>().ok());
    let targets = targets.unwrap_or_else(|| Targets::new().with_default(level));
    let log = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let registry = tracing_subscriber::registry().with(targets);
    // Tests start the log several times in one process; the first start wins.
    let _ = if std::io::stderr().is_terminal() {
        registry.with(log).try_init()
    } else {
        let log = log.with_ansi(false).json().flatten_event(true);
        registry.with(log).try_init()
    };
}
