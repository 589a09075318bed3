//! Reads the options of sequences. A sequence is several images for one request, whose number the model chooses.

use super::fields::Fields;
use crate::failure::Failure;
use crate::json::{Integer, Members, Spelling};

/// The maximum number of layers per image, and of images in a sequence if the request sets no limit.
pub(super) const SEQUENCE_MAX: u64 = 15;

const MODE: &str = "sequential_image_generation";
/// The member that holds the limit, and the two names of the field in a form.
pub(super) const OPTIONS: &str = "sequential_image_generation_options";
pub(super) const LIMIT_FIELDS: [&str; 2] = [
    "sequential_image_generation_options[max_images]",
    "sequential_image_generation_options.max_images",
];
const LIMIT: &str = "max_images";

/// The maximum number of images in a sequence, if a sequence is requested. Every mode other than `disabled`
/// counts as a request, because an unknown mode may request a sequence.
pub(super) fn read(fields: &Fields<'_>) -> Result<Option<u64>, Failure> {
    let limit = match limit(fields)? {
        None => SEQUENCE_MAX,
        Some(Integer::Value(count)) if count > 0 => count,
        Some(Integer::Huge) => u64::MAX,
        Some(_) => {
            let param = LIMIT_FIELDS[1];
            return Err(Failure::invalid(format!("`{param}` must be 1 or more.")).param(param));
        }
    };
    let mode = fields.text(MODE)?;
    Ok(mode.filter(|mode| mode != "disabled").map(|_| limit))
}

fn limit(fields: &Fields<'_>) -> Result<Option<Integer>, Failure> {
    let form = match fields {
        Fields::Form(form) => form,
        Fields::Json(members) => {
            let Some(options) = members.object(OPTIONS)? else {
                return Ok(None);
            };
            let path = "sequential_image_generation_options.";
            return Members::nested(options, path, Spelling::One)?.integer(LIMIT);
        }
    };
    let mut limits = Vec::new();
    if let Some(part) = form.only_part(OPTIONS)? {
        let text = part.text();
        let options = Members::read(text.as_bytes(), Spelling::One).map_err(|_| {
            Failure::invalid(format!("`{OPTIONS}` must be a JSON object.")).param(OPTIONS)
        })?;
        limits.push(options.integer(LIMIT)?);
    }
    for name in LIMIT_FIELDS {
        if let Some(part) = form.only_part(name)? {
            limits.push(Some(part.integer()?));
        }
    }
    match limits.as_slice() {
        [] => Ok(None),
        [limit] => Ok(*limit),
        _ => {
            let message = format!("`{OPTIONS}` must stand in the form once.");
            Err(Failure::invalid(message).param(OPTIONS))
        }
    }
}
