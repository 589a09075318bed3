//! Reads the head of a Responses request: the members that the gateway needs, and those that it
//! refuses.

use super::request::foreign_thoughts;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::guard;
use crate::json::patch::{Edit, drop_inner_edits};
use crate::json::{Cursor, Members, Raw, Shape, Spelling, SyntaxError};
use crate::request_head::{Head, LongCache};
use crate::request_head::{PromptMembers, read_members};
use crate::tool::Tools;

const PROMPT_MEMBERS: PromptMembers = PromptMembers {
    conversation: "input",
    text: &["instructions", "tools", "text"],
};

/// Reads the head of a request. Members that the gateway reads must have the right type. The upstream checks
/// their ranges.
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
    guard::refuse_storing(&members, "store")?;
    guard::refuse_storing(&members, "background")?;
    guard::refuse_reference(&members, "previous_response_id")?;
    guard::refuse_reference(&members, "conversation")?;
    guard::refuse_reference(&members, "prompt")?;
    passing.refuse_stored(Dialect::Responses, &members)?;
    guard::routing(&members)?;
    guard::preset(&members)?;
    guard::service_tier(&members)?;
    let mut tools = Tools::by_type(&members)?;
    tools.extend(input(&members)?);
    tools.add_plugins(&members)?;

    let model_span = members.get("model")?.map(|value| value.span());
    let limit = members.integer("max_output_tokens")?;
    let mut edits = match members.get("input")? {
        Some(input) if input.shape() == Shape::Array => {
            foreign_thoughts::edits_for_upstream(input, &model)
        }
        _ => Vec::new(),
    };
    edits.extend(passing.remove_id_payloads());
    drop_inner_edits(&mut edits);
    edits.extend(guard::without_nulls(&members, body, &[]));
    edits.extend(set_store_false(&members)?);
    Ok(Head {
        stream: members.boolean("stream")?.unwrap_or(false),
        include_usage: true,
        output_tokens_max: guard::output_limit(limit),
        choices: 1,
        tools,
        sampling: Vec::new(),
        input: passing.input(tools),
        long_cache: LongCache::No,
        compacts: false,
        model_span: model_span.unwrap_or_default(),
        model: model.into_owned(),
        edits,
        usage_edit: None,
        stream_options: None,
    })
}

/// Sets `store` to false, because upstreams store answers by default (`docs/api/responses.md`).
fn set_store_false(members: &Members<'_>) -> Result<Option<Edit>, Failure> {
    Ok(match members.find("store")? {
        Some(value) if value.is_null() => Some(Edit::replace(value.span(), &b"false"[..])),
        Some(_) => None,
        None => Some(Edit::insert(members.inside(), &br#""store":false,"#[..])),
    })
}

/// Refuses a request without input, and input that refers to a stored object. Returns the built-in tools that its items
/// offer.
fn input(members: &Members<'_>) -> Result<Tools, Failure> {
    let wrong = |why: &'static str| Err(Failure::invalid(why).param("input"));
    let Some(input) = members.get("input")? else {
        return wrong("`input` is required.");
    };
    match input.shape() {
        Shape::String | Shape::Array if input.is_empty() => wrong("`input` must not be empty."),
        Shape::String => Ok(Tools::default()),
        Shape::Array => items(input),
        _ => wrong("`input` must be a string or an array."),
    }
}

/// Refuses references to stored items. The gateway stores none, and dropping the references would change the
/// conversation. Returns the tools that items of the types `additional_tools` and `tool_search_output` offer.
fn items(input: Raw<'_>) -> Result<Tools, Failure> {
    let mut index = 0_usize;
    let mut found = None;
    let mut tools = Tools::default();
    Cursor::new(input.text())
        .array(|cursor| {
            if is_reference(cursor, &mut tools)? {
                found.get_or_insert(index);
            }
            index += 1;
            Ok::<(), SyntaxError>(())
        })
        .map_err(|_| Failure::invalid("`input` could not be read.").param("input"))?;
    match found {
        Some(index) => Err(Failure::stateful_not_supported(
            "`item_reference` is not supported: the service keeps no items. Send the whole item; \
             with `store: false` and `include: [\"reasoning.encrypted_content\"]` clients do.",
        )
        .param(format!("input[{index}]"))),
        None => Ok(tools),
    }
}

/// Whether an item is a reference to a stored item. Adds the tools that the item offers.
fn is_reference(cursor: &mut Cursor<'_>, tools: &mut Tools) -> Result<bool, SyntaxError> {
    if cursor.shape()? != Shape::Object {
        cursor.value()?;
        return Ok(false);
    }
    let mut named = false;
    let mut typed = false;
    let mut has_id = false;
    cursor.object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("type") {
            named |= value.string().is_some_and(|text| text.is("item_reference"));
            typed |= !value.is_null();
        } else if name.is("role") || name.is("content") {
            typed = true;
        } else if name.is("id") {
            has_id |= !value.is_null();
        } else if name.is("tools") && value.shape() == Shape::Array {
            tools.extend(Tools::of_types(value));
        }
        Ok::<(), SyntaxError>(())
    })?;
    // The type is optional. An item that has only an id is a reference too.
    Ok(named || (has_id && !typed))
}
