//! Runs a gateway until it receives a signal to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;

use crate::config::Config;
use crate::gateway::{Gateway, StartError};
use crate::logging;

/// Serves until SIGTERM or SIGINT. A second signal ends the process at once. That is as safe as `kill -9`, which the
/// ledger survives.
pub(crate) async fn run(config: &Config) -> Result<(), StartError> {
    let mut stopped = std::pin::pin!(until_stopped());
    logging::start(LevelFilter::INFO, config.log.format);
    let gateway = tokio::select! {
        started = Gateway::start(config) => started?,
        () = &mut stopped => {
            tracing::info!("stopped before serving began");
            return Ok(());
        }
    };
    let recovery = gateway.recovery();
    tracing::info!(
        address = %gateway.address(),
        admin = %gateway.admin_address(),
        holds_abandoned = recovery.abandoned,
        "serving"
    );
    stopped.await;
    tracing::info!("stopping; a second signal stops at once");
    tokio::select! {
        () = gateway.stop() => tracing::info!("stopped"),
        () = until_stopped() => tracing::warn!("stopped at once; open work is closed at the next start"),
    }
    Ok(())
}

/// Waits for SIGTERM or SIGINT. Signals are caught from this call on, not only from the first poll. So a signal right
/// after the gateway reports that it serves is not lost.
pub(crate) fn until_stopped() -> impl Future<Output = ()> {
    let listen = |kind: SignalKind| -> Option<Signal> {
        signal(kind)
            .inspect_err(|error| tracing::error!(%error, "a signal cannot be received"))
            .ok()
    };
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(listen);
    async {
        let [Some(mut terminate), Some(mut interrupt)] = signals else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}
