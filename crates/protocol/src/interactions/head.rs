//! Reads the head of an Interactions request: the members that the gateway needs, and those that it
//! refuses.

use super::system_instruction;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::guard;
use crate::json::patch::Edit;
use crate::json::{Cursor, Members, Raw, Shape, Spelling, SyntaxError};
use crate::request_head::{Head, LongCache};
use crate::request_head::{PromptMembers, read_members};
use crate::tool::Tools;

const PROMPT_MEMBERS: PromptMembers = PromptMembers {
    conversation: "input",
    text: &["system_instruction", "tools", "response_format"],
};
/// Members that refer to a stored object.
const REFERENCES: [&str; 4] = [
    "previous_interaction_id",
    "agent",
    "environment",
    "webhook_config",
];

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
    has_input(&members)?;
    let config = match members.object("generation_config")? {
        Some(config) => Some(Members::nested(
            config,
            "generation_config.",
            Spelling::One,
        )?),
        None => None,
    };
    not_video(&members, config.as_ref())?;
    guard::refuse_storing(&members, "store")?;
    guard::refuse_storing(&members, "background")?;
    for name in REFERENCES {
        guard::refuse_reference(&members, name)?;
    }
    passing.refuse_stored(Dialect::Interactions, &members)?;
    guard::routing(&members)?;
    guard::service_tier(&members)?;

    let limit = match &config {
        Some(config) => config.integer("max_output_tokens")?,
        None => None,
    };
    let model_span = members.get("model")?.map(|value| value.span());
    let mut edits: Vec<Edit> = passing
        .unwrap_signatures(Dialect::Interactions, &model)
        .collect();
    edits.extend(passing.remove_id_payloads());
    edits.extend(guard::without_nulls(&members, body, &REFERENCES));
    edits.extend(system_instruction::write_as_string(&members)?);
    edits.extend(set_store_false(&members)?);
    let tools = Tools::by_type(&members)?;
    Ok(Head {
        stream: members.boolean("stream")?.unwrap_or(false),
        include_usage: true,
        output_tokens_max: guard::output_limit(limit),
        choices: 1,
        input: passing.input(tools),
        long_cache: LongCache::No,
        compacts: false,
        tools,
        sampling: Vec::new(),
        model_span: model_span.unwrap_or_default(),
        edits,
        usage_edit: None,
        stream_options: None,
        model: model.into_owned(),
    })
}

fn has_input(members: &Members<'_>) -> Result<(), Failure> {
    let input = members.get("input")?;
    let typed =
        |input: &Raw<'_>| matches!(input.shape(), Shape::String | Shape::Array | Shape::Object);
    if input.is_some_and(|input| typed(&input) && !input.is_empty()) {
        return Ok(());
    }
    let failure = Failure::invalid("`input` must be a text, an object or an array, not empty.");
    Err(failure.param("input"))
}

/// Refuses members that belong to video tasks of this endpoint.
fn not_video(members: &Members<'_>, config: Option<&Members<'_>>) -> Result<(), Failure> {
    let format = members.get("response_format")?;
    let configured = match config {
        Some(config) => config.get("video_config")?.is_some(),
        None => false,
    };
    if configured || format.is_some_and(asks_for_video) {
        return Err(Failure::model_not_supported(
            "This model does not make videos here.",
        ));
    }
    Ok(())
}

/// Whether a response format, or any format in a list, is video.
pub(crate) fn asks_for_video(format: Raw<'_>) -> bool {
    let mut video = false;
    let mut cursor = Cursor::new(format.text());
    // The caller has validated the JSON.
    let _ = match format.shape() {
        Shape::Array => cursor.array(|cursor| is_video(cursor, &mut video)),
        _ => is_video(&mut cursor, &mut video),
    };
    video
}

fn is_video(cursor: &mut Cursor<'_>, video: &mut bool) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(drop);
    }
    cursor.object(|cursor, name| {
        let value = cursor.value()?;
        *video |= name.is("type") && value.string().is_some_and(|text| text.is("video"));
        Ok(())
    })
}

/// Sets `store` to false, because upstreams store interactions by default.
fn set_store_false(members: &Members<'_>) -> Result<Option<Edit>, Failure> {
    Ok(match members.find("store")? {
        Some(store) if store.is_null() => Some(Edit::replace(store.span(), &b"false"[..])),
        Some(_) => None,
        None => Some(Edit::insert(members.inside(), &br#""store":false,"#[..])),
    })
}
