//! Reads the content of a chat message as parts of the common form.

use crate::canon::{
    Document, Image, ImageDetail, ImageSource, Part, Path, base64, data_uri, note_unknown,
    note_unless_empty,
};
use crate::failure::Failure;
use crate::json::typed;
use crate::json::{Cursor, Shape};
use crate::shared::request_member::text;

/// Reads content: a text, or a list of parts.
pub(super) fn content(
    cursor: &mut Cursor<'_>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Vec<(Path, Part)>, Failure> {
    let mut parts = Vec::new();
    if cursor.shape()? == Shape::String {
        let text = text(cursor, "messages[].content")?.filter(|text| !text.is_empty());
        parts.extend(text.map(|text| (path, Part::Text(text))));
        return Ok(parts);
    }
    typed::array(cursor, "messages[].content", |cursor, at| {
        let path = path.inner("content", at);
        parts.extend(part(cursor, path, unknown)?.map(|part| (path, part)));
        Ok::<(), Failure>(())
    })?;
    Ok(parts)
}

/// Reads a part of a message's content. An empty text yields no part.
fn part(
    cursor: &mut Cursor<'_>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Option<Part>, Failure> {
    if cursor.shape()? == Shape::String {
        let text = text(cursor, "messages[].content[]")?;
        return Ok(text.filter(|text| !text.is_empty()).map(Part::Text));
    }
    let mut kind = None;
    let mut said = None;
    let mut others = Vec::new();
    typed::object(cursor, "messages[].content[]", |cursor, name| {
        match name {
            "type" => kind = text(cursor, "messages[].content[].type")?,
            "text" => said = text(cursor, "messages[].content[].text")?.map(Part::Text),
            "refusal" => said = text(cursor, "messages[].content[].refusal")?.map(Part::Refusal),
            "image_url" => said = image(cursor, path, &mut others)?.map(Part::Image),
            "file" => said = file(cursor, path, &mut others)?.map(Part::Document),
            _ => note_unless_empty(cursor.value()?, &mut others, || format!("{path}.{name}")),
        }
        Ok::<(), Failure>(())
    })?;
    let part = match (kind.as_deref(), said) {
        (None | Some("text"), Some(Part::Text(text))) => {
            (!text.is_empty()).then_some(Part::Text(text))
        }
        (None | Some("refusal"), Some(part @ Part::Refusal(_)))
        | (None | Some("image_url"), Some(part @ Part::Image(_)))
        | (None | Some("file"), Some(part @ Part::Document(_))) => Some(part),
        // The part is dropped as a whole, so its members are not reported.
        _ => return Ok(Some(Part::Foreign)),
    };
    for name in others {
        note_unknown(unknown, name);
    }
    Ok(part)
}

/// Reads `image_url`. Some clients send the URL itself instead of an object.
fn image(
    cursor: &mut Cursor<'_>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Option<Image>, Failure> {
    let mut url = None;
    let mut detail = None;
    if cursor.shape()? == Shape::String {
        url = text(cursor, "messages[].content[].image_url")?;
    } else {
        typed::object(cursor, "messages[].content[].image_url", |cursor, name| {
            match name {
                "url" => url = text(cursor, "messages[].content[].image_url.url")?,
                "detail" => {
                    let word = typed::string(cursor, "messages[].content[].image_url.detail")?;
                    detail = word.as_deref().and_then(ImageDetail::parse);
                    if word.is_some() && detail.is_none() {
                        note_unknown(unknown, format!("{path}.image_url.detail"));
                    }
                }
                _ => note_unless_empty(cursor.value()?, unknown, || {
                    format!("{path}.image_url.{name}")
                }),
            }
            Ok::<(), Failure>(())
        })?;
    }
    let source = url.map(|url| ImageSource::from_url(url.into()));
    Ok(source.map(|source| Image { source, detail }))
}

/// Reads a file that is sent inline. A file that is stored elsewhere is foreign.
fn file(
    cursor: &mut Cursor<'_>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Option<Document>, Failure> {
    let mut data = None;
    let mut title = None;
    typed::object(cursor, "messages[].content[].file", |cursor, name| {
        match name {
            "file_data" => data = text(cursor, "messages[].content[].file.file_data")?,
            "filename" => title = text(cursor, "messages[].content[].file.filename")?,
            _ => note_unless_empty(cursor.value()?, unknown, || format!("{path}.file.{name}")),
        }
        Ok::<(), Failure>(())
    })?;
    Ok(data.map(|data| {
        let (mime, bare) = data_uri::split(&data).unwrap_or(("", &data));
        Document {
            mime: match mime {
                "" => "application/pdf".to_owned(),
                mime => mime.to_owned(),
            },
            data: base64::standard(bare).into_owned(),
            name: title,
        }
    }))
}
