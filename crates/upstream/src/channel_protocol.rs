//! The protocols that a channel can speak.

use std::fmt;
use std::str::FromStr;

use protocol::Dialect;
use serde::{Deserialize, Serialize};

use crate::unknown_name::{UnknownName, find};

/// A protocol that a channel can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Protocol {
    Chat,
    Responses,
    Messages,
    Generate,
    Interactions,
    Embeddings,
    Images,
    VideoA,
    Omni,
    Predict,
    ContentTask,
    Voice,
    /// Messages in the wire format of a cloud. Only upstreams use it, not clients.
    Converse,
}

impl Protocol {
    const ALL: [Self; 13] = [
        Self::Chat,
        Self::Responses,
        Self::Messages,
        Self::Generate,
        Self::Interactions,
        Self::Embeddings,
        Self::Images,
        Self::VideoA,
        Self::Omni,
        Self::Predict,
        Self::ContentTask,
        Self::Voice,
        Self::Converse,
    ];

    /// The name in a configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Generate => "generate",
            Self::Interactions => "interactions",
            Self::Embeddings => "embeddings",
            Self::Images => "images",
            Self::VideoA => "video-a",
            Self::Omni => "omni",
            Self::Predict => "predict",
            Self::ContentTask => "content-task",
            Self::Voice => "voice",
            Self::Converse => "converse",
        }
    }

    /// The text dialect of this protocol, or the dialect that its requests are converted from; `None` for media
    /// protocols.
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Chat => Some(Dialect::Chat),
            Self::Responses => Some(Dialect::Responses),
            Self::Messages | Self::Converse => Some(Dialect::Messages),
            Self::Generate => Some(Dialect::Generate),
            Self::Interactions => Some(Dialect::Interactions),
            _ => None,
        }
    }
}

impl From<Dialect> for Protocol {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Chat => Self::Chat,
            Dialect::Responses => Self::Responses,
            Dialect::Messages => Self::Messages,
            Dialect::Generate => Self::Generate,
            Dialect::Interactions => Self::Interactions,
        }
    }
}

impl FromStr for Protocol {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        find(name, &Self::ALL, Self::as_str)
    }
}

impl From<Protocol> for String {
    fn from(protocol: Protocol) -> Self {
        protocol.as_str().to_owned()
    }
}

impl TryFrom<String> for Protocol {
    type Error = UnknownName;

    fn try_from(name: String) -> Result<Self, UnknownName> {
        name.parse()
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_as_itself() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.as_str().parse(), Ok(protocol));
        }
    }

    #[test]
    fn a_dialect_is_the_protocol_of_its_name() {
        for dialect in Dialect::ALL {
            let protocol = Protocol::from(dialect);
            assert_eq!(protocol.as_str(), dialect.as_str());
            assert_eq!(protocol.dialect(), Some(dialect));
        }
    }
}
