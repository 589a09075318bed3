//! Reads content blocks: texts, images and other media.

use std::borrow::Cow;

use crate::canon::{
    Document, Image, ImageDetail, ImageSource, Part, Path, base64, data_uri, note_unknown,
    note_unless_empty,
};
use crate::failure::Failure;
use crate::json::typed;
use crate::json::{Cursor, Raw, Shape};

/// The `type` of a step or a content block. An item with a `text` and no type is a text.
pub(in crate::interactions) fn kind_of(item: Raw<'_>, path: Path) -> Result<Cow<'_, str>, Failure> {
    let mut kind = None;
    let mut has_text = false;
    let name = path.to_string();
    typed::object::<Failure>(&mut Cursor::new(item.text()), &name, |cursor, member| {
        let value = cursor.value()?;
        match member {
            "type" => kind = value.string().map(|text| text.decode_lossy()),
            "text" => has_text = value.shape() == Shape::String,
            _ => {}
        }
        Ok(())
    })?;
    match kind {
        Some(kind) => Ok(kind),
        None if has_text => Ok(Cow::Borrowed("text")),
        None => Err(Failure::invalid(format!("`{name}.type` is required.")).param(name)),
    }
}

/// Whether a list consists of content blocks, and is not a tool's own data.
pub(in crate::interactions) fn is_contents(list: Raw<'_>) -> bool {
    let mut contents = true;
    let read = Cursor::new(list.text()).array(|cursor| {
        let item = cursor.value()?;
        let kind = kind_of(item, Path::default());
        contents &= item.shape() == Shape::Object
            && kind.is_ok_and(|kind| {
                matches!(
                    kind.as_ref(),
                    "text" | "image" | "audio" | "document" | "video"
                )
            });
        Ok::<(), Failure>(())
    });
    contents && read.is_ok()
}

/// Reads a content block. Members that are not read are reported in `unknown`.
pub(in crate::interactions) fn typed_content(
    content: Raw<'_>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Part, Failure> {
    let kind = kind_of(content, path)?;
    read_content(content, &kind, path, unknown)
}

#[derive(Default)]
struct Media {
    mime: String,
    data: Option<String>,
    uri: Option<String>,
    detail: Option<ImageDetail>,
}

pub(in crate::interactions) fn read_content(
    content: Raw<'_>,
    kind: &str,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Part, Failure> {
    let mut others = Vec::new();
    let mut said = String::new();
    let mut media = Media::default();
    typed::object::<Failure>(
        &mut Cursor::new(content.text()),
        "content",
        |cursor, name| {
            match name {
                "text" => said = text(cursor, "text")?,
                "mime_type" => media.mime = text(cursor, "mime_type")?.to_ascii_lowercase(),
                "data" => media.data = typed::string(cursor, "data")?.map(Cow::into_owned),
                "uri" => media.uri = typed::string(cursor, "uri")?.map(Cow::into_owned),
                "resolution" => {
                    let word = typed::string(cursor, "resolution")?;
                    media.detail = match word.as_deref() {
                        Some("low") => Some(ImageDetail::Low),
                        Some("medium") => Some(ImageDetail::Auto),
                        Some("high") => Some(ImageDetail::High),
                        Some("ultra_high") => Some(ImageDetail::Original),
                        _ => None,
                    };
                    if word.is_some() && (media.detail.is_none() || kind != "image") {
                        note_unknown(&mut others, format!("{path}.resolution"));
                    }
                }
                // Models do not read the sources of an earlier answer.
                "type" | "annotations" => drop(cursor.value()?),
                _ => note_unless_empty(cursor.value()?, &mut others, || format!("{path}.{name}")),
            }
            Ok(())
        },
    )?;
    let part = match kind {
        "text" => Part::Text(said),
        "image" => media.into_image(),
        "document" => media.into_document(),
        _ => Part::Foreign,
    };
    // A content block that is dropped as a whole is reported without its members.
    if !matches!(part, Part::Foreign) {
        unknown.append(&mut others);
    }
    Ok(part)
}

impl Media {
    fn into_image(self) -> Part {
        let source = match (self.data, self.uri) {
            (Some(data), _) => {
                let data = base64::standard(&data).into_owned();
                let mime = match self.mime.as_str() {
                    "" => data_uri::sniff(&data).to_owned(),
                    _ => self.mime,
                };
                ImageSource::Inline { mime, data }
            }
            (None, Some(uri)) if uri.starts_with("https://") || uri.starts_with("http://") => {
                ImageSource::Url(uri)
            }
            _ => return Part::Foreign,
        };
        let detail = self.detail;
        Part::Image(Image { source, detail })
    }

    fn into_document(self) -> Part {
        match self.data {
            Some(data) if self.mime == "application/pdf" => Part::Document(Document {
                data: base64::standard(&data).into_owned(),
                mime: self.mime,
                name: None,
            }),
            _ => Part::Foreign,
        }
    }
}

/// Reads a string, which is empty if absent.
pub(in crate::interactions) fn text(
    cursor: &mut Cursor<'_>,
    name: &str,
) -> Result<String, Failure> {
    Ok(typed::string(cursor, name)?
        .unwrap_or_default()
        .into_owned())
}
