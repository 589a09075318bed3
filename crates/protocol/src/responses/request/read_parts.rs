//! Reads the parts of a message or of a tool's output.

use std::borrow::Cow;

use crate::canon::{
    Document, Image, ImageDetail, ImageSource, Part, Path, base64, data_uri, note_unknown,
    note_unless_empty,
};
use crate::failure::Failure;
use crate::json::{Cursor, Shape, typed};

/// The start of a PDF in base64.
const PDF: &str = "JVBERi";

/// Reads the member `list` of the item at `path`: a text, or a list of parts. Empty texts are
/// skipped.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    path: Path,
    list: &'static str,
    unknown: &mut Vec<String>,
) -> Result<Vec<(Path, Part)>, Failure> {
    let mut parts = Vec::new();
    match cursor.shape()? {
        Shape::String => {
            let said = text(cursor.string()?.decode_lossy());
            parts.extend(said.map(|part| (path, part)));
        }
        Shape::Array => typed::array(cursor, list, |cursor, at| {
            let path = path.inner(list, at);
            parts.extend(part(cursor, path, unknown)?.map(|part| (path, part)));
            Ok::<(), Failure>(())
        })?,
        Shape::Null => drop(cursor.value()?),
        _ => {
            cursor.value()?;
            parts.push((path, Part::Foreign));
        }
    }
    Ok(parts)
}

/// A text, unless it is empty.
pub(super) fn text(text: Cow<'_, str>) -> Option<Part> {
    (!text.is_empty()).then(|| Part::Text(text.into_owned()))
}

/// A part, with the members of all known types.
#[derive(Default)]
struct Fields<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
    refusal: Option<Cow<'a, str>>,
    image_url: Option<Cow<'a, str>>,
    detail: Option<Cow<'a, str>>,
    file_data: Option<Cow<'a, str>>,
    filename: Option<Cow<'a, str>>,
    others: Vec<String>,
}

fn part(
    cursor: &mut Cursor<'_>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Option<Part>, Failure> {
    if cursor.shape()? == Shape::String {
        return Ok(text(cursor.string()?.decode_lossy()));
    }
    let mut fields = fields(cursor, path)?;
    let part = match fields.kind.as_deref() {
        Some("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text") => {
            text(fields.text.unwrap_or_default())
        }
        Some("refusal") => {
            let refusal = fields.refusal.unwrap_or_default();
            (!refusal.is_empty()).then(|| Part::Refusal(refusal.into_owned()))
        }
        Some("input_image") => Some(fields.image_url.map_or(Part::Foreign, |url| {
            let detail = fields.detail.as_deref().and_then(ImageDetail::parse);
            if fields.detail.is_some() && detail.is_none() {
                note_unknown(&mut fields.others, format!("{path}.detail"));
            }
            image(url, detail)
        })),
        Some("input_file") => {
            let document = fields
                .file_data
                .and_then(|data| document(&data, fields.filename));
            Some(document.map_or(Part::Foreign, Part::Document))
        }
        _ => Some(Part::Foreign),
    };
    // A part that is dropped as a whole is reported without its members.
    if !matches!(part, Some(Part::Foreign)) {
        unknown.extend(fields.others);
    }
    Ok(part)
}

fn fields<'a>(cursor: &mut Cursor<'a>, path: Path) -> Result<Fields<'a>, Failure> {
    let mut fields = Fields::default();
    typed::object(cursor, "input[].content[]", |cursor, name| {
        match name {
            "type" => fields.kind = typed::string(cursor, "input[].content[].type")?,
            "text" => fields.text = typed::string(cursor, "input[].content[].text")?,
            "refusal" => fields.refusal = typed::string(cursor, "input[].content[].refusal")?,
            "image_url" => fields.image_url = url(cursor, path, &mut fields.others)?,
            "detail" => fields.detail = typed::string(cursor, "input[].content[].detail")?,
            "file_data" => fields.file_data = typed::string(cursor, "input[].content[].file_data")?,
            "filename" => fields.filename = typed::string(cursor, "input[].content[].filename")?,
            // Members that clients copy from an answer.
            "annotations" | "logprobs" => drop(cursor.value()?),
            _ => note_unless_empty(cursor.value()?, &mut fields.others, || {
                format!("{path}.{name}")
            }),
        }
        Ok::<(), Failure>(())
    })?;
    Ok(fields)
}

/// Reads a URL. It is a string in this dialect, but clients written for Chat Completions send an
/// object.
fn url<'a>(
    cursor: &mut Cursor<'a>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Option<Cow<'a, str>>, Failure> {
    const NAME: &str = "input[].content[].image_url";
    if cursor.shape()? != Shape::Object {
        return Ok(typed::string(cursor, NAME)?);
    }
    let mut url = None;
    typed::object(cursor, NAME, |cursor, name| {
        match name {
            "url" => url = typed::string(cursor, NAME)?,
            _ => note_unless_empty(cursor.value()?, unknown, || {
                format!("{path}.image_url.{name}")
            }),
        }
        Ok::<(), Failure>(())
    })?;
    Ok(url)
}

fn image(url: Cow<'_, str>, detail: Option<ImageDetail>) -> Part {
    let source = ImageSource::from_url(url);
    Part::Image(Image { source, detail })
}

fn document(data: &str, name: Option<Cow<'_, str>>) -> Option<Document> {
    let (mime, data) = match data_uri::split(data) {
        Some((mime, data)) if !mime.is_empty() => (mime, data),
        Some((_, data)) if data.starts_with(PDF) => ("application/pdf", data),
        None if data.starts_with(PDF) => ("application/pdf", data),
        _ => return None,
    };
    Some(Document {
        mime: mime.to_owned(),
        data: base64::standard(data).into_owned(),
        name: name.map(Cow::into_owned),
    })
}
