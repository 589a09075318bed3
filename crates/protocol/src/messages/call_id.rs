//! Makes ids of tool calls valid in this dialect, for requests and answers.

/// Replaces the characters of an id that this dialect does not allow.
pub(super) fn plain_id(id: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain: String = id
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    if plain.is_empty() {
        "call".to_owned()
    } else {
        plain
    }
}
