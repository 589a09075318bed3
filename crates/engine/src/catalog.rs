//! The catalog: which models exist, what they cost, and which channels serve them.
//!
//! A catalog is a snapshot of one configuration. A call takes the snapshot once and uses it from start to end. A reload
//! builds a new catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use ledger::PriceCard;
use protocol::{Dialect, Failure, Kind, Profile};
use store::{KeyHead, PriceVersion, Store, StoreError};
use upstream::{Channel, ChannelError, ChannelSpec, Timeouts};

use crate::billing::route_cost::RouteCost;
use crate::failures::retry_after_upstream;
use crate::route::{RouteLimits, RouteState, Routing};

/// A model as configured.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpec {
    /// The public id, `<maker>/<model>`.
    pub id: String,
    pub kind: Kind,
    pub enabled: bool,
    /// In Unix seconds. Shown in lists of models.
    pub created: i64,
    pub routes: Vec<RouteSpec>,
    pub routing: Routing,
    pub price: PriceCard,
    pub profile: Profile,
}

/// A route to a model, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSpec {
    /// The channel's name.
    pub channel: String,
    /// The upstream's name for the model. Callers never see it.
    pub model: String,
    /// The lowest priority is tried first.
    pub priority: u32,
    /// The weight among routes of equal priority.
    pub weight: u32,
    /// Sets the dialect in which the channel is called.
    pub dialect: Option<Dialect>,
    pub limits: RouteLimits,
    /// What the upstream charges us; absent if unknown.
    pub cost: Option<PriceCard>,
}

/// A public model: what callers name and pay for, and the routes that serve it.
#[derive(Debug)]
pub struct Model {
    pub id: Arc<str>,
    pub kind: Kind,
    pub created: i64,
    pub price: PriceCard,
    pub price_version: PriceVersion,
    pub profile: Profile,
    pub routes: Vec<Arc<Route>>,
    pub routing: Routing,
    /// Whether any route has a limit of its own.
    pub(crate) has_limited_routes: bool,
    /// Whether all routes of the model respect the caller's output limit.
    pub(crate) keeps_output_limit: bool,
}

/// A route to a model.
#[derive(Debug)]
pub struct Route {
    pub channel: Channel,
    /// The channel's name, for the journal.
    pub(crate) channel_name: Arc<str>,
    pub model: Arc<str>,
    pub priority: u32,
    pub weight: u32,
    pub dialect: Option<Dialect>,
    pub limits: RouteLimits,
    /// What the upstream charges us; absent if unknown.
    pub cost: Option<Arc<RouteCost>>,
    /// What this node knows about the route from earlier calls.
    pub(crate) state: Arc<RouteState>,
}

/// The reason why a catalog could not be built.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error("prices could not be recorded: {0}")]
    Store(#[from] StoreError),
    #[error("model {model} has a route to the unknown channel {channel}")]
    UnknownChannel { model: String, channel: String },
    #[error("a price or cost card of {0} cannot be stored: {1}")]
    Price(String, serde_json::Error),
}

/// The models and channels of one configuration.
#[derive(Debug, Default)]
pub struct Catalog {
    models: BTreeMap<Arc<str>, Arc<Model>>,
    channels: BTreeMap<String, Channel>,
    /// Channels that an operator has disabled. No model has a route to them.
    disabled: BTreeSet<String>,
}

impl Catalog {
    /// Builds a catalog. A channel whose settings are the same as in `before` is kept, with its connections and its
    /// breaker.
    pub async fn build(
        channels: Vec<ChannelSpec>,
        timeouts: &Timeouts,
        models: Vec<ModelSpec>,
        before: &Catalog,
        store: &Store,
    ) -> Result<Self, CatalogError> {
        let mut made = Vec::with_capacity(channels.len());
        for spec in channels {
            let kept = before
                .channels
                .get(&spec.name)
                .filter(|old| *old.spec() == spec && old.timeouts() == *timeouts);
            made.push(match kept {
                Some(channel) => channel.clone(),
                None => Channel::new(spec, *timeouts)?,
            });
        }
        Self::assemble(made, models, before, store).await
    }

    /// Builds a catalog on existing channels.
    pub async fn on_channels(
        channels: Vec<Channel>,
        models: Vec<ModelSpec>,
        store: &Store,
    ) -> Result<Self, CatalogError> {
        Self::assemble(channels, models, &Self::default(), store).await
    }

    async fn assemble(
        channels: Vec<Channel>,
        models: Vec<ModelSpec>,
        before: &Catalog,
        store: &Store,
    ) -> Result<Self, CatalogError> {
        let mut catalog = Self::default();
        for channel in channels {
            catalog.channels.insert(channel.name().to_owned(), channel);
        }
        for spec in models {
            if spec.enabled {
                let model = catalog.model_of(spec, before, store).await?;
                catalog
                    .models
                    .insert(Arc::clone(&model.id), Arc::new(model));
            }
        }
        Ok(catalog)
    }

    /// Marks channels as disabled by the operator. The catalog must have no routes to them; their open tasks are still
    /// polled.
    #[must_use]
    pub fn with_disabled(mut self, channels: impl IntoIterator<Item = String>) -> Self {
        self.disabled.extend(channels);
        self
    }

    async fn model_of(
        &self,
        spec: ModelSpec,
        before: &Catalog,
        store: &Store,
    ) -> Result<Model, CatalogError> {
        let card = write_card(&spec.id, &spec.price)?;
        let price_version = store.price_version(&spec.id, &card).await?;
        let mut routes = Vec::with_capacity(spec.routes.len());
        let known = before.models.get(spec.id.as_str());
        let known = known.map_or(&[][..], |model| &model.routes);
        for route in spec.routes {
            let route = self.route_of(&spec.id, route, known, store).await?;
            routes.push(Arc::new(route));
        }
        Ok(Model {
            id: spec.id.into(),
            kind: spec.kind,
            created: spec.created,
            price: spec.price,
            price_version,
            profile: spec.profile,
            keeps_output_limit: routes
                .iter()
                .all(|route| route.channel.keeps_output_limit()),
            has_limited_routes: routes.iter().any(|route| route.limits.is_limited()),
            routing: spec.routing,
            routes,
        })
    }

    async fn route_of(
        &self,
        model: &str,
        route: RouteSpec,
        known: &[Arc<Route>],
        store: &Store,
    ) -> Result<Route, CatalogError> {
        let channel =
            self.channels
                .get(&route.channel)
                .ok_or_else(|| CatalogError::UnknownChannel {
                    model: model.to_owned(),
                    channel: route.channel.clone(),
                })?;
        let cost = match route.cost {
            Some(card) => {
                let written = write_card(model, &card)?;
                let version = store.cost_version(model, &route.channel, &written).await?;
                Some(Arc::new(RouteCost { card, version }))
            }
            None => None,
        };
        let is_same =
            |old: &&Arc<Route>| *old.channel_name == *route.channel && *old.model == *route.model;
        let state = known.iter().find(is_same);
        let state = state.map(|old| Arc::clone(&old.state)).unwrap_or_default();
        Ok(Route {
            channel: channel.clone(),
            channel_name: channel.name().into(),
            model: route.model.into(),
            priority: route.priority,
            weight: route.weight,
            dialect: route.dialect,
            limits: route.limits,
            cost,
            state,
        })
    }

    /// Finds a model by its public id, if this key may call it and it can be called now. A key that may not call the
    /// model does not learn whether it exists.
    pub fn find(&self, id: &str, key: &KeyHead) -> Result<&Arc<Model>, Failure> {
        if !key.allows(id) {
            return Err(Failure::model_not_allowed(id));
        }
        match self.models.get(id) {
            Some(model) if model.is_callable() => Ok(model),
            Some(model) => {
                let out = model.unavailable(|_| true);
                Err(out.unwrap_or_else(|| Failure::model_not_found(id)))
            }
            None => Err(Failure::model_not_found(id)),
        }
    }

    /// Finds a model by its public id, whether or not it can be called now.
    pub fn get(&self, id: &str) -> Option<&Arc<Model>> {
        self.models.get(id)
    }

    /// Finds a channel by its name.
    pub fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels.get(name)
    }

    /// The models that can be called now, in order of their ids.
    pub fn list(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.models.values().filter(|model| model.is_callable())
    }

    /// The models that can be called now and that this key may call.
    pub fn list_for(&self, key: &KeyHead) -> impl Iterator<Item = &Arc<Model>> {
        self.list().filter(|model| key.allows(&model.id))
    }

    /// All models, whether or not they can be called now.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.models.values()
    }

    /// Whether an operator has disabled this channel.
    pub fn is_disabled(&self, channel: &str) -> bool {
        self.disabled.contains(channel)
    }

    /// All channels in order of their names, including disabled ones.
    pub fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.channels.values()
    }
}

/// Writes a price or cost card in its stored form.
fn write_card(model: &str, card: &PriceCard) -> Result<String, CatalogError> {
    serde_json::to_string(card).map_err(|error| CatalogError::Price(model.to_owned(), error))
}

impl Model {
    /// Whether the channel of at least one route is live. An open breaker does not remove a model from the list.
    pub fn is_callable(&self) -> bool {
        let is_live = |route: &Arc<Route>| route.channel.is_live(Instant::now);
        self.routes.iter().any(is_live)
    }

    /// The failure while all routes that could serve a call are out of use, because their upstreams refuse our
    /// credentials. The client may retry. `None` if no upstream refuses a credential.
    pub(crate) fn unavailable(&self, carries: impl Fn(&Route) -> bool) -> Option<Failure> {
        let now = Instant::now();
        let carrying = self.routes.iter().filter(|route| carries(route));
        let wait = carrying
            .filter_map(|route| route.channel.credential_retry_in(now))
            .min()?;
        let message = format!("The model `{}` cannot be reached now.", self.id);
        Some(retry_after_upstream(Failure::unavailable(message), wait))
    }

    /// The failure for a call that no route of the model can serve.
    pub(crate) fn unreachable(&self) -> Failure {
        Failure::model_not_supported(format!(
            "The model `{}` cannot be reached through this endpoint.",
            self.id
        ))
    }

    /// The maker's slug: the part of the id before the first slash.
    pub fn maker(&self) -> &str {
        self.id
            .split_once('/')
            .map_or(&*self.id, |(maker, _)| maker)
    }
}
