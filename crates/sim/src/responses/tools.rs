//! Reads `tools` and `tool_choice`.

use crate::model::{Tool, ToolKind, ToolUse};
use crate::openai::{Member, Refusal, read_name, strict};
use serde_json::{Value, json};

const TOOLS_MAX: usize = 128;
/// The vendor's own tools, and `namespace`, which groups functions. The simulator accepts them, but no prompt makes it
/// call them; only scripts such as `searches=N` do.
const HOSTED: &[&str] = &[
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "namespace",
    "programmatic_tool_calling",
    "shell",
    "tool_search",
    "web_search",
    "web_search_preview",
];

#[derive(Debug)]
pub(super) struct ToolSettings {
    pub(super) tools: Vec<Tool>,
    pub(super) tool_use: ToolUse,
    /// The tools in the form in which the response repeats them.
    pub(super) shown: Vec<Value>,
}

pub(super) fn read(body: &Member<'_>) -> Result<ToolSettings, Refusal> {
    let list = body.list("tools")?.unwrap_or_default();
    if list.len() > TOOLS_MAX {
        return Err(Refusal::invalid(format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {TOOLS_MAX}, \
             but got an array with length {} instead.",
            list.len()
        ))
        .param("tools")
        .code("array_above_max_length"));
    }
    let mut tools = Vec::new();
    let mut shown = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let tool = Member::object(value, format!("tools[{index}]"))?;
        let mut value = value.clone();
        if let Some(read) = read_tool(&tool)? {
            if let (ToolKind::Function { schema }, Value::Object(members)) =
                (&read.kind, &mut value)
            {
                // By default, strict mode is on if the schema allows it.
                let strict = tool
                    .flag("strict")?
                    .unwrap_or_else(|| strict::check(schema).is_ok());
                members.insert("strict".to_owned(), Value::Bool(strict));
            }
            tools.push(read);
        }
        shown.push(value);
    }
    let tool_use = read_choice(body, &mut tools, &shown)?;
    Ok(ToolSettings {
        tools,
        tool_use,
        shown,
    })
}

fn read_tool(tool: &Member<'_>) -> Result<Option<Tool>, Refusal> {
    let allowed: Vec<_> = ["function", "custom"]
        .iter()
        .chain(HOSTED)
        .copied()
        .collect();
    tool.required("type")?;
    let kind = match tool.one_of("type", &allowed)? {
        Some("function") => ToolKind::Function {
            schema: read_schema(tool)?,
        },
        Some("custom") => ToolKind::Custom,
        _ => return Ok(None),
    };
    Ok(Some(Tool {
        name: read_name(tool)?,
        description: tool.text("description")?.unwrap_or_default().to_owned(),
        kind,
    }))
}

fn read_schema(tool: &Member<'_>) -> Result<Value, Refusal> {
    let name = tool.required_text("name")?;
    let schema = match tool.child("parameters")? {
        None => json!({"type": "object", "properties": {}}),
        Some(_) => tool.get("parameters").cloned().unwrap_or_default(),
    };
    let wrong = |why: String| {
        Refusal::invalid(format!("Invalid schema for function '{name}': {why}"))
            .param(tool.path("parameters"))
            .code("invalid_function_parameters")
    };
    if schema.get("type").is_some_and(|kind| kind != "object") {
        let found = schema.get("type").unwrap_or(&Value::Null);
        return Err(wrong(format!(
            "schema must be a JSON Schema of 'type: \"object\"', got 'type: {found}'."
        )));
    }
    if tool.flag("strict")? == Some(true) && tool.get("parameters").is_some() {
        strict::check(&schema).map_err(wrong)?;
    }
    Ok(schema)
}

fn read_choice(
    body: &Member<'_>,
    tools: &mut Vec<Tool>,
    shown: &[Value],
) -> Result<ToolUse, Refusal> {
    let Some(choice) = body.get("tool_choice") else {
        return Ok(ToolUse::Auto);
    };
    if choice.is_string() {
        let word = body.one_of("tool_choice", &["none", "auto", "required"])?;
        return match word {
            Some("none") => Ok(ToolUse::Never),
            Some("required") if shown.is_empty() => Err(Refusal::invalid(
                "Tool choice 'required' must be specified with 'tools' parameter.",
            )
            .param("tool_choice")),
            Some("required") => Ok(ToolUse::Required),
            _ => Ok(ToolUse::Auto),
        };
    }
    let choice = Member::object(choice, "tool_choice")?;
    match choice.required_text("type")? {
        "function" | "custom" => {
            let name = choice.required_text("name")?;
            chosen(name, tools).map(|()| ToolUse::Named(name.to_owned()))
        }
        "allowed_tools" => {
            let mode = choice.one_of("mode", &["auto", "required"])?;
            let mut names = Vec::new();
            for (index, tool) in choice.list("tools")?.unwrap_or_default().iter().enumerate() {
                let tool = Member::object(tool, choice.path(&format!("tools[{index}]")))?;
                let name = tool.required_text("name")?;
                chosen(name, tools)?;
                names.push(name);
            }
            tools.retain(|tool| names.contains(&tool.name.as_str()));
            Ok(if mode == Some("required") {
                ToolUse::Required
            } else {
                ToolUse::Auto
            })
        }
        hosted if HOSTED.contains(&hosted) => Ok(ToolUse::Auto),
        other => Err(Refusal::invalid(format!(
            "Invalid value: '{other}'. Supported values are: 'allowed_tools', 'function', 'mcp', \
             'custom' and hosted tool types."
        ))
        .param("tool_choice.type")
        .code("invalid_value")),
    }
}

fn chosen(name: &str, tools: &[Tool]) -> Result<(), Refusal> {
    if tools.iter().any(|tool| tool.name == name) {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "Tool choice 'function' not found in 'tools' parameter: '{name}'."
    ))
    .param("tool_choice"))
}
