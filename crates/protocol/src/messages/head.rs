//! Reads the head of a Messages request: the members that the gateway needs, and those that it
//! refuses.

use super::request::foreign_thoughts::remove_thoughts;
use crate::dialect::Dialect;
use crate::failure::{Detail, Failure};
use crate::guard;
use crate::json::patch::drop_inner_edits;
use crate::json::{Cursor, Integer, Members, Raw, Shape, Spelling, SyntaxError};
use crate::request_head::{Head, LongCache};
use crate::request_head::{PromptMembers, read_members};
use crate::tool::{Tool, Tools};

const PROMPT_MEMBERS: PromptMembers = PromptMembers {
    conversation: "messages",
    text: &["system", "tools", "output_config"],
};

/// The tool runner of the official client libraries keeps its history in a thread at the vendor. If
/// the thread is refused with this detail, the tool runner sends the whole history instead.
const THREAD: Detail = Detail {
    error_code: "thread_unsupported_request",
    unsupported: &["thread"],
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MaxTokensRule {
    Required,
    Optional,
}

/// Reads the head of a request. Members that the gateway reads must have the right type. The upstream checks
/// their ranges.
pub(crate) fn read_head(body: &[u8]) -> Result<Head, Failure> {
    read(body, MaxTokensRule::Required)
}

/// Reads the head of a token counting request, which does not require `max_tokens`.
pub(crate) fn read_counted_head(body: &[u8]) -> Result<Head, Failure> {
    read(body, MaxTokensRule::Optional)
}

fn read(body: &[u8], limit: MaxTokensRule) -> Result<Head, Failure> {
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
    let Some(messages) = messages.filter(|messages| !messages.is_empty()) else {
        let failure = Failure::invalid("`messages` must be an array with at least one message.");
        return Err(failure.param("messages"));
    };
    let output_tokens_max = output_tokens_max(&members, limit)?;
    no_thread(&members)?;
    passing.refuse_stored(Dialect::Messages, &members)?;
    guard::routing(&members)?;
    guard::preset(&members)?;
    guard::service_tier(&members)?;
    guard::tier(&members, "speed")?;
    no_region(&members)?;

    let model_span = members.get("model")?.map(|value| value.span());
    let mut edits = remove_thoughts(messages, members.get("thinking")?);
    edits.extend(passing.remove_id_payloads());
    drop_inner_edits(&mut edits);
    edits.extend(guard::without_nulls(&members, body, &["thread"]));
    let tools = tools(&members)?;
    Ok(Head {
        stream: members.boolean("stream")?.unwrap_or(false),
        include_usage: true,
        output_tokens_max,
        choices: 1,
        input: passing.input(tools),
        long_cache: passing.long_cache(LongCache::CountedApart),
        compacts: members.get("context_management")?.is_some(),
        tools,
        sampling: sampling(&members)?,
        model_span: model_span.unwrap_or_default(),
        model: model.into_owned(),
        edits,
        usage_edit: None,
        stream_options: None,
    })
}

fn output_tokens_max(members: &Members<'_>, limit: MaxTokensRule) -> Result<Option<u64>, Failure> {
    const NAME: &str = "max_tokens";
    match members.integer(NAME)? {
        None if limit == MaxTokensRule::Optional => Ok(None),
        None => Err(Failure::invalid("`max_tokens` is required.").param(NAME)),
        Some(Integer::Negative) => {
            Err(Failure::invalid("`max_tokens` must not be negative.").param(NAME))
        }
        limit => Ok(guard::output_limit(limit)),
    }
}

/// Refuses a thread, which is state at the vendor. A request with a thread holds only the newest messages.
fn no_thread(members: &Members<'_>) -> Result<(), Failure> {
    guard::refuse_reference(members, "thread").map_err(|failure| failure.detail(&THREAD))
}

/// Refuses a client's choice of the region in which the model runs, except `global`. The vendor charges more
/// for some regions, and the route decides where a call runs.
fn no_region(members: &Members<'_>) -> Result<(), Failure> {
    const NAME: &str = "inference_geo";
    match members.get(NAME)? {
        Some(region) if !region.string().is_some_and(|it| it.is("global")) => {
            Err(Failure::routing_not_supported(NAME))
        }
        _ => Ok(()),
    }
}

/// The sampling members that some models refuse (`docs/api/messages.md`).
fn sampling(members: &Members<'_>) -> Result<Vec<&'static str>, Failure> {
    let mut set = Vec::new();
    for name in ["temperature", "top_p", "top_k"] {
        let Some(value) = members.get(name)? else {
            continue;
        };
        if value.shape() != Shape::Number {
            let message = format!("`{name}` must be a number.");
            return Err(Failure::invalid(message).param(name));
        }
        // `top_k` has no default value, so every value counts.
        if name == "top_k" || !is_one(value) {
            set.push(name);
        }
    }
    Ok(set)
}

fn tools(members: &Members<'_>) -> Result<Tools, Failure> {
    if let Some(list) = members.array("tools")? {
        no_advisor(list)?;
    }
    let mut tools = Tools::by_type(members)?;
    if members
        .get("mcp_servers")?
        .is_some_and(|servers| !servers.is_empty())
    {
        tools.add(Tool::Mcp);
    }
    tools.add_plugins(members)?;
    Ok(tools)
}

/// Refuses tools by which the upstream asks another model. The request names that model by the vendor's name.
/// So the catalog and the key's list of models do not apply to it, and its tokens have no price here.
fn no_advisor(list: Raw<'_>) -> Result<(), Failure> {
    let mut is_offered = false;
    // The list has been validated.
    let _ = Cursor::new(list.text()).array(|cursor| {
        if cursor.shape()? != Shape::Object {
            return cursor.value().map(drop);
        }
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            let kind = value.string().filter(|_| name.is("type"));
            let is_advisor = kind.is_some_and(|it| it.decode_lossy().starts_with("advisor"));
            is_offered |= is_advisor || name.is("model") && !value.is_null();
            Ok::<(), SyntaxError>(())
        })
    });
    if !is_offered {
        return Ok(());
    }
    let message = "A tool must not name a model: only `model` chooses one.";
    Err(Failure::unsupported_parameter("tools", message))
}

fn is_one(value: Raw<'_>) -> bool {
    value.integer() == Some(Integer::Value(1))
}
