//! Reads the head of a chat request: the members that the gateway needs, and those that it refuses.

use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::guard;
use crate::json::patch::Edit;
use crate::json::{Integer, Members, Spelling};
use crate::native::Head;
use crate::native::request_strings::{ReadByModel, read_members};
use crate::tool::{Tool, Tools};

const READ_BY_MODEL: ReadByModel = ReadByModel {
    conversation: "messages",
    text: &["tools", "functions", "response_format", "prediction"],
};

/// Reads the head of a request. Members that the gateway reads must have the right type. Ranges are
/// left to the upstream.
pub(crate) fn read_head(body: &[u8]) -> Result<Head, Failure> {
    if body.trim_ascii().is_empty() {
        return Err(Failure::invalid(
            "The body is empty; it must be a JSON object.",
        ));
    }
    let (members, passing) = read_members(body, Spelling::One, &READ_BY_MODEL)?;
    let Some(model) = members.string("model")? else {
        return Err(Failure::invalid("`model` is required.").param("model"));
    };
    guard::model_id(&model)?;
    let messages = members.array("messages")?;
    if messages.is_none_or(|messages| messages.is_empty()) {
        let failure = Failure::invalid("`messages` must be an array with at least one message.");
        return Err(failure.param("messages"));
    }
    guard::not_kept(&members, "deferred")?;
    guard::not_kept(&members, "store")?;
    passing.refuse_stored(Dialect::Chat, &members)?;
    guard::routing(&members)?;
    guard::service_tier(&members)?;

    let stream = members.boolean("stream")?.unwrap_or(false);
    let mut edits: Vec<Edit> = passing.unwrap_signatures(Dialect::Chat, &model).collect();
    edits.extend(passing.unload_ids());
    edits.extend(guard::without_nulls(&members, body, &["deferred"]));
    let mut include_usage = false;
    if stream {
        include_usage = ask_for_usage(&members, &mut edits)?;
    }
    let model_span = members.get("model")?.map(|value| value.span());
    let tools = tools(&members)?;
    Ok(Head {
        stream,
        include_usage,
        output_tokens_max: output_tokens_max(&members)?,
        choices: choices(&members)?,
        input: passing.input(tools),
        long_cache: false,
        tools,
        sampling: Vec::new(),
        model_span: model_span.unwrap_or_default(),
        model: model.into_owned(),
        edits,
    })
}

/// Makes the upstream report usage, because billing needs it. Returns whether the client asked for
/// it too (`docs/api/chat-completions.md`).
fn ask_for_usage(members: &Members<'_>, edits: &mut Vec<Edit>) -> Result<bool, Failure> {
    const NAME: &str = "stream_options";
    let Some(options) = members.object(NAME)? else {
        edits.push(match members.find(NAME)? {
            Some(null) => Edit::replace(null.span(), &br#"{"include_usage":true}"#[..]),
            None => Edit::insert(
                members.inside(),
                &br#""stream_options":{"include_usage":true},"#[..],
            ),
        });
        return Ok(false);
    };
    let options = Members::nested(options, "stream_options.", Spelling::One)?;
    let asked = options.boolean("include_usage")?.unwrap_or(false);
    if !asked {
        edits.push(match options.find("include_usage")? {
            Some(value) => Edit::replace(value.span(), &b"true"[..]),
            None if options.is_empty() => {
                Edit::insert(options.inside(), &br#""include_usage":true"#[..])
            }
            None => Edit::insert(options.inside(), &br#""include_usage":true,"#[..]),
        });
    }
    Ok(asked)
}

/// The larger of the two limits, because upstreams differ in which of them they obey.
fn output_tokens_max(members: &Members<'_>) -> Result<Option<u64>, Failure> {
    let mut largest = None;
    for name in ["max_completion_tokens", "max_tokens"] {
        largest = largest.max(guard::output_limit(members.integer(name)?));
    }
    Ok(largest)
}

/// Reads the built-in tools. Some vendors list them in `tools`, others have a member for the only
/// one they offer.
fn tools(members: &Members<'_>) -> Result<Tools, Failure> {
    let mut tools = Tools::by_type(members.get("tools")?);
    for name in ["web_search_options", "search_parameters"] {
        if members.get(name)?.is_some() {
            tools.add(Tool::WebSearch);
        }
    }
    Ok(tools)
}

fn choices(members: &Members<'_>) -> Result<u32, Failure> {
    let asked = members.integer("n")?.map_or(1, Integer::saturating);
    Ok(u32::try_from(asked).unwrap_or(u32::MAX).max(1))
}
