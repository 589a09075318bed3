//! Reads the head of a Generate Content request: the members that the gateway needs, and those that
//! it refuses.

use super::pictures::{SMALLEST, is_smallest};
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::guard;
use crate::json::patch::Edit;
use crate::json::{Integer, Members, Spelling};
use crate::request_head::{Head, LongCache};
use crate::request_head::{PromptMembers, read_members};
use crate::tool::Tools;

const PROMPT_MEMBERS: PromptMembers = PromptMembers {
    conversation: "contents",
    text: &["system_instruction", "tools", "generation_config"],
};

/// Members of `generationConfig` by which the vendor chooses another model than the one in the path.
const ROUTING: [(&str, &str); 3] = [
    ("routing_config", "generationConfig.routingConfig"),
    ("model_config", "generationConfig.modelConfig"),
    (
        "model_selection_config",
        "generationConfig.modelSelectionConfig",
    ),
];

/// Reads the head of a request. The path names the model and says whether the answer is streamed.
/// Members that the gateway reads must have the right type. The upstream checks their ranges.
pub(crate) fn read_head(body: &[u8], model: &str, stream: bool) -> Result<Head, Failure> {
    guard::model_id(model)?;
    if body.trim_ascii().is_empty() {
        return Err(Failure::invalid(
            "The body is empty; it must be a JSON object.",
        ));
    }
    let (members, passing) = read_members(body, Spelling::SnakeOrCamel, &PROMPT_MEMBERS)?;
    let contents = members.array("contents")?;
    if contents.is_none_or(|contents| contents.is_empty()) {
        let failure = Failure::invalid("`contents` must be an array with at least one item.");
        return Err(failure.param("contents"));
    }
    guard::routing(&members)?;
    guard::service_tier(&members)?;
    guard::refuse_reference(&members, "generation_output_config")?;
    passing.refuse_stored(Dialect::Generate, &members)?;

    let mut edits: Vec<Edit> = passing
        .unwrap_signatures(Dialect::Generate, model)
        .collect();
    same_model(&members, model, &mut edits)?;
    edits.extend(guard::without_nulls(&members, body, &[]));
    let mut output_tokens_max = None;
    let mut choices = 1;
    if let Some(config) = members.object("generation_config")? {
        let config = Members::nested(config, "generationConfig.", Spelling::SnakeOrCamel)?;
        for (name, path) in ROUTING {
            if config.get(name)?.is_some() {
                return Err(Failure::routing_not_supported(path));
            }
        }
        output_tokens_max = guard::output_limit(config.integer("max_output_tokens")?);
        choices = config
            .integer("candidate_count")?
            .map_or(1, Integer::saturating);
        image_size(&config, &mut edits)?;
    }
    let tools = Tools::by_name(&members)?;
    Ok(Head {
        model: model.to_owned(),
        stream,
        include_usage: true,
        output_tokens_max,
        choices: u32::try_from(choices).unwrap_or(u32::MAX).max(1),
        input: passing.input(tools),
        long_cache: LongCache::No,
        compacts: false,
        tools,
        sampling: Vec::new(),
        model_span: 0..0,
        edits,
        usage_edit: None,
        stream_options: None,
    })
}

/// Checks that a model named in the body is the model in the path. Replaces the name in the body with
/// `null`, so that the upstream does not see the public name.
fn same_model(members: &Members<'_>, model: &str, edits: &mut Vec<Edit>) -> Result<(), Failure> {
    let Some(named) = members.string("model")? else {
        return Ok(());
    };
    if named.strip_prefix("models/").unwrap_or(&named) != model {
        let message = "`model` in the body is not the model in the path.";
        return Err(Failure::invalid(message).param("model"));
    }
    let span = members.get("model")?.map(|value| value.span());
    edits.extend(span.map(|span| Edit::replace(span, &b"null"[..])));
    Ok(())
}

/// Replaces the alias of the smallest image size with its name.
fn image_size(config: &Members<'_>, edits: &mut Vec<Edit>) -> Result<(), Failure> {
    let Some(image) = config.object("image_config")? else {
        return Ok(());
    };
    let path = "generationConfig.imageConfig.";
    let image = Members::nested(image, path, Spelling::SnakeOrCamel)?;
    let size = image.get("image_size")?.filter(is_smallest);
    let name = format!("\"{SMALLEST}\"").into_bytes();
    edits.extend(size.map(|size| Edit::replace(size.span(), name)));
    Ok(())
}
