//! Finds `cache_control` marks in all places where they are allowed.

use super::member::Member;
use super::refusal::Refusal;
use serde_json::Value;

const MARKS_MAX: usize = 4;

/// The lifetime of a cached prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ttl {
    FiveMinutes,
    OneHour,
}

/// The lifetime of the last mark; `None` if there is no mark.
pub(super) fn read(body: &Member<'_>) -> Result<Option<Ttl>, Refusal> {
    let mut marks = Vec::new();
    let system = body.get("system").and_then(Value::as_array);
    let messages = body.list("messages")?.unwrap_or_default();
    let blocks = messages
        .iter()
        .filter_map(|message| message.get("content")?.as_array())
        .flatten();
    let results = blocks
        .clone()
        .filter_map(|block| block.get("content")?.as_array())
        .flatten();
    for marked in body
        .list("tools")?
        .unwrap_or_default()
        .iter()
        .chain(system.into_iter().flatten())
        .chain(blocks)
        .chain(results)
    {
        if let Some(mark) = marked.get("cache_control").filter(|mark| !mark.is_null()) {
            marks.push(ttl(&Member::object(mark, "cache_control")?)?);
        }
    }
    if let Some(mark) = body.child("cache_control")? {
        marks.push(ttl(&mark)?);
    }
    if marks.len() > MARKS_MAX {
        return Err(Refusal::invalid(format!(
            "A maximum of {MARKS_MAX} blocks with cache_control may be provided. Found {}.",
            marks.len()
        )));
    }
    Ok(marks.last().copied())
}

fn ttl(mark: &Member<'_>) -> Result<Ttl, Refusal> {
    mark.tag(&["ephemeral"])?;
    mark.refuse_unknown(&["type", "ttl"])?;
    Ok(match mark.one_of("ttl", &["5m", "1h"])? {
        Some("1h") => Ttl::OneHour,
        _ => Ttl::FiveMinutes,
    })
}
