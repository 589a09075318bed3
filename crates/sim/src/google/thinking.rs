//! Reads thinking levels.

use super::Refusal;
use crate::catalog;
use crate::model::Effort;

/// Converts a thinking level to an effort. Models that always reason do not accept the lowest level.
pub(crate) fn effort_of_level(level: &str, model: &str, path: &str) -> Result<Effort, Refusal> {
    Ok(match level.to_ascii_uppercase().as_str() {
        "MINIMAL" if catalog::reasons(model) => {
            return Err(Refusal::invalid(
                "Thinking level MINIMAL is not supported for this model. Please retry with other \
                 thinking level.",
            )
            .field(path));
        }
        "MINIMAL" => Effort::Minimal,
        "LOW" => Effort::Low,
        "MEDIUM" => Effort::Medium,
        _ => Effort::High,
    })
}
