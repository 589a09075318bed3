//! Defines the wire format of an answer and of its events.

use super::usage::Usage;
use crate::model::Citation;
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Serialize)]
pub(super) struct Interaction<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) model: &'a str,
    pub(super) status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) created: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) updated: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service_tier: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) steps: Option<Vec<Step>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) errors: Option<[Failure<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continuation_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Failure<'a> {
    pub(super) code: &'a str,
    pub(super) message: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Step {
    Thought {
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        summary: Vec<Content>,
    },
    ModelOutput {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Content>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<OutputError>,
    },
    FunctionCall {
        id: String,
        name: String,
        arguments: Value,
    },
}

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content {
    Text {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        annotations: Option<[Annotation; 1]>,
    },
    Image {
        data: String,
        mime_type: &'static str,
    },
}

/// The source of a byte range of the text.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Annotation {
    r#type: &'static str,
    url: String,
    title: String,
    start_index: usize,
    end_index: usize,
}

impl Annotation {
    /// An annotation that names one page as the source of the whole text.
    pub(super) fn of(citation: &Citation, text: &str) -> Self {
        Self {
            r#type: "url_citation",
            url: citation.url.clone(),
            title: citation.title.clone(),
            start_index: 0,
            end_index: text.len(),
        }
    }
}

/// The reason for an incomplete output.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct OutputError {
    pub(super) code: u16,
    pub(super) message: &'static str,
}

/// The content that one event adds to a step.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Delta {
    Text {
        text: String,
    },
    Image {
        data: String,
        mime_type: &'static str,
    },
    #[serde(rename = "text_annotation_delta")]
    Annotations {
        annotations: [Annotation; 1],
    },
    ThoughtSummary {
        content: Content,
    },
    ThoughtSignature {
        signature: String,
    },
    #[serde(rename = "arguments_delta")]
    Arguments {
        arguments: String,
    },
}

impl Content {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            annotations: None,
        }
    }
}

/// The data of an event, including its name.
#[derive(Debug, Serialize)]
#[serde(tag = "event_type")]
pub(super) enum Event<'a> {
    #[serde(rename = "interaction.created")]
    Created { interaction: Interaction<'a> },
    #[serde(rename = "interaction.status_update")]
    StatusUpdate {
        interaction_id: &'a str,
        status: &'static str,
    },
    #[serde(rename = "step.start")]
    StepStart { index: usize, step: Step },
    #[serde(rename = "step.delta")]
    StepDelta {
        index: usize,
        delta: Delta,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Metadata>,
    },
    #[serde(rename = "step.stop")]
    StepStop {
        index: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    #[serde(rename = "interaction.completed")]
    Completed { interaction: Interaction<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct Metadata {
    pub(super) total_usage: Usage,
}

impl Event<'_> {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Created { .. } => "interaction.created",
            Self::StatusUpdate { .. } => "interaction.status_update",
            Self::StepStart { .. } => "step.start",
            Self::StepDelta { .. } => "step.delta",
            Self::StepStop { .. } => "step.stop",
            Self::Completed { .. } => "interaction.completed",
        }
    }
}
