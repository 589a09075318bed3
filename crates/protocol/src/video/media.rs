//! Media of a finished task, which are kept here before anybody is shown them.

use bytes::Bytes;

/// What an upstream has finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// What the protocol wants to know again when the media are kept: a little JSON.
    pub facts: String,
    pub media: Vec<Medium>,
}

/// One medium, still where the upstream has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Medium {
    pub kind: MediaKind,
    pub source: Source,
    /// Whether the task has a result without it.
    pub is_optional: bool,
}

/// What a medium must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    Mp4,
    Mov,
    Png,
}

/// Where a medium comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An address that the upstream names.
    Url(String),
    /// The answer itself, in base64.
    Base64(Bytes),
}

/// A medium that is kept here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosted {
    /// Its name, which nobody can guess.
    pub id: String,
    pub kind: MediaKind,
    /// The length of a film to the nearest second, where it tells it.
    pub seconds: Option<u64>,
}

impl MediaKind {
    /// The ending of its file name.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Mp4 => "mp4",
            Self::Mov => "mov",
            Self::Png => "png",
        }
    }

    /// The kind whose file names end so.
    pub fn of_extension(extension: &str) -> Option<Self> {
        [Self::Mp4, Self::Mov, Self::Png]
            .into_iter()
            .find(|kind| kind.extension() == extension)
    }

    /// Its media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Mp4 => "video/mp4",
            Self::Mov => "video/quicktime",
            Self::Png => "image/png",
        }
    }
}

impl Hosted {
    /// Where it is served.
    pub fn url(&self, public_url: &str) -> String {
        format!("{public_url}/media/{}.{}", self.id, self.kind.extension())
    }

    /// Where clients of Generate Content look for it.
    pub fn file_url(&self, public_url: &str) -> String {
        format!("{public_url}/v1beta/files/{}:download?alt=media", self.id)
    }
}
