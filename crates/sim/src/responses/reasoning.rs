//! Encrypts reasoning. The result is bound to a model and an item, and is checked when a client sends it back.

use crate::openai::Refusal;
use crate::seal::{open, seal};
use http::StatusCode;

const KIND: &str = "responses reasoning";
const BETWEEN: char = '|';
/// The number of characters that error messages show from each end of a value.
const SHOWN: usize = 4;

pub(super) fn encrypt(model: &str, id: &str, reasoning: &str) -> String {
    seal(KIND, model, &format!("{id}{BETWEEN}{reasoning}"))
}

/// Checks encrypted content, and returns the id of the item that it belongs to.
pub(super) fn check(model: &str, id: Option<&str>, content: &str) -> Result<String, Refusal> {
    let made_for = open(KIND, model, content)
        .filter(|text| seal(KIND, model, text) == content)
        .and_then(|text| Some(text.split_once(BETWEEN)?.0.to_owned()));
    let Some(made_for) = made_for else {
        let what = id.map_or_else(|| shortened(content), |id| format!("for item {id}"));
        return Err(not_verified(
            &what,
            "Encrypted content could not be decrypted or parsed.",
        ));
    };
    match id {
        Some(id) if id != made_for => Err(not_verified(
            &format!("for item {id}"),
            "Encrypted content item_id did not match the target item id.",
        )),
        _ => Ok(made_for),
    }
}

/// The refusal of a reasoning item that comes without its content, because nothing is stored.
pub(super) fn not_stored(id: &str) -> Refusal {
    Refusal {
        status: StatusCode::NOT_FOUND,
        ..Refusal::invalid(format!(
            "Item with id '{id}' not found. Items are not persisted when `store` is set to false. \
             Try again with `store` set to true, or remove this item from your input."
        ))
        .param("input")
    }
}

fn not_verified(what: &str, why: &str) -> Refusal {
    Refusal::invalid(format!(
        "The encrypted content {what} could not be verified. Reason: {why}"
    ))
    .code("invalid_encrypted_content")
}

fn shortened(content: &str) -> String {
    let head: String = content.chars().take(SHOWN).collect();
    let tail: Vec<_> = content.chars().rev().take(SHOWN).collect();
    let tail: String = tail.into_iter().rev().collect();
    format!("{head}...{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_taken_back_only_for_its_model_and_item() {
        let content = encrypt("m", "rs_1", "Hm. | So.");
        assert_eq!(check("m", Some("rs_1"), &content), Ok("rs_1".to_owned()));
        assert_eq!(check("m", None, &content), Ok("rs_1".to_owned()));
        for (model, id, content) in [
            ("other", Some("rs_1"), content.as_str()),
            ("m", Some("rs_2"), &content),
            ("m", None, &content.replace('+', "-")),
            ("m", None, ""),
            ("m", None, "gAAAAAB"),
        ] {
            let refusal = check(model, id, content).unwrap_err();
            assert_eq!(refusal.code, Some("invalid_encrypted_content"), "{content}");
        }
    }
}
