//! Parses the new value of a limit in a command.

/// A new value for a limit; the word `none` removes the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitChange<T> {
    Set(T),
    Lift,
}

impl<T> LimitChange<T> {
    pub(super) fn read(
        text: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::Lift),
            value => read(value).map(Self::Set),
        }
    }

    pub(super) fn into_option(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Lift => None,
        }
    }
}
