//! What a conversion had to leave out, in the caller's own words.

use std::fmt::{self, Write as _};

use super::path::Path;
use crate::dialect::Dialect;

/// The header may not be longer than this.
const HEADER_BYTES_MAX: usize = 2048;
/// Names above this number are counted, not kept: the header could not show them.
const NAMES_MAX: usize = 512;
/// Room for the count of what did not fit: `...+12345`.
const MORE_BYTES: usize = 16;

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
    ToolStrict,
    ImageDetail,
}

impl Field {
    /// The name a caller of `dialect` knows it by.
    pub const fn spelt(self, dialect: Dialect) -> &'static str {
        let [chat, responses, messages, generate, interactions] = self.spellings();
        match dialect {
            Dialect::Chat => chat,
            Dialect::Responses => responses,
            Dialect::Messages => messages,
            Dialect::Generate => generate,
            Dialect::Interactions => interactions,
        }
    }

    /// In the order of [`Dialect::ALL`]; an empty one cannot be said in that dialect.
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
                "reasoning",
                "thinking",
                "generationConfig.thinkingConfig",
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
                "toolConfig",
                "tool_choice",
            ],
            Self::ParallelToolCalls => [
                "parallel_tool_calls",
                "parallel_tool_calls",
                "tool_choice.disable_parallel_tool_use",
                "parallel_tool_calls",
                "parallel_tool_calls",
            ],
            Self::ToolStrict => ["tools.strict"; 5],
            Self::ImageDetail => [
                "detail",
                "detail",
                "detail",
                "generationConfig.mediaResolution",
                "resolution",
            ],
        }
    }
}

/// The members that were left out, first seen first, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    caller: Dialect,
    names: Vec<String>,
    more: usize,
}

impl Dropped {
    /// Nothing yet, for a caller of this dialect.
    pub const fn new(caller: Dialect) -> Self {
        Self {
            caller,
            names: Vec::new(),
            more: 0,
        }
    }

    /// Whose spelling the names are in.
    pub const fn caller(&self) -> Dialect {
        self.caller
    }

    /// Leaves out a member of the common form.
    pub fn field(&mut self, field: Field) {
        self.name(field.spelt(self.caller));
    }

    /// Leaves out a part of the conversation.
    pub fn path(&mut self, path: Path) {
        if path.is_nowhere() {
            return;
        }
        if self.names.len() < NAMES_MAX {
            self.name(&path.to_string());
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Leaves out a member by the caller's own name for it.
    pub fn name(&mut self, name: &str) {
        if name.is_empty() || self.names.iter().any(|known| known == name) {
            return;
        }
        if self.names.len() < NAMES_MAX {
            self.names.push(name.to_owned());
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The value of `x-dropped-params`; `None` when nothing was left out.
    pub fn header(&self) -> Option<String> {
        if self.names.is_empty() {
            return None;
        }
        let mut header = String::new();
        for (told, name) in self.names.iter().enumerate() {
            let before = header.len();
            if told > 0 {
                header.push(',');
            }
            // Writing to a string cannot fail.
            let _ = write!(header, "{}", Escaped(name));
            if header.len() > HEADER_BYTES_MAX - MORE_BYTES {
                header.truncate(before);
                let _ = write!(header, "...+{}", self.names.len() - told + self.more);
                return Some(header);
            }
        }
        if self.more > 0 {
            let _ = write!(header, "...+{}", self.more);
        }
        Some(header)
    }
}

/// Letters, digits and `_-.[]` as they are, everything else percent-encoded.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            if byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte) {
                f.write_char(char::from(byte))?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_lists_each_name_once_in_the_callers_spelling() {
        let mut dropped = Dropped::new(Dialect::Generate);
        assert_eq!(dropped.header(), None);
        dropped.field(Field::TopK);
        dropped.name("tools.googleSearch");
        dropped.field(Field::TopK);
        dropped.path(Path::item("contents", 2).inner("parts", 0));
        dropped.name("odd name,\u{e9}");
        assert_eq!(
            dropped.header().unwrap(),
            "generationConfig.topK,tools.googleSearch,contents[2].parts[0],odd%20name%2C%C3%A9"
        );
    }

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let mut dropped = Dropped::new(Dialect::Chat);
        for number in 0..1000 {
            dropped.name(&format!("member_{number}"));
        }
        let header = dropped.header().unwrap();
        assert!(header.len() <= HEADER_BYTES_MAX);
        let told = header.matches("member_").count();
        assert!(header.ends_with(&format!("...+{}", 1000 - told)));
    }
}
