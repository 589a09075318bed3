//! Reads the sources of a text in this dialect. Offsets count bytes.

use crate::json::typed::{self, ValueError};
use crate::json::{Cursor, Integer, Raw};

/// A source of a section of text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in crate::generate) struct Source {
    pub(in crate::generate) url: String,
    pub(in crate::generate) title: String,
    pub(in crate::generate) start: u64,
    pub(in crate::generate) end: u64,
}

/// Reads `citationMetadata`.
pub(in crate::generate) fn citations(
    metadata: Raw<'_>,
    sources: &mut Vec<Source>,
) -> Result<(), ValueError> {
    let mut cursor = Cursor::new(metadata.text());
    typed::object(&mut cursor, "citationMetadata", |cursor, name| {
        if name != "citations" && name != "citationSources" {
            cursor.value()?;
            return Ok(());
        }
        typed::array::<ValueError>(cursor, name, |cursor, _| {
            let mut source = Source::default();
            typed::object::<ValueError>(cursor, "citation", |cursor, name| {
                match name {
                    "uri" => source.url = text(cursor)?,
                    "title" => source.title = text(cursor)?,
                    _ => offset(cursor, name, &mut source)?,
                }
                Ok(())
            })?;
            if !source.url.is_empty() {
                sources.push(source);
            }
            Ok(())
        })
    })
}

/// Reads `groundingMetadata`: pages, and sections of text that refer to pages by number.
pub(in crate::generate) fn grounding(
    metadata: Raw<'_>,
    sources: &mut Vec<Source>,
) -> Result<(), ValueError> {
    let mut pages: Vec<(String, String)> = Vec::new();
    let mut supports: Vec<(Source, Vec<u64>)> = Vec::new();
    let mut cursor = Cursor::new(metadata.text());
    typed::object::<ValueError>(
        &mut cursor,
        "groundingMetadata",
        |cursor, name| match name {
            "groundingChunks" => typed::array(cursor, name, |cursor, _| {
                pages.push(page(cursor)?);
                Ok(())
            }),
            "groundingSupports" => typed::array(cursor, name, |cursor, _| {
                supports.push(support(cursor)?);
                Ok(())
            }),
            _ => cursor.value().map(drop).map_err(ValueError::from),
        },
    )?;
    for (stretch, numbers) in supports {
        for number in numbers {
            let page = usize::try_from(number)
                .ok()
                .and_then(|number| pages.get(number));
            if let Some((url, title)) = page.filter(|(url, _)| !url.is_empty()) {
                sources.push(Source {
                    url: url.clone(),
                    title: title.clone(),
                    ..stretch.clone()
                });
            }
        }
    }
    Ok(())
}

fn page(cursor: &mut Cursor<'_>) -> Result<(String, String), ValueError> {
    let (mut url, mut title) = (String::new(), String::new());
    typed::object::<ValueError>(cursor, "groundingChunk", |cursor, name| {
        if name != "web" {
            cursor.value()?;
            return Ok(());
        }
        typed::object(cursor, name, |cursor, name| {
            match name {
                "uri" => url = text(cursor)?,
                "title" => title = text(cursor)?,
                _ => drop(cursor.value()?),
            }
            Ok(())
        })
    })?;
    Ok((url, title))
}

fn support(cursor: &mut Cursor<'_>) -> Result<(Source, Vec<u64>), ValueError> {
    let mut source = Source::default();
    let mut numbers = Vec::new();
    typed::object::<ValueError>(cursor, "groundingSupport", |cursor, name| match name {
        "segment" => typed::object(cursor, name, |cursor, name| {
            offset(cursor, name, &mut source)
        }),
        "groundingChunkIndices" => typed::array(cursor, name, |cursor, _| {
            numbers.extend(typed::integer(cursor, name)?.map(Integer::saturating));
            Ok(())
        }),
        _ => cursor.value().map(drop).map_err(ValueError::from),
    })?;
    Ok((source, numbers))
}

/// Reads an offset of a section. Upstreams leave out an offset of zero.
fn offset(cursor: &mut Cursor<'_>, name: &str, source: &mut Source) -> Result<(), ValueError> {
    let value = cursor.value()?.integer().map(Integer::saturating);
    match (name, value) {
        ("startIndex", Some(start)) => source.start = start,
        ("endIndex", Some(end)) => source.end = end,
        _ => {}
    }
    Ok(())
}

fn text(cursor: &mut Cursor<'_>) -> Result<String, ValueError> {
    Ok(typed::string(cursor, "uri")?
        .unwrap_or_default()
        .into_owned())
}
