//! Reads the model and the action from the path.

use crate::percent::decoded;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Whole,
    Stream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Events,
    /// A stream that is one JSON array.
    Array,
}

/// Whether a path belongs to this protocol.
pub(crate) fn is_target(path: &str) -> bool {
    target(path).is_some()
}

/// Reads the model, including its script, and the action from a path. The action follows the last colon, because
/// scripts may contain colons too.
pub(super) fn target(path: &str) -> Option<(String, Action)> {
    let rest = ["/v1beta/models/", "/v1/models/"]
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix))?;
    let (model, action) = rest.rsplit_once(':')?;
    let action = match action {
        "generateContent" => Action::Whole,
        "streamGenerateContent" => Action::Stream,
        _ => return None,
    };
    (!model.is_empty()).then(|| (decoded(model), action))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_action_stands_behind_the_last_colon() {
        for (path, expected) in [
            (
                "/v1beta/models/m:generateContent",
                Some(("m", Action::Whole)),
            ),
            (
                "/v1/models/a/b:streamGenerateContent",
                Some(("a/b", Action::Stream)),
            ),
            (
                "/v1/models/m+status=429:retry-after=7:generateContent",
                Some(("m+status=429:retry-after=7", Action::Whole)),
            ),
            (
                "/v1/models/m%2Bcut%3D5:generateContent",
                Some(("m+cut=5", Action::Whole)),
            ),
            ("/v1/models/m:countTokens", None),
            ("/v1/models/:generateContent", None),
            ("/v1/models/m", None),
            ("/v2/models/m:generateContent", None),
        ] {
            let expected = expected.map(|(model, action)| (model.to_owned(), action));
            assert_eq!(target(path), expected, "{path}");
        }
    }
}
