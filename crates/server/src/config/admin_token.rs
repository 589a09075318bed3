//! The operator's token for the admin API.

use std::fmt;

use subtle::ConstantTimeEq;

/// A token that can be compared and not printed.
#[derive(Clone)]
pub struct AdminToken(Box<str>);

impl AdminToken {
    pub(super) fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether this is the token. The time taken tells nothing but the length.
    pub fn matches(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
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
    fn only_the_same_token_matches_and_none_prints() {
        let token = AdminToken::new("correct horse");
        assert!(token.matches(b"correct horse"));
        for other in ["", "correct", "correct horse ", "Correct horse"] {
            assert!(!token.matches(other.as_bytes()), "{other}");
        }
        assert_eq!(format!("{token:?}"), "***");
    }
}
