//! Starts the parts of a gateway in order, and stops them in order.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::Engine;
use http_server::{HTTP_1, HTTP_1_AND_2, HttpVersions, PublicListener, ServeThreads, TlsAcceptor};
use store::{Media, Recovery};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::catalog::{build, missing_channels};
use super::catalog_keeper::{CatalogKeeper, Loaded, with_stored_entries};
use super::public_limits::public_limits;
use super::start_error::StartError;
use super::{open_store, reload};
use crate::admin::{Access, AdminListener, AdminState};
use crate::config::{self, CatalogLocation, Config, Tls};

#[derive(Debug)]
pub(crate) struct Gateway {
    engine: Arc<Engine>,
    address: SocketAddr,
    admin_address: SocketAddr,
    recovery: Recovery,
    ready: Arc<AtomicBool>,
    stop_public: CancellationToken,
    stop_all: CancellationToken,
    public: JoinHandle<()>,
    background: Vec<JoinHandle<()>>,
    /// Dropped only after all work that runs on these threads has ended.
    threads: Arc<ServeThreads>,
    notice: Duration,
    /// How long open work may take when the node stops.
    drain: Duration,
}

impl Gateway {
    /// Opens the store, recovers, builds the catalog, and then listens. Waits for a database that cannot be reached.
    pub(crate) async fn start(config: &Config) -> Result<Self, StartError> {
        config::resolve(config).map_err(StartError::Config)?;
        let (store, recovery) = open_store::open(config.store_settings()).await?;
        let media = Media::open(&config.media_settings())?;
        let engine = Arc::new(Engine::new(store, media, config.engine_settings()));
        let (config, version) = with_stored_entries(config.clone(), &engine)
            .await
            .map_err(StartError::StoredCatalog)?;
        let plan = config::resolve(&config).map_err(StartError::Config)?;
        let config = &config;
        let admin_token = plan.admin_token.clone();
        let missing = missing_channels(&engine, &plan).await;
        let missing = missing.unwrap_or_else(|error| {
            tracing::warn!(%error, "the channels of open tasks could not be looked up");
            Vec::new()
        });
        let loaded = Loaded::of(config.clone(), &plan, version);
        let catalog = build(&engine, plan).await?;
        engine.set_catalog(catalog);
        let keeper = Arc::new(CatalogKeeper::new(Arc::clone(&engine), loaded));
        for (channel, tasks) in missing {
            tracing::error!(
                channel,
                tasks,
                "a channel that still has open tasks is not configured; they wait for it"
            );
        }

        let tls = acceptor(config.server.tls.as_ref(), HTTP_1_AND_2)?;
        let admin_tls = acceptor(config.admin.tls.as_ref(), HTTP_1)?;
        let threads = Arc::new(ServeThreads::start().map_err(StartError::ServeThreads)?);
        let (listen, admin_listen) = (config.server.listen, config.admin.listen);
        let public = PublicListener::bind(
            listen,
            Arc::clone(&threads),
            Arc::clone(&engine),
            public_limits(config),
            tls.clone(),
        );
        let public = public.await.map_err(|source| StartError::Listen {
            address: listen,
            source,
        })?;
        let ready = Arc::new(AtomicBool::new(true));
        let admin = AdminState::new(
            Arc::clone(&engine),
            Access::new(admin_token.as_ref()),
            Arc::clone(&keeper),
            config.clone(),
            Arc::clone(&ready),
            public.in_process(),
        );
        let admin = AdminListener::bind(admin_listen, admin, admin_tls.clone());
        let admin = admin.await.map_err(|source| StartError::Listen {
            address: admin_listen,
            source,
        })?;

        let address = public.address().unwrap_or(listen);
        let admin_address = admin.address().unwrap_or(admin_listen);
        engine.guarded().set_listeners(vec![address, admin_address]);
        let scheme = scheme(tls.is_some());
        engine.set_address_url(format!("{scheme}://{}", local_address(address)));
        let stop_public = CancellationToken::new();
        let stop_all = CancellationToken::new();
        let mut background = run_in_background(&engine, &keeper, &stop_public, &stop_all);
        for tls in [tls, admin_tls].into_iter().flatten() {
            background.push(spawn_until(&stop_all, tls.follow_files()));
        }
        background.push(tokio::spawn(admin.run(stop_all.clone())));
        let public = tokio::spawn(public.run(stop_public.clone(), config.timeouts.shutdown_drain));
        Ok(Self {
            engine,
            address,
            admin_address,
            recovery,
            ready,
            stop_public,
            stop_all,
            public,
            background,
            threads,
            notice: config.timeouts.shutdown_notice,
            drain: config.timeouts.shutdown_drain,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// The holds that earlier starts left open and that this start has closed.
    pub(crate) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    #[cfg(feature = "sim")]
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Reports "not ready", waits until load balancers have noticed, then drains and stops all parts.
    pub(crate) async fn stop(self) {
        self.ready.store(false, Ordering::Relaxed);
        tokio::time::sleep(self.notice).await;
        self.stop_public.cancel();
        let drained_at = Instant::now() + self.drain;
        let _ = self.public.await;
        let left = drained_at.saturating_duration_since(Instant::now());
        self.engine.finish(left).await;
        self.stop_all.cancel();
        for task in self.background {
            let _ = task.await;
        }
        drop(self.threads);
    }
}

/// Starts the background work of the node. Work on tasks and alerts stops with the public listener, so that no new work
/// begins while [`Engine::finish`] waits for the work in progress.
fn run_in_background(
    engine: &Arc<Engine>,
    keeper: &Arc<CatalogKeeper>,
    stop_public: &CancellationToken,
    stop_all: &CancellationToken,
) -> Vec<JoinHandle<()>> {
    let engine = || Arc::clone(engine);
    let mut running = vec![
        spawn_until(stop_public, engine().poll_tasks()),
        spawn_until(stop_public, engine().deliver_callbacks()),
        spawn_until(stop_public, engine().forget_tasks()),
        spawn_until(stop_public, engine().check_alerts()),
        spawn_until(stop_public, engine().deliver_alerts()),
        spawn_until(stop_all, {
            let engine = engine();
            async move { engine.sweep_media().await }
        }),
        spawn_until(stop_all, {
            let engine = engine();
            async move { engine.watch_storage().await }
        }),
        spawn_until(stop_all, {
            let engine = engine();
            async move { engine.close_expired_connections().await }
        }),
        spawn_until(stop_all, {
            let engine = engine();
            async move { engine.renew_tokens().await }
        }),
    ];
    // The exporter is not aborted: when `stop_all` is cancelled, it sends the remaining telemetry and ends by itself.
    running.push(tokio::spawn(engine().export_telemetry(stop_all.clone())));
    let started_with = &keeper.in_force().config;
    if let Some(file) = started_with.file.clone() {
        let watch = reload::watch(file, started_with.clone(), Arc::clone(keeper));
        running.push(spawn_until(stop_all, Box::pin(watch)));
    }
    if started_with.admin.config == CatalogLocation::Store {
        running.push(spawn_until(stop_all, Arc::clone(keeper).follow_store()));
    }
    running
}

/// The TLS acceptor of a listener, if it has TLS settings.
fn acceptor(
    tls: Option<&Tls>,
    versions: HttpVersions,
) -> Result<Option<Arc<TlsAcceptor>>, StartError> {
    let of = |tls: &Tls| TlsAcceptor::new(tls.files.clone(), versions);
    tls.map(of).transpose().map_err(StartError::Certificate)
}

/// The scheme of a listener's addresses.
pub(crate) fn scheme(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}

fn spawn_until(
    stop: &CancellationToken,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    let stop = stop.clone();
    tokio::spawn(async move {
        stop.run_until_cancelled(work).await;
    })
}

/// The address at which this machine reaches its own listener: loopback if the listener uses all addresses.
pub(crate) fn local_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
