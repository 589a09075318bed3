//! The protocols that tasks are asked for in: the one place that knows them by name.

use bytes::Bytes;
use protocol::Failure;
use protocol::video::{self, Creation, video_a};
use upstream::{Endpoint, Protocol};

/// What a caller asks for, by the endpoint that was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskAsk {
    /// `POST /v1/videos/…`
    VideoA(video_a::Operation),
}

impl TaskAsk {
    /// The protocol that a channel must speak.
    pub(super) fn protocol(&self) -> Protocol {
        match self {
            Self::VideoA(_) => Protocol::VideoA,
        }
    }

    /// Reads the request.
    pub(super) fn read(&self, body: &Bytes) -> Result<Box<dyn Creation>, Failure> {
        Ok(match self {
            Self::VideoA(operation) => Box::new(video_a::read_request(body, *operation)?),
        })
    }

    /// What of an upstream is called.
    pub(super) fn endpoint(&self) -> Endpoint {
        match self {
            Self::VideoA(video_a::Operation::Generation) => Endpoint::VideoGenerations,
            Self::VideoA(video_a::Operation::Edit) => Endpoint::VideoEdits,
            Self::VideoA(video_a::Operation::Extension) => Endpoint::VideoExtensions,
        }
    }
}

/// A protocol as following its tasks needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) video: &'static dyn video::Protocol,
    /// How a task is asked about; nothing where upstreams answer a creation with the result.
    pub(super) poll: Option<Endpoint>,
    /// How a task is called off upstream, where that can be.
    pub(super) cancel: Option<Endpoint>,
}

impl Known {
    /// The protocol of this name, which a task's row keeps.
    pub(super) fn find(name: &str) -> Option<Self> {
        match name.parse().ok()? {
            Protocol::VideoA => Some(Self {
                video: &video_a::VideoA,
                poll: Some(Endpoint::Video),
                cancel: None,
            }),
            _ => None,
        }
    }
}
