//! Checks the names of fields in forms and queries.
//!
//! Servers differ in the spellings that they accept for a name: another case, surrounding blanks, `model[]`, an
//! escaped name. The gateway refuses a field that an upstream could mistake for a field that the gateway
//! writes.

use crate::failure::Failure;
use crate::guard;
use crate::multipart::Part;

/// The normalized name of the service tier.
const TIER: &str = "servicetier";
/// Names that upstreams use for the model, without separators between words.
const MODEL: [&str; 8] = [
    "model",
    "modelid",
    "modelids",
    "modelname",
    "modelnames",
    "modeluri",
    "modelversion",
    "upstreammodel",
];

/// The normalized name, which is equal for all spellings: in lower case, without indexes and
/// separators. Refuses invalid names, and other spellings of `model`.
pub fn base(name: &str) -> Result<String, Failure> {
    let end = name.find('[').unwrap_or(name.len());
    let (word, indexes) = name.split_at(end);
    if !is_word(word) || !are_indexes(indexes) {
        let message = "The name of a field must be of letters, digits, `_`, `-` and `.`.";
        return Err(Failure::invalid(message));
    }
    let letters = word.chars().filter(char::is_ascii_alphanumeric);
    let base: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    if MODEL.contains(&base.as_str()) && name != "model" {
        let message = "The model must be named once, in the field `model`.";
        return Err(Failure::invalid(message).param("model"));
    }
    Ok(base)
}

/// Refuses other names of the model, and routing controls and paid tiers in any spelling.
pub fn check(name: &str, value: &str) -> Result<(), Failure> {
    let base = base(name)?;
    if let Some(name) = guard::ROUTING.into_iter().find(|it| *it == base) {
        return Err(Failure::routing_not_supported(name));
    }
    if base == TIER {
        return guard::free_tier("service_tier", Some(value));
    }
    Ok(())
}

/// Whether the field with this normalized name is the model, a routing control or a tier.
fn is_guarded(base: &str) -> bool {
    base == "model" || base == TIER || guard::ROUTING.contains(&base)
}

/// Whether `base` is the normalized form of the documented name `known`.
pub(crate) fn is_spelt(known: &str, base: &str) -> bool {
    let letters = known.chars().filter(char::is_ascii_alphanumeric);
    letters.eq(base.chars())
}

/// Refuses a file in a guarded field, or in a field that the gateway reads. `is_read` takes the normalized
/// name. An upstream may ignore a value that is sent as a file, and serve another value than the one that was
/// priced.
pub(crate) fn refuse_file(
    part: &Part,
    base: &str,
    is_read: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    if part.file_name.is_none() || !(is_guarded(base) || is_read(base)) {
        return Ok(());
    }
    let name = &part.name;
    let message = format!("`{name}` must be a field without a `filename`.");
    Err(Failure::invalid(message).param(name.clone()))
}

fn is_word(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    !text.is_empty() && text.bytes().all(is_sign)
}

/// `[]`, `[0]`, `[a][b]`, or nothing.
fn are_indexes(text: &str) -> bool {
    let is_index = |text: &str| text.is_empty() || is_word(text);
    text.is_empty()
        || text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
            .is_some_and(|text| text.split("][").all(is_index))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::failure::Code;

    #[test]
    fn names_that_mean_the_same_have_one_base() {
        for (name, expected) in [
            ("model", "model"),
            ("keyterm", "keyterm"),
            ("sample_rate", "samplerate"),
            ("Sample-Rate", "samplerate"),
            ("image[0]", "image"),
            ("include[]", "include"),
            ("reasoning.effort", "reasoningeffort"),
            ("a[b][0]", "a"),
        ] {
            assert_eq!(base(name).as_deref(), Ok(expected), "{name}");
        }
    }

    #[test]
    fn the_model_has_one_spelling() {
        for name in [
            "Model",
            "MODEL",
            "model[]",
            "model[0]",
            "model[id]",
            "model_id",
            "modelId",
            "model-name",
            "Model_Name[]",
            "mod_el",
            "model.id",
        ] {
            let failure = base(name).unwrap_err();
            assert_eq!(failure.param.as_deref(), Some("model"), "{name}");
        }
        for name in [
            "",
            " model",
            "model ",
            "mo del",
            "model\0",
            "\0model",
            "model\t",
            "m\u{f6}del",
            "\u{ff4d}odel",
            "model%5B%5D",
            "%6dodel",
            "mod\\el",
            "model\"",
            "model\r\n",
            "model[",
            "model]",
            "[model]",
            "model[]x",
            "'model'",
            "model=",
            "model;",
            "mode\u{ad}l",
            "\u{feff}model",
        ] {
            assert!(base(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn choices_are_refused_in_any_spelling() {
        use Code::{RoutingNotSupported, ServiceTierNotSupported};
        for (name, value, refused) in [
            ("language", "en", None),
            ("service_tier", "auto", None),
            ("service_tier", "flex", Some(ServiceTierNotSupported)),
            ("serviceTier", "flex", Some(ServiceTierNotSupported)),
            ("service-tier[]", "flex", Some(ServiceTierNotSupported)),
            ("provider", "x", Some(RoutingNotSupported)),
            ("Provider", "x", Some(RoutingNotSupported)),
            ("provider[order][]", "x", Some(RoutingNotSupported)),
            ("routes", "", Some(RoutingNotSupported)),
        ] {
            let found = check(name, value).err().map(|failure| failure.code);
            assert_eq!(found, refused, "{name}");
        }
    }

    proptest! {
        /// Apart from `model` itself, no name that a server could normalize to `model` is accepted.
        #[test]
        fn a_name_with_the_letters_of_model_alone_is_refused(
            signs in prop::collection::vec("[ \\x00\\t_.%\"'\\\\-]{0,2}", 5),
            // A bracket inside the word starts an index: `mo[del]`.
            brackets in ("[\\[\\]]{0,2}", "[\\[\\]]{0,2}"),
            upper in prop::collection::vec(any::<bool>(), 5),
        ) {
            let mut name = brackets.0;
            for (at, letter) in "model".chars().enumerate() {
                name.push_str(&signs[at]);
                name.push(if upper[at] { letter.to_ascii_uppercase() } else { letter });
            }
            name.push_str(&brackets.1);
            prop_assert_eq!(base(&name).is_ok(), name == "model");
        }
    }
}
