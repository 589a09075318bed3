//! A request in the common form.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::opaque::Opaque;
use super::path::Path;
use super::{base64, data_uri};

/// A JSON text kept exactly as it was written: schemas, arguments, metadata.
pub type Json = Box<RawValue>;

/// What a caller asks for, whatever dialect it was said in.
///
/// A member that the caller did not set, or set to `null`, is absent. Members of the caller's
/// request that no other dialect could know stand in `unknown`, by path.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Whether the answer is a stream.
    pub stream: bool,
    /// Whether a chat caller asked for the usage chunk.
    pub include_usage: bool,
    /// The conversation in order, system prompts where they stood.
    pub turns: Vec<Turn>,
    /// Function tools; others are in `unknown` as `tools.<type>`.
    pub tools: Vec<Tool>,
    pub tool_choice: Option<ToolChoice>,
    pub parallel_tool_calls: Option<bool>,
    pub sampling: Sampling,
    pub stop: Vec<String>,
    /// The most output tokens, reasoning included.
    pub output_tokens_max: Option<u64>,
    /// Answers asked for; one when absent. Never more than one crosses dialects.
    pub choices: Option<u32>,
    pub logprobs: Option<Logprobs>,
    /// How closely pictures are to be looked at that do not say it themselves.
    pub image_detail: Option<ImageDetail>,
    pub format: Option<Format>,
    pub reasoning: Option<Reasoning>,
    /// `low`, `medium`, `high`.
    pub verbosity: Option<String>,
    pub user: Option<String>,
    pub safety_identifier: Option<String>,
    pub metadata: Option<Json>,
    pub cache_key: Option<String>,
    /// Tool names that had to be changed, because most dialects do not know their letters: the
    /// name in this form, and the caller's own.
    pub renamed: Vec<(String, String)>,
    /// What the caller said that has no meaning in the common form, in the caller's spelling
    /// and order. Writers list all of it as dropped.
    pub unknown: Vec<String>,
}

/// One turn. Readers join what their dialect splits: the items or steps of one assistant turn are
/// one turn here, and so are the tool results that answer it (role [`Role::User`]).
#[derive(Debug, Clone)]
pub struct Turn {
    pub role: Role,
    pub parts: Vec<(Path, Part)>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    /// A system prompt in the newer spelling of chat and Responses.
    Developer,
    /// The user, and the tools that answer.
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
    /// Something only the caller's own dialect knows, at its path: always dropped.
    Foreign,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub source: ImageSource,
    pub detail: Option<ImageDetail>,
}

/// Where a picture is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    Url(String),
    /// `data` is standard padded base64; `mime` such as `image/png`.
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

/// How closely a picture is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageDetail {
    Auto,
    Low,
    High,
    Original,
}

impl ImageDetail {
    /// Reads the word that chat and Responses have for it.
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

/// An inline file, PDF as a rule; `data` is standard padded base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub mime: String,
    pub data: String,
    pub name: Option<String>,
}

/// Reasoning, with what makes it worth anything to its model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thought {
    pub text: String,
    /// Its signature or encrypted form, if it came with one.
    pub opaque: Option<Opaque>,
    /// Whether the opaque value is all there is (`redacted_thinking`).
    pub redacted: bool,
}

/// A call of a tool by the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Readers of dialects without ids make one, the same for call and result.
    pub id: String,
    pub name: String,
    /// JSON text as the model wrote it, possibly invalid; `{}` when empty.
    pub arguments: String,
    /// A thought signature that belongs to this call.
    pub opaque: Option<Opaque>,
    pub signed_at: SignedAt,
}

/// Where the signature of a call stood in the caller's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignedAt {
    /// In the call's id, where we had put it.
    #[default]
    Id,
    /// In a member of the call.
    Call,
    /// In an item of `input` before the call, by its index.
    Item(u32),
}

/// What a tool answered.
#[derive(Debug, Clone)]
pub struct ToolResult {
    pub call_id: String,
    /// The tool's name, found by the reader from the call where the dialect does not say it.
    pub name: Option<String>,
    /// Text and images, and where each stands.
    pub parts: Vec<(Path, Part)>,
    pub is_error: bool,
}

/// A function the model may call.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Where it is declared.
    pub path: Path,
    pub name: String,
    pub description: Option<String>,
    /// JSON Schema of the arguments; absent for a tool without arguments.
    pub parameters: Option<Json>,
    pub strict: Option<bool>,
}

/// Whether and which tools must be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    None,
    Required,
    Named(String),
    /// Only these may be called; `required` says that one must be.
    Allowed {
        names: Vec<String>,
        required: bool,
    },
}

/// Sampling parameters as the caller wrote them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampling {
    pub temperature: Option<serde_json::Number>,
    pub top_p: Option<serde_json::Number>,
    pub top_k: Option<u64>,
    pub frequency_penalty: Option<serde_json::Number>,
    pub presence_penalty: Option<serde_json::Number>,
    pub seed: Option<i64>,
}

/// Log probabilities were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Logprobs {
    /// Alternatives per token.
    pub top: Option<u32>,
    /// Whether only the number of alternatives was said.
    pub is_implied: bool,
}

/// The form of the output.
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
    /// A budget in tokens, where the caller's dialect has budgets; 0 is off.
    pub budget_tokens: Option<u64>,
    /// The caller wants to see the reasoning.
    pub show: bool,
    /// Whether that is so because the caller said nothing else.
    pub show_is_unsaid: bool,
}

/// Effort by name, in rising order.
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
    /// The name as chat, Responses and Messages spell it.
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

    /// The budget that stands for an effort, as vendors map it.
    pub const fn budget_tokens(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Minimal | Self::Low => 1024,
            Self::Medium => 8192,
            Self::High => 24_576,
            Self::XHigh | Self::Max => 32_768,
        }
    }

    /// The effort that stands for a budget.
    pub const fn of_budget(tokens: u64) -> Self {
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
    /// Alternatives, as far as an upstream tells them: no dialect goes further.
    pub fn alternatives(self) -> Option<u32> {
        const TOLD_MAX: u32 = 20;
        self.top.map(|top| top.min(TOLD_MAX))
    }
}

impl Request {
    /// Whether the caller asked for reasoning to be part of the answer.
    pub fn wants_thoughts(&self) -> bool {
        self.reasoning.as_ref().is_some_and(|reasoning| {
            reasoning.show || reasoning.budget_tokens.is_some_and(|tokens| tokens > 0)
        })
    }

    /// The same request without the conversation behind its system prompts: all that an answer
    /// may repeat of it. A stream keeps this for as long as it lives.
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

    /// Every picture of the request, also of tool results, and where it stands.
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

    /// The system prompts before the first other turn, and where the rest begins.
    pub fn leading_system(&self) -> (&[Turn], &[Turn]) {
        let is_system = |turn: &Turn| matches!(turn.role, Role::System | Role::Developer);
        let split = self
            .turns
            .iter()
            .position(|turn| !is_system(turn))
            .unwrap_or(self.turns.len());
        self.turns.split_at(split)
    }
}
