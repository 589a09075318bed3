//! A request in the common form.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::opaque::Opaque;
use super::path::Path;
use super::{base64, data_uri};

/// A JSON text kept exactly as it was written: schemas, arguments, metadata.
pub type Json = Box<RawValue>;

/// A request of a client, independent of its dialect.
///
/// A member that the client did not set, or set to `null`, is absent. Members that the common form
/// does not have are listed in `unknown`, by path.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Whether the answer is a stream.
    pub stream: bool,
    /// Whether a chat client asked for the usage chunk.
    pub include_usage: bool,
    /// The conversation in order, including system prompts.
    pub turns: Vec<Turn>,
    /// Function tools. Other tools are in `unknown` as `tools.<type>`.
    pub tools: Vec<Tool>,
    pub tool_choice: Option<ToolChoice>,
    pub parallel_tool_calls: Option<bool>,
    pub sampling: Sampling,
    pub stop: Vec<String>,
    /// The limit for output tokens, including reasoning.
    pub output_tokens_max: Option<u64>,
    /// The number of requested answers. Absent means one. Conversion supports only one.
    pub choices: Option<u32>,
    pub logprobs: Option<Logprobs>,
    /// The detail level for images that do not set one.
    pub image_detail: Option<ImageDetail>,
    pub format: Option<Format>,
    pub reasoning: Option<Reasoning>,
    /// `low`, `medium`, `high`.
    pub verbosity: Option<String>,
    pub user: Option<String>,
    pub safety_identifier: Option<String>,
    pub metadata: Option<Json>,
    pub cache_key: Option<String>,
    /// Tool names that were replaced because most dialects do not allow their characters: the new
    /// name, and the client's name.
    pub renamed: Vec<(String, String)>,
    /// Members that the common form does not have, in the client's spelling and order. Writers
    /// report all of them as dropped.
    pub unknown: Vec<String>,
}

/// One turn. Readers merge all items or steps of an assistant turn into one turn, and all tool
/// results that follow it into another (role [`Role::User`]).
#[derive(Debug, Clone)]
pub struct Turn {
    pub role: Role,
    pub parts: Vec<(Path, Part)>,
}

/// The author of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    /// A system prompt, under its newer name in chat and Responses.
    Developer,
    /// The user, and tools with their results.
    User,
    Assistant,
}

/// One part of a turn.
#[derive(Debug, Clone)]
pub enum Part {
    /// Never empty.
    Text(String),
    Image(Image),
    Document(Document),
    /// Reasoning of an earlier answer.
    Thought(Thought),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// A refusal in the history.
    Refusal(String),
    /// A part that only the client's dialect has. It is always dropped.
    Foreign,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub source: ImageSource,
    pub detail: Option<ImageDetail>,
}

/// The source of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    Url(String),
    /// `data` is standard padded base64. `mime` is a type such as `image/png`.
    Inline {
        mime: String,
        data: String,
    },
}

impl ImageSource {
    /// Reads a URL, which may be a `data:` URI.
    pub(crate) fn from_url(url: Cow<'_, str>) -> Self {
        let Some((mime, data)) = data_uri::split(&url) else {
            return Self::Url(url.into_owned());
        };
        let data = base64::standard(data).into_owned();
        let mime = match mime {
            "" => data_uri::sniff(&data),
            mime => mime,
        };
        Self::Inline {
            mime: mime.to_owned(),
            data,
        }
    }
}

/// The detail level of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageDetail {
    Auto,
    Low,
    High,
    Original,
}

impl ImageDetail {
    /// Reads the value that chat and Responses use.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "auto" => Self::Auto,
            "low" => Self::Low,
            "high" => Self::High,
            "original" => Self::Original,
            _ => return None,
        })
    }
}

/// An inline file, usually a PDF. `data` is standard padded base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub mime: String,
    pub data: String,
    pub name: Option<String>,
}

impl Document {
    /// The name of the file. Vendors of Chat and Responses refuse a file without a name.
    pub(crate) fn file_name(&self) -> &str {
        self.name.as_deref().unwrap_or("document.pdf")
    }
}

/// Reasoning and its opaque value. Without the value, the model does not accept the reasoning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thought {
    pub text: String,
    /// The signature or encrypted form, if there was one.
    pub opaque: Option<Opaque>,
    /// Whether the thought consists only of the opaque value (`redacted_thinking`).
    pub redacted: bool,
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The id. Readers of dialects without ids generate an id that the call and its result share.
    pub id: String,
    pub name: String,
    /// JSON as the model wrote it, possibly invalid. `{}` if it is empty.
    pub arguments: String,
    /// A thought signature that belongs to this call.
    pub opaque: Option<Opaque>,
    pub signed_at: SignedAt,
}

/// Where the client's request held the signature of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignedAt {
    /// In the call's id, where the gateway had put it.
    #[default]
    Id,
    /// In a member of the call.
    Call,
    /// In an item of `input` before the call, by its index.
    Item(u32),
}

/// The result of a tool.
#[derive(Debug, Clone)]
pub struct ToolResult {
    pub call_id: String,
    /// The name of the tool. If the dialect does not repeat it, the reader takes it from the call.
    pub name: Option<String>,
    /// Text and images, with their paths.
    pub parts: Vec<(Path, Part)>,
    pub is_error: bool,
}

/// A function the model may call.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Where the tool is declared.
    pub path: Path,
    pub name: String,
    pub description: Option<String>,
    /// JSON Schema of the arguments. Absent for a tool without arguments.
    pub parameters: Option<Json>,
    pub strict: Option<bool>,
}

/// Which tools the model may or must call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    None,
    Required,
    Named(String),
    /// Only these tools may be called. `required` says whether the model must call one of them.
    Allowed {
        names: Vec<String>,
        required: bool,
    },
}

/// Sampling parameters that the client set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampling {
    pub temperature: Option<serde_json::Number>,
    pub top_p: Option<serde_json::Number>,
    pub top_k: Option<u64>,
    pub frequency_penalty: Option<serde_json::Number>,
    pub presence_penalty: Option<serde_json::Number>,
    pub seed: Option<i64>,
}

/// A request for log probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Logprobs {
    /// Alternatives per token.
    pub top: Option<u32>,
    /// Whether the client set only the number of alternatives.
    pub is_implied: bool,
}

/// The output format.
#[derive(Debug, Clone)]
pub enum Format {
    /// Any JSON.
    Json,
    Schema {
        name: Option<String>,
        description: Option<String>,
        schema: Json,
        strict: Option<bool>,
    },
}

/// How much the model should think.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reasoning {
    pub effort: Option<Effort>,
    /// A budget in tokens, if the client's dialect has budgets. 0 turns thinking off.
    pub budget_tokens: Option<u64>,
    /// Whether the client wants to see the reasoning.
    pub show: bool,
    /// Whether `show` comes from the default of the client's dialect, not from the request.
    pub show_is_default: bool,
}

/// Effort levels in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl Effort {
    /// The name in chat, Responses and Messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Option<Self> {
        let all = [
            Self::None,
            Self::Minimal,
            Self::Low,
            Self::Medium,
            Self::High,
            Self::XHigh,
            Self::Max,
        ];
        all.into_iter().find(|effort| effort.as_str() == text)
    }

    /// The budget that corresponds to an effort.
    pub const fn budget_tokens(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Minimal | Self::Low => 1024,
            Self::Medium => 8192,
            Self::High => 24_576,
            Self::XHigh | Self::Max => 32_768,
        }
    }

    pub(crate) const fn of_budget(tokens: u64) -> Self {
        match tokens {
            0 => Self::None,
            1..=1024 => Self::Low,
            1025..=8192 => Self::Medium,
            8193..=24_576 => Self::High,
            _ => Self::XHigh,
        }
    }
}

impl Logprobs {
    /// The number of alternatives, limited to the largest number that upstreams accept.
    pub fn alternatives(self) -> Option<u32> {
        const ALTERNATIVES_MAX: u32 = 20;
        self.top.map(|top| top.min(ALTERNATIVES_MAX))
    }
}

impl Request {
    /// Whether the client asked to see reasoning in the answer.
    pub(crate) fn wants_thoughts(&self) -> bool {
        self.reasoning.as_ref().is_some_and(|reasoning| {
            reasoning.show || reasoning.budget_tokens.is_some_and(|tokens| tokens > 0)
        })
    }

    /// A copy that keeps only the leading system prompts of the conversation, because answers repeat no other
    /// turns. A stream keeps the copy until it ends.
    #[must_use]
    pub fn without_conversation(&self) -> Self {
        let (system, _) = self.leading_system();
        Self {
            turns: system.to_vec(),
            tools: self.tools.clone(),
            tool_choice: self.tool_choice.clone(),
            sampling: self.sampling.clone(),
            stop: self.stop.clone(),
            format: self.format.clone(),
            reasoning: self.reasoning.clone(),
            verbosity: self.verbosity.clone(),
            user: self.user.clone(),
            safety_identifier: self.safety_identifier.clone(),
            metadata: self.metadata.clone(),
            cache_key: self.cache_key.clone(),
            renamed: self.renamed.clone(),
            unknown: Vec::new(),
            ..*self
        }
    }

    /// All images of the request, including those in tool results, with their paths.
    pub fn images_mut(&mut self) -> impl Iterator<Item = (Path, &mut Image)> {
        let parts = self.turns.iter_mut().flat_map(|turn| &mut turn.parts);
        let parts = parts.flat_map(|(path, part)| {
            let (shown, result) = match part {
                Part::ToolResult(result) => (None, Some(&mut result.parts)),
                part => (Some((*path, part)), None),
            };
            let inside = result.into_iter().flatten();
            let inside = inside.map(|(path, part)| (*path, part));
            shown.into_iter().chain(inside)
        });
        parts.filter_map(|(path, part)| match part {
            Part::Image(image) => Some((path, image)),
            _ => None,
        })
    }

    /// Splits the turns into leading system prompts and the rest.
    pub(crate) fn leading_system(&self) -> (&[Turn], &[Turn]) {
        let is_system = |turn: &Turn| matches!(turn.role, Role::System | Role::Developer);
        let split = self
            .turns
            .iter()
            .position(|turn| !is_system(turn))
            .unwrap_or(self.turns.len());
        self.turns.split_at(split)
    }
}
