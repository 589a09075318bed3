//! Looks up names in a configuration, and the error for unknown names.

use std::fmt;

/// An unknown name. Its message lists the known names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    name: String,
    known: String,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is none of: {}", self.name, self.known)
    }
}

impl std::error::Error for UnknownName {}

pub(crate) fn find<T: Copy>(
    name: &str,
    all: &[T],
    as_str: fn(T) -> &'static str,
) -> Result<T, UnknownName> {
    let found = all.iter().copied().find(|it| as_str(*it) == name);
    found.ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|it| as_str(*it)).collect();
        UnknownName {
            name: name.to_owned(),
            known: known.join(" "),
        }
    })
}
