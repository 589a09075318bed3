//! The protocols of video tasks. In this folder, only `list.rs` names a protocol too.

use bytes::Bytes;
use protocol::video::{self, CreationRequest, content_task, omni, predict, video_a};
use protocol::{BuiltInProfile, Dialect, Failure, Kind};
use upstream::{Endpoint, Protocol};

use crate::engine::Engine;

/// The endpoint at which a video is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VideoEndpoint {
    /// `POST /v1/videos/…`
    VideoA(video_a::Operation),
    /// `POST /v1beta/models/{model}:predictLongRunning`
    Predict(String),
    /// `POST /v1beta/interactions` for a video.
    Omni,
    /// `POST /v1/contents/generations/tasks`
    ContentTask,
}

impl VideoEndpoint {
    /// The protocol that a channel must speak to serve this endpoint.
    pub(super) fn protocol(&self) -> Protocol {
        match self {
            Self::VideoA(_) => Protocol::VideoA,
            Self::Predict(_) => Protocol::Predict,
            Self::Omni => Protocol::Omni,
            Self::ContentTask => Protocol::ContentTask,
        }
    }

    /// Whether models with this base can be called at this endpoint.
    pub(super) fn suits(&self, base: Option<BuiltInProfile>) -> bool {
        video_protocols(base).contains(&self.protocol())
    }

    pub(super) fn read(&self, body: &Bytes) -> Result<Box<dyn CreationRequest>, Failure> {
        Ok(match self {
            Self::VideoA(operation) => Box::new(video_a::read_request(body, *operation)?),
            Self::Predict(model) => Box::new(predict::read_request(body, model)?),
            Self::Omni => Box::new(omni::read_request(body)?),
            Self::ContentTask => Box::new(content_task::read_request(body)?),
        })
    }

    /// The upstream's endpoint for creations.
    pub(super) fn endpoint(&self) -> Endpoint {
        match self {
            Self::VideoA(video_a::Operation::Generation) => Endpoint::VideoGenerations,
            Self::VideoA(video_a::Operation::Edit) => Endpoint::VideoEdits,
            Self::VideoA(video_a::Operation::Extension) => Endpoint::VideoExtensions,
            Self::Predict(_) => Endpoint::PredictLongRunning,
            Self::Omni => Endpoint::Text {
                dialect: Dialect::Interactions,
                stream: false,
            },
            Self::ContentTask => Endpoint::ContentTasks,
        }
    }
}

/// The protocols for video models with this base. A channel may speak several protocols, but a profile describes only
/// one. If there is no base, the channel decides.
pub fn video_protocols(base: Option<BuiltInProfile>) -> &'static [Protocol] {
    use Protocol::{ContentTask, Omni, Predict, VideoA};
    match base {
        Some(BuiltInProfile::VideoA) => &[VideoA],
        Some(BuiltInProfile::Omni11) => &[Omni],
        Some(
            BuiltInProfile::Predict31
            | BuiltInProfile::Predict31Fast
            | BuiltInProfile::Predict31Lite,
        ) => &[Predict],
        Some(
            BuiltInProfile::Content25
            | BuiltInProfile::Content20
            | BuiltInProfile::Content15Pro
            | BuiltInProfile::Content10,
        ) => &[ContentTask],
        Some(_) | None => &[VideoA, Omni, Predict, ContentTask],
    }
}

/// The endpoints and functions for polling and deleting tasks of a protocol.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskProtocol {
    pub(super) video: &'static dyn video::Protocol,
    /// The endpoint for polls; `None` if upstreams return the result in the answer to the creation.
    pub(super) poll: Option<Endpoint>,
    /// The endpoint that cancels a task or deletes its record, if there is one.
    pub(super) cancel: Option<Endpoint>,
}

impl TaskProtocol {
    /// Finds a protocol by the name that the row of a task stores.
    pub(super) fn find(name: &str) -> Option<Self> {
        match name.parse().ok()? {
            Protocol::VideoA => Some(Self {
                video: &video_a::VideoA,
                poll: Some(Endpoint::Video),
                cancel: None,
            }),
            Protocol::Predict => Some(Self {
                video: &predict::Predict,
                poll: Some(Endpoint::Operation),
                cancel: None,
            }),
            Protocol::Omni => Some(Self {
                video: &omni::Omni,
                poll: None,
                cancel: None,
            }),
            Protocol::ContentTask => Some(Self {
                video: &content_task::ContentTask,
                poll: Some(Endpoint::ContentTask),
                cancel: Some(Endpoint::ContentTaskDeletion),
            }),
            _ => None,
        }
    }
}

impl Engine {
    /// Whether a request to the Interactions endpoint is for a video, judged by its model or by its members
    /// (`docs/api/omni.md`).
    pub fn is_video_interaction(&self, body: &[u8]) -> bool {
        let hints = omni::read_route_hints(body);
        let catalog = self.catalog();
        let model = hints.model.and_then(|model| catalog.get(&model));
        hints.video || model.is_some_and(|model| model.kind == Kind::Video)
    }
}
