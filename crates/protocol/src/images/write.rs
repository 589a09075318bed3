//! Writes the request for the family of its upstream.

use bytes::Bytes;

use super::family::Family;
use super::form;
use super::rebuilt_object::RebuiltObject;
use super::request::{Body, Operation, Request};
use super::sources::{self, Kind, Notation, Source};
use crate::byte_queue::ByteQueue;
use crate::canon::Dropped;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::patch::{self, Edit};
use crate::json::{Members, Raw, Shape, Spelling, write_string};

/// A request to be sent to an upstream.
#[derive(Debug)]
pub struct EncodedRequest {
    /// The endpoint to call.
    pub operation: Operation,
    /// The content type of the body, if it is not JSON.
    pub content_type: Option<String>,
    /// The body.
    pub pieces: Vec<Bytes>,
    /// The value of `x-dropped-params`.
    pub dropped: Option<String>,
}

impl Request {
    /// The request for an upstream of this family. `boundary` must not occur in any file.
    pub fn write(
        &self,
        family: Family,
        upstream_model: &str,
        boundary: &str,
    ) -> Result<EncodedRequest, Failure> {
        let mut dropped = Dropped::new(Dialect::Chat);
        let mut content_type = None;
        let pieces = match (&self.body, family) {
            (Body::Json(body), _) => self.json(body, family, upstream_model, &mut dropped)?,
            (Body::Form(form), Family::VideoA | Family::Content) => {
                form::to_json(form, family, upstream_model, &mut dropped)
            }
            // The forms of GPT models can contain only files.
            (Body::Form(form), Family::Gpt) if form::has_source_urls(form) => {
                form::to_json(form, family, upstream_model, &mut dropped)
            }
            (Body::Form(form), Family::Gpt | Family::Unknown) => {
                content_type = Some(format!("multipart/form-data; boundary={boundary}"));
                form::rewrite(form, family, upstream_model, &mut dropped).write(boundary)
            }
        };
        Ok(EncodedRequest {
            operation: match family {
                Family::Content => Operation::Generation,
                _ => self.operation,
            },
            content_type,
            pieces,
            dropped: dropped.header(),
        })
    }

    fn json(
        &self,
        body: &Bytes,
        family: Family,
        upstream_model: &str,
        dropped: &mut Dropped,
    ) -> Result<Vec<Bytes>, Failure> {
        let members = Members::read(body, Spelling::One)?;
        let changes = Changes::of(self, &members, family)?;
        if changes.is_none() {
            let mut name = Vec::new();
            write_string(&mut name, upstream_model);
            let model = members.get("model")?;
            let edits = model.map(|model| Edit::replace(model.span(), name));
            let mut out = ByteQueue::new();
            patch::apply_to(body, edits.into_iter().collect(), &mut out);
            return Ok(out.into_pieces());
        }
        let mut out = RebuiltObject::new(body);
        for member in members.iter() {
            let name = &*member.name;
            if name == "model" {
                out.name(name).string(upstream_model);
            } else if changes.left_out.contains(&name) {
                if !member.value.is_null() {
                    dropped.name(name);
                }
            } else if !changes.replaced.contains(&name) {
                out.name(name).span(member.value.span());
            }
        }
        if let Some(size) = &changes.size {
            out.name("size").string(size);
        }
        if let Some(sources) = &changes.sources {
            write_sources(&mut out, family, sources)?;
        }
        if let Some(mask) = &changes.mask {
            out.name("mask");
            write_source(&mut out, family, mask)?;
        }
        Ok(out.finish())
    }
}

/// The changes besides the name of the model.
#[derive(Debug, Default)]
struct Changes {
    /// Members that the family does not accept.
    left_out: Vec<&'static str>,
    /// Members that are not copied: they are written in another form, or have their default value.
    replaced: Vec<&'static str>,
    size: Option<String>,
    sources: Option<Vec<Source>>,
    mask: Option<Source>,
}

impl Changes {
    fn is_none(&self) -> bool {
        self.left_out.is_empty() && self.replaced.is_empty()
    }

    fn of(request: &Request, members: &Members<'_>, family: Family) -> Result<Self, Failure> {
        let mut changes = Self::default();
        let options = &request.options;
        let is_edit = request.operation == Operation::Edit;
        match family {
            Family::Unknown => return Ok(changes),
            // Common SDKs add this member, and the upstream refuses it.
            Family::Gpt => changes.leave_out(members, "response_format")?,
            Family::VideoA => {
                changes.leave_out(members, "size")?;
                changes.leave_out(members, "mask")?;
            }
            Family::Content => {
                changes.leave_out(members, "mask")?;
                // Several images are requested as a sequence. One image is the default.
                if options.n == Some(1) {
                    changes.replaced.push("n");
                } else {
                    changes.leave_out(members, "n")?;
                }
                match (&options.resolution, &options.size) {
                    (Some(tier), None) => {
                        changes.replaced.extend(["resolution", "size"]);
                        changes.size = Some(tier.to_ascii_uppercase());
                    }
                    (Some(_), Some(_)) => changes.left_out.push("resolution"),
                    (None, _) => {}
                }
            }
        }
        if (is_edit || family == Family::Content) && !is_native(members, family)? {
            changes.replaced.extend(["image", "images"]);
            changes.sources = Some(sources::read(members)?);
        }
        if is_edit
            && family == Family::Gpt
            && let Some(mask) = members.get("mask")?
        {
            let mask = sources::read_source(mask, "mask")?;
            if mask.shape != Notation::Named {
                changes.replaced.push("mask");
                changes.mask = Some(mask);
            }
        }
        Ok(changes)
    }

    fn leave_out(&mut self, members: &Members<'_>, name: &'static str) -> Result<(), Failure> {
        if members.find(name)?.is_some() {
            self.left_out.push(name);
        }
        Ok(())
    }
}

/// Whether the source images are in the place and form that the family accepts.
fn is_native(members: &Members<'_>, family: Family) -> Result<bool, Failure> {
    let image = members.get("image")?;
    let images = members.get("images")?;
    if image.is_none() && images.is_none() {
        return Ok(true);
    }
    let wanted = match family {
        Family::Gpt => Notation::Named,
        Family::VideoA => Notation::Url,
        Family::Content => Notation::Bare,
        Family::Unknown => return Ok(true),
    };
    let mut all = true;
    sources::each(members, |source| all &= source.shape == wanted)?;
    let is_list = |images: Raw<'_>| images.shape() == Shape::Array;
    Ok(all
        && match family {
            Family::Gpt => image.is_none(),
            Family::VideoA if images.is_none() => {
                image.is_some_and(|image| image.shape() == Shape::Object)
            }
            Family::VideoA => image.is_none() && images.is_some_and(is_list),
            Family::Content => images.is_none(),
            Family::Unknown => true,
        })
}

fn write_sources(
    out: &mut RebuiltObject<'_>,
    family: Family,
    sources: &[Source],
) -> Result<(), Failure> {
    if let ([source], Family::VideoA | Family::Content) = (sources, family) {
        out.name("image");
        return write_source(out, family, source);
    }
    out.name(match family {
        Family::Content => "image",
        _ => "images",
    });
    out.text(b"[");
    for (index, source) in sources.iter().enumerate() {
        if index > 0 {
            out.text(b",");
        }
        write_source(out, family, source)?;
    }
    out.text(b"]");
    Ok(())
}

fn write_source(
    out: &mut RebuiltObject<'_>,
    family: Family,
    source: &Source,
) -> Result<(), Failure> {
    let (before, behind): (&[u8], &[u8]) = match (family, source.kind) {
        (Family::Content, Kind::Url) => (b"", b""),
        (Family::Content, Kind::File) => {
            let message = "This model takes pictures by URL or data URI, not by `file_id`.";
            return Err(Failure::unsupported_parameter("image", message));
        }
        (Family::VideoA, Kind::Url) => (b"{\"type\":\"image_url\",\"url\":", b"}"),
        (Family::Gpt | Family::Unknown, Kind::Url) => (b"{\"image_url\":", b"}"),
        (_, Kind::File) => (b"{\"file_id\":", b"}"),
    };
    out.text(before).span(source.span.clone()).text(behind);
    Ok(())
}
