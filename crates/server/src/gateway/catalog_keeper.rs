//! Holds the channels and models in force, and replaces them while the gateway runs.
//!
//! They come from the configuration file. With `admin.config = "store"`, the latest catalog in the store replaces the
//! entries of the file on every node. In both cases the entries are written into the text of the file, and that text is
//! parsed. So a change has exactly the same effect as a reload of a file with these entries.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use engine::{CatalogError, Engine};
use rand::RngExt as _;
use store::{Actor, AuditAction, StoreError};

use super::catalog::{build, missing_channels};
use super::catalog_change::Change;
use crate::config::{
    self, BadCredential, CatalogLocation, Config, CredentialPolicy, Entries, EntriesError,
    FileDraft, PastedSecrets, Problem, read_if_exists, remove_unused,
};

/// How often a node looks for a newer catalog in the store.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct CatalogKeeper {
    engine: Arc<Engine>,
    in_force: ArcSwap<InForce>,
    /// Serializes changes, so that a version is compared and replaced atomically.
    changing: tokio::sync::Mutex<()>,
}

/// The configuration in force, and which of its channels and models cannot be used.
#[derive(Debug)]
pub(crate) struct InForce {
    pub(crate) config: Config,
    /// The version of the stored catalog; 0 if the entries are those of the file.
    stored_version: i64,
    /// Channels that cannot be used, each with the reason.
    pub(crate) idle: Vec<(String, String)>,
    /// Models that cannot be called, each with the reason.
    pub(crate) unlisted: Vec<(String, String)>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReplaceError {
    #[error("The configuration has changed since it was read. Read it again.")]
    Version,
    #[error("There is no channel {0} in the configuration.")]
    NoChannel(String),
    #[error("{}", shown(.0).join("; "))]
    Problems(Vec<Problem>),
    #[error(transparent)]
    Credential(#[from] BadCredential),
    #[error(
        "A credential cannot be given as text where the configuration is kept in the store, because every node needs it. Put it into the environment or into a file of each node, and name that."
    )]
    PastedSecret,
    #[error(
        "This gateway was not started with a configuration file, so there is nothing to write to. Start it with `tollgate serve --config FILE`, or set `admin.config = \"store\"`."
    )]
    NoFile,
    #[error(
        "Channel {0} has {1} open tasks, which can only be followed there. It must stay until they have ended."
    )]
    OpenTasks(String, u64),
    #[error("the configuration file cannot be written: {0}")]
    File(#[from] std::io::Error),
    #[error(transparent)]
    Entries(#[from] EntriesError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Formats problems for an operator, each with the path of its setting.
pub(crate) fn shown(problems: &[Problem]) -> Vec<String> {
    let shown = problems.iter().map(|problem| match problem.key.as_str() {
        "" => problem.message.clone(),
        key => format!("{key}: {}", problem.message),
    });
    shown.collect()
}

impl CatalogKeeper {
    /// Starts with a configuration whose catalog is already installed.
    pub(crate) fn new(engine: Arc<Engine>, loaded: Loaded) -> Self {
        Self {
            engine,
            in_force: ArcSwap::from_pointee(loaded.in_force()),
            changing: tokio::sync::Mutex::new(()),
        }
    }

    pub(crate) fn in_force(&self) -> Arc<InForce> {
        self.in_force.load_full()
    }

    /// The problems of these entries. A credential that is not valid or not allowed is reported alone, because the
    /// entries are not parsed then. Secrets are not looked up.
    pub(crate) async fn check(&self, mut entries: Entries) -> Result<Vec<String>, ReplaceError> {
        let now = self.in_force();
        let known = now.entries()?;
        entries.keep_credentials_of(&known);
        let allowed = CredentialPolicy::new(&now.config, &known).check(&entries);
        if let Err(bad) = allowed.and_then(|()| PastedSecrets::take(&mut entries, "new")) {
            return Ok(vec![bad.to_string()]);
        }
        let config = match with_entries(now.config.clone(), entries).await? {
            Ok(config) => config,
            Err(problems) => return Ok(shown(&problems)),
        };
        match self.plan(config).await {
            Ok(_) => Ok(Vec::new()),
            Err(ReplaceError::Problems(problems)) => Ok(shown(&problems)),
            Err(error @ ReplaceError::OpenTasks(..)) => Ok(vec![error.to_string()]),
            Err(error) => Err(error),
        }
    }

    /// Replaces the entries in force if their version is `version`, and saves the new entries.
    pub(crate) async fn replace(
        &self,
        version: u64,
        entries: Entries,
        actor: &Actor,
    ) -> Result<Arc<InForce>, ReplaceError> {
        self.change(Change::Replace { version, entries }, actor)
            .await
    }

    /// Switches a channel on or off, and saves the change.
    pub(crate) async fn switch_channel(
        &self,
        channel: String,
        enabled: bool,
        actor: &Actor,
    ) -> Result<Arc<InForce>, ReplaceError> {
        // A switch applies to the latest entries, even if another node has changed them.
        if self.in_force().config.admin.config == CatalogLocation::Store {
            self.follow_once().await?;
        }
        self.change(Change::Switch { channel, enabled }, actor)
            .await
    }

    async fn change(&self, change: Change, actor: &Actor) -> Result<Arc<InForce>, ReplaceError> {
        let _alone = self.changing.lock().await;
        let now = self.in_force();
        match now.config.admin.config {
            CatalogLocation::Store => self.change_stored(change, actor, &now).await,
            CatalogLocation::File => {
                let file = now.config.file.as_deref().ok_or(ReplaceError::NoFile)?;
                let text = read_if_exists(file)?.ok_or(ReplaceError::NoFile)?;
                let before = Entries::of(&text)?;
                let mut entries = change.apply(&before, before.digest_version())?;
                CredentialPolicy::new(&now.config, &before).check(&entries)?;
                let suffix = format!("{:08x}", rand::rng().random::<u32>());
                let secrets = Arc::new(PastedSecrets::take(&mut entries, &suffix)?);
                let folder = file.parent().map(Path::to_owned).unwrap_or_default();
                let base = Config {
                    text: text.as_str().into(),
                    ..now.config.clone()
                };
                let (writes, beside) = (Arc::clone(&secrets), folder.clone());
                let made = match run_blocking(move || writes.write(&beside)).await? {
                    Ok(()) => {
                        let action = change.action(&before, &entries);
                        // Boxed, because the future holds two configurations.
                        let written = self.write_file(base, &before, &entries, action, actor);
                        Box::pin(written).await
                    }
                    Err(error) => Err(error.into()),
                };
                match &made {
                    Ok(_) => remove_unused(&before, &entries, &folder),
                    Err(_) => secrets.remove(&folder),
                }
                made
            }
        }
    }

    /// Writes the file, unless the entries are the same. The catalog is built first, so that a file that cannot be
    /// installed is never written. Everything that can fail comes before the audit row, except for the final rename.
    async fn write_file(
        &self,
        base: Config,
        before: &Entries,
        entries: &Entries,
        action: AuditAction,
        actor: &Actor,
    ) -> Result<Arc<InForce>, ReplaceError> {
        let config = with_entries(base, entries.clone()).await?;
        let config = config.map_err(ReplaceError::Problems)?;
        let (loaded, catalog) = self.prepare(config, 0).await?;
        if before != entries {
            let file = loaded.config.file.clone().unwrap_or_default();
            let text = Arc::clone(&loaded.config.text);
            let draft = run_blocking(move || FileDraft::write(&file, &text)).await??;
            let store = self.engine.store();
            store.note_action(action, actor).await?;
            run_blocking(move || draft.replace()).await??;
        }
        Ok(self.install(loaded, catalog))
    }

    async fn change_stored(
        &self,
        change: Change,
        actor: &Actor,
        now: &InForce,
    ) -> Result<Arc<InForce>, ReplaceError> {
        let before = now.entries()?;
        let mut entries = change.apply(&before, now.version()?)?;
        CredentialPolicy::new(&now.config, &before).check(&entries)?;
        if !PastedSecrets::take(&mut entries, "new")?.is_empty() {
            return Err(ReplaceError::PastedSecret);
        }
        let config = with_entries(now.config.clone(), entries.clone()).await?;
        let config = config.map_err(ReplaceError::Problems)?;
        let (mut loaded, catalog) = self.prepare(config, now.stored_version).await?;
        if before == entries {
            return Ok(self.install(loaded, catalog));
        }
        let document = serde_json::to_string(&entries).map_err(std::io::Error::other)?;
        let store = self.engine.store();
        let action = change.action(&before, &entries);
        let stored = store.replace_catalog(now.stored_version, document, action, actor);
        loaded.stored_version = stored.await?.ok_or(ReplaceError::Version)?;
        Ok(self.install(loaded, catalog))
    }

    async fn prepare(
        &self,
        config: Config,
        stored_version: i64,
    ) -> Result<(Loaded, engine::Catalog), ReplaceError> {
        let (config, plan) = self.plan(config).await?;
        let loaded = Loaded::of(config, &plan, stored_version);
        let catalog = build(&self.engine, plan).await?;
        Ok((loaded, catalog))
    }

    /// The plan of a configuration that may replace the one in force.
    async fn plan(&self, config: Config) -> Result<(Config, config::Plan), ReplaceError> {
        let (config, plan) = run_blocking(move || {
            let plan = config::resolve(&config);
            (config, plan)
        })
        .await?;
        let plan = plan.map_err(ReplaceError::Problems)?;
        if let Some((channel, tasks)) = missing_channels(&self.engine, &plan).await?.pop() {
            return Err(ReplaceError::OpenTasks(channel, tasks));
        }
        Ok((config, plan))
    }

    fn install(&self, loaded: Loaded, catalog: engine::Catalog) -> Arc<InForce> {
        self.engine.set_catalog(catalog);
        let in_force = Arc::new(loaded.in_force());
        self.in_force.store(Arc::clone(&in_force));
        in_force
    }

    /// Installs the current file. If this node keeps its entries in the store, a stored catalog replaces them. Also
    /// returns whether the file changes settings that take effect only after a restart.
    pub(super) async fn reload(
        &self,
        file: &Path,
        started_with: &Config,
    ) -> Result<(Arc<InForce>, bool), ReplaceError> {
        let _alone = self.changing.lock().await;
        let file = file.to_owned();
        let config = run_blocking(move || Config::load(&file)).await?;
        let mut config = config.map_err(ReplaceError::Problems)?;
        let needs_restart = !config.differs_only_in_catalog(started_with);
        // A reload must not change where this node saves its changes. Otherwise the changes of other nodes would be
        // lost.
        config.admin.config = started_with.admin.config;
        config.admin.credential_env = started_with.admin.credential_env.clone();
        let (config, version) = with_stored_entries(config, &self.engine).await?;
        let (loaded, catalog) = self.prepare(config, version).await?;
        Ok((self.install(loaded, catalog), needs_restart))
    }

    /// Installs newer catalogs from the store, forever. Runs on nodes that keep their catalog there.
    pub(crate) async fn follow_store(self: Arc<Self>) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            if let Err(error) = self.follow_once().await {
                tracing::error!(%error, "a newer catalog of the store is not installed; it will be tried again");
            }
        }
    }

    async fn follow_once(&self) -> Result<(), ReplaceError> {
        let latest = self.engine.store().catalog_version().await?;
        if latest == self.in_force().stored_version {
            return Ok(());
        }
        let _alone = self.changing.lock().await;
        let now = self.in_force();
        let (config, version) = with_stored_entries(now.config.clone(), &self.engine).await?;
        if version == now.stored_version {
            return Ok(());
        }
        let (loaded, catalog) = self.prepare(config, version).await?;
        self.install(loaded, catalog);
        tracing::info!(version, "a newer catalog of the store is installed");
        Ok(())
    }
}

/// A configuration whose catalog can be installed, and which of its channels and models cannot be used.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    stored_version: i64,
    idle: Vec<(String, String)>,
    unlisted: Vec<(String, String)>,
}

impl Loaded {
    pub(super) fn of(config: Config, plan: &config::Plan, stored_version: i64) -> Self {
        Self {
            config,
            stored_version,
            idle: plan.idle.clone(),
            unlisted: plan.unlisted.clone(),
        }
    }

    fn in_force(self) -> InForce {
        InForce {
            config: self.config,
            stored_version: self.stored_version,
            idle: self.idle,
            unlisted: self.unlisted,
        }
    }
}

impl InForce {
    /// The entries in force, with the members that their text contains. Defaults are not filled in.
    pub(crate) fn entries(&self) -> Result<Entries, EntriesError> {
        Entries::of(&self.config.text)
    }

    pub(crate) fn version(&self) -> Result<u64, EntriesError> {
        match self.config.admin.config {
            CatalogLocation::File => Ok(self.entries()?.digest_version()),
            CatalogLocation::Store => Ok(u64::try_from(self.stored_version).unwrap_or(0)),
        }
    }

    /// The models that have a route to this channel but cannot be called.
    pub(crate) fn uncallable_models(&self, channel: &str) -> Vec<String> {
        let is_out = |id: &str| self.unlisted.iter().any(|(unlisted, _)| unlisted == id);
        let models = self.config.models.iter().filter(|model| {
            let mut routes = model.routes.iter();
            routes.any(|route| route.channel == channel) && is_out(&model.id)
        });
        models.map(|model| model.id.clone()).collect()
    }

    pub(crate) fn idle_reason(&self, channel: &str) -> Option<&str> {
        let found = self.idle.iter().find(|(name, _)| name == channel);
        found.map(|(_, reason)| reason.as_str())
    }
}

/// The configuration with the entries of the latest stored catalog, and the version of that catalog. If the
/// configuration keeps its entries in the file, or the store has no catalog, returns the configuration unchanged, with
/// version 0.
pub(super) async fn with_stored_entries(
    config: Config,
    engine: &Engine,
) -> Result<(Config, i64), ReplaceError> {
    if config.admin.config == CatalogLocation::File {
        return Ok((config, 0));
    }
    let Some(stored) = engine.store().latest_catalog().await? else {
        return Ok((config, 0));
    };
    let entries: Entries = serde_json::from_str(&stored.document).map_err(|error| {
        let message = format!(
            "version {} in the store is not readable: {error}",
            stored.version
        );
        ReplaceError::Problems(vec![Problem::of_store(message)])
    })?;
    let config = with_entries(config, entries).await?;
    let config = config.map_err(|mut problems| {
        for problem in &mut problems {
            problem.position = None;
            problem.file = format!("version {} in the store", stored.version).into();
        }
        ReplaceError::Problems(problems)
    })?;
    Ok((config, stored.version))
}

/// Replaces the entries of a configuration. Returns the new configuration, or the problems of the entries.
async fn with_entries(
    config: Config,
    entries: Entries,
) -> Result<Result<Config, Vec<Problem>>, ReplaceError> {
    Ok(run_blocking(move || config.with_entries(&entries)).await??)
}

/// Runs file operations on a blocking thread, so that a slow disk does not delay calls.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ReplaceError> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(std::io::Error::other)?)
}
