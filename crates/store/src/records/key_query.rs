//! A search for keys.

use super::ids::{KeyId, WalletId};

/// A query for keys, newest first. A key must meet every condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyQuery {
    pub wallet: Option<WalletId>,
    /// A part of the key's or its wallet's name, or the beginning of its id or secret, regardless of case.
    pub text: Option<String>,
    /// One of the key's tags.
    pub tag: Option<String>,
    /// The last key of the previous page.
    pub after: Option<KeyId>,
    /// The maximum number of keys to return; `None` is all of them.
    pub count_max: Option<u32>,
}

impl KeyQuery {
    /// The patterns of [`Self::text`] for `LIKE` with `\` as escape: anywhere, and at the beginning.
    pub(crate) fn patterns(&self) -> Option<(String, String)> {
        let text = self.text.as_ref()?;
        let mut escaped = String::with_capacity(text.len());
        for c in text.chars() {
            if matches!(c, '%' | '_' | '\\') {
                escaped.push('\\');
            }
            escaped.push(c);
        }
        Some((format!("%{escaped}%"), format!("{escaped}%")))
    }

    /// The tag as it occurs in the column of a key.
    pub(crate) fn tag_line(&self) -> Option<String> {
        self.tag.as_ref().map(|tag| format!("\n{tag}\n"))
    }

    pub(crate) fn rows_max(&self) -> i64 {
        self.count_max.map_or(i64::MAX, i64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_in_a_search_are_letters() {
        let query = KeyQuery {
            text: Some(r"50%_a\b".to_owned()),
            ..KeyQuery::default()
        };
        let (anywhere, beginning) = query.patterns().unwrap();
        assert_eq!(beginning, r"50\%\_a\\b%");
        assert_eq!(anywhere, format!("%{beginning}"));
    }
}
