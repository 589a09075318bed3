//! Creates and checks the signatures of thinking blocks and the data of redacted ones.

use crate::seal::{open, seal};

const SHOWN: &str = "messages thinking";
const OMITTED: &str = "messages thinking, not shown";
const REDACTED: &str = "messages thinking, redacted";

/// Creates the signature of a visible thought.
pub(super) fn sign(model: &str, thought: &str) -> String {
    seal(SHOWN, model, thought)
}

/// Creates the signature of a hidden thought. The signature contains the thought.
pub(super) fn sign_omitted(model: &str, thought: &str) -> String {
    seal(OMITTED, model, thought)
}

/// Creates the data of a redacted block. The data contains the thought.
pub(super) fn redact(model: &str, thought: &str) -> String {
    seal(REDACTED, model, thought)
}

/// Whether this model created the thinking block and nobody has changed it.
pub(super) fn is_intact(model: &str, thinking: &str, signature: &str) -> bool {
    opened(SHOWN, model, signature).is_some_and(|thought| thought == thinking)
        || (thinking.is_empty() && opened(OMITTED, model, signature).is_some())
}

/// Whether this model created the redacted block and nobody has changed it.
pub(super) fn is_intact_redaction(model: &str, data: &str) -> bool {
    opened(REDACTED, model, data).is_some()
}

/// Opens a sealed value. A value in another base64 alphabet or with other padding counts as changed.
fn opened(kind: &str, model: &str, sealed: &str) -> Option<String> {
    open(kind, model, sealed).filter(|text| seal(kind, model, text) == sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_must_come_back_as_it_was_made() {
        let signature = sign("m", "I think.");
        assert!(is_intact("m", "I think.", &signature));
        for (model, thinking, signature) in [
            ("other", "I think.", signature.as_str()),
            ("m", "I think!", &signature),
            ("m", "", &signature),
            ("m", "I think.", ""),
            ("m", "I think.", signature.trim_end_matches('=')),
            ("m", "I think.", &signature.replace('+', "-")),
            ("m", "I think.", &redact("m", "I think.")),
        ] {
            assert!(
                !is_intact(model, thinking, signature),
                "{model} {thinking} {signature}"
            );
        }
        let omitted = sign_omitted("m", "I think.");
        assert!(is_intact("m", "", &omitted));
        assert!(!is_intact("m", "I think.", &omitted));
        assert!(is_intact_redaction("m", &redact("m", "x")));
        assert!(!is_intact_redaction("m", &signature));
    }
}
