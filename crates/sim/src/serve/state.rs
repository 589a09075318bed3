//! The state that all connections of a simulator share.

use crate::call_log::{Bounds, CallLog};
use crate::cloud::IssuedTokens;
use crate::content_task::Tasks;
use crate::fault::Queue;
use crate::settings::Settings;
use crate::video_a::Jobs;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::task::JoinSet;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) calls: Arc<CallLog>,
    pub(crate) queue: Queue,
    pub(crate) issued_tokens: IssuedTokens,
    pub(crate) jobs: Arc<Jobs>,
    /// The running WebSocket sessions, which outlive the HTTP exchange.
    pub(crate) sessions: Mutex<JoinSet<()>>,
    pub(crate) content_tasks: Arc<Tasks>,
}

impl State {
    pub(super) fn new(settings: Settings) -> Self {
        let bounds = Bounds {
            calls: settings.calls_max,
            body_bytes: settings.call_body_bytes_max,
            bytes: settings.calls_bytes_max,
        };
        Self {
            settings,
            calls: Arc::new(CallLog::new(bounds)),
            queue: Queue::default(),
            issued_tokens: IssuedTokens::default(),
            jobs: Arc::default(),
            sessions: Mutex::default(),
            content_tasks: Arc::default(),
        }
    }
}
