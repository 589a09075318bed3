//! Counts calls of tools that the upstream ran, from output items and from the report next to the
//! usage.

use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::needle::Needle;
use crate::tool::{self, ENVIRONMENT, SHELL, Tool, ToolCalls, is_hosted_environment};

/// The evidence that an item is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::responses) enum Completion {
    /// The item's status, because events also show items that have only started.
    ByStatus,
    /// The item's place in a whole answer, unless the item's status contradicts the place.
    ByPosition,
}

/// Counts an item if it is a call of a built-in tool.
pub(in crate::responses) fn count_call(
    item: Raw<'_>,
    completion: Completion,
    tools: &mut ToolCalls,
) {
    // Most items are not calls and are long, so searching them is cheaper than parsing them.
    static CALL: Needle = Needle::new("_call\"");
    if item.shape() != Shape::Object || !CALL.is_in(item.text().as_bytes()) {
        return;
    }
    let mut tool = None;
    let (mut is_shell, mut is_hosted) = (false, false);
    let mut done = completion == Completion::ByPosition;
    let mut is_search = true;
    let read = Cursor::new(item.text()).object(|cursor, name| {
        let value = cursor.value()?;
        match &*name.decode_lossy() {
            "type" => {
                let word = value.string().map(|word| word.decode_lossy());
                let word = word.as_deref().and_then(|word| word.strip_suffix("_call"));
                tool = word.and_then(Tool::of);
                is_shell = word == Some(SHELL);
            }
            ENVIRONMENT => is_hosted = is_hosted_environment(value),
            "status" => {
                if let Some(status) = value.string() {
                    done = status.is("completed");
                }
            }
            // Opening a page that a search found costs nothing.
            "action" => is_search = is_search_action(value),
            _ => {}
        }
        Ok::<(), SyntaxError>(())
    });
    let tool = tool.or((is_shell && is_hosted).then_some(Tool::CodeExecution));
    if let (Ok(()), Some(tool)) = (read, tool)
        && done
        && (tool != Tool::WebSearch || is_search)
    {
        tools.add(tool, 1);
    }
}

/// Reads `tool_usage`: `{"web_search":{"num_requests":2}}`.
pub(in crate::responses) fn read_report(
    cursor: &mut Cursor<'_>,
    tools: &mut ToolCalls,
) -> Result<(), SyntaxError> {
    if cursor.shape()? != Shape::Object {
        return cursor.value().map(drop);
    }
    let mut reported = ToolCalls::default();
    cursor.object(|cursor, name| {
        let Some(tool) = Tool::of(&name.decode_lossy()) else {
            return cursor.value().map(drop);
        };
        if cursor.shape()? != Shape::Object {
            return cursor.value().map(drop);
        }
        cursor.object(|cursor, name| {
            let value = cursor.value()?;
            if name.is("num_requests") {
                reported.add(tool, tool::calls(value).unwrap_or(0));
            }
            Ok(())
        })
    })?;
    tools.raise(&reported);
    Ok(())
}

fn is_search_action(action: Raw<'_>) -> bool {
    if action.shape() != Shape::Object {
        return true;
    }
    let mut is_search = true;
    let read = Cursor::new(action.text()).object(|cursor, name| {
        let value = cursor.value()?;
        if name.is("type") {
            is_search = value.string().is_none_or(|kind| kind.is("search"));
        }
        Ok::<(), SyntaxError>(())
    });
    read.is_err() || is_search
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(item: &str, completion: Completion) -> Vec<(Tool, u32)> {
        let mut tools = ToolCalls::default();
        count_call(Cursor::new(item).value().unwrap(), completion, &mut tools);
        tools.iter().collect()
    }

    #[test]
    fn a_finished_call_of_a_built_in_tool_counts_once() {
        use Completion::{ByPosition, ByStatus};
        for (item, completion, tool) in [
            (
                r#"{"type":"web_search_call","status":"completed","action":{"type":"search"}}"#,
                ByStatus,
                Some(Tool::WebSearch),
            ),
            (
                r#"{"type":"web_search_call","status":"in_progress"}"#,
                ByStatus,
                None,
            ),
            (
                r#"{"type":"web_search_call","status":"completed","action":{"type":"open_page"}}"#,
                ByStatus,
                None,
            ),
            (r#"{"type":"web_search_call"}"#, ByStatus, None),
            (
                r#"{"type":"web_search_call"}"#,
                ByPosition,
                Some(Tool::WebSearch),
            ),
            (
                r#"{"type":"web_search_call","status":"failed"}"#,
                ByPosition,
                None,
            ),
            (
                r#"{"status":"completed","type":"code_interpreter_call","code":"1"}"#,
                ByStatus,
                Some(Tool::CodeExecution),
            ),
            (
                r#"{"type":"file_search_call","status":"completed","queries":["a"]}"#,
                ByPosition,
                Some(Tool::FileSearch),
            ),
            (
                r#"{"type":"shell_call","status":"completed","environment":{"type":"container_reference","container_id":"c"}}"#,
                ByStatus,
                Some(Tool::CodeExecution),
            ),
            (
                r#"{"type":"shell_call","status":"completed","environment":{"type":"local"}}"#,
                ByPosition,
                None,
            ),
            (
                r#"{"type":"shell_call","status":"completed","environment":null}"#,
                ByPosition,
                None,
            ),
            (
                r#"{"type":"function_call","status":"completed","name":"web_search"}"#,
                ByPosition,
                None,
            ),
            (
                r#"{"type":"message","content":[{"text":"a web_search_call\""}]}"#,
                ByPosition,
                None,
            ),
        ] {
            let expected: Vec<_> = tool.map(|tool| (tool, 1)).into_iter().collect();
            assert_eq!(noted(item, completion), expected, "{item}");
        }
    }
}
