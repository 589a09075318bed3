//! The operator's token for the admin API.

use std::fmt;

use store::Digest;

/// A token that is known by its digest and not printed.
#[derive(Clone)]
pub struct AdminToken(Box<str>);

impl AdminToken {
    pub(super) fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The digest, which is all that a check needs.
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_has_its_digest_and_none_prints() {
        let token = AdminToken::new("correct horse");
        assert_eq!(token.digest(), Digest::of(b"correct horse"));
        for other in ["", "correct", "correct horse ", "Correct horse"] {
            assert_ne!(token.digest(), Digest::of(other.as_bytes()), "{other}");
        }
        assert_eq!(format!("{token:?}"), "***");
    }
}
