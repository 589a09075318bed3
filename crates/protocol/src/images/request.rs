//! Reads requests for images, and makes the checks that do not depend on the model.

use std::collections::HashSet;

use bytes::Bytes;

use super::family::Family;
use super::fields::Fields;
use super::grade::Size;
use super::sequence::{self, SEQUENCE_MAX};
use super::{check, form, sources};
use crate::count;
use crate::failure::Failure;
use crate::guard;
use crate::json::{Cursor, Integer, Members, Shape, Spelling};
use crate::multipart::Form;
use crate::profile::Profile;
use crate::request_head;
use crate::tool::Tools;

/// Members whose allowed values are the same for all models (`docs/api/images.md`).
const FIXED_VALUES: [(&str, [&str; 2]); 2] = [
    ("moderation", ["low", "auto"]),
    ("response_format", ["url", "b64_json"]),
];

/// The endpoint that was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// New pictures.
    Generation,
    /// New pictures made from source images.
    Edit,
}

/// The members that are checked, billed or repeated in the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The number of images.
    pub n: Option<u64>,
    /// The quality, such as `high`. The model's profile may list the accepted words.
    pub quality: Option<String>,
    /// The resolution tier.
    pub resolution: Option<String>,
    /// The size. Only its notation is checked. The upstream checks whether the model has this size.
    pub size: Option<String>,
    /// The aspect ratio, such as `16:9`.
    pub aspect_ratio: Option<String>,
    /// The encoding of the pictures.
    pub output_format: Option<String>,
    /// Whether URLs or base64 are requested.
    pub response_format: Option<String>,
    /// The background, such as `transparent`.
    pub background: Option<String>,
    /// The compression level, from 0 to 100.
    pub output_compression: Option<u64>,
    /// The number of previews in a stream.
    pub partial_images: Option<u64>,
    /// The maximum number of images in a sequence, if a sequence is requested.
    pub sequence: Option<u64>,
    /// Whether the image is to be split into layers.
    pub layers: bool,
    /// The number of source images.
    pub sources: u64,
}

/// A request that was read and accepted.
#[derive(Debug)]
pub struct Request {
    /// Which endpoint was called.
    pub operation: Operation,
    /// The public model id.
    pub model: String,
    /// Whether the answer is a stream.
    pub stream: bool,
    /// Estimated tokens of the prompt.
    pub prompt_tokens: u64,
    /// Upper bound for the tokens of the prompt.
    pub prompt_tokens_max: u64,
    /// The requested options.
    pub options: Options,
    /// Built-in tools that the request offers.
    pub tools: Tools,
    pub(super) body: Body,
}

/// The body of the request, as it arrived.
#[derive(Debug)]
pub(super) enum Body {
    Json(Bytes),
    Form(Form),
}

/// Reads a request in JSON.
pub fn read_json(operation: Operation, body: &Bytes) -> Result<Request, Failure> {
    if body.trim_ascii().is_empty() {
        return Err(Failure::invalid(
            "The body is empty; it must be a JSON object.",
        ));
    }
    let members = Members::read(body, Spelling::One)?;
    if operation == Operation::Edit {
        check_list(&members)?;
    }
    let sources = match (operation, members.get("layer_decomposition")?) {
        // In a plain generation, the form of `image` depends on the model.
        (Operation::Generation, None) => count_sources(&members)?,
        _ => sources::count(&members)?,
    };
    let fields = Fields::Json(members);
    read(operation, &fields, sources, Body::Json(body.clone()))
}

/// Refuses an edit whose `images` is not a list (`docs/api/images.md`).
fn check_list(members: &Members<'_>) -> Result<(), Failure> {
    let images = members.get("images")?;
    if images.is_some_and(|images| images.shape() != Shape::Array) {
        let message = "`images` must be an array of pictures.";
        return Err(Failure::invalid(message).param("images"));
    }
    Ok(())
}

/// Reads an edit that arrived as a form.
pub fn read_form(form: Form) -> Result<Request, Failure> {
    let sources = form::sources(&form).count() as u64;
    let fields = Fields::Form(&form);
    let request = read(Operation::Edit, &fields, sources, Body::Json(Bytes::new()))?;
    Ok(Request {
        body: Body::Form(form),
        ..request
    })
}

fn read(
    operation: Operation,
    fields: &Fields<'_>,
    sources: u64,
    body: Body,
) -> Result<Request, Failure> {
    let Some(model) = fields.text("model")? else {
        return Err(Failure::invalid("`model` is required.").param("model"));
    };
    guard::model_id(&model)?;
    fields.guard()?;
    if fields.is_set("style")? {
        let message = "`style` is not accepted; describe it in the prompt.";
        return Err(Failure::unsupported_parameter("style", message));
    }
    if fields.is_set("storage_options")? {
        let message = "`storage_options` is not supported: the service keeps no state.";
        return Err(Failure::stateful_not_supported(message).param("storage_options"));
    }
    for (name, words) in FIXED_VALUES {
        if let Some(word) = fields.text(name)?
            && !words.contains(&&*word)
        {
            let message = format!("`{name}` must be {}.", words.join(" or "));
            return Err(Failure::invalid(message).param(name));
        }
    }
    let layers = fields.boolean("layer_decomposition")?.unwrap_or(false);
    let prompt = fields.text("prompt")?.filter(|prompt| !prompt.is_empty());
    if prompt.is_none() && !layers {
        return Err(Failure::invalid("`prompt` is required.").param("prompt"));
    }
    if layers && sources != 1 {
        let message = "`layer_decomposition` needs exactly one image.";
        return Err(Failure::invalid(message).param("image"));
    }
    if operation == Operation::Edit && sources == 0 {
        let message = "An edit needs `image`, or `images` with at least one item.";
        return Err(Failure::invalid(message).param("image"));
    }
    let text = |name: &str| -> Result<Option<String>, Failure> {
        Ok(fields.text(name)?.map(std::borrow::Cow::into_owned))
    };
    let size = text("size")?;
    // A word that is not a size could match a cheaper tier of the price card.
    if size
        .as_deref()
        .is_some_and(|size| Size::parse(size).is_none())
    {
        let message = "`size` must be `auto`, a size such as `1024x1024`, or a tier such as `2K`.";
        return Err(Failure::invalid(message).param("size"));
    }
    let options = Options {
        n: count_of(fields, "n", 1)?,
        quality: text("quality")?,
        resolution: text("resolution")?,
        size,
        aspect_ratio: text("aspect_ratio")?,
        output_format: text("output_format")?,
        response_format: text("response_format")?,
        background: text("background")?,
        output_compression: count_of(fields, "output_compression", 0)?,
        partial_images: count_of(fields, "partial_images", 0)?,
        sequence: sequence::read(fields)?,
        layers,
        sources,
    };
    Ok(Request {
        operation,
        model: model.into_owned(),
        stream: fields.boolean("stream")?.unwrap_or(false),
        prompt_tokens_max: prompt.as_ref().map_or(0, |prompt| prompt.len() as u64),
        prompt_tokens: prompt.map_or(0, |prompt| count::tokens(prompt.as_bytes())),
        options,
        tools: fields.tools()?,
        body,
    })
}

fn count_of(fields: &Fields<'_>, name: &'static str, least: u64) -> Result<Option<u64>, Failure> {
    match fields.integer(name)? {
        None => Ok(None),
        Some(Integer::Value(count)) if count >= least => Ok(Some(count)),
        Some(Integer::Huge) => Ok(Some(u64::MAX)),
        Some(_) => {
            let message = format!("`{name}` must be {least} or more.");
            Err(Failure::invalid(message).param(name))
        }
    }
}

/// The number of images in `image` and `images`, in any notation.
fn count_sources(members: &Members<'_>) -> Result<u64, Failure> {
    let mut count: u64 = 0;
    for name in ["image", "images"] {
        let Some(value) = members.get(name)? else {
            continue;
        };
        count = count.saturating_add(if value.shape() == Shape::Array {
            let mut items = 0;
            Cursor::new(value.text()).array(|cursor| {
                items += 1;
                cursor.value().map(drop)
            })?;
            items
        } else {
            1
        });
    }
    Ok(count)
}

impl Request {
    /// Refuses options that the model does not support.
    pub fn check(&self, profile: &Profile) -> Result<(), Failure> {
        check::check(self, profile)
    }

    /// The web URLs that an upstream may fetch for this request, at most one more than `accepted`.
    pub fn fetchable_urls(&self, accepted: usize) -> Result<HashSet<String>, Failure> {
        match &self.body {
            Body::Json(body) => request_head::fetchable_media_urls(body, accepted),
            Body::Form(form) => Ok(form::fetchable_urls(form, accepted)),
        }
    }

    /// Upper bound for the number of images in the answer.
    pub fn images_max(&self, family: Family) -> u64 {
        let sequence = self.options.layers.then_some(SEQUENCE_MAX);
        let sequence = sequence.or(self.options.sequence);
        match family {
            // The content family has no other way to request several images.
            Family::Content => sequence.unwrap_or(1),
            _ => self.options.n.unwrap_or(1).max(sequence.unwrap_or(1)),
        }
    }
}
