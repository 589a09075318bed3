//! Reads the turns of a Generate Content request.
//!
//! A client that streamed an answer sends it back as one content for each chunk, so contents of
//! the model are joined, their texts without anything between. Calls without an id get one, and
//! results find their calls by id or by name and order.

use std::borrow::Cow;

use crate::canon::{
    Document, Image, ImageDetail, ImageSource, Opaque, Part, Path, Role, Thought, ToolCall,
    ToolResult, Turn, base64, data_uri, mime,
};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::json::span::camel;
use crate::json::walk::{self, compact};
use crate::json::{Cursor, Raw, Shape};
use crate::signature;

use super::names::Names;

/// The turns read so far.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) turns: Vec<Turn>,
    pub(super) names: Names,
    /// Members that only this dialect knows, by path.
    pub(super) unknown: Vec<String>,
    /// Calls of all turns, by which made ids differ.
    calls: usize,
    /// Calls that wait for their results.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    id: String,
    name: String,
}

/// The data of a part; a part has one.
enum Datum {
    Text(String),
    Media(Media),
    Call(Call),
    Answer(Answer),
    /// Something only this dialect knows.
    Native,
}

#[derive(Default)]
struct Media {
    mime: String,
    /// Base64 or an address.
    data: Option<String>,
    uri: Option<String>,
}

#[derive(Default)]
struct Call {
    id: Option<String>,
    name: String,
    arguments: Option<String>,
}

#[derive(Default)]
struct Answer {
    id: Option<String>,
    name: String,
    parts: Vec<Part>,
    is_error: bool,
}

impl Contents {
    /// Reads `contents`.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        walk::array(cursor, "contents", |cursor, number| {
            self.content(cursor, Path::item("contents", number))
        })
    }

    /// Looks at all pictures this closely that do not say otherwise. Says whether there are any.
    pub(super) fn look(&mut self, detail: ImageDetail) -> bool {
        let mut any = false;
        let parts = self.turns.iter_mut().flat_map(|turn| &mut turn.parts);
        let pictures = parts.flat_map(|(_, part)| match part {
            Part::ToolResult(result) => result.parts.as_mut_slice(),
            part => std::slice::from_mut(part),
        });
        for part in pictures {
            if let Part::Image(image) = part {
                image.detail.get_or_insert(detail);
                any = true;
            }
        }
        any
    }

    /// Reads `systemInstruction`: a content, or leniently a text.
    pub(super) fn read_system(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        const NAME: &str = "systemInstruction";
        let mut parts = Vec::new();
        let path = |number| Path::item("systemInstruction.parts", number);
        if cursor.shape()? == Shape::String {
            let text = walk::string(cursor, NAME)?.unwrap_or_default();
            parts.push((path(0), Part::Text(text.into_owned())));
        } else {
            walk::object::<Failure>(cursor, NAME, |cursor, name| {
                if name != "parts" {
                    cursor.value()?;
                    return Ok(());
                }
                each_part(cursor, |cursor, number| {
                    let part = match self.part(cursor, path(number))? {
                        Some((Datum::Text(text), _)) => Part::Text(text),
                        Some(_) => Part::Foreign,
                        None => return Ok(()),
                    };
                    parts.push((path(number), part));
                    Ok(())
                })
            })?;
        }
        parts.retain(|(_, part)| !matches!(part, Part::Text(text) if text.is_empty()));
        if !parts.is_empty() {
            let role = Role::System;
            self.turns.insert(0, Turn { role, parts });
        }
        Ok(())
    }

    fn content(&mut self, cursor: &mut Cursor<'_>, path: Path) -> Result<(), Failure> {
        let mut role = Role::User;
        let mut parts = Vec::new();
        walk::object::<Failure>(cursor, "contents", |cursor, member| {
            match member {
                "role" => role = read_role(cursor, path)?,
                "parts" => each_part(cursor, |cursor, number| {
                    let path = path.inner("parts", number);
                    parts.extend(self.part(cursor, path)?.map(|part| (path, part)));
                    Ok(())
                })?,
                _ => {
                    if !cursor.value()?.is_null() {
                        self.unknown.push(format!("{path}.{member}"));
                    }
                }
            }
            Ok(())
        })?;
        let goes_on = self.turns.last().is_some_and(|turn| turn.role == role);
        if role == Role::Assistant && !goes_on {
            self.open.clear();
        }
        if role != Role::Assistant || !goes_on {
            let parts = Vec::with_capacity(parts.len());
            self.turns.push(Turn { role, parts });
        }
        for (path, (datum, signature)) in parts {
            self.push(path, datum, signature)?;
        }
        if self.turns.last().is_some_and(|turn| turn.parts.is_empty()) {
            self.turns.pop();
        }
        Ok(())
    }

    /// Reads a part: its data and its signature. An empty part is nothing.
    fn part(
        &mut self,
        cursor: &mut Cursor<'_>,
        path: Path,
    ) -> Result<Option<(Datum, Mark)>, Failure> {
        let mut datum = None;
        let mut mark = Mark::default();
        walk::object::<Failure>(cursor, "parts", |cursor, member| {
            if walk::null(cursor)? {
                return Ok(());
            }
            let found = match camel(member).as_ref() {
                "thought" => {
                    mark.thought = walk::boolean(cursor, "thought")? == Some(true);
                    return Ok(());
                }
                "thoughtSignature" => {
                    let text = walk::string(cursor, "thoughtSignature")?.unwrap_or_default();
                    mark.opaque = signature::read(&text, Dialect::Generate);
                    return Ok(());
                }
                "mediaResolution" => {
                    mark.detail = read_resolution(cursor)?;
                    return Ok(());
                }
                "text" => Datum::Text(
                    walk::string(cursor, "text")?
                        .unwrap_or_default()
                        .into_owned(),
                ),
                "inlineData" | "fileData" => Datum::Media(read_media(cursor)?),
                "functionCall" => Datum::Call(self.read_call(cursor, path)?),
                "functionResponse" => Datum::Answer(self.read_answer(cursor, path)?),
                "executableCode" | "codeExecutionResult" | "toolCall" | "toolResponse" => {
                    cursor.value()?;
                    Datum::Native
                }
                _ => {
                    cursor.value()?;
                    self.unknown.push(format!("{path}.{member}"));
                    return Ok(());
                }
            };
            if datum.replace(found).is_some() {
                let message = format!("`{path}` must hold one kind of data.");
                return Err(Failure::invalid(message).param(path.to_string()));
            }
            Ok(())
        })?;
        Ok(datum.map(|datum| (datum, mark)))
    }

    fn read_call(&mut self, cursor: &mut Cursor<'_>, path: Path) -> Result<Call, Failure> {
        let mut call = Call::default();
        walk::object::<Failure>(cursor, "functionCall", |cursor, member| {
            match camel(member).as_ref() {
                "id" => call.id = read_id(cursor, "functionCall.id")?,
                "name" => {
                    let name = walk::string(cursor, "functionCall.name")?;
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

    fn read_answer(&mut self, cursor: &mut Cursor<'_>, path: Path) -> Result<Answer, Failure> {
        let mut answer = Answer::default();
        let mut media = Vec::new();
        walk::object::<Failure>(cursor, "functionResponse", |cursor, member| {
            match camel(member).as_ref() {
                "id" => answer.id = read_id(cursor, "functionResponse.id")?,
                "name" => {
                    let name = walk::string(cursor, "functionResponse.name")?;
                    answer.name = self.names.safe(&name.unwrap_or_default());
                }
                "response" => {
                    let response = cursor.value()?;
                    answer.is_error = says(response, &mut answer.parts)?;
                }
                "parts" => each_part(cursor, |cursor, _| {
                    if let Some((Datum::Media(found), mark)) = self.part(cursor, path)? {
                        match found.into_part(mark.detail) {
                            Part::Foreign => self.unknown.push(path.to_string()),
                            part => media.push(part),
                        }
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

    /// Lists a member that only this dialect knows, unless it says nothing.
    fn note(
        &mut self,
        cursor: &mut Cursor<'_>,
        path: Path,
        outer: &str,
        member: &str,
    ) -> Result<(), Failure> {
        let value = cursor.value()?;
        if !value.is_null() && value.boolean() != Some(false) {
            self.unknown.push(format!("{path}.{outer}.{member}"));
        }
        Ok(())
    }

    /// Adds a part to the last turn.
    fn push(&mut self, path: Path, datum: Datum, mark: Mark) -> Result<(), Failure> {
        let part = match datum {
            Datum::Text(text) if mark.thought => {
                self.push_thought(path, text, mark.opaque);
                return Ok(());
            }
            Datum::Text(text) => {
                self.push_foreign_thought(path, mark.opaque);
                if self.joins(&text) || text.is_empty() {
                    return Ok(());
                }
                Part::Text(text)
            }
            Datum::Media(media) => media.into_part(mark.detail),
            Datum::Call(call) => {
                let opaque = self.push_foreign_thought(path, mark.opaque);
                self.pair_call(call, opaque)
            }
            Datum::Answer(answer) => self.pair_answer(answer, path)?,
            Datum::Native => Part::Foreign,
        };
        if let Some(turn) = self.turns.last_mut() {
            turn.parts.push((path, part));
        }
        Ok(())
    }

    /// Joins a text of the model to the one before it.
    fn joins(&mut self, text: &str) -> bool {
        let Some(turn) = self.turns.last_mut() else {
            return false;
        };
        match turn.parts.last_mut() {
            Some((_, Part::Text(before))) if turn.role == Role::Assistant => {
                before.push_str(text);
                true
            }
            _ => false,
        }
    }

    /// Adds a thought, or goes on with the one before it, which a signature ends.
    fn push_thought(&mut self, path: Path, text: String, opaque: Option<Opaque>) {
        let Some(turn) = self.turns.last_mut() else {
            return;
        };
        if let Some((_, Part::Thought(before))) = turn.parts.last_mut()
            && before.opaque.is_none()
        {
            before.text.push_str(&text);
            before.opaque = opaque;
        } else if !text.is_empty() || opaque.is_some() {
            let thought = Thought {
                text,
                opaque,
                redacted: false,
            };
            turn.parts.push((path, Part::Thought(thought)));
        }
    }

    /// A signature on a call or a text that belongs to a thought of another dialect becomes that
    /// thought again; one that belongs to the call itself is given back.
    fn push_foreign_thought(&mut self, path: Path, opaque: Option<Opaque>) -> Option<Opaque> {
        let opaque = opaque?;
        match opaque.origin {
            Dialect::Generate | Dialect::Chat => Some(opaque),
            Dialect::Responses | Dialect::Messages | Dialect::Interactions => {
                self.push_thought(path, String::new(), Some(opaque));
                None
            }
        }
    }

    fn pair_call(&mut self, call: Call, opaque: Option<Opaque>) -> Part {
        self.calls += 1;
        let id = call.id.unwrap_or_else(|| {
            let turns = self.turns.len();
            super::call_id(&format!("{turns}"), self.calls, &call.name)
        });
        self.open.push(Open {
            id: id.clone(),
            name: call.name.clone(),
        });
        Part::ToolCall(ToolCall {
            id,
            name: call.name,
            arguments: call.arguments.unwrap_or_else(|| "{}".to_owned()),
            opaque,
        })
    }

    /// Finds the call that a result answers: by its id, else the first open one of its name.
    fn pair_answer(&mut self, answer: Answer, path: Path) -> Result<Part, Failure> {
        let by_id = |open: &Open| answer.id.as_ref() == Some(&open.id);
        let by_name = |open: &Open| open.name == answer.name;
        let found = self.open.iter().position(by_id);
        let Some(found) = found.or_else(|| self.open.iter().position(by_name)) else {
            let message = format!("The function response `{path}` answers no function call.");
            return Err(Failure::invalid(message).param(path.to_string()));
        };
        let call = self.open.remove(found);
        Ok(Part::ToolResult(ToolResult {
            call_id: call.id,
            name: Some(call.name),
            parts: answer.parts,
            is_error: answer.is_error,
        }))
    }
}

/// What stands beside the data of a part.
#[derive(Default)]
struct Mark {
    thought: bool,
    opaque: Option<Opaque>,
    detail: Option<ImageDetail>,
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
                name: None,
            }),
            (None, Some(uri)) if is_public(&uri) && (is_image || mime::of_url(&uri).is_some()) => {
                let source = ImageSource::Url(uri);
                Part::Image(Image { source, detail })
            }
            _ => Part::Foreign,
        }
    }
}

/// Whether an address means something outside of the vendor's own storage.
fn is_public(uri: &str) -> bool {
    let web = uri.starts_with("https://") || uri.starts_with("http://");
    web && !uri.contains("generativelanguage.googleapis.com/")
}

/// Parts come in a list; some clients send a single one bare.
fn each_part(
    cursor: &mut Cursor<'_>,
    mut part: impl FnMut(&mut Cursor<'_>, usize) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if cursor.shape()? == Shape::Object {
        return part(cursor, 0);
    }
    walk::array(cursor, "parts", part)
}

fn read_role(cursor: &mut Cursor<'_>, path: Path) -> Result<Role, Failure> {
    let role = walk::string(cursor, "role")?.unwrap_or_default();
    match role.as_ref() {
        "" | "user" | "function" | "tool" => Ok(Role::User),
        "model" | "assistant" => Ok(Role::Assistant),
        "system" => Ok(Role::System),
        _ => {
            let message = format!("`{path}.role` must be `user` or `model`.");
            Err(Failure::invalid(message).param(format!("{path}.role")))
        }
    }
}

fn read_id(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<String>, Failure> {
    let id = walk::string(cursor, name)?;
    Ok(id.filter(|id| !id.is_empty()).map(Cow::into_owned))
}

fn read_media(cursor: &mut Cursor<'_>) -> Result<Media, Failure> {
    let mut media = Media::default();
    walk::object::<Failure>(cursor, "inlineData", |cursor, member| {
        let mut text = |name| Ok::<_, Failure>(walk::string(cursor, name)?.map(Cow::into_owned));
        match camel(member).as_ref() {
            "mimeType" => {
                let mime = text("mimeType")?.unwrap_or_default();
                // `image/png; charset=…` means `image/png`.
                let bare = mime.split(';').next().unwrap_or_default();
                media.mime = bare.trim().to_ascii_lowercase();
            }
            "data" => media.data = text("data")?,
            "fileUri" => media.uri = text("fileUri")?,
            // A name to show, which no model reads.
            _ => drop(cursor.value()?),
        }
        Ok(())
    })?;
    Ok(media)
}

/// Reads `{level: "MEDIA_RESOLUTION_HIGH"}`, or the level bare.
pub(super) fn read_resolution(cursor: &mut Cursor<'_>) -> Result<Option<ImageDetail>, Failure> {
    let mut level = String::new();
    if cursor.shape()? == Shape::Object {
        walk::object::<Failure>(cursor, "mediaResolution", |cursor, member| {
            if member == "level" {
                level = walk::string(cursor, "level")?
                    .unwrap_or_default()
                    .into_owned();
            } else {
                cursor.value()?;
            }
            Ok(())
        })?;
    } else {
        level = walk::string(cursor, "mediaResolution")?
            .unwrap_or_default()
            .into_owned();
    }
    let level = level.to_ascii_uppercase();
    Ok(
        match level.strip_prefix("MEDIA_RESOLUTION_").unwrap_or(&level) {
            "LOW" => Some(ImageDetail::Low),
            "MEDIUM" => Some(ImageDetail::Auto),
            "HIGH" => Some(ImageDetail::High),
            "ULTRA_HIGH" => Some(ImageDetail::Original),
            _ => None,
        },
    )
}

/// Reads what a function answered into `parts`, and says whether it is an error. By convention
/// `output` holds a success and `error` a failure; otherwise the whole object is the answer.
fn says(response: Raw<'_>, parts: &mut Vec<Part>) -> Result<bool, Failure> {
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
        parts.push(Part::Text(text));
    }
    Ok(is_error)
}
