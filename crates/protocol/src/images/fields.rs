//! Reads the members of a request from JSON or from a form.

use std::borrow::Cow;
use std::collections::HashSet;

use super::form;
use super::sequence::{LIMIT_FIELDS, OPTIONS};
use crate::failure::Failure;
use crate::guard;
use crate::guard::form_field;
use crate::json::{Integer, Members};
use crate::multipart::{Form, Part};
use crate::tool::Tools;

/// Fields with one value that is checked, billed or repeated in the answer.
const SINGLE: [&str; 19] = [
    "aspect_ratio",
    "background",
    "layer_decomposition",
    "moderation",
    "n",
    "output_compression",
    "output_format",
    "partial_images",
    "prompt",
    "quality",
    "resolution",
    "response_format",
    "sequential_image_generation",
    "service_tier",
    "size",
    "storage_options",
    "stream",
    "style",
    "tools",
];

/// Members by name. An explicit `null` is absent.
pub(super) enum Fields<'a> {
    Json(Members<'a>),
    Form(&'a Form),
}

impl<'a> Fields<'a> {
    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, Failure> {
        match self {
            Self::Json(members) => members.string(name),
            Self::Form(form) => Ok(form.only_part(name)?.map(Part::text)),
        }
    }

    /// An integer of any size and sign.
    pub(super) fn integer(&self, name: &str) -> Result<Option<Integer>, Failure> {
        match self {
            Self::Json(members) => members.integer(name),
            Self::Form(form) => form.only_part(name)?.map(Part::integer).transpose(),
        }
    }

    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self {
            Self::Json(members) => members.boolean(name),
            Self::Form(form) => form.only_part(name)?.map(Part::boolean).transpose(),
        }
    }

    pub(super) fn is_set(&self, name: &str) -> Result<bool, Failure> {
        match self {
            Self::Json(members) => Ok(members.get(name)?.is_some()),
            Self::Form(form) => Ok(form.only_part(name)?.is_some()),
        }
    }

    /// The built-in tools that the request offers. In a form, their list is the text of a field.
    pub(super) fn tools(&self) -> Result<Tools, Failure> {
        match self {
            Self::Json(members) => Tools::by_type(members),
            Self::Form(form) => match form.only_part("tools")? {
                Some(part) => Tools::in_field(&part.text()),
                None => Ok(Tools::default()),
            },
        }
    }

    /// Refuses routing controls and paid tiers, and forms that two parsers could read differently.
    pub(super) fn guard(&self) -> Result<(), Failure> {
        match self {
            Self::Json(members) => {
                guard::routing(members)?;
                guard::service_tier(members)
            }
            Self::Form(form) => {
                let mut names = HashSet::new();
                for part in &form.parts {
                    let base = form_field::base(&part.name)?;
                    form_field::refuse_file(part, &base, is_read)?;
                    // For a file, only the name of the field is checked. The same holds for a picture,
                    // because it may be large.
                    if part.file_name.is_none() && !form::is_picture(&part.name) {
                        form_field::check(&part.name, &part.text())?;
                    }
                    let is_list = form::is_source(&part.name) || part.name.ends_with("[]");
                    let is_twice = !is_list && !names.insert(part.name.to_ascii_lowercase());
                    if is_twice || is_respelt(&part.name, &base) {
                        return Err(ambiguous(&part.name));
                    }
                }
                Ok(())
            }
        }
    }
}

/// Whether a field is another spelling of a field with one value, such as `n[]`.
fn is_respelt(name: &str, base: &str) -> bool {
    let mut known = SINGLE
        .into_iter()
        .filter(|known| form_field::is_spelt(known, base));
    known.any(|known| known != name)
}

/// Whether the gateway reads the value of a field, in any spelling.
fn is_read(base: &str) -> bool {
    let limits = LIMIT_FIELDS.into_iter().chain([OPTIONS]);
    let mut known = SINGLE.into_iter().chain(limits);
    known.any(|known| form_field::is_spelt(known, base))
}

fn ambiguous(name: &str) -> Failure {
    let message = "Each field must stand in the form once, under the name in the documents.";
    Failure::invalid(message).param(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_each_thing_once() {
        for (names, refused) in [
            (&["n", "seed", "image", "image", "image[]"][..], None),
            (&["image[0]", "image[1]", "images[]", "images[]"], None),
            (&["x_unknown", "tags[]", "tags[]", "x[a]", "x[b]"], None),
            (&["seed", "seed"], Some("seed")),
            (&["watermark", "Watermark"], Some("Watermark")),
            (&["x_unknown", "x_unknown"], Some("x_unknown")),
            (&["n[]"], Some("n[]")),
            (&["n[0]"], Some("n[0]")),
            (&["N"], Some("N")),
            (&["quality[]"], Some("quality[]")),
            (&["style[]"], Some("style[]")),
            (
                &["storage_options[filename]"],
                Some("storage_options[filename]"),
            ),
            (&["output-format"], Some("output-format")),
            (&["partialImages"], Some("partialImages")),
        ] {
            let part = |name: &&str| Part::field(*name, "1");
            let parts = names.iter().map(part).collect();
            let failure = Fields::Form(&Form { parts }).guard().err();
            let found = failure.as_ref().map(|it| it.param.as_deref().unwrap());
            assert_eq!(found, refused, "{names:?}");
        }
    }

    fn with_file(name: &str, value: &str) -> Result<(), Failure> {
        let file = Part {
            file_name: Some("q".to_owned()),
            ..Part::field(name, value.to_owned())
        };
        let parts = vec![Part::field("prompt", "x"), Part::field("image", "x"), file];
        Fields::Form(&Form { parts }).guard()
    }

    /// An upstream may ignore a value in a file, and serve another one than the gateway has priced.
    #[test]
    fn no_value_that_is_read_is_in_a_file() {
        let read = SINGLE.into_iter().chain(LIMIT_FIELDS);
        let read = read.chain([OPTIONS, "model"]);
        let spelt = [
            "Quality",
            "quality[]",
            "serviceTier",
            "Provider[order]",
            "sequentialImageGenerationOptions[max_images]",
        ];
        for name in read.chain(guard::ROUTING).chain(spelt) {
            let failure = with_file(name, "auto").unwrap_err();
            assert_eq!(failure.status(), 400, "{name}");
            assert_eq!(failure.param.as_deref(), Some(name));
            assert!(failure.message.contains("filename"), "{failure:?}");
        }
        for name in ["image", "image[]", "images[3]", "mask", "x_unknown", "seed"] {
            assert_eq!(with_file(name, "auto"), Ok(()), "{name}");
        }
    }
}
