//! The state that all handlers of the admin API share.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::Engine;
use http_server::InProcess;
use store::Store;

use crate::admin::access::Access;
use crate::admin::console::Console;
use crate::admin::events::EventHub;
use crate::config::Config;
use crate::gateway::CatalogKeeper;

/// The state of all handlers. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AdminState(Arc<AdminParts>);

#[derive(Debug)]
pub(crate) struct AdminParts {
    pub(crate) engine: Arc<Engine>,
    pub(crate) access: Access,
    /// The channels and models in force.
    pub(crate) keeper: Arc<CatalogKeeper>,
    /// The configuration that the process was started with.
    pub(crate) config: Config,
    /// The public service, for calls of the playground.
    pub(crate) public: InProcess,
    ready: Arc<AtomicBool>,
    console: OnceLock<Console>,
    /// Distributes live events to listeners.
    pub(crate) events: EventHub,
}

impl AdminState {
    pub(crate) fn new(
        engine: Arc<Engine>,
        access: Access,
        keeper: Arc<CatalogKeeper>,
        config: Config,
        ready: Arc<AtomicBool>,
        public: InProcess,
    ) -> Self {
        Self(Arc::new(AdminParts {
            engine,
            access,
            keeper,
            config,
            public,
            ready,
            console: OnceLock::new(),
            events: EventHub::default(),
        }))
    }
}

impl AdminParts {
    pub(crate) fn store(&self) -> &Store {
        self.engine.store()
    }

    pub(crate) fn is_draining(&self) -> bool {
        !self.ready.load(Ordering::Relaxed)
    }

    /// Whether calls are admitted.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_draining() && self.store().healthy()
    }

    /// The console. Its policy names the public address, which is not known before both listeners are bound.
    pub(crate) fn console(&self) -> &Console {
        self.console
            .get_or_init(|| Console::new(self.engine.public_url()))
    }
}

impl std::ops::Deref for AdminState {
    type Target = AdminParts;

    fn deref(&self) -> &AdminParts {
        &self.0
    }
}
