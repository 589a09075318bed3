//! The models that a key may call.

use std::fmt;

/// The maximum number of patterns per list.
const PATTERNS_MAX: usize = 200;
/// The maximum length of a pattern, which is that of a model's id.
const PATTERN_BYTES_MAX: usize = 256;

/// Patterns of allowed models: an id, or `maker/*` for all models of a maker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelList(Box<[Box<str>]>);

/// Errors from parsing a list of models.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelListError {
    #[error(
        "`{0}` is not a model; use an id such as maker/model, or maker/* for all models of a maker"
    )]
    Pattern(String),
    #[error("a key's list has at most {PATTERNS_MAX} models")]
    TooMany,
}

impl ModelList {
    /// Parses the patterns of a list. An empty list allows every model and becomes `None`.
    pub fn new<T: AsRef<str>>(
        patterns: impl IntoIterator<Item = T>,
    ) -> Result<Option<Self>, ModelListError> {
        let mut list: Vec<Box<str>> = Vec::new();
        for pattern in patterns {
            let pattern = pattern.as_ref().trim();
            if !is_pattern(pattern) {
                return Err(ModelListError::Pattern(pattern.chars().take(64).collect()));
            }
            if !list.iter().any(|known| **known == *pattern) {
                list.push(pattern.into());
            }
            if list.len() > PATTERNS_MAX {
                return Err(ModelListError::TooMany);
            }
        }
        Ok((!list.is_empty()).then(|| Self(list.into())))
    }

    /// Parses the stored form: one pattern per line.
    pub(crate) fn stored(text: &str) -> Self {
        Self(text.lines().map(Into::into).collect())
    }

    /// Whether a key with this list may call a model.
    pub fn allows(&self, model: &str) -> bool {
        self.0
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(maker) => model.starts_with(maker),
                None => **pattern == *model,
            })
    }

    /// The patterns, in the order in which they were given.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|pattern| &**pattern)
    }
}

/// The form in which the list is stored.
impl fmt::Display for ModelList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

/// Whether the text is an id of at least two parts, or a maker followed by `/*`.
fn is_pattern(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:@+~/".contains(c);
    let id = text.strip_suffix("/*").map_or_else(
        || text.contains('/').then_some(text),
        |maker| (!maker.contains('/')).then_some(maker),
    );
    text.len() <= PATTERN_BYTES_MAX
        && id.is_some_and(|id| id.split('/').all(|part| !part.is_empty()) && id.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_allows_its_ids_and_the_models_of_its_makers() {
        let list = ModelList::new(["sim/chat", "acme/*"]).unwrap().unwrap();
        for (model, allowed) in [
            ("sim/chat", true),
            ("sim/chat-2", false),
            ("sim/cha", false),
            ("acme/large", true),
            ("acme/large/v2", true),
            ("acme", false),
            ("acmes/large", false),
            ("", false),
        ] {
            assert_eq!(list.allows(model), allowed, "{model}");
        }
    }

    #[test]
    fn a_list_is_stored_line_by_line() {
        let list = ModelList::new([" sim/chat ", "acme/*", "sim/chat"])
            .unwrap()
            .unwrap();
        assert_eq!(list.to_string(), "sim/chat\nacme/*");
        assert_eq!(ModelList::stored(&list.to_string()), list);
        assert_eq!(ModelList::new::<&str>([]).unwrap(), None);
    }

    #[test]
    fn what_no_model_can_be_is_refused() {
        for pattern in [
            "", "*", "/", "chat", "sim/", "/chat", "sim/*/x", "a/b/*", "sim/ch*", "a b/c",
            "a/b\nc", "*/*", "sim//x",
        ] {
            let refused = ModelList::new([pattern]).unwrap_err();
            assert!(matches!(refused, ModelListError::Pattern(_)), "{pattern}");
        }
        let many = (0..=PATTERNS_MAX).map(|n| format!("sim/{n}"));
        assert_eq!(ModelList::new(many), Err(ModelListError::TooMany));
    }
}
