//! The names on both sides of a call, by which a text of the upstream is cleaned.

use bytes::Bytes;

/// Only this much of a request is searched for words, because the search runs on a thread that
/// serves other clients too.
const SEARCHED_BYTES_MAX: usize = 1 << 20;

/// The names on both sides of a call: the hidden names, and the names of the client.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names<'a> {
    /// The upstream's name of the model. Empty if it is not known.
    pub upstream: &'a str,
    /// The public id of the model.
    pub public: &'a str,
    /// Words that identify the channel, in lower case: its name and its host.
    pub hidden: &'a [Box<str>],
    /// The request as it was sent, in pieces. Words in it may be shown.
    pub request: &'a [Bytes],
}

impl<'a> Names<'a> {
    /// Names of a model only, if neither the channel nor the request is known.
    pub const fn of_model(upstream: &'a str, public: &'a str) -> Self {
        Self {
            upstream,
            public,
            hidden: &[],
            request: &[],
        }
    }

    /// Whether the request contains this word, without a letter or digit next to it.
    pub(super) fn caller_wrote(&self, word: &str) -> bool {
        !word.is_empty()
            && self
                .searched()
                .any(|piece| has_word(piece, word.as_bytes()))
    }

    /// Whether a string or a field of the request begins with this URL. A URL inside a longer text
    /// may be a guess.
    pub(super) fn caller_linked(&self, url: &str) -> bool {
        let begins = |before: Option<&u8>| matches!(before, None | Some(b'"' | b'\n'));
        !url.is_empty()
            && self.searched().any(|piece| {
                let mut found = memchr::memmem::find_iter(piece, url.as_bytes());
                found.any(|at| begins(at.checked_sub(1).and_then(|before| piece.get(before))))
            })
    }

    /// Whether the request contains this whole string or a member with this name: `"word"`.
    pub(super) fn caller_named(&self, word: &str) -> bool {
        let quoted = format!("\"{word}\"");
        let finder = memchr::memmem::Finder::new(quoted.as_bytes());
        self.searched().any(|piece| finder.find(piece).is_some())
    }

    /// The part of the request that is searched.
    fn searched(&self) -> impl Iterator<Item = &[u8]> {
        let mut left = SEARCHED_BYTES_MAX;
        self.request.iter().map_while(move |piece| {
            let part = piece.get(..piece.len().min(left))?;
            left -= part.len();
            (!part.is_empty()).then_some(part)
        })
    }

    pub(super) fn identifies_channel(&self, part: &str) -> bool {
        self.hidden
            .iter()
            .any(|hidden| hidden.eq_ignore_ascii_case(part))
    }
}

fn has_word(text: &[u8], word: &[u8]) -> bool {
    let is_inside = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    memchr::memmem::find_iter(text, word).any(|at| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        let behind = text.get(at.saturating_add(word.len()));
        !is_inside(before) && !is_inside(behind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_request_are_whole_words() {
        let request = [
            Bytes::from_static(br#"{"tools":[{"name":"get_weather"}],"#),
            Bytes::from_static(br#""top_k":41}"#),
        ];
        let names = Names {
            request: &request,
            ..Names::default()
        };
        for (word, is_there) in [
            ("get_weather", true),
            ("weather", true),
            ("weath", false),
            ("41", true),
            ("4", false),
            ("", false),
        ] {
            assert_eq!(names.caller_wrote(word), is_there, "{word}");
        }
        assert!(names.caller_named("top_k"));
        assert!(!names.caller_named("top"));
    }
}
