//! Reads and writes the reason why an answer ended.

use crate::canon::Stop;
use crate::json::Raw;
use crate::json::write::Object;
use crate::messages::fields::Fields;
use crate::scrub::{Names, explain, explain_code};

/// The known categories of a refusal, which clients may see.
pub(in crate::messages) const CATEGORIES: [&str; 5] = [
    "bio",
    "cyber",
    "frontier_llm",
    "general_harms",
    "reasoning_extraction",
];

/// Collects the members that describe the end of an answer.
#[derive(Debug, Default)]
pub(in crate::messages) struct Ending {
    reason: Option<String>,
    sequence: Option<String>,
    category: Option<String>,
    explanation: Option<String>,
}

impl Ending {
    /// Notes a member of a message or of `message_delta.delta`. The last value counts.
    pub(in crate::messages) fn note(&mut self, name: &str, value: Raw<'_>) {
        let text = || Some(value.string()?.decode_lossy().into_owned());
        match name {
            "stop_reason" => self.reason = text(),
            "stop_sequence" => self.sequence = text(),
            "stop_details" => {
                let mut details = Fields::of(value).unwrap_or_default();
                self.category = details.string("category").map(Into::into);
                self.explanation = details.string("explanation").map(Into::into);
            }
            _ => {}
        }
    }

    /// The reason in the common form, and the text of a refusal.
    pub(in crate::messages) fn stop(self, has_calls: bool) -> (Stop, Option<String>) {
        let stop = match self.reason.as_deref() {
            Some("max_tokens") => Stop::Length,
            Some("stop_sequence") => Stop::Sequence(self.sequence),
            Some("tool_use") => Stop::ToolCalls,
            Some("pause_turn") => Stop::Paused,
            Some("model_context_window_exceeded") => Stop::ContextFull,
            Some("refusal") => {
                // The category and the explanation are texts of the vendor and may identify the vendor.
                let category = self.category.filter(|category| is_shown(category));
                let explanation = self.explanation.as_deref();
                let explanation = explanation.and_then(|text| explain(text, Names::default()));
                return (Stop::Refusal { category }, explanation);
            }
            // Some servers do not report calls in the stop reason.
            _ if has_calls => Stop::ToolCalls,
            _ => Stop::End,
        };
        (stop, None)
    }
}

/// Whether clients may see the category of a refusal: a known one, or one of plain words.
fn is_shown(category: &str) -> bool {
    CATEGORIES.contains(&category) || explain_code(category, Names::default()).is_some()
}

/// Writes the members that describe the end.
pub(in crate::messages) fn write(it: &mut Object<'_>, stop: &Stop) {
    let mut sequence = None;
    let mut refusal = None;
    let reason = match stop {
        Stop::End | Stop::Sequence(None) => "end_turn",
        Stop::Sequence(Some(text)) => {
            sequence = Some(text.as_str());
            "stop_sequence"
        }
        Stop::Length => "max_tokens",
        Stop::ContextFull => "model_context_window_exceeded",
        Stop::ToolCalls => "tool_use",
        Stop::Refusal { category } => {
            refusal = Some(category.as_deref());
            "refusal"
        }
        // The categories of other vendors do not exist in this dialect.
        Stop::Filter(_) => {
            refusal = Some(None);
            "refusal"
        }
        Stop::Paused => "pause_turn",
    };
    it.text("stop_reason", reason)
        .text_or_null("stop_sequence", sequence);
    match refusal {
        None => it.null("stop_details"),
        Some(category) => it.object("stop_details", |it| {
            it.text("type", "refusal")
                .text_or_null("category", category)
                .null("explanation");
        }),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Cursor;

    #[test]
    fn a_refusal_shows_a_known_category_or_plain_words() {
        for (category, is_shown) in CATEGORIES.map(|known| (known, true)).into_iter().chain([
            ("content_policy", true),
            ("acme_zork_7", false),
            ("anthropic_policy", false),
            ("see https://policy.acme.xyz", false),
        ]) {
            let details = format!(r#"{{"category":"{category}","explanation":"Zork says no"}}"#);
            let mut ending = Ending::default();
            for (name, value) in [("stop_reason", "\"refusal\""), ("stop_details", &details)] {
                ending.note(name, Cursor::new(value).value().unwrap());
            }
            let category = is_shown.then(|| category.to_owned());
            assert_eq!(ending.stop(false).0, Stop::Refusal { category });
        }
    }
}
