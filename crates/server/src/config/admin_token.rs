//! The token that the configuration sets for the admin API.

use std::fmt;

use store::Digest;

/// The configured admin token. `Debug` does not print it.
#[derive(Clone)]
pub struct AdminToken(Box<str>);

impl AdminToken {
    pub(super) fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The digest with which the tokens of requests are compared.
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
