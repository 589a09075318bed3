//! Reads names of tools and formats.

use super::{Member, Refusal};

const NAME_LENGTH_MAX: usize = 64;

/// Reads a name that consists of letters, digits, `_` and `-`.
pub(crate) fn read_name(owner: &Member<'_>) -> Result<String, Refusal> {
    let name = owner.required_text("name")?;
    let legal = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    let path = owner.path("name");
    if name.is_empty() || !name.chars().all(legal) {
        return Err(Refusal::invalid(format!(
            "Invalid '{path}': string does not match pattern. Expected a string that matches the \
             pattern '^[a-zA-Z0-9_-]+$'."
        ))
        .param(path)
        .code("invalid_value"));
    }
    if name.len() > NAME_LENGTH_MAX {
        return Err(Refusal::invalid(format!(
            "Invalid '{path}': string too long. Expected a string with maximum length \
             {NAME_LENGTH_MAX}, but got a string with length {} instead.",
            name.len()
        ))
        .param(path)
        .code("string_above_max_length"));
    }
    Ok(name.to_owned())
}
