//! Tests the services that a configuration names. Asks channels for their models, reads the store, and writes, reads
//! and deletes a small object in the media storage. No model is called.

use std::collections::HashSet;
use std::time::Duration;

use engine::{ModelsAnswer, ask_for_models};
use futures_util::future::join_all;
use protocol::ModelList;
use store::{Media, MediaPlace, MediaSettings, Settings, Store, StoreState};
use tokio::time::timeout;
use upstream::{Channel, ChannelSpec, Timeouts};

use crate::config::{Config, Plan};

/// The time limit for the store and for the media storage. Channels have their own time limit.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct LiveReport {
    /// The live channels, in the order of the file.
    pub(crate) channels: Vec<ChannelFinding>,
    pub(crate) store: Finding,
    pub(crate) media: Finding,
}

impl LiveReport {
    /// Whether nothing has failed.
    pub(crate) fn is_ok(&self) -> bool {
        self.channels.iter().all(ChannelFinding::is_ok)
            && self.store.state != State::Failed
            && self.media.state != State::Failed
    }
}

/// The result of testing a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Works,
    /// There is nothing to test, which is not an error.
    NotTried,
    Failed,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::NotTried => "not tried",
            Self::Failed => "failed",
        }
    }
}

/// The result for the store or the media storage.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) state: State,
    /// A sentence for the operator.
    pub(crate) message: String,
}

impl Finding {
    fn new(state: State, message: impl Into<String>) -> Self {
        Self {
            state,
            message: message.into(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct ChannelFinding {
    pub(crate) name: String,
    pub(crate) finding: Finding,
    /// The status of the upstream's answer, if there was one.
    pub(crate) status: Option<u16>,
    /// The number of models that the account lists.
    pub(crate) models: Option<usize>,
    /// Routes whose model the account does not list.
    pub(crate) missing: Vec<MissingRoute>,
    pub(crate) total: Duration,
}

/// A route whose model is not in the list of its channel's account.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MissingRoute {
    /// The id of the model in our catalog.
    pub(crate) model: String,
    /// The upstream's name for the model.
    pub(crate) upstream_model: String,
}

impl ChannelFinding {
    fn is_ok(&self) -> bool {
        self.finding.state != State::Failed
    }

    fn not_asked(name: &str, finding: Finding) -> Self {
        Self {
            name: name.to_owned(),
            finding,
            status: None,
            models: None,
            missing: Vec::new(),
            total: Duration::ZERO,
        }
    }
}

/// Tests all services at the same time.
pub(crate) async fn run(plan: &Plan, config: &Config) -> LiveReport {
    let is_idle = |spec: &&ChannelSpec| plan.idle.iter().any(|(name, _)| *name == spec.name);
    let channels = plan.channels.iter().filter(|spec| !is_idle(spec));
    let channels = channels.map(|spec| try_channel(spec, plan.timeouts, plan));
    let (channels, store, media) = tokio::join!(
        join_all(channels),
        try_store(config.store_settings()),
        try_media(config.media_settings()),
    );
    LiveReport {
        channels,
        store,
        media,
    }
}

async fn try_channel(spec: &ChannelSpec, timeouts: Timeouts, plan: &Plan) -> ChannelFinding {
    let name = &spec.name;
    if !spec.preset.lists_models() {
        let message = format!(
            "upstreams of the preset {} have no list of models",
            spec.preset
        );
        return ChannelFinding::not_asked(name, Finding::new(State::NotTried, message));
    }
    let channel = match Channel::new(spec.clone(), timeouts) {
        Ok(channel) => channel,
        Err(error) => {
            let message = format!("the channel cannot be used: {error}");
            return ChannelFinding::not_asked(name, Finding::new(State::Failed, message));
        }
    };
    let answer = ask_for_models(&channel).await;
    let missing = answer.list.as_ref().map(|list| missing(name, list, plan));
    let missing = missing.unwrap_or_default();
    ChannelFinding {
        name: name.clone(),
        finding: finding_of(&answer, &missing),
        status: answer.status,
        models: answer.list.as_ref().map(|list| list.models.len()),
        missing,
        total: answer.total,
    }
}

fn finding_of(answer: &ModelsAnswer, missing: &[MissingRoute]) -> Finding {
    match (&answer.list, answer.status) {
        (Some(list), _) => {
            let count = list.models.len();
            if !missing.is_empty() {
                let routes = missing.len();
                let message =
                    format!("the account has {count} models, and {routes} routes name others");
                return Finding::new(State::Failed, message);
            }
            let message = if list.is_complete {
                format!("the account has {count} models, those of all routes among them")
            } else {
                format!("the upstream listed {count} models and has more; routes were not compared")
            };
            Finding::new(State::Works, message)
        }
        (None, Some(401 | 403)) => Finding::new(
            State::Failed,
            format!("the credential is refused. {}", answer.message),
        ),
        (None, Some(404 | 405 | 501)) => Finding::new(
            State::NotTried,
            format!(
                "the upstream has no list of models at this address. {}",
                answer.message
            ),
        ),
        (None, Some(_)) => Finding::new(State::Failed, answer.message.clone()),
        (None, None) => Finding::new(
            State::Failed,
            format!("the upstream cannot be reached. {}", answer.message),
        ),
    }
}

/// The routes to a channel that name a model outside of the account's list. An incomplete list proves nothing, so it
/// gives no routes.
fn missing(channel: &str, list: &ModelList, plan: &Plan) -> Vec<MissingRoute> {
    if !list.is_complete {
        return Vec::new();
    }
    let names: HashSet<&str> = list.models.iter().map(|model| &*model.name).collect();
    let mut missing = Vec::new();
    for model in &plan.models {
        let routes = model.routes.iter();
        let routes = routes.filter(|route| route.channel == channel);
        for route in routes.filter(|route| !names.contains(&*route.model)) {
            missing.push(MissingRoute {
                model: model.id.clone(),
                upstream_model: route.model.clone(),
            });
        }
    }
    missing
}

async fn try_store(settings: Settings) -> Finding {
    let condition = match timeout(CHECK_TIMEOUT, Store::inspect(&settings)).await {
        Ok(Ok(condition)) => condition,
        Ok(Err(error)) => return Finding::new(State::Failed, error.to_string()),
        Err(_) => return Finding::new(State::Failed, no_answer()),
    };
    match condition {
        StoreState::Absent => Finding::new(
            State::NotTried,
            "there is no database yet; the first start or command creates it",
        ),
        StoreState::Older { found, known } => Finding::new(
            State::Works,
            format!(
                "the schema is version {found}; the next start of a server brings it to {known}"
            ),
        ),
        StoreState::Current { version, is_used } => {
            let used = if is_used {
                "has wallets"
            } else {
                "has no wallets"
            };
            let message = format!("the schema is version {version}, as it should be, and {used}");
            Finding::new(State::Works, message)
        }
    }
}

async fn try_media(settings: MediaSettings) -> Finding {
    if let MediaPlace::Folder(folder) = &settings.place
        && !folder.exists()
    {
        let message = "there is no folder yet; the first start creates it";
        return Finding::new(State::NotTried, message);
    }
    let media = match Media::open(&settings) {
        Ok(media) => media,
        Err(error) => return Finding::new(State::Failed, error.to_string()),
    };
    match timeout(CHECK_TIMEOUT, media.self_test()).await {
        Ok(Ok(())) => Finding::new(State::Works, "a small object was written, read and deleted"),
        Ok(Err((step, error))) => Finding::new(
            State::Failed,
            format!("a small object could not be {step}: {error}"),
        ),
        Err(_) => Finding::new(State::Failed, no_answer()),
    }
}

fn no_answer() -> String {
    format!("no answer within {} seconds", CHECK_TIMEOUT.as_secs())
}
