//! The names of members in each dialect.

use crate::dialect::Dialect;

/// A member of the common form that some dialects cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Temperature,
    TopP,
    TopK,
    FrequencyPenalty,
    PresencePenalty,
    Seed,
    Stop,
    Choices,
    Logprobs,
    TopLogprobs,
    Format,
    Reasoning,
    ReasoningShown,
    Verbosity,
    User,
    SafetyIdentifier,
    Metadata,
    CacheKey,
    ToolChoice,
    ParallelToolCalls,
    /// The detail level for all images.
    ImageDetail,
    FormatName,
    FormatDescription,
}

/// A member of a part, call or tool that some dialects cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// The detail level of one image.
    ImageDetail,
    DocumentName,
    /// The signature of a call.
    Signature,
    /// Whether a tool's arguments must match its schema.
    Strict,
}

impl Member {
    /// The name inside its part in `dialect`. Empty if the dialect does not have the member.
    pub const fn name_in(self, dialect: Dialect) -> &'static str {
        let [chat, responses, messages, generate, interactions] = match self {
            Self::ImageDetail => [
                "image_url.detail",
                "detail",
                "",
                "mediaResolution",
                "resolution",
            ],
            Self::DocumentName => [
                "file.filename",
                "filename",
                "title",
                "inlineData.displayName",
                "",
            ],
            Self::Signature => [
                "extra_content.google.thought_signature",
                "",
                "",
                "thoughtSignature",
                "signature",
            ],
            Self::Strict => ["function.strict", "strict", "strict", "", ""],
        };
        match dialect {
            Dialect::Chat => chat,
            Dialect::Responses => responses,
            Dialect::Messages => messages,
            Dialect::Generate => generate,
            Dialect::Interactions => interactions,
        }
    }
}

impl Field {
    /// The name in `dialect`.
    pub const fn name_in(self, dialect: Dialect) -> &'static str {
        let [chat, responses, messages, generate, interactions] = self.spellings();
        match dialect {
            Dialect::Chat => chat,
            Dialect::Responses => responses,
            Dialect::Messages => messages,
            Dialect::Generate => generate,
            Dialect::Interactions => interactions,
        }
    }

    /// The name in each dialect, in the order of [`Dialect::ALL`]. If the dialect does not have the
    /// member, the text is empty or a placeholder.
    #[expect(clippy::too_many_lines, reason = "one table")]
    const fn spellings(self) -> [&'static str; 5] {
        match self {
            Self::Temperature => [
                "temperature",
                "temperature",
                "temperature",
                "generationConfig.temperature",
                "generation_config.temperature",
            ],
            Self::TopP => [
                "top_p",
                "top_p",
                "top_p",
                "generationConfig.topP",
                "generation_config.top_p",
            ],
            Self::TopK => [
                "top_k",
                "top_k",
                "top_k",
                "generationConfig.topK",
                "generation_config.top_k",
            ],
            Self::FrequencyPenalty => [
                "frequency_penalty",
                "frequency_penalty",
                "frequency_penalty",
                "generationConfig.frequencyPenalty",
                "generation_config.frequency_penalty",
            ],
            Self::PresencePenalty => [
                "presence_penalty",
                "presence_penalty",
                "presence_penalty",
                "generationConfig.presencePenalty",
                "generation_config.presence_penalty",
            ],
            Self::Seed => [
                "seed",
                "seed",
                "seed",
                "generationConfig.seed",
                "generation_config.seed",
            ],
            Self::Stop => [
                "stop",
                "stop",
                "stop_sequences",
                "generationConfig.stopSequences",
                "generation_config.stop_sequences",
            ],
            Self::Choices => ["n", "n", "n", "generationConfig.candidateCount", "n"],
            Self::Logprobs => [
                "logprobs",
                "include",
                "logprobs",
                "generationConfig.responseLogprobs",
                "logprobs",
            ],
            Self::TopLogprobs => [
                "top_logprobs",
                "top_logprobs",
                "top_logprobs",
                "generationConfig.logprobs",
                "top_logprobs",
            ],
            Self::Format => [
                "response_format",
                "text.format",
                "output_config.format",
                "generationConfig.responseMimeType",
                "response_format",
            ],
            Self::Reasoning => [
                "reasoning_effort",
                "reasoning.effort",
                "thinking",
                "generationConfig.thinkingConfig.thinkingLevel",
                "generation_config.thinking_level",
            ],
            Self::ReasoningShown => [
                "reasoning_effort",
                "reasoning.summary",
                "thinking.display",
                "generationConfig.thinkingConfig.includeThoughts",
                "generation_config.thinking_summaries",
            ],
            Self::Verbosity => [
                "verbosity",
                "text.verbosity",
                "verbosity",
                "verbosity",
                "verbosity",
            ],
            Self::User => ["user", "user", "metadata.user_id", "user", "user"],
            Self::SafetyIdentifier => [
                "safety_identifier",
                "safety_identifier",
                "metadata.user_id",
                "safety_identifier",
                "safety_identifier",
            ],
            Self::Metadata => ["metadata", "metadata", "metadata", "labels", "labels"],
            Self::CacheKey => ["prompt_cache_key"; 5],
            Self::ToolChoice => [
                "tool_choice",
                "tool_choice",
                "tool_choice",
                "toolConfig.functionCallingConfig",
                "generation_config.tool_choice",
            ],
            Self::ParallelToolCalls => [
                "parallel_tool_calls",
                "parallel_tool_calls",
                "tool_choice.disable_parallel_tool_use",
                "parallel_tool_calls",
                "parallel_tool_calls",
            ],
            Self::ImageDetail => ["", "", "", "generationConfig.mediaResolution", ""],
            Self::FormatName => [
                "response_format.json_schema.name",
                "text.format.name",
                "output_config.format.name",
                "",
                "",
            ],
            Self::FormatDescription => [
                "response_format.json_schema.description",
                "text.format.description",
                "",
                "",
                "",
            ],
        }
    }
}
