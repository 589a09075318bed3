//! A credential of an upstream that cannot be printed (K3).

use std::fmt;

/// A credential that prints as `***` in every format.
///
/// The type has no `Deref`, `AsRef` or `Into`, so every access to the text can be found by
/// searching for one method.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a credential. Surrounding white space is removed, because files end in a newline.
    pub fn new(text: &str) -> Self {
        Self(text.trim().into())
    }

    /// Whether the credential is empty, which is a configuration error.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The credential itself, for the request header.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_prints_stars_in_every_format() {
        let secret = Secret::new("sk-very-secret");
        let nested = Some([secret.clone()]);
        for shown in [
            format!("{secret}"),
            format!("{secret:?}"),
            format!("{secret:#?}"),
            format!("{secret:>40}"),
            format!("{nested:?}"),
        ] {
            assert!(!shown.contains("very"), "{shown}");
            assert!(shown.contains("***"), "{shown}");
        }
    }

    #[test]
    fn white_space_around_a_credential_goes() {
        assert_eq!(Secret::new("  key\r\n").expose(), "key");
        assert!(Secret::new(" \n").is_empty());
    }
}
