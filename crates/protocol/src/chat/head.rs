//! Reads the head of a chat request: the members that the gateway needs, and those that it refuses.

use bytes::Bytes;

use crate::canon::Dropped;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::guard;
use crate::json::patch::{self, Edit};
use crate::json::{Cursor, Integer, Members, Shape, Spelling, Text};
use crate::request_head::{Head, LongCache};
use crate::request_head::{PromptMembers, read_members};
use crate::tool::{Tool, Tools};

const PROMPT_MEMBERS: PromptMembers = PromptMembers {
    conversation: "messages",
    text: &["tools", "functions", "response_format", "prediction"],
};

const STREAM_OPTIONS: &str = "stream_options";

/// Reads the head of a request. Members that the gateway reads must have the right type. The
/// upstream checks their ranges.
pub(crate) fn read_head(body: &[u8]) -> Result<Head, Failure> {
    if body.trim_ascii().is_empty() {
        return Err(Failure::invalid(
            "The body is empty; it must be a JSON object.",
        ));
    }
    let (members, passing) = read_members(body, Spelling::One, &PROMPT_MEMBERS)?;
    let Some(model) = members.string("model")? else {
        return Err(Failure::invalid("`model` is required.").param("model"));
    };
    guard::model_id(&model)?;
    let messages = members.array("messages")?;
    if messages.is_none_or(|messages| messages.is_empty()) {
        let failure = Failure::invalid("`messages` must be an array with at least one message.");
        return Err(failure.param("messages"));
    }
    guard::refuse_storing(&members, "deferred")?;
    guard::refuse_storing(&members, "store")?;
    passing.refuse_stored(Dialect::Chat, &members)?;
    guard::routing(&members)?;
    guard::preset(&members)?;
    guard::service_tier(&members)?;

    let stream = members.boolean("stream")?.unwrap_or(false);
    let mut edits: Vec<Edit> = passing.unwrap_signatures(Dialect::Chat, &model).collect();
    edits.extend(passing.remove_id_payloads());
    edits.extend(guard::without_nulls(&members, body, &["deferred"]));
    let mut include_usage = false;
    if stream {
        include_usage = ask_for_usage(&members, &mut edits)?;
    }
    // If `include_usage` is false, the last edit is the one that `ask_for_usage` added.
    let usage_edit = (stream && !include_usage).then(|| edits.len() - 1);
    let model_span = members.get("model")?.map(|value| value.span());
    let tools = tools(&members)?;
    Ok(Head {
        stream,
        include_usage,
        output_tokens_max: output_tokens_max(&members)?,
        choices: choices(&members)?,
        input: passing.input(tools),
        long_cache: passing.long_cache(LongCache::CountedTogether),
        compacts: false,
        tools,
        sampling: Vec::new(),
        model_span: model_span.unwrap_or_default(),
        model: model.into_owned(),
        edits,
        usage_edit,
        stream_options: members.find(STREAM_OPTIONS)?.map(|value| value.span()),
    })
}

/// Makes the upstream report usage, because billing needs it. Returns whether the client also asked for usage
/// (`docs/api/chat-completions.md`).
fn ask_for_usage(members: &Members<'_>, edits: &mut Vec<Edit>) -> Result<bool, Failure> {
    let Some(options) = members.object(STREAM_OPTIONS)? else {
        edits.push(match members.find(STREAM_OPTIONS)? {
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

/// Cuts the client's own `stream_options` out of a request, for an upstream that refuses them. Reports their members to
/// `dropped`, except `include_usage`, because the gateway writes the usage chunk itself, and `include_obfuscation`,
/// which only pads events.
pub(crate) fn cut_stream_options(body: &Bytes, dropped: &mut Dropped) -> Result<Bytes, Failure> {
    let text = std::str::from_utf8(body).map_err(|_| Failure::invalid("The body is not UTF-8."))?;
    Cursor::new(text).object(|cursor, name| {
        if !name.is(STREAM_OPTIONS) || cursor.shape()? != Shape::Object {
            return cursor.value().map(drop);
        }
        cursor.object(|cursor, name| {
            if !name.is("include_usage") && !name.is("include_obfuscation") {
                dropped.name(&format!("{STREAM_OPTIONS}.{}", name.decode_lossy()));
            }
            cursor.value().map(drop)
        })
    })?;
    let mut edits = Vec::new();
    let is_cut = |name: Text<'_>| name.is(STREAM_OPTIONS);
    patch::cut_members(&mut Cursor::new(text), &[], is_cut, &mut edits)?;
    Ok(patch::apply(body, edits))
}

/// The larger of the two limits, because upstreams differ in which limit they obey.
fn output_tokens_max(members: &Members<'_>) -> Result<Option<u64>, Failure> {
    let mut largest = None;
    for name in ["max_completion_tokens", "max_tokens"] {
        largest = largest.max(guard::output_limit(members.integer(name)?));
    }
    Ok(largest)
}

/// Reads the built-in tools. Some vendors list them in `tools`, others have one member for their only tool.
fn tools(members: &Members<'_>) -> Result<Tools, Failure> {
    let mut tools = Tools::by_type(members)?;
    for name in ["web_search_options", "search_parameters"] {
        if members.get(name)?.is_some() {
            tools.add(Tool::WebSearch);
        }
    }
    if members
        .get("enable_search")?
        .is_some_and(|value| value.boolean() != Some(false))
    {
        tools.add(Tool::WebSearch);
    }
    if members.get("compound_custom")?.is_some() {
        tools.add_unknown();
    }
    tools.add_plugins(members)?;
    Ok(tools)
}

fn choices(members: &Members<'_>) -> Result<u32, Failure> {
    let asked = members.integer("n")?.map_or(1, Integer::saturating);
    Ok(u32::try_from(asked).unwrap_or(u32::MAX).max(1))
}
