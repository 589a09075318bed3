//! Reports members of the common form that Generate Content and Interactions do not have.

use crate::canon::{Dropped, Field, Member, MergedTurn, Part, Path, Request, is_usual_verbosity};
use crate::dialect::Dialect;
use crate::shared::signature;

/// Fields that neither dialect has, and whether the request uses each.
pub(crate) fn unsupported_fields(request: &Request) -> [(bool, Field); 7] {
    [
        (
            request.choices.is_some_and(|choices| choices > 1),
            Field::Choices,
        ),
        (
            request.parallel_tool_calls == Some(false),
            Field::ParallelToolCalls,
        ),
        (!is_usual_verbosity(request), Field::Verbosity),
        (request.user.is_some(), Field::User),
        (request.safety_identifier.is_some(), Field::SafetyIdentifier),
        (request.metadata.is_some(), Field::Metadata),
        (request.cache_key.is_some(), Field::CacheKey),
    ]
}

/// Reports the fields that the request uses as dropped.
pub(crate) fn drop_fields(fields: impl IntoIterator<Item = (bool, Field)>, dropped: &mut Dropped) {
    for (_, field) in fields.into_iter().filter(|(is_used, _)| *is_used) {
        dropped.field(field);
    }
}

/// Reports `strict` as dropped for every tool that sets it.
pub(crate) fn drop_strict(request: &Request, dropped: &mut Dropped) {
    for tool in &request.tools {
        if tool.strict == Some(true) {
            dropped.member(tool.path, Member::Strict);
        }
    }
}

/// Reports as dropped the members of parts that an upstream of `dialect` cannot receive. These are names of
/// documents, signatures of other models, and the members of tool results that `drop_from_result` reports.
pub(crate) fn drop_from_parts(
    turns: &[MergedTurn<'_>],
    dialect: Dialect,
    public_model: &str,
    dropped: &mut Dropped,
    drop_from_result: fn(Path, &Part, &mut Dropped),
) {
    for (path, part) in turns.iter().flat_map(|turn| &turn.parts) {
        match part {
            Part::Document(document) if document.name.is_some() => {
                dropped.member(*path, Member::DocumentName);
            }
            Part::ToolCall(call) => {
                let opaque = call.opaque.as_ref();
                let sent = signature::for_upstream(opaque, dialect, public_model);
                if opaque.is_some() && sent.is_none() {
                    dropped.signature(*path, call);
                }
            }
            Part::ToolResult(result) => {
                for (path, part) in &result.parts {
                    drop_from_result(*path, part, dropped);
                }
            }
            _ => {}
        }
    }
}
