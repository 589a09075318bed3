//! Thought signatures as Generate Content and Interactions carry them.

use std::borrow::Cow;

use crate::canon::Opaque;
use crate::dialect::Dialect;
use crate::json::patch::Edit;
use crate::profile::{Profile, Thinking};

/// What stands for a signature in a history that the model did not write. Both literals are
/// documented by the vendor; we write the first.
const BYPASS: [&str; 2] = [
    "skip_thought_signature_validator",
    "context_engineering_is_the_way_to_go",
];

/// Reads a signature that a caller sends back: ours with its mark of origin, or one that `own`
/// made itself. A bypass says nothing.
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

/// The text of a signature in an answer of `own`.
pub(crate) fn told(opaque: &Opaque, own: Dialect) -> Cow<'_, str> {
    if opaque.origin == own {
        Cow::Borrowed(&opaque.text)
    } else {
        Cow::Owned(opaque.wrap())
    }
}

/// The text of a signature in a request, if the model that it goes to has made it.
pub(crate) fn sent<'a>(
    opaque: Option<&'a Opaque>,
    own: Dialect,
    public_model: &str,
) -> Option<&'a str> {
    let opaque = opaque.filter(|opaque| opaque.origin == own)?;
    let known = opaque.model.is_empty() || *opaque.model == *public_model;
    known.then_some(&*opaque.text)
}

/// What goes in the place of a signature that is missing, for models that demand one. Models that
/// think by budget or not at all do not, and might try to read it.
pub(crate) fn bypass(profile: &Profile) -> Option<&'static str> {
    match profile.thinking {
        Some(Thinking::Budget | Thinking::None) => None,
        Some(Thinking::Level | Thinking::Adaptive) | None => Some(BYPASS[0]),
    }
}

/// The first letters of everything that [`Opaque::wrap`] writes, as the beginning of a string.
const WRAPPED: &[u8] = b"\"Z3cxf";
/// Members in which signatures stand.
const NAMES: [&[u8]; 3] = [
    b"\"thoughtSignature\"",
    b"\"thought_signature\"",
    b"\"signature\"",
];

/// Changes for a request that goes on as it is, in whose history signatures of other models stand:
/// the conversation was with one of them before. This model would refuse what we wrapped then.
pub(crate) fn unwrap_all(body: &[u8], own: Dialect, public_model: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    for at in memchr::memmem::find_iter(body, WRAPPED) {
        let (before, rest) = body.split_at(at);
        let text = rest.get(1..).unwrap_or_default();
        let Some(length) = memchr::memchr(b'"', text) else {
            break;
        };
        let before = before.trim_ascii_end();
        let name = before.strip_suffix(b":").map(<[u8]>::trim_ascii_end);
        let is_signature = name.is_some_and(|name| NAMES.iter().any(|known| name.ends_with(known)));
        let text = text
            .get(..length)
            .and_then(|text| str::from_utf8(text).ok());
        if let Some(opaque) = text.and_then(Opaque::unwrap)
            && is_signature
        {
            let kept = sent(Some(&opaque), own, public_model);
            let text = kept.unwrap_or(BYPASS[0]).as_bytes().to_vec();
            edits.push(Edit::replace(at + 1..at + 1 + length, text));
        }
    }
    edits
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
        let carried = told(&made, Dialect::Interactions).into_owned();
        let back = read(&carried, Dialect::Interactions);
        assert_eq!(back.as_ref(), Some(&made));
        let sent_to = |own, model| sent(back.as_ref(), own, model);
        assert_eq!(sent_to(Dialect::Generate, "maker/m"), Some("U0lH"));
        assert_eq!(sent_to(Dialect::Generate, "maker/other"), None);
        assert_eq!(sent_to(Dialect::Interactions, "maker/m"), None);

        let own = read("U0lH", Dialect::Generate);
        assert_eq!(
            sent(own.as_ref(), Dialect::Generate, "maker/m"),
            Some("U0lH")
        );
        assert_eq!(told(&made, Dialect::Generate), "U0lH");
    }

    #[test]
    fn signatures_of_other_models_are_not_shown_to_this_one() {
        let wrap = |origin, model: &str| {
            let (model, text) = (model.into(), "U0lH".into());
            Opaque {
                origin,
                model,
                text,
            }
            .wrap()
        };
        let own = wrap(Dialect::Generate, "maker/m");
        let other = wrap(Dialect::Generate, "maker/other");
        let foreign = wrap(Dialect::Messages, "maker/m");
        let body = format!(
            r#"{{"a":"{own}","thoughtSignature" : "{own}","b":[{{"signature":"{other}"}}],"thought_signature":"{foreign}","signature":"U0lH","c":"Z3cxf"}}"#
        );
        let edits = unwrap_all(body.as_bytes(), Dialect::Generate, "maker/m");
        let sent = crate::json::patch::apply(&bytes::Bytes::from(body.clone()), edits);
        let bypass = BYPASS[0];
        assert_eq!(
            std::str::from_utf8(&sent).unwrap(),
            format!(
                r#"{{"a":"{own}","thoughtSignature" : "U0lH","b":[{{"signature":"{bypass}"}}],"thought_signature":"{bypass}","signature":"U0lH","c":"Z3cxf"}}"#
            )
        );
        let wrapped = wrap(Dialect::Chat, "");
        assert!(format!("\"{wrapped}").as_bytes().starts_with(WRAPPED));
    }

    #[test]
    fn a_bypass_is_no_signature() {
        for text in ["", BYPASS[0], BYPASS[1]] {
            assert_eq!(read(text, Dialect::Generate), None);
        }
    }
}
