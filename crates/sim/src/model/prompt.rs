//! Defines a prompt as the model sees it, and counts its tokens.

use crate::tokens::count_tokens;
use serde_json::Value;

/// The overhead in tokens of a message, a call, a tool and the whole prompt.
const MESSAGE_TOKENS: u64 = 4;
const CALL_TOKENS: u64 = 4;
const TOOL_TOKENS: u64 = 8;
const PROMPT_TOKENS: u64 = 3;
/// The tokens of an image: a base count, and unless the detail is low, tokens for each tile of its size.
const IMAGE_TOKENS: u64 = 85;
const IMAGE_TILE_TOKENS: u64 = 170;
const IMAGE_TILE_BYTES: u64 = 64 * 1024;
const IMAGE_TILES_MAX: u64 = 8;
const SOUND_TOKENS_PER_KIB: u64 = 1;
/// Only whole blocks are cached, and only if the part before the last turn has a minimum length.
const CACHE_BLOCK_TOKENS: u64 = 128;
const CACHE_TOKENS_MIN: u64 = 1024;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) system: Vec<String>,
    pub(crate) turns: Vec<Turn>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) tool_use: ToolUse,
    /// Whether several tools may be called in one answer.
    pub(crate) parallel: bool,
    pub(crate) text_format: TextFormat,
    pub(crate) effort: Effort,
    /// The maximum number of tokens of the whole output, including reasoning.
    pub(crate) tokens_max: Option<u64>,
    pub(crate) stops: Vec<String>,
    pub(crate) seed: i64,
    /// Whether the caller gave a cache key.
    pub(crate) cache_key: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turn {
    User {
        text: String,
        media: Vec<Media>,
    },
    Assistant {
        text: String,
        calls: Vec<PastCall>,
    },
    Result {
        call_id: String,
        text: String,
        media: Vec<Media>,
        /// Whether the caller reports that the call failed.
        failed: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PastCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) kind: ToolKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolKind {
    Function {
        schema: Value,
    },
    /// A tool that takes free text.
    Custom,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum ToolUse {
    Never,
    #[default]
    Auto,
    Required,
    Named(String),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum TextFormat {
    #[default]
    Text,
    Json,
    Schema(Value),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effort {
    #[default]
    None,
    Minimal,
    Low,
    Medium,
    High,
    Max,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Media {
    pub(crate) kind: MediaKind,
    pub(crate) source: Source,
    pub(crate) low_detail: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaKind {
    Image,
    Sound,
    File,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Inline {
        /// The detected type, such as `PNG` or `WAV`, or else the declared type.
        format: String,
        bytes: u64,
        pixels: Option<(u32, u32)>,
    },
    Link(String),
}

impl Prompt {
    pub(crate) fn tokens(&self) -> u64 {
        let tools: u64 = self.tools.iter().map(Tool::tokens).sum();
        let format_tokens = match &self.text_format {
            TextFormat::Schema(schema) => count_tokens(&schema.to_string()),
            TextFormat::Text | TextFormat::Json => 0,
        };
        let turns: u64 = self.turns.iter().map(Turn::tokens).sum();
        PROMPT_TOKENS + self.system_tokens() + turns + tools + format_tokens
    }

    /// The number of the prompt's tokens that are media of this kind.
    pub(crate) fn media_tokens(&self, kind: MediaKind) -> u64 {
        let media = self.turns.iter().flat_map(|turn| match turn {
            Turn::User { media, .. } | Turn::Result { media, .. } => media.as_slice(),
            Turn::Assistant { .. } => &[],
        });
        media
            .filter(|media| media.kind == kind)
            .map(Media::tokens)
            .sum()
    }

    /// The number of the prompt's tokens that come from the cache. The simulator keeps no cache: if a conversation has
    /// earlier answers or a cache key, everything before its last turn counts as cached.
    pub(crate) fn cached_tokens(&self) -> u64 {
        let goes_on = self
            .turns
            .iter()
            .any(|turn| matches!(turn, Turn::Assistant { .. }));
        if !goes_on && !self.cache_key {
            return 0;
        }
        let earlier = self
            .turns
            .split_last()
            .map_or(&[][..], |(_, earlier)| earlier);
        let seen = self.system_tokens() + earlier.iter().map(Turn::tokens).sum::<u64>();
        if seen < CACHE_TOKENS_MIN {
            return 0;
        }
        seen - seen % CACHE_BLOCK_TOKENS
    }

    fn system_tokens(&self) -> u64 {
        self.system
            .iter()
            .map(|text| MESSAGE_TOKENS + count_tokens(text))
            .sum()
    }

    /// The user's last message.
    pub(crate) fn question(&self) -> (&str, &[Media]) {
        self.turns
            .iter()
            .rev()
            .find_map(|turn| match turn {
                Turn::User { text, media } => Some((text.as_str(), media.as_slice())),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// The turns after the user's last message.
    pub(crate) fn since_question(&self) -> &[Turn] {
        let start = self
            .turns
            .iter()
            .rposition(|turn| matches!(turn, Turn::User { .. }))
            .map_or(0, |place| place + 1);
        self.turns.get(start..).unwrap_or_default()
    }
}

impl Turn {
    fn tokens(&self) -> u64 {
        MESSAGE_TOKENS
            + match self {
                Self::User { text, media } | Self::Result { text, media, .. } => {
                    count_tokens(text) + media.iter().map(Media::tokens).sum::<u64>()
                }
                Self::Assistant { text, calls } => {
                    let calls: u64 = calls
                        .iter()
                        .map(|call| {
                            CALL_TOKENS + count_tokens(&call.name) + count_tokens(&call.arguments)
                        })
                        .sum();
                    count_tokens(text) + calls
                }
            }
    }
}

impl Tool {
    fn tokens(&self) -> u64 {
        let schema = match &self.kind {
            ToolKind::Function { schema } => count_tokens(&schema.to_string()),
            ToolKind::Custom => 0,
        };
        TOOL_TOKENS + count_tokens(&self.name) + count_tokens(&self.description) + schema
    }
}

impl Media {
    fn tokens(&self) -> u64 {
        let bytes = match &self.source {
            Source::Inline { bytes, .. } => *bytes,
            Source::Link(_) => 0,
        };
        match self.kind {
            MediaKind::Image if self.low_detail => IMAGE_TOKENS,
            MediaKind::Image => {
                let tiles = (1 + bytes / IMAGE_TILE_BYTES).min(IMAGE_TILES_MAX);
                IMAGE_TOKENS + IMAGE_TILE_TOKENS * tiles
            }
            MediaKind::Sound | MediaKind::File => 1 + bytes / 1024 * SOUND_TOKENS_PER_KIB,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Turn {
        Turn::User {
            text: text.to_owned(),
            media: vec![],
        }
    }

    fn assistant(text: &str) -> Turn {
        Turn::Assistant {
            text: text.to_owned(),
            calls: vec![],
        }
    }

    #[test]
    fn a_prompt_costs_its_text_and_its_frame() {
        let mut prompt = Prompt {
            turns: vec![user("Hello, world!")],
            ..Prompt::default()
        };
        assert_eq!(prompt.tokens(), 3 + 4 + 4);
        prompt.system.push("Be brief.".to_owned());
        assert_eq!(prompt.tokens(), 3 + 8 + 4 + 3);
    }

    #[test]
    fn a_long_conversation_that_goes_on_is_cached_in_blocks() {
        let long = "word ".repeat(1200);
        let mut prompt = Prompt {
            turns: vec![user(&long), assistant("Yes."), user("Go on.")],
            ..Prompt::default()
        };
        let cached = prompt.cached_tokens();
        assert!(cached >= 1024 && cached.is_multiple_of(128) && cached < prompt.tokens());
        prompt.turns = vec![user(&long), user("Go on.")];
        assert_eq!(prompt.cached_tokens(), 0);
        prompt.cache_key = true;
        assert_eq!(prompt.cached_tokens(), cached);
    }

    #[test]
    fn the_question_is_the_last_user_turn() {
        let prompt = Prompt {
            turns: vec![
                user("one"),
                assistant("two"),
                user("three"),
                assistant("four"),
            ],
            ..Prompt::default()
        };
        assert_eq!(prompt.question().0, "three");
        assert_eq!(prompt.since_question(), [assistant("four")]);
        assert_eq!(Prompt::default().question().0, "");
    }
}
