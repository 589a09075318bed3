//! Converts thought signatures between clients and upstreams.

use std::borrow::Cow;

use crate::canon::Opaque;
use crate::dialect::Dialect;
use crate::profile::{Profile, Thinking};

/// Values that replace a signature in turns that the model did not write. The vendor documents
/// both. The gateway writes the first.
const BYPASS: [&str; 2] = [
    "skip_thought_signature_validator",
    "context_engineering_is_the_way_to_go",
];

/// Reads a signature that a client sends back: one that the gateway wrapped, or one of the dialect
/// `own`. The replacement values are not signatures.
pub(crate) fn read(text: &str, own: Dialect) -> Option<Opaque> {
    if text.is_empty() || BYPASS.contains(&text) {
        return None;
    }
    let foreign = Opaque::unwrap(text);
    Some(foreign.unwrap_or_else(|| Opaque {
        origin: own,
        model: "".into(),
        text: text.into(),
    }))
}

/// The text of a signature in an answer of the dialect `own`.
pub(crate) fn for_client(opaque: &Opaque, own: Dialect) -> Cow<'_, str> {
    if opaque.origin == own {
        Cow::Borrowed(&opaque.text)
    } else {
        Cow::Owned(opaque.wrap())
    }
}

/// The text of a signature in a request, if the target model made it and the channel uses the
/// dialect of its origin. A signature that the gateway did not wrap names no model, and counts as
/// made by the target model.
pub(crate) fn for_upstream<'a>(
    opaque: Option<&'a Opaque>,
    own: Dialect,
    public_model: &str,
) -> Option<&'a str> {
    let opaque = opaque.filter(|opaque| opaque.origin == own)?;
    let known = opaque.model.is_empty() || *opaque.model == *public_model;
    known.then_some(&*opaque.text)
}

/// The value that replaces a missing signature, for models that require one. Models that think by
/// budget or not at all do not require a signature, and might try to read this value.
pub(crate) fn bypass(profile: &Profile) -> Option<&'static str> {
    match profile.thinking {
        Some(Thinking::Budget | Thinking::None) => None,
        Some(Thinking::Level | Thinking::Adaptive) | None => Some(BYPASS[0]),
    }
}

/// The start of every value that [`Opaque::wrap`] writes.
const WRAPPED: &str = "Z3cxf";
/// Names of members that hold signatures.
const NAMES: [&str; 3] = ["thoughtSignature", "thought_signature", "signature"];

/// Whether the member holds a signature that we wrapped.
pub(crate) fn is_wrapped(name: &str, text: &str) -> bool {
    text.starts_with(WRAPPED) && NAMES.contains(&name)
}

/// The value to send instead of a signature that the gateway wrapped: the original if this upstream can use it,
/// otherwise the vendor's replacement value. `None` if the text is not wrapped.
pub(crate) fn unwrapped(text: &str, own: Dialect, public_model: &str) -> Option<String> {
    let opaque = Opaque::unwrap(text)?;
    let kept = for_upstream(Some(&opaque), own, public_model);
    Some(kept.unwrap_or(BYPASS[0]).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_comes_back_to_the_model_that_made_it_alone() {
        let made = Opaque {
            origin: Dialect::Generate,
            model: "maker/m".into(),
            text: "U0lH".into(),
        };
        let carried = for_client(&made, Dialect::Interactions).into_owned();
        let back = read(&carried, Dialect::Interactions);
        assert_eq!(back.as_ref(), Some(&made));
        let sent_to = |own, model| for_upstream(back.as_ref(), own, model);
        assert_eq!(sent_to(Dialect::Generate, "maker/m"), Some("U0lH"));
        assert_eq!(sent_to(Dialect::Generate, "maker/other"), None);
        assert_eq!(sent_to(Dialect::Interactions, "maker/m"), None);

        let own = read("U0lH", Dialect::Generate);
        assert_eq!(
            for_upstream(own.as_ref(), Dialect::Generate, "maker/m"),
            Some("U0lH")
        );
        assert_eq!(for_client(&made, Dialect::Generate), "U0lH");
    }

    #[test]
    fn a_bypass_is_not_a_signature() {
        for text in ["", BYPASS[0], BYPASS[1]] {
            assert_eq!(read(text, Dialect::Generate), None);
        }
    }
}
