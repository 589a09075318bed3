//! Reads `tools` and `tool_choice`.

use super::member::Member;
use super::refusal::Refusal;
use crate::model::{Tool, ToolKind, ToolUse};
use serde_json::Value;

const NAME_LENGTH_MAX: usize = 128;
const KNOWN: &[&str] = &[
    "allowed_callers",
    "cache_control",
    "defer_loading",
    "description",
    "eager_input_streaming",
    "input_examples",
    "input_schema",
    "name",
    "strict",
    "type",
];

#[derive(Debug)]
pub(super) struct ToolSettings {
    pub(super) tools: Vec<Tool>,
    pub(super) tool_use: ToolUse,
    pub(super) parallel: bool,
}

pub(super) fn read(body: &Member<'_>) -> Result<ToolSettings, Refusal> {
    let mut tools: Vec<Tool> = Vec::new();
    for (index, tool) in body.list("tools")?.unwrap_or_default().iter().enumerate() {
        let tool = read_tool(&Member::object(tool, format!("tools.{index}"))?)?;
        if tools.iter().any(|other| other.name == tool.name) {
            return Err(Refusal::at("tools", "Tool names must be unique."));
        }
        tools.push(tool);
    }
    let (tool_use, parallel) = read_choice(body, &tools)?;
    Ok(ToolSettings {
        tools,
        tool_use,
        parallel,
    })
}

fn read_tool(tool: &Member<'_>) -> Result<Tool, Refusal> {
    // The types of the vendor's own tools contain dates. The simulator supports none of these tools.
    if tool.text("type")?.is_some() {
        tool.tag(&["custom"])?;
    }
    tool.refuse_unknown(KNOWN)?;
    let name = tool.required_text("name")?;
    let legal = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    if name.is_empty() || name.len() > NAME_LENGTH_MAX || !name.chars().all(legal) {
        let why = format!("String should match pattern '^[a-zA-Z0-9_-]{{1,{NAME_LENGTH_MAX}}}$'");
        return Err(tool.wrong("custom.name", why));
    }
    tool.flag("strict")?;
    let schema = tool.required("input_schema")?;
    let kind = tool.required_child("input_schema")?;
    match kind.get("type") {
        None => Err(kind.wrong("type", "Field required")),
        Some(Value::String(kind)) if kind == "object" => Ok(()),
        Some(_) => Err(kind.wrong("type", "Input should be 'object'")),
    }?;
    Ok(Tool {
        name: name.to_owned(),
        description: tool.text("description")?.unwrap_or_default().to_owned(),
        kind: ToolKind::Function {
            schema: schema.clone(),
        },
    })
}

fn read_choice(body: &Member<'_>, tools: &[Tool]) -> Result<(ToolUse, bool), Refusal> {
    let Some(choice) = body.child("tool_choice")? else {
        return Ok((ToolUse::Auto, true));
    };
    if tools.is_empty() {
        return Err(Refusal::at(
            "tool_choice",
            "tool_choice may only be specified while providing tools",
        ));
    }
    let tag = choice.tag(&["any", "auto", "none", "tool"])?;
    choice.refuse_unknown(match tag {
        "tool" => &["type", "name", "disable_parallel_tool_use"],
        "none" => &["type"],
        _ => &["type", "disable_parallel_tool_use"],
    })?;
    let parallel = choice.flag("disable_parallel_tool_use")? != Some(true);
    let tool_use = match tag {
        "any" => ToolUse::Required,
        "none" => ToolUse::Never,
        "tool" => {
            let name = choice.required_text("name")?;
            if !tools.iter().any(|tool| tool.name == name) {
                return Err(Refusal::invalid(format!(
                    "Tool '{name}' not found in provided tools"
                )));
            }
            ToolUse::Named(name.to_owned())
        }
        _ => ToolUse::Auto,
    };
    Ok((tool_use, parallel))
}
