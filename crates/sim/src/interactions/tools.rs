//! Reads `tools` and `generation_config.tool_choice`.

use super::parameters::CONFIG;
use crate::google::{Field, Refusal, Spelling, check_name};
use crate::model::{Tool, ToolKind, ToolUse};
use serde_json::{Value, json};

const FUNCTION: &[&str] = &["description", "name", "parameters", "type"];
/// Tools that the vendor runs. The simulator accepts them, but never calls them.
const SERVER_TOOLS: &[&str] = &[
    "code_execution",
    "computer_use",
    "file_search",
    "google_maps",
    "google_search",
    "mcp_server",
    "retrieval",
    "url_context",
];
const MODES: &[&str] = &["auto", "any", "none", "validated"];

pub(super) fn read(body: &Field<'_>) -> Result<(Vec<Tool>, ToolUse), Refusal> {
    let mut tools = declarations(body)?;
    let tool_use = choice(body, &mut tools)?.unwrap_or_default();
    Ok((tools, tool_use))
}

fn declarations(body: &Field<'_>) -> Result<Vec<Tool>, Refusal> {
    let mut tools = Vec::new();
    let list = body.list("tools")?.unwrap_or_default();
    for (index, tool) in list.iter().enumerate() {
        let path = format!("tools[{index}]");
        match tool.get("type").and_then(Value::as_str) {
            Some("function") => {
                let function = Field::object(tool, path, Spelling::Snake, FUNCTION)?;
                tools.push(declared(&function)?);
            }
            Some(kind) if SERVER_TOOLS.contains(&kind) => {}
            kind => {
                return Err(Refusal::invalid(format!(
                    "Invalid value for '{path}.type': {}.",
                    kind.unwrap_or("missing")
                )));
            }
        }
    }
    Ok(tools)
}

fn declared(function: &Field<'_>) -> Result<Tool, Refusal> {
    let name = function.required_text("name")?;
    check_name(name, &function.path("name"))?;
    let schema = match function.get("parameters") {
        None => json!({"type": "object"}),
        Some(schema @ Value::Object(_)) => schema.clone(),
        Some(_) => {
            let path = function.path("parameters");
            return Err(Refusal::invalid(format!("'{path}' must be an object.")));
        }
    };
    Ok(Tool {
        name: name.to_owned(),
        description: function.text("description")?.unwrap_or_default().to_owned(),
        kind: ToolKind::Function { schema },
    })
}

/// Reads the tool choice, and removes functions that are not allowed.
fn choice(body: &Field<'_>, tools: &mut Vec<Tool>) -> Result<Option<ToolUse>, Refusal> {
    let Some(config) = body.child("generation_config", CONFIG)? else {
        return Ok(None);
    };
    if let Some(Value::String(_)) = config.get("tool_choice") {
        let mode = config.word("tool_choice", MODES)?;
        return mode_of(mode, tools).map(Some);
    }
    let Some(choice) = config.child("tool_choice", &["allowed_tools"])? else {
        return Ok(None);
    };
    let Some(allowed) = choice.child("allowed_tools", &["mode", "tools"])? else {
        return Ok(None);
    };
    let names = allowed.texts("tools")?;
    if let Some(name) = names
        .iter()
        .find(|name| !tools.iter().any(|tool| tool.name == **name))
    {
        return Err(Refusal::invalid(format!(
            "'{}' names a tool that is not declared: {name}.",
            allowed.path("tools")
        )));
    }
    tools.retain(|tool| names.contains(&tool.name.as_str()));
    mode_of(allowed.word("mode", MODES)?, tools).map(Some)
}

fn mode_of(mode: Option<&str>, tools: &[Tool]) -> Result<ToolUse, Refusal> {
    match mode {
        Some("any") if tools.is_empty() => Err(Refusal::invalid(
            "tool_choice is 'any', but there are no function tools.",
        )),
        Some("any") => Ok(ToolUse::Required),
        Some("none") => Ok(ToolUse::Never),
        _ => Ok(ToolUse::Auto),
    }
}
