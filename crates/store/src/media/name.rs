//! The names of media: an unguessable id and a type.

use std::fmt;

use rand::RngExt as _;

const CHARS: usize = 32;
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The id of one medium: 32 letters and digits, about 165 random bits. Anybody who knows it may fetch the medium.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MediaId([u8; CHARS]);

impl MediaId {
    /// A fresh random id.
    pub fn random() -> Self {
        let mut rng = rand::rng();
        Self(std::array::from_fn(|_| {
            let at = rng.random_range(0..ALPHABET.len());
            ALPHABET.get(at).copied().unwrap_or(b'a')
        }))
    }

    /// Parses the text form. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let chars: [u8; CHARS] = text.as_bytes().try_into().ok()?;
        let is_id = chars.iter().all(|it| ALPHABET.contains(it));
        is_id.then_some(Self(chars))
    }

    /// The text form.
    pub fn as_str(&self) -> &str {
        // The characters are ASCII by construction.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for MediaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// Hides the id, because readers of the log must not be able to fetch the media.
impl fmt::Debug for MediaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MediaId(..)")
    }
}

/// The types of media that are stored and served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaType {
    Mp4,
    Mov,
    Png,
}

impl MediaType {
    const ALL: [Self; 3] = [Self::Mp4, Self::Mov, Self::Png];

    /// The file extension.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Mp4 => "mp4",
            Self::Mov => "mov",
            Self::Png => "png",
        }
    }

    /// The value of `content-type`.
    pub fn mime(self) -> &'static str {
        match self {
            Self::Mp4 => "video/mp4",
            Self::Mov => "video/quicktime",
            Self::Png => "image/png",
        }
    }
}

/// The name of a medium, `{id}.mp4`: the last part of its path in the storage and of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MediaName {
    pub id: MediaId,
    pub kind: MediaType,
}

impl MediaName {
    /// Parses the text form. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, ending) = text.split_once('.')?;
        let kind = MediaType::ALL
            .into_iter()
            .find(|it| it.ending() == ending)?;
        let id = MediaId::parse(id)?;
        Some(Self { id, kind })
    }
}

impl fmt::Display for MediaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.id, self.kind.ending())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back_from_its_text() {
        for kind in MediaType::ALL {
            let id = MediaId::random();
            let name = MediaName { id, kind };
            assert_eq!(MediaName::parse(&name.to_string()), Some(name));
        }
        assert_ne!(MediaId::random(), MediaId::random());
    }

    #[test]
    fn other_texts_are_no_name() {
        let id = "0123456789abcdefghijklmnopqrstuv";
        assert!(MediaName::parse(&format!("{id}.mp4")).is_some());
        for text in [
            "",
            ".mp4",
            id,
            &format!("{id}."),
            &format!("{id}.exe"),
            &format!("{id}.mp4.png"),
            &format!("{id}.MP4"),
            &format!("{}.mp4", id.to_uppercase()),
            &format!("{}.mp4", &id[1..]),
            &format!("x{id}.mp4"),
            &format!("../{}.mp4", &id[3..]),
            "..............................…mp4",
        ] {
            assert_eq!(MediaName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_id_is_not_shown_in_logs() {
        let name = MediaName {
            id: MediaId::random(),
            kind: MediaType::Png,
        };
        assert!(!format!("{name:?}").contains(name.id.as_str()));
    }
}
