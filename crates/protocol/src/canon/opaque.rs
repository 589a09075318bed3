//! Wraps data that only the model that made it can read, for dialects that have no member for this data.
//!
//! Thought signatures, thinking signatures and encrypted reasoning must come back unchanged to the model that
//! made them. They must never reach another model. The gateway keeps no state. So it sends these values to
//! the client in an opaque member of the client's dialect, wrapped with a mark of their origin.

use super::base64;
use crate::dialect::Dialect;

/// The start of every wrapped value.
const MARK: &str = "gw1|";

/// An opaque value and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// The dialect of the upstream that made the value.
    pub origin: Dialect,
    /// The public id of the model that made the value. No other model receives the value.
    pub model: Box<str>,
    /// The value as the upstream sent it.
    pub text: Box<str>,
}

impl Opaque {
    /// Encodes the value for an opaque member of another dialect. The alphabet is base64url without padding,
    /// because clients decode these members and encode them again in that alphabet.
    pub fn wrap(&self) -> String {
        let plain = format!("{MARK}{}|{}|{}", self.origin, self.model, self.text);
        base64::url_safe(plain.as_bytes())
    }

    /// Reads a value that [`Opaque::wrap`] wrote, in either base64 alphabet, padded or not. `None` for other
    /// values.
    pub fn unwrap(text: &str) -> Option<Self> {
        let plain = String::from_utf8(base64::decode(text)?).ok()?;
        let (origin, rest) = plain.strip_prefix(MARK)?.split_once('|')?;
        let (model, text) = rest.split_once('|')?;
        Some(Self {
            origin: origin.parse().ok()?,
            model: model.into(),
            text: text.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn foreign_values_are_not_ours() {
        for text in ["", "EpwECkYIBxgCKkDr", "gw1|", "not base64!", "A"] {
            assert_eq!(Opaque::unwrap(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_wrapped_value_reads_back_in_every_spelling(text in ".{0,200}", model in "[a-z]{1,8}/[a-z0-9.-]{1,20}") {
            let opaque = Opaque { origin: Dialect::Generate, model: model.into(), text: text.into() };
            let wrapped = opaque.wrap();
            prop_assert_eq!(Opaque::unwrap(&wrapped), Some(opaque.clone()));
            let standard = wrapped.replace('-', "+").replace('_', "/");
            let padded = format!("{standard}{}", "=".repeat((4 - standard.len() % 4) % 4));
            prop_assert_eq!(Opaque::unwrap(&padded), Some(opaque));
        }
    }
}
