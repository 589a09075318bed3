//! A running gateway: the parts of a configuration, started in order and stopped in order.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use engine::{Catalog, CatalogError, Engine};
use store::{Media, MediaOpenError, OpenError, Recovery};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admin::Admin;
use crate::config::{Config, Plan, Problem};
use crate::http::{Gates, Limits, Public};
use crate::{config, open_store, reload};

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("the configuration has {} problem(s)", .0.len())]
    Config(Vec<Problem>),
    #[error("the store cannot be opened: {0}")]
    Store(#[from] OpenError),
    #[error("the thread that opens the store cannot be started, or panicked")]
    Opening,
    #[error("media cannot be kept: {0}")]
    Media(#[from] MediaOpenError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("the threads that serve cannot be started: {0}")]
    Gates(io::Error),
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
}

/// A gateway that serves.
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
    behind: Vec<JoinHandle<()>>,
    /// Open until the last of what was begun there has ended.
    gates: Arc<Gates>,
    notice: Duration,
}

impl Gateway {
    /// Opens the store, recovers, builds the catalog, then listens. A database that is away is waited for.
    pub(crate) async fn start(config: &Config) -> Result<Self, StartError> {
        let plan = config::resolve(config).map_err(StartError::Config)?;
        let (store, recovery) = open_store::open(config.store_settings()).await?;
        let media = Media::open(&config.media_settings())?;
        let engine = Arc::new(Engine::new(store, media, config.engine_settings()));
        let admin_token = plan.admin_token.clone();
        let homeless = homeless_tasks(&engine, &plan).await;
        install(&engine, plan).await?;
        for (channel, tasks) in homeless {
            tracing::error!(
                channel,
                tasks,
                "a channel that still has open tasks is not configured; they wait for it"
            );
        }

        let limits = Limits::of(config);
        let gates = Arc::new(Gates::open().map_err(StartError::Gates)?);
        let public = Public::bind(
            config.server.listen,
            Arc::clone(&gates),
            Arc::clone(&engine),
            limits,
        )
        .await
        .map_err(|source| StartError::Listen {
            address: config.server.listen,
            source,
        })?;
        let ready = Arc::new(AtomicBool::new(true));
        let admin = Admin::bind(
            config.admin.listen,
            Arc::clone(&engine),
            admin_token,
            Arc::clone(&ready),
        )
        .await
        .map_err(|source| StartError::Listen {
            address: config.admin.listen,
            source,
        })?;

        let stop_public = CancellationToken::new();
        let stop_all = CancellationToken::new();
        let mut behind = Vec::new();
        let address = public.address().unwrap_or(config.server.listen);
        let admin_address = admin.address().unwrap_or(config.admin.listen);
        engine.guarded().set_listeners(vec![address, admin_address]);
        engine.set_address_url(format!("http://{}", reached(address)));
        behind.push(tokio::spawn(admin.run(stop_all.clone())));
        if let Some(file) = config.file.clone() {
            let watch = Box::pin(reload::watch(file, config.clone(), Arc::clone(&engine)));
            let stop = stop_all.clone();
            behind.push(tokio::spawn(async move {
                stop.run_until_cancelled(watch).await;
            }));
        }
        // They stop with the listener: what they have begun is waited for behind it.
        let (follow, deliver) = (Arc::clone(&engine), Arc::clone(&engine));
        let stop = stop_public.clone();
        behind.push(tokio::spawn(async move {
            stop.run_until_cancelled(follow.follow_tasks()).await;
        }));
        let stop = stop_public.clone();
        behind.push(tokio::spawn(async move {
            stop.run_until_cancelled(deliver.deliver_callbacks()).await;
        }));
        let (stop, forget) = (stop_public.clone(), Arc::clone(&engine));
        behind.push(tokio::spawn(async move {
            stop.run_until_cancelled(forget.forget_tasks()).await;
        }));
        let (sweep, stop) = (Arc::clone(&engine), stop_all.clone());
        behind.push(tokio::spawn(async move {
            stop.run_until_cancelled(sweep.sweep_media()).await;
        }));
        let (watch, stop) = (Arc::clone(&engine), stop_all.clone());
        behind.push(tokio::spawn(async move {
            stop.run_until_cancelled(watch.watch_storage()).await;
        }));
        let (close, stop) = (Arc::clone(&engine), stop_all.clone());
        behind.push(tokio::spawn(async move {
            stop.run_until_cancelled(close.close_expired_connections())
                .await;
        }));
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
            behind,
            gates,
            notice: config.timeouts.shutdown_notice,
        })
    }

    /// The public address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The operators' address.
    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// What the last process left behind.
    pub(crate) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    #[cfg(feature = "sim")]
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Says "not ready", waits until load balancers have seen it, then ends open work.
    pub(crate) async fn stop(self) {
        self.ready
            .store(false, std::sync::atomic::Ordering::Relaxed);
        tokio::time::sleep(self.notice).await;
        self.stop_public.cancel();
        let _ = self.public.await;
        self.engine.finish().await;
        self.stop_all.cancel();
        for task in self.behind {
            let _ = task.await;
        }
        drop(self.gates);
    }
}

/// Channels with unfinished tasks that a plan does not have, and how many tasks. A task is asked about
/// where it runs and nowhere else (T8).
pub(crate) async fn homeless_tasks(engine: &Engine, plan: &Plan) -> Vec<(String, u64)> {
    let channels = engine.store().task_channels().await;
    let channels = channels.unwrap_or_else(|error| {
        tracing::warn!(%error, "the channels of open tasks could not be looked up");
        Vec::new()
    });
    let idle = |name: &str| plan.idle.iter().any(|(idle, _)| idle == name);
    let live = |name: &str| plan.channels.iter().any(|channel| channel.name == name);
    channels
        .into_iter()
        .filter(|(name, _)| !idle(name) && !live(name))
        .map(|(name, tasks)| (name.into(), tasks))
        .collect()
}

/// The address at which this machine itself reaches a listener: nobody can call "everywhere".
fn reached(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Builds the catalog of a plan and puts it in place, all or nothing.
pub(crate) async fn install(engine: &Engine, plan: Plan) -> Result<(), CatalogError> {
    for (channel, reason) in &plan.idle {
        tracing::warn!(channel, reason, "a channel cannot be used");
    }
    for (model, reason) in &plan.unlisted {
        tracing::warn!(model, reason, "a model is not listed");
    }
    let before = engine.catalog();
    let catalog = Catalog::build(
        plan.channels,
        &plan.timeouts,
        plan.models,
        &before,
        engine.store(),
    )
    .await?;
    engine.set_catalog(catalog);
    Ok(())
}
