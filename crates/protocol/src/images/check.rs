//! Checks a request against the model's profile.

use super::family::Family;
use super::request::Request;
use crate::failure::Failure;
use crate::profile::{AllowedValues, Profile, References};

const COMPRESSION_MAX: u64 = 100;
const PARTIALS_MAX: u64 = 3;

/// Refuses options that the profile does not allow, before a hold is opened. Sizes are left to the
/// upstream (`docs/api/images.md`).
pub(super) fn check(request: &Request, profile: &Profile) -> Result<(), Failure> {
    let options = &request.options;
    for (name, asked, allowed) in [
        ("quality", &options.quality, &profile.qualities),
        ("resolution", &options.resolution, &profile.resolutions),
        ("aspect_ratio", &options.aspect_ratio, &profile.ratios),
        (
            "output_format",
            &options.output_format,
            &profile.output_formats,
        ),
        ("background", &options.background, &profile.backgrounds),
    ] {
        if let (Some(asked), Some(allowed)) = (asked, allowed) {
            word(name, asked, allowed)?;
        }
    }
    // An upstream that ignores this member would make a more expensive image than the billed image.
    let family = Family::of(profile);
    if family == Some(Family::Unknown)
        && options.resolution.is_some()
        && profile.resolutions.is_none()
    {
        let message = "This model does not take `resolution`.";
        return Err(Failure::unsupported_parameter("resolution", message));
    }
    let format = options.output_format.as_deref();
    if options.background.as_deref() == Some("transparent") && format == Some("jpeg") {
        let message = "A transparent background needs `output_format` png or webp.";
        return Err(Failure::invalid(message).param("background"));
    }
    for (name, asked, most) in [
        (
            "output_compression",
            options.output_compression,
            COMPRESSION_MAX,
        ),
        ("partial_images", options.partial_images, PARTIALS_MAX),
    ] {
        if asked.is_some_and(|asked| asked > most) {
            let message = format!("`{name}` must be from 0 to {most}.");
            return Err(Failure::invalid(message).param(name));
        }
    }
    if format == Some("png")
        && options
            .output_compression
            .is_some_and(|kept| kept < COMPRESSION_MAX)
    {
        let message = "`output_compression` is for jpeg and webp.";
        return Err(Failure::invalid(message).param("output_compression"));
    }
    if request.stream && profile.image_stream == Some(false) {
        let message = "This model does not stream pictures.";
        return Err(Failure::unsupported_parameter("stream", message));
    }
    if options.layers && matches!(family, Some(Family::Gpt | Family::VideoA)) {
        let message = "This model does not take pictures apart.";
        return Err(Failure::unsupported_parameter(
            "layer_decomposition",
            message,
        ));
    }
    if let Some(References::All(most)) = &profile.references_max
        && options.sources > u64::from(*most)
    {
        let message = format!("This model takes at most {most} source images.");
        return Err(Failure::unsupported_parameter("image", message));
    }
    Ok(())
}

fn word(name: &'static str, asked: &str, allowed: &AllowedValues) -> Result<(), Failure> {
    let AllowedValues::Words(words) = allowed else {
        return Ok(());
    };
    if words.iter().any(|word| word.eq_ignore_ascii_case(asked)) {
        return Ok(());
    }
    let message = if words.is_empty() {
        format!("This model does not take `{name}`.")
    } else {
        format!("This model takes `{name}` {}.", words.join(", "))
    };
    Err(Failure::unsupported_parameter(name, message))
}
