//! Reads a request and applies the vendors' checks.

use super::family::Family;
use super::form::Form;
use super::picture_spec::PictureSpec;
use crate::call_context::CallContext;
use crate::catalog;
use crate::openai::{Member, Refusal};
use crate::raster::{Format, Raster, decode};
use serde_json::Value;

const SIDE_MAX: u32 = 4096;
const PICTURES_MAX: i64 = 10;
const SEQUENCE_MAX: i64 = 15;
const PROMPT_CHARS_MAX: usize = 32_000;

/// Reads a request. `edits` is true for the edits endpoint. `form` has the files if the request is a form.
pub(super) fn read(
    body: &Value,
    form: Option<&Form>,
    edits: bool,
    context: &CallContext<'_>,
) -> Result<PictureSpec, Refusal> {
    if !catalog::exists(context.name) {
        return Err(Refusal::no_such_model(context.name));
    }
    let family = Family::of(context.name);
    let top = Member::object(body, "")?;
    check_members(&top, family, form.is_some(), edits)?;
    let (sources, mask) = pictures(&top, form, family)?;
    if edits && sources.is_empty() {
        return Err(Refusal::invalid("An image is required.").param("image"));
    }
    let layers = top.flag("layer_decomposition")?.unwrap_or(false);
    let prompt = match top.text("prompt")? {
        None if layers => "",
        None => top.required_text("prompt")?,
        Some(prompt) => prompt,
    };
    if prompt.chars().count() > PROMPT_CHARS_MAX {
        return Err(Refusal::invalid("The prompt is too long.").param("prompt"));
    }
    if context.script.text.refuse.is_some() {
        return Err(Refusal::invalid(
            "Your request was rejected by the safety system. If you believe this is an error, \
             contact us at https://help.sim-upstream.example/ and include the request ID req_sim4711.",
        )
        .code("moderation_blocked"));
    }
    let asked = match family {
        Family::Content if layers => 3,
        Family::Content => sequence(&top)?,
        Family::Gpt | Family::VideoA => top.integer("n", 1, PICTURES_MAX)?.unwrap_or(1),
    };
    let scripted = context
        .script
        .text
        .chunks
        .and_then(|it| i64::try_from(it).ok());
    let own_size = sources.first().map(Raster::dimensions);
    let format = top.one_of("output_format", &Format::NAMES)?;
    let background = top.one_of("background", &["transparent", "opaque", "auto"])?;
    if background == Some("transparent") && format == Some("jpeg") {
        let message = "Transparent background is not supported for JPEG output format.";
        return Err(Refusal::invalid(message).param("background"));
    }
    let compression = top.integer("output_compression", 0, 100)?.unwrap_or(90);
    Ok(PictureSpec {
        family,
        prompt: prompt.to_owned(),
        count: u64::try_from(scripted.unwrap_or(asked)).unwrap_or(1),
        size: size(&top, family, own_size)?,
        quality: top.text("quality")?.unwrap_or("auto").to_owned(),
        format: match (family, format) {
            (Family::VideoA, None) => Format::Jpeg,
            (_, format) => Format::of(format),
        },
        transparent: background == Some("transparent"),
        compression: u8::try_from(compression).unwrap_or(90),
        previews: u32::try_from(top.integer("partial_images", 0, 3)?.unwrap_or(0)).unwrap_or(0),
        stream: top.flag("stream")?.unwrap_or(false),
        as_url: match family {
            Family::Gpt => false,
            _ => top.one_of("response_format", &["url", "b64_json"])? != Some("b64_json"),
        },
        layers,
        sources,
        mask,
    })
}

/// Refuses members, forms and endpoints that the family does not accept.
fn check_members(top: &Member<'_>, family: Family, form: bool, edits: bool) -> Result<(), Refusal> {
    let unknown: &[&str] = match family {
        Family::Gpt => &["response_format", "style", "aspect_ratio", "resolution"],
        Family::VideoA => &["size", "style", "mask", "background"],
        Family::Content => &["n", "images", "mask", "style", "resolution"],
    };
    if let Some(name) = unknown.iter().find(|name| top.get(name).is_some()) {
        return Err(Refusal::invalid(match family {
            Family::VideoA => format!("Argument not supported: {name}"),
            _ => format!("Unknown parameter: '{name}'."),
        })
        .param(*name)
        .code("unknown_parameter"));
    }
    if form && family != Family::Gpt {
        return Err(Refusal::invalid(
            "Failed to parse the request body as JSON: expected value at line 1 column 1",
        ));
    }
    if family == Family::Content && edits {
        return Err(Refusal::invalid(
            "This model is not served on this endpoint.",
        ));
    }
    match family {
        Family::Gpt => {
            let known = ["auto", "low", "medium", "high", "xhigh", "max"];
            top.one_of("quality", &known)?;
        }
        Family::VideoA => {
            top.one_of("resolution", &["1k", "2k"])?;
            if top.flag("stream")? == Some(true) {
                return Err(Refusal::invalid("Argument not supported: stream"));
            }
        }
        Family::Content => {}
    }
    Ok(())
}

fn sequence(top: &Member<'_>) -> Result<i64, Refusal> {
    let mode = top.one_of("sequential_image_generation", &["auto", "disabled"])?;
    if mode != Some("auto") {
        return Ok(1);
    }
    let options = top.child("sequential_image_generation_options")?;
    let most = match options {
        Some(options) => options.integer("max_images", 1, SEQUENCE_MAX)?,
        None => None,
    };
    Ok(most.unwrap_or(4))
}

fn size(top: &Member<'_>, family: Family, own: Option<(u32, u32)>) -> Result<(u32, u32), Refusal> {
    if family == Family::VideoA {
        let side = if top.text("resolution")? == Some("2k") {
            2048
        } else {
            1024
        };
        let ratio = top.text("aspect_ratio")?.and_then(|it| it.split_once(':'));
        let ratio = ratio.and_then(|(x, y)| Some((x.parse().ok()?, y.parse().ok()?)));
        let (across, down): (u16, u16) = ratio.unwrap_or((1, 1));
        let (across, down) = (u32::from(across).max(1), u32::from(down).max(1));
        let longer = across.max(down);
        let side_of = |part: u32| (side * part / longer).max(1);
        return Ok((side_of(across), side_of(down)));
    }
    let text = top.text("size")?.unwrap_or("auto");
    let tier = match text {
        "1K" => Some(1024),
        "2K" => Some(2048),
        "3K" => Some(3072),
        "4K" => Some(4096),
        _ => None,
    };
    match (family, text, tier) {
        (Family::Content, _, Some(side)) => return Ok((side, side)),
        (_, "auto", _) => return Ok(own.unwrap_or((1024, 1024))),
        _ => {}
    }
    let sides = text.split_once('x');
    let sides = sides.and_then(|(x, y)| Some((x.parse::<u32>().ok()?, y.parse::<u32>().ok()?)));
    sides
        .filter(|(x, y)| (16..=SIDE_MAX).contains(x) && (16..=SIDE_MAX).contains(y))
        .ok_or_else(|| {
            let message = format!("Invalid value: '{text}'. Sizes are 16x16 to 4096x4096.");
            Refusal::invalid(message)
                .param("size")
                .code("invalid_value")
        })
}

type GivenPictures = (Vec<Raster>, Option<Raster>);

fn pictures(
    top: &Member<'_>,
    form: Option<&Form>,
    family: Family,
) -> Result<GivenPictures, Refusal> {
    let mut sources = Vec::new();
    let mut mask = None;
    if let Some(form) = form {
        for (name, bytes) in &form.files {
            match name.as_str() {
                "image" | "image[]" => sources.push(opened(bytes, "image")?),
                "mask" => mask = Some(opened(bytes, "mask")?),
                _ => {}
            }
        }
        return Ok((sources, mask));
    }
    for name in ["image", "images"] {
        match top.get(name) {
            None => {}
            Some(Value::Array(items)) => {
                for item in items {
                    sources.push(linked(item, name, family)?);
                }
            }
            Some(item) => sources.push(linked(item, name, family)?),
        }
    }
    if let Some(item) = top.get("mask") {
        mask = Some(linked(item, "mask", family)?);
    }
    Ok((sources, mask))
}

/// Reads a picture in the form that the family accepts.
fn linked(item: &Value, name: &str, family: Family) -> Result<Raster, Refusal> {
    let url = match family {
        Family::Gpt => item.get("image_url"),
        Family::VideoA => item.get("url"),
        Family::Content => Some(item),
    };
    let url = url.and_then(Value::as_str).ok_or_else(|| {
        Refusal::invalid(format!("Invalid value for '{name}': expected an image.")).param(name)
    })?;
    let Some(data) = url
        .split_once(";base64,")
        .filter(|_| url.starts_with("data:image/"))
    else {
        // Links are not fetched. Instead of the linked picture, a picture that depends on the URL is used.
        let scene = super::scene::Scene::of(url, 0);
        let background = super::painting::Background::Coloured;
        return Ok(super::painting::paint(&scene, (64, 64), background, 1));
    };
    let bytes = crate::seal::decode(data.1);
    opened(&bytes.unwrap_or_default(), name)
}

fn opened(bytes: &[u8], name: &str) -> Result<Raster, Refusal> {
    decode(bytes).ok_or_else(|| {
        Refusal::invalid("Invalid image file or mode for image 1, please check your image file.")
            .param(name)
            .code("invalid_image_file")
    })
}
