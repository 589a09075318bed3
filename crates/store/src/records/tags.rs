//! The tags of a key: short words by which people find it.

use crate::error::StoreError;

/// The maximum number of tags per key.
const TAGS_MAX: usize = 20;
const TAG_CHARS_MAX: usize = 50;

/// Checks tags, and removes duplicates.
pub(crate) fn checked_tags(tags: Vec<String>) -> Result<Vec<String>, StoreError> {
    let mut checked: Vec<String> = Vec::with_capacity(tags.len().min(TAGS_MAX));
    for tag in tags {
        let tag = tag.trim();
        let chars = tag.chars().count();
        if chars == 0 || chars > TAG_CHARS_MAX || tag.chars().any(char::is_control) {
            return Err(StoreError::Invalid(format!(
                "a tag has 1 to {TAG_CHARS_MAX} printable characters"
            )));
        }
        if !checked.iter().any(|known| known == tag) {
            checked.push(tag.to_owned());
        }
    }
    if checked.len() > TAGS_MAX {
        return Err(StoreError::Invalid(format!(
            "a key has at most {TAGS_MAX} tags"
        )));
    }
    Ok(checked)
}

/// The stored form: one tag per line, with a line break before the first and after the last, so that a search for a
/// line matches whole tags only. `None` if there are no tags.
pub(crate) fn tags_column(tags: &[String]) -> Option<String> {
    (!tags.is_empty()).then(|| format!("\n{}\n", tags.join("\n")))
}

pub(crate) fn stored_tags(column: Option<&str>) -> Vec<String> {
    let lines = column.unwrap_or_default().lines();
    let tags = lines.filter(|line| !line.is_empty());
    tags.map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_trimmed_kept_once_and_read_as_they_were_stored() {
        let given = ["prod", " team a ", "prod", "größe"].map(ToOwned::to_owned);
        let tags = checked_tags(given.to_vec()).unwrap();
        assert_eq!(tags, ["prod", "team a", "größe"]);
        let column = tags_column(&tags).unwrap();
        assert!(column.contains("\nteam a\n") && !column.contains("\nteam\n"));
        assert_eq!(stored_tags(Some(&column)), tags);
        assert_eq!(tags_column(&[]), None);
        assert_eq!(stored_tags(None), Vec::<String>::new());
    }

    #[test]
    fn tags_that_are_none_are_refused() {
        for tag in ["", "  ", "a\nb", &"x".repeat(51)] {
            assert!(checked_tags(vec![tag.to_owned()]).is_err(), "{tag:?}");
        }
        let many = (0..21).map(|n| n.to_string()).collect();
        assert!(checked_tags(many).is_err());
    }
}
