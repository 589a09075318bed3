//! Replaces tool names that other dialects do not allow.
//!
//! This dialect allows `.` and `:` in names, and names that are twice as long. The gateway replaces these
//! names in the request and restores them in the answer. The request carries the table of replaced names.

use std::collections::{BTreeMap, BTreeSet};

/// The longest name that every dialect accepts.
const NAME_BYTES_MAX: usize = 64;
/// The number of bytes of a name that are kept when a number is appended. Names with the same kept bytes
/// share one counter, so that no number is tried twice.
const NAME_BYTES_KEPT: usize = 56;

/// The client's tool names, and the names that replace them.
#[derive(Debug, Default)]
pub(in crate::generate) struct ToolNames {
    safe: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    /// The last number that was appended, by the kept bytes of the name.
    numbers: BTreeMap<String, u32>,
}

impl ToolNames {
    /// The name to use in place of the client's name.
    pub(in crate::generate) fn safe(&mut self, name: &str) -> String {
        if let Some(known) = self.safe.get(name) {
            return known.clone();
        }
        let plain: String = name.chars().map(letter).take(NAME_BYTES_MAX).collect();
        let mut safe = plain.clone();
        while self.taken.contains(&safe) {
            let kept = plain.get(..NAME_BYTES_KEPT).unwrap_or(&plain);
            let number = self.numbers.entry(kept.to_owned()).or_insert(1);
            *number += 1;
            let suffix = format!("_{number}");
            safe.clone_from(&plain);
            safe.truncate(NAME_BYTES_MAX - suffix.len());
            safe.push_str(&suffix);
        }
        self.taken.insert(safe.clone());
        self.safe.insert(name.to_owned(), safe.clone());
        safe
    }

    /// The replaced names, each with the original, sorted.
    pub(in crate::generate) fn renamed(self) -> Vec<(String, String)> {
        let pairs = self.safe.into_iter().map(|(name, safe)| (safe, name));
        let mut pairs: Vec<_> = pairs.filter(|(safe, name)| safe != name).collect();
        pairs.sort_unstable();
        pairs
    }
}

fn letter(c: char) -> char {
    if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
        c
    } else {
        '_'
    }
}

/// The client's name of a tool. `renamed` is sorted.
pub(in crate::generate) fn original<'a>(renamed: &'a [(String, String)], name: &'a str) -> &'a str {
    let found = renamed.binary_search_by(|(safe, _)| safe.as_str().cmp(name));
    let pair = found.ok().and_then(|place| renamed.get(place));
    pair.map_or(name, |(_, original)| original)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_changed_only_where_they_must_and_changed_back() {
        let mut names = ToolNames::default();
        let long = "n".repeat(70);
        for (name, safe) in [
            ("get_weather", "get_weather"),
            ("a.b:c", "a_b_c"),
            ("a_b_c", "a_b_c_2"),
            ("a.b:c", "a_b_c"),
            ("a:b.c", "a_b_c_3"),
            (&long, &long[..64]),
        ] {
            assert_eq!(names.safe(name), safe);
        }
        let renamed = names.renamed();
        assert_eq!(original(&renamed, "a_b_c"), "a.b:c");
        assert_eq!(original(&renamed, "a_b_c_2"), "a_b_c");
        assert_eq!(original(&renamed, "get_weather"), "get_weather");
        assert_eq!(original(&renamed, &long[..64]), long);
    }

    /// Many long names that differ only at their ends, each in two variants. Every variant needs its own
    /// number.
    #[test]
    fn names_that_a_number_makes_alike_share_one_count() {
        let mut names = ToolNames::default();
        let start = "n".repeat(60);
        let mut safe = BTreeSet::new();
        for end in 0..500 {
            for sign in ['_', '.'] {
                safe.insert(names.safe(&format!("{start}{end:03}{sign}")));
            }
        }
        assert_eq!(safe.len(), 1_000);
        assert!(safe.iter().all(|name| name.len() <= NAME_BYTES_MAX));
        assert_eq!(names.numbers.into_values().collect::<Vec<_>>(), [501]);
    }
}
