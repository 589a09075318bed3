//! Defines the items of an output and their wire format.

use crate::model::{ChunkedText, Citation};
use crate::openai::{TokenLogprob, logprobs};
use serde::Serialize;

#[derive(Debug)]
pub(super) enum Item {
    Reasoning {
        id: String,
        summary: Vec<ChunkedText>,
        /// The reasoning in plain text, for models that show it.
        visible: Option<ChunkedText>,
        encrypted: Option<String>,
    },
    Message {
        id: String,
        text: ChunkedText,
        refused: bool,
        /// Newer models report in this member whether more items will follow.
        phase: Option<&'static str>,
        /// The number of alternatives to report for each token.
        logprobs: Option<usize>,
        citation: Option<Citation>,
    },
    Call {
        id: String,
        call_id: String,
        name: String,
        arguments: ChunkedText,
        custom: bool,
    },
    /// A call of one of the vendor's own tools.
    Hosted { id: String, kind: HostedKind },
}

/// One of the vendor's own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostedKind {
    WebSearch,
    FileSearch,
    CodeInterpreter,
}

impl HostedKind {
    /// The prefix of the ids of this tool's calls.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::WebSearch => "ws",
            Self::FileSearch => "fs",
            Self::CodeInterpreter => "ci",
        }
    }
}

impl Item {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Reasoning { id, .. }
            | Self::Message { id, .. }
            | Self::Call { id, .. }
            | Self::Hosted { id, .. } => id,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireItem<'a> {
    Reasoning {
        id: &'a str,
        summary: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Vec<Part<'a>>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<&'a str>,
    },
    Message {
        id: &'a str,
        status: &'static str,
        role: &'static str,
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'static str>,
    },
    FunctionCall {
        id: &'a str,
        status: &'static str,
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    CustomToolCall {
        id: &'a str,
        status: &'static str,
        call_id: &'a str,
        name: &'a str,
        input: &'a str,
    },
    WebSearchCall {
        id: &'a str,
        status: &'static str,
        action: SearchAction,
    },
    FileSearchCall {
        id: &'a str,
        status: &'static str,
        queries: [&'static str; 1],
        results: Option<()>,
    },
    CodeInterpreterCall {
        id: &'a str,
        status: &'static str,
        code: &'static str,
        container_id: &'static str,
        outputs: Option<()>,
    },
}

/// The action of a web search.
#[derive(Serialize)]
pub(super) struct SearchAction {
    r#type: &'static str,
    query: &'static str,
}

/// The wire format of one part of a message or of a summary.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    OutputText {
        annotations: Vec<Annotation<'a>>,
        logprobs: Vec<TokenLogprob>,
        text: &'a str,
    },
    Refusal {
        refusal: &'a str,
    },
    SummaryText {
        text: &'a str,
    },
    ReasoningText {
        text: &'a str,
    },
}

/// The source of the whole text of a message.
#[derive(Serialize)]
pub(super) struct Annotation<'a> {
    r#type: &'static str,
    url: &'a str,
    title: &'a str,
    /// In characters, not bytes.
    start_index: usize,
    end_index: usize,
}

impl<'a> Annotation<'a> {
    pub(super) fn of(citation: &'a Citation, text: &str) -> Self {
        Self {
            r#type: "url_citation",
            url: &citation.url,
            title: &citation.title,
            start_index: 0,
            end_index: text.chars().count(),
        }
    }
}

impl<'a> Part<'a> {
    /// The part of a message before its text is sent.
    pub(super) fn begun(refused: bool) -> Self {
        if refused {
            return Self::Refusal { refusal: "" };
        }
        Self::OutputText {
            annotations: Vec::new(),
            logprobs: Vec::new(),
            text: "",
        }
    }

    /// The complete part, if the item is a message.
    pub(super) fn whole(item: &'a Item) -> Option<Self> {
        let Item::Message {
            text,
            refused,
            logprobs: alternatives,
            citation,
            ..
        } = item
        else {
            return None;
        };
        let text = text.as_str();
        if *refused {
            return Some(Self::Refusal { refusal: text });
        }
        let annotation = citation
            .as_ref()
            .map(|citation| Annotation::of(citation, text));
        Some(Self::OutputText {
            annotations: annotation.into_iter().collect(),
            logprobs: alternatives.map_or_else(Vec::new, |count| logprobs(text, count)),
            text,
        })
    }
}

impl<'a> WireItem<'a> {
    /// The item without its content.
    pub(super) fn begun(item: &'a Item) -> Self {
        match item {
            Item::Reasoning {
                id,
                visible,
                encrypted,
                ..
            } => Self::Reasoning {
                id,
                summary: Vec::new(),
                content: visible.as_ref().map(|_| Vec::new()),
                // As with the vendor, only the finished item has the complete encrypted content.
                encrypted_content: encrypted.as_deref().map(half),
            },
            Item::Message { id, phase, .. } => Self::Message {
                id,
                status: "in_progress",
                role: "assistant",
                content: Vec::new(),
                phase: *phase,
            },
            Item::Call { .. } => Self::call(item, "in_progress", ""),
            Item::Hosted { id, kind } => Self::hosted(id, *kind, "in_progress"),
        }
    }

    pub(super) fn whole(item: &'a Item, status: &'static str) -> Self {
        match item {
            Item::Reasoning {
                id,
                summary,
                visible,
                encrypted,
            } => Self::Reasoning {
                id,
                summary: summary
                    .iter()
                    .map(|text| Part::SummaryText {
                        text: text.as_str(),
                    })
                    .collect(),
                content: visible.as_ref().map(|text| {
                    vec![Part::ReasoningText {
                        text: text.as_str(),
                    }]
                }),
                encrypted_content: encrypted.as_deref(),
            },
            Item::Message { id, phase, .. } => Self::Message {
                id,
                status,
                role: "assistant",
                content: Part::whole(item).into_iter().collect(),
                phase: *phase,
            },
            Item::Call { arguments, .. } => Self::call(item, status, arguments.as_str()),
            Item::Hosted { id, kind } => Self::hosted(id, *kind, status),
        }
    }

    fn hosted(id: &'a str, kind: HostedKind, status: &'static str) -> Self {
        match kind {
            HostedKind::WebSearch => Self::WebSearchCall {
                id,
                status,
                action: SearchAction {
                    r#type: "search",
                    query: "sim upstream",
                },
            },
            HostedKind::FileSearch => Self::FileSearchCall {
                id,
                status,
                queries: ["sim upstream"],
                results: None,
            },
            HostedKind::CodeInterpreter => Self::CodeInterpreterCall {
                id,
                status,
                code: "print(1)",
                container_id: "cntr_Sim1",
                outputs: None,
            },
        }
    }

    fn call(item: &'a Item, status: &'static str, given: &'a str) -> Self {
        let (id, call_id, name, custom) = match item {
            Item::Call {
                id,
                call_id,
                name,
                custom,
                ..
            } => (id.as_str(), call_id.as_str(), name.as_str(), *custom),
            other => (other.id(), "", "", false),
        };
        if custom {
            Self::CustomToolCall {
                id,
                status,
                call_id,
                name,
                input: given,
            }
        } else {
            Self::FunctionCall {
                id,
                status,
                call_id,
                name,
                arguments: given,
            }
        }
    }
}

fn half(text: &str) -> &str {
    text.get(..text.len() / 2).unwrap_or_default()
}
