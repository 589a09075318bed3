//! Reads the members of a request from JSON or from a form.

use std::borrow::Cow;
use std::collections::HashSet;

use super::form;
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

    /// Whether a member has a value.
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
                    // The content of a file is not checked, but its field name is.
                    if part.file_name.is_none() {
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
    let mut known = SINGLE.into_iter().filter(|known| {
        let letters = known.chars().filter(char::is_ascii_alphanumeric);
        letters.eq(base.chars())
    });
    known.any(|known| known != name)
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
}
