//! Media of a finished task that the gateway copies before a client sees the result.

use bytes::Bytes;

/// The result of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Data that the protocol needs again when the media have been copied, as a short JSON text.
    pub facts: String,
    pub media: Vec<Medium>,
}

/// One medium, which is still at the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Medium {
    pub kind: MediaKind,
    pub source: Source,
    /// Whether the result is complete without this medium.
    pub is_optional: bool,
}

/// The required format of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    Mp4,
    Mov,
    Png,
}

/// The location of a medium's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A URL from the upstream.
    Url(String),
    /// Inside the upstream's answer, in base64.
    Base64(Bytes),
}

/// A medium that the gateway has copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedMedium {
    /// The name, which cannot be guessed.
    pub id: String,
    pub kind: MediaKind,
    /// The duration of a video, rounded to seconds, if the file contains it.
    pub seconds: Option<u64>,
}

impl MediaKind {
    /// The extension of the file name.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Mp4 => "mp4",
            Self::Mov => "mov",
            Self::Png => "png",
        }
    }

    /// The kind with this extension.
    pub fn of_extension(extension: &str) -> Option<Self> {
        [Self::Mp4, Self::Mov, Self::Png]
            .into_iter()
            .find(|kind| kind.extension() == extension)
    }

    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Mp4 => "video/mp4",
            Self::Mov => "video/quicktime",
            Self::Png => "image/png",
        }
    }
}

impl HostedMedium {
    /// The URL where the medium is served.
    pub fn url(&self, public_url: &str) -> String {
        format!("{public_url}/media/{}.{}", self.id, self.kind.extension())
    }

    /// The URL where clients of Generate Content expect the medium.
    pub fn file_url(&self, public_url: &str) -> String {
        format!("{public_url}/v1beta/files/{}:download?alt=media", self.id)
    }
}
