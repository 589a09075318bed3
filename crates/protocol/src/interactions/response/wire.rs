//! Parses steps and their pieces as upstreams send them, in whole answers and in events.

use std::borrow::Cow;

use crate::json::typed::{self, ValueError, compact};
use crate::json::{Cursor, Integer, Raw, Shape};

/// The kind of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::interactions) enum Step {
    Spoken,
    Thought,
    Call {
        id: String,
        name: String,
    },
    /// A step of a tool that the upstream runs.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::interactions) enum StepContent {
    Text(String),
    Summary(String),
    Signature(String),
    /// A fragment of a call's arguments.
    Arguments(String),
    /// Complete arguments that came with the start of a call.
    CompleteArguments(String),
    Image {
        mime: String,
        data: String,
    },
    /// A source of the text so far. Offsets count bytes.
    Source {
        url: String,
        title: String,
        start: u64,
        end: u64,
    },
    Blocked,
}

impl StepContent {
    /// The kind of step that a piece belongs to, if it is known.
    pub(in crate::interactions) fn step(&self) -> Option<Step> {
        match self {
            Self::Summary(_) | Self::Signature(_) => Some(Step::Thought),
            Self::Arguments(_) | Self::CompleteArguments(_) => None,
            Self::Text(_) | Self::Image { .. } | Self::Source { .. } | Self::Blocked => {
                Some(Step::Spoken)
            }
        }
    }
}

/// Reads a step and its content so far.
pub(in crate::interactions) fn read_step(
    step: Raw<'_>,
) -> Result<(Step, Vec<StepContent>), ValueError> {
    let [mut id, mut name] = [const { String::new() }; 2];
    let mut kind = Cow::default();
    let [mut content, mut summary, mut signature, mut arguments] = [None::<Raw<'_>>; 4];
    let mut blocked = false;
    typed::object::<ValueError>(&mut Cursor::new(step.text()), "step", |cursor, member| {
        match member {
            "type" => kind = typed::string(cursor, "step.type")?.unwrap_or_default(),
            "id" => id = text(cursor)?,
            "name" => name = text(cursor)?,
            "content" => content = Some(cursor.value()?),
            "summary" => summary = Some(cursor.value()?),
            "signature" => signature = Some(cursor.value()?),
            "arguments" => arguments = Some(cursor.value()?),
            "error" => blocked = !cursor.value()?.is_null(),
            _ => drop(cursor.value()?),
        }
        Ok(())
    })?;
    let mut pieces = Vec::new();
    let step = match kind.as_ref() {
        "model_output" => {
            if let Some(content) = content {
                each(content, |item| read_content(item, &mut pieces))?;
            }
            pieces.extend(blocked.then_some(StepContent::Blocked));
            Step::Spoken
        }
        "thought" => {
            if let Some(summary) = summary {
                each(summary, |item| read_summary(item, &mut pieces))?;
            }
            let signature = signature.and_then(|signature| signature.string());
            let signature = signature.filter(|signature| !signature.is_empty());
            let text = signature.map(|text| text.decode_lossy().into_owned());
            pieces.extend(text.map(StepContent::Signature));
            Step::Thought
        }
        "function_call" => {
            pieces.push(StepContent::CompleteArguments(match arguments {
                Some(arguments) if !arguments.is_null() => match arguments.string() {
                    Some(text) => text.decode_lossy().into_owned(),
                    None => compact(arguments.text()),
                },
                _ => "{}".to_owned(),
            }));
            Step::Call { id, name }
        }
        _ => Step::Other,
    };
    Ok((step, pieces))
}

/// Reads the pieces of a delta in their order. Returns no pieces for an empty delta, or for a kind that only
/// this dialect has.
pub(in crate::interactions) fn read_delta(delta: Raw<'_>) -> Result<Vec<StepContent>, ValueError> {
    let kind = kind_of(delta)?;
    let member = |wanted: &str| member(delta, wanted);
    let text = |wanted: &str| -> Result<Option<String>, ValueError> {
        let text = member(wanted)?.and_then(|value| value.string());
        let text = text.filter(|text| !text.is_empty());
        Ok(text.map(|text| text.decode_lossy().into_owned()))
    };
    let mut pieces = Vec::new();
    match kind.as_ref() {
        "thought_summary" => {
            if let Some(content) = member("content")? {
                read_summary(content, &mut pieces)?;
            }
        }
        "thought_signature" => pieces.extend(text("signature")?.map(StepContent::Signature)),
        "arguments_delta" => pieces.extend(text("arguments")?.map(StepContent::Arguments)),
        "text_annotation_delta" => {
            if let Some(annotations) = member("annotations")? {
                each(annotations, |item| read_source(item, &mut pieces))?;
            }
        }
        _ => read_content(delta, &mut pieces)?,
    }
    Ok(pieces)
}

/// Reads a content block of a thought's summary, of which only the text matters.
fn read_summary(content: Raw<'_>, pieces: &mut Vec<StepContent>) -> Result<(), ValueError> {
    let mut said = Vec::new();
    read_content(content, &mut said)?;
    pieces.extend(said.into_iter().filter_map(|piece| match piece {
        StepContent::Text(text) => Some(StepContent::Summary(text)),
        _ => None,
    }));
    Ok(())
}

/// Reads a content block: a text with its sources, or an image.
fn read_content(content: Raw<'_>, pieces: &mut Vec<StepContent>) -> Result<(), ValueError> {
    let mut kind = Cow::default();
    let [mut said, mut mime, mut data] = [const { String::new() }; 3];
    let mut annotations = None;
    typed::object::<ValueError>(
        &mut Cursor::new(content.text()),
        "content",
        |cursor, name| {
            match name {
                "type" => kind = typed::string(cursor, "content.type")?.unwrap_or_default(),
                "text" => said = text(cursor)?,
                "mime_type" => mime = text(cursor)?,
                "data" => data = text(cursor)?,
                "annotations" => annotations = Some(cursor.value()?),
                _ => drop(cursor.value()?),
            }
            Ok(())
        },
    )?;
    match kind.as_ref() {
        "text" if !said.is_empty() => pieces.push(StepContent::Text(said)),
        "image" if !data.is_empty() => pieces.push(StepContent::Image { mime, data }),
        _ => {}
    }
    match annotations {
        Some(annotations) => each(annotations, |item| read_source(item, pieces)),
        None => Ok(()),
    }
}

fn read_source(annotation: Raw<'_>, pieces: &mut Vec<StepContent>) -> Result<(), ValueError> {
    let [mut url, mut title] = [const { String::new() }; 2];
    let (mut start, mut end) = (0, 0);
    typed::object::<ValueError>(
        &mut Cursor::new(annotation.text()),
        "annotation",
        |cursor, name| {
            match name {
                "url" => url = text(cursor)?,
                "title" => title = text(cursor)?,
                "start_index" => start = cursor.value()?.integer().map_or(0, Integer::saturating),
                "end_index" => end = cursor.value()?.integer().map_or(0, Integer::saturating),
                _ => drop(cursor.value()?),
            }
            Ok(())
        },
    )?;
    if !url.is_empty() {
        pieces.push(StepContent::Source {
            url,
            title,
            start,
            end,
        });
    }
    Ok(())
}

/// Calls a function with each item of a list. A value that is not a list is skipped.
fn each(
    list: Raw<'_>,
    mut item: impl FnMut(Raw<'_>) -> Result<(), ValueError>,
) -> Result<(), ValueError> {
    if list.shape() != Shape::Array {
        return Ok(());
    }
    Cursor::new(list.text()).array(|cursor| {
        let value = cursor.value()?;
        match value.shape() {
            Shape::Object => item(value),
            _ => Ok(()),
        }
    })
}

fn kind_of(delta: Raw<'_>) -> Result<Cow<'_, str>, ValueError> {
    let kind = member(delta, "type")?.and_then(|value| value.string());
    Ok(kind.map_or_else(Cow::default, |text| text.decode_lossy()))
}

fn member<'a>(object: Raw<'a>, wanted: &str) -> Result<Option<Raw<'a>>, ValueError> {
    let mut found = None;
    typed::object::<ValueError>(&mut Cursor::new(object.text()), "delta", |cursor, name| {
        let value = cursor.value()?;
        if name == wanted {
            found = Some(value).filter(|value| !value.is_null());
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads a string. A value of another type counts as empty.
fn text(cursor: &mut Cursor<'_>) -> Result<String, ValueError> {
    if cursor.shape()? == Shape::String {
        return Ok(cursor.string()?.decode_lossy().into_owned());
    }
    cursor.value()?;
    Ok(String::new())
}
