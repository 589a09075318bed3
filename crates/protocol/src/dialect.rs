//! The five text protocols that clients and upstreams use.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::failure::Family;

/// One of the five text protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/messages`.
    Messages,
    /// `POST /v1beta/models/{model}:generateContent` and its streaming form.
    Generate,
    /// `POST /v1beta/interactions`.
    Interactions,
}

impl Dialect {
    /// Every dialect, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::Chat,
        Self::Responses,
        Self::Messages,
        Self::Generate,
        Self::Interactions,
    ];

    /// The name used in configuration, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Generate => "generate",
            Self::Interactions => "interactions",
        }
    }

    /// The bytes that keep a silent stream alive, in a form that this dialect's clients tolerate.
    pub const fn keep_alive(self) -> &'static [u8] {
        match self {
            Self::Chat | Self::Responses | Self::Interactions => b": keep-alive\n\n",
            Self::Messages => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
            // A client of this dialect crashes on comments, but not on blank lines.
            Self::Generate => b"\n\n",
        }
    }

    /// The error envelope for clients of this dialect.
    pub const fn family(self) -> Family {
        match self {
            Self::Chat | Self::Responses => Family::OpenAi,
            Self::Messages => Family::Messages,
            Self::Generate => Family::Google,
            Self::Interactions => Family::Interactions,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not the name of a dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no dialect; expected chat, responses, messages, generate or interactions")]
pub struct UnknownDialect(String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == text)
            .ok_or_else(|| UnknownDialect(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_in_text_and_in_serde() {
        for dialect in Dialect::ALL {
            assert_eq!(dialect.as_str().parse(), Ok(dialect));
            let json = serde_json::to_string(&dialect).unwrap();
            assert_eq!(json, format!("\"{dialect}\""));
            assert_eq!(serde_json::from_str::<Dialect>(&json).unwrap(), dialect);
        }
        assert!("Chat".parse::<Dialect>().is_err());
    }
}
