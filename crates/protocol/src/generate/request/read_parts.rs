//! Reads the parts of `contents`.

use std::borrow::Cow;
use std::fmt::Display;

use super::tool_names::ToolNames;
use crate::canon::{
    Document, Image, ImageDetail, ImageSource, Opaque, Part, Path, base64, data_uri, mime,
    note_unknown, note_unless_empty,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::members::camel;
use crate::json::typed::{self, compact};
use crate::json::{Cursor, Raw, Shape};
use crate::shared::signature;

/// Reads parts, and collects tool names and dropped members.
#[derive(Debug, Default)]
pub(in crate::generate) struct Parts {
    pub(in crate::generate) names: ToolNames,
    /// Paths of members that only this dialect has.
    pub(in crate::generate) unknown: Vec<String>,
}

/// The data of a part. Each part has one kind of data.
pub(in crate::generate) enum PartData {
    Text(String),
    Media(Media),
    Call(Call),
    Result(FunctionResult),
    /// Data that only this dialect has.
    Native,
}

#[derive(Default)]
pub(in crate::generate) struct Media {
    mime: String,
    /// Base64. Referenced media have a `uri` instead.
    data: Option<String>,
    uri: Option<String>,
    name: Option<String>,
    /// Paths of members that only this dialect has.
    others: Vec<String>,
}

#[derive(Default)]
pub(in crate::generate) struct Call {
    pub(in crate::generate) id: Option<String>,
    pub(in crate::generate) name: String,
    pub(in crate::generate) arguments: Option<String>,
}

#[derive(Default)]
pub(in crate::generate) struct FunctionResult {
    pub(in crate::generate) id: Option<String>,
    pub(in crate::generate) name: String,
    pub(in crate::generate) parts: Vec<(Path, Part)>,
    pub(in crate::generate) is_error: bool,
}

/// Members next to the data of a part.
#[derive(Default)]
pub(in crate::generate) struct PartExtras {
    pub(in crate::generate) thought: bool,
    pub(in crate::generate) opaque: Option<Opaque>,
    pub(in crate::generate) detail: Option<ImageDetail>,
}

impl Parts {
    /// Reads a part: its data and its signature. An empty part yields nothing.
    pub(in crate::generate) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        path: Path,
    ) -> Result<Option<(PartData, PartExtras)>, Failure> {
        let mut data = None;
        let mut extras = PartExtras::default();
        let mut others = Vec::new();
        typed::object::<Failure>(cursor, "parts", |cursor, member| {
            if typed::null(cursor)? {
                return Ok(());
            }
            let found = match camel(member).as_ref() {
                "thought" => {
                    extras.thought = typed::boolean(cursor, "thought")? == Some(true);
                    return Ok(());
                }
                "thoughtSignature" => {
                    let text = typed::string(cursor, "thoughtSignature")?.unwrap_or_default();
                    extras.opaque = signature::read(&text, Dialect::Generate);
                    return Ok(());
                }
                "mediaResolution" => {
                    let place = format_args!("{path}.mediaResolution");
                    extras.detail = read_resolution(cursor, &place, &mut others)?;
                    return Ok(());
                }
                "text" => PartData::Text(
                    typed::string(cursor, "text")?
                        .unwrap_or_default()
                        .into_owned(),
                ),
                name @ ("inlineData" | "fileData") => {
                    PartData::Media(read_media(cursor, path, name)?)
                }
                "functionCall" => PartData::Call(self.read_call(cursor, path)?),
                "functionResponse" => PartData::Result(self.read_answer(cursor, path)?),
                "executableCode" | "codeExecutionResult" | "toolCall" | "toolResponse" => {
                    cursor.value()?;
                    PartData::Native
                }
                _ => {
                    note_unless_empty(cursor.value()?, &mut others, || {
                        format!("{path}.{}", camel(member))
                    });
                    return Ok(());
                }
            };
            if data.replace(found).is_some() {
                let message = format!("`{path}` must hold one kind of data.");
                return Err(Failure::invalid(message).param(path.to_string()));
            }
            Ok(())
        })?;
        // A part that is dropped as a whole is reported without its members.
        if !matches!(data, Some(PartData::Native)) {
            self.unknown.append(&mut others);
        }
        if data.is_none() {
            self.note_unused_extras(path, &extras);
        }
        Ok(data.map(|data| (data, extras)))
    }

    /// Reports members that have no meaning next to this kind of data.
    pub(in crate::generate) fn note_unused_extras(&mut self, path: Path, extras: &PartExtras) {
        if extras.opaque.is_some() {
            note_unknown(&mut self.unknown, format!("{path}.thoughtSignature"));
        }
        if extras.detail.is_some() {
            note_unknown(&mut self.unknown, format!("{path}.mediaResolution"));
        }
    }

    /// The part for a medium. Only images have a detail level, and only documents have a name in
    /// other dialects.
    pub(in crate::generate) fn media(
        &mut self,
        mut media: Media,
        path: Path,
        mut extras: PartExtras,
    ) -> Part {
        let mut others = std::mem::take(&mut media.others);
        let name = media.name.clone();
        let member = if media.data.is_some() {
            "inlineData"
        } else {
            "fileData"
        };
        let part = media.into_part(extras.detail);
        if matches!(part, Part::Foreign) {
            return part;
        }
        if matches!(part, Part::Image(_)) {
            extras.detail = None;
            if name.is_some() {
                note_unknown(&mut others, format!("{path}.{member}.displayName"));
            }
        }
        self.unknown.append(&mut others);
        self.note_unused_extras(path, &extras);
        part
    }

    fn read_call(&mut self, cursor: &mut Cursor<'_>, path: Path) -> Result<Call, Failure> {
        let mut call = Call::default();
        typed::object::<Failure>(cursor, "functionCall", |cursor, member| {
            match camel(member).as_ref() {
                "id" => call.id = read_id(cursor, "functionCall.id")?,
                "name" => {
                    let name = typed::string(cursor, "functionCall.name")?;
                    call.name = self.names.safe(&name.unwrap_or_default());
                }
                "args" => {
                    let args = cursor.value()?;
                    call.arguments = (!args.is_null()).then(|| compact(args.text()));
                }
                _ => self.note(cursor, path, "functionCall", member)?,
            }
            Ok(())
        })?;
        Ok(call)
    }

    fn read_answer(
        &mut self,
        cursor: &mut Cursor<'_>,
        path: Path,
    ) -> Result<FunctionResult, Failure> {
        let mut answer = FunctionResult::default();
        let mut media = Vec::new();
        typed::object::<Failure>(cursor, "functionResponse", |cursor, member| {
            match camel(member).as_ref() {
                "id" => answer.id = read_id(cursor, "functionResponse.id")?,
                "name" => {
                    let name = typed::string(cursor, "functionResponse.name")?;
                    answer.name = self.names.safe(&name.unwrap_or_default());
                }
                "response" => {
                    let response = cursor.value()?;
                    answer.is_error = read_result(response, path, &mut answer.parts)?;
                }
                "parts" => each(cursor, |cursor, at| {
                    let path = path.in_result(at);
                    let part = match self.read(cursor, path)? {
                        Some((PartData::Media(found), extras)) => self.media(found, path, extras),
                        Some(_) => Part::Foreign,
                        None => return Ok(()),
                    };
                    match part {
                        Part::Foreign => note_unknown(&mut self.unknown, path.to_string()),
                        part => media.push((path, part)),
                    }
                    Ok(())
                })?,
                _ => self.note(cursor, path, "functionResponse", member)?,
            }
            Ok(())
        })?;
        answer.parts.append(&mut media);
        Ok(answer)
    }

    /// Reports a member that only this dialect has, unless it is empty.
    fn note(
        &mut self,
        cursor: &mut Cursor<'_>,
        path: Path,
        outer: &str,
        member: &str,
    ) -> Result<(), Failure> {
        note_unless_empty(cursor.value()?, &mut self.unknown, || {
            format!("{path}.{outer}.{}", camel(member))
        });
        Ok(())
    }
}

impl Media {
    fn into_part(self, detail: Option<ImageDetail>) -> Part {
        let is_image = self.mime.starts_with("image/");
        match (self.data, self.uri) {
            (Some(data), _) if is_image || self.mime.is_empty() => {
                let data = base64::standard(&data).into_owned();
                let mime = match self.mime.as_str() {
                    "" => data_uri::sniff(&data).to_owned(),
                    _ => self.mime,
                };
                let source = ImageSource::Inline { mime, data };
                Part::Image(Image { source, detail })
            }
            (Some(data), _) if self.mime == "application/pdf" => Part::Document(Document {
                data: base64::standard(&data).into_owned(),
                mime: self.mime,
                name: self.name,
            }),
            (None, Some(uri)) if is_public(&uri) && (is_image || mime::of_url(&uri).is_some()) => {
                let source = ImageSource::Url(uri);
                Part::Image(Image { source, detail })
            }
            _ => Part::Foreign,
        }
    }
}

/// Whether a URI can be resolved outside the vendor's own storage.
fn is_public(uri: &str) -> bool {
    let web = uri.starts_with("https://") || uri.starts_with("http://");
    web && !uri.contains("generativelanguage.googleapis.com/")
}

/// Calls a function with each part. Some clients send a single part instead of a list.
pub(in crate::generate) fn each(
    cursor: &mut Cursor<'_>,
    mut part: impl FnMut(&mut Cursor<'_>, usize) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if cursor.shape()? == Shape::Object {
        return part(cursor, 0);
    }
    typed::array(cursor, "parts", part)
}

fn read_id(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<String>, Failure> {
    let id = typed::string(cursor, name)?;
    Ok(id.filter(|id| !id.is_empty()).map(Cow::into_owned))
}

fn read_media(cursor: &mut Cursor<'_>, path: Path, outer: &str) -> Result<Media, Failure> {
    let mut media = Media::default();
    typed::object::<Failure>(cursor, "inlineData", |cursor, member| {
        let mut text = |name| Ok::<_, Failure>(typed::string(cursor, name)?.map(Cow::into_owned));
        match camel(member).as_ref() {
            "mimeType" => {
                let mime = text("mimeType")?.unwrap_or_default();
                // `image/png; charset=…` means `image/png`.
                let bare = mime.split(';').next().unwrap_or_default();
                media.mime = bare.trim().to_ascii_lowercase();
            }
            "data" => media.data = text("data")?,
            "fileUri" => media.uri = text("fileUri")?,
            "displayName" => media.name = text("displayName")?,
            _ => note_unless_empty(cursor.value()?, &mut media.others, || {
                format!("{path}.{outer}.{}", camel(member))
            }),
        }
        Ok(())
    })?;
    Ok(media)
}

/// Reads `{level: "MEDIA_RESOLUTION_HIGH"}` or the level itself, at `place`. An unknown word is
/// reported.
pub(in crate::generate) fn read_resolution(
    cursor: &mut Cursor<'_>,
    place: &dyn Display,
    unknown: &mut Vec<String>,
) -> Result<Option<ImageDetail>, Failure> {
    let mut level = String::new();
    let mut text = |cursor: &mut Cursor<'_>| {
        let text = typed::string(cursor, "mediaResolution")?.unwrap_or_default();
        level = text.to_ascii_uppercase();
        Ok::<(), Failure>(())
    };
    if cursor.shape()? == Shape::Object {
        typed::object(cursor, "mediaResolution", |cursor, member| {
            if member == "level" {
                return text(cursor);
            }
            note_unless_empty(cursor.value()?, unknown, || {
                format!("{place}.{}", camel(member))
            });
            Ok(())
        })?;
    } else {
        text(cursor)?;
    }
    Ok(
        match level.strip_prefix("MEDIA_RESOLUTION_").unwrap_or(&level) {
            "LOW" => Some(ImageDetail::Low),
            "MEDIUM" => Some(ImageDetail::Auto),
            "HIGH" => Some(ImageDetail::High),
            "ULTRA_HIGH" => Some(ImageDetail::Original),
            "" | "UNSPECIFIED" => None,
            _ => {
                note_unknown(unknown, place.to_string());
                None
            }
        },
    )
}

/// Reads the response of a function into `parts`, and returns whether it is an error. By convention
/// `output` holds a success and `error` a failure. Otherwise the whole object is the response.
fn read_result(
    response: Raw<'_>,
    path: Path,
    parts: &mut Vec<(Path, Part)>,
) -> Result<bool, Failure> {
    let mut only = None;
    let mut members = 0;
    let mut is_error = false;
    if response.shape() == Shape::Object {
        Cursor::new(response.text()).object(|cursor, name| {
            let value = cursor.value()?;
            members += 1;
            let error = name.is("error") && !value.is_null();
            is_error |= error;
            if error || name.is("output") {
                only = Some(value);
            }
            Ok::<(), Failure>(())
        })?;
    }
    let whole = match only {
        Some(value) if members == 1 && (value.shape() == Shape::String || is_error) => value,
        _ => response,
    };
    let text = match whole.string() {
        Some(text) => text.decode_lossy().into_owned(),
        None if whole.is_null() => String::new(),
        None => compact(whole.text()),
    };
    if !text.is_empty() {
        parts.push((path, Part::Text(text)));
    }
    Ok(is_error)
}
