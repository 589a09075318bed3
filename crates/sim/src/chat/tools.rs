//! Reads `tools`, `tool_choice`, `response_format` and their deprecated forms.

use crate::model::{TextFormat, Tool, ToolKind, ToolUse};
use crate::openai::{Member, Refusal, read_name, strict};
use serde_json::{Value, json};

const TOOLS_MAX: usize = 128;

#[derive(Debug)]
pub(super) struct ToolSettings {
    pub(super) tools: Vec<Tool>,
    pub(super) tool_use: ToolUse,
    pub(super) legacy: bool,
}

pub(super) fn read(body: &Member<'_>) -> Result<ToolSettings, Refusal> {
    if let Some(functions) = body.list("functions")? {
        return read_legacy(body, functions);
    }
    let mut tools = Vec::new();
    for (index, tool) in body.list("tools")?.unwrap_or_default().iter().enumerate() {
        tools.push(read_tool(&Member::object(
            tool,
            format!("tools[{index}]"),
        )?)?);
    }
    if tools.len() > TOOLS_MAX {
        return Err(Refusal::invalid(format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {TOOLS_MAX}, \
             but got an array with length {} instead.",
            tools.len()
        ))
        .param("tools")
        .code("array_above_max_length"));
    }
    if tools.is_empty() {
        for name in ["tool_choice", "parallel_tool_calls"] {
            // Without tools, only the choice `none` is allowed.
            if body.get(name).is_some_and(|value| value != "none") {
                return Err(Refusal::invalid(format!(
                    "'{name}' is only allowed when 'tools' are specified."
                ))
                .param(name));
            }
        }
    }
    let tool_use = read_choice(body, &mut tools)?;
    Ok(ToolSettings {
        tools,
        tool_use,
        legacy: false,
    })
}

fn read_tool(tool: &Member<'_>) -> Result<Tool, Refusal> {
    tool.required("type")?;
    if tool.one_of("type", &["function", "custom"])? == Some("custom") {
        let custom = tool.required_child("custom")?;
        return Ok(Tool {
            name: read_name(&custom)?,
            description: custom.text("description")?.unwrap_or_default().to_owned(),
            kind: ToolKind::Custom,
        });
    }
    read_function(&tool.required_child("function")?)
}

fn read_function(function: &Member<'_>) -> Result<Tool, Refusal> {
    let name = read_name(function)?;
    let schema = match function.child("parameters")? {
        None => json!({"type": "object", "properties": {}}),
        Some(_) => function.get("parameters").cloned().unwrap_or_default(),
    };
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err(Refusal::invalid(format!(
            "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \
             \"object\"', got 'type: {}'.",
            schema.get("type").unwrap_or(&Value::Null)
        ))
        .param(function.path("parameters"))
        .code("invalid_function_parameters"));
    }
    if function.flag("strict")? == Some(true) {
        strict::check(&schema).map_err(|why| {
            Refusal::invalid(format!("Invalid schema for function '{name}': {why}"))
                .param(function.path("parameters"))
                .code("invalid_function_parameters")
        })?;
    }
    Ok(Tool {
        name,
        description: function.text("description")?.unwrap_or_default().to_owned(),
        kind: ToolKind::Function { schema },
    })
}

fn read_choice(body: &Member<'_>, tools: &mut Vec<Tool>) -> Result<ToolUse, Refusal> {
    let Some(choice) = body.get("tool_choice") else {
        return Ok(ToolUse::Auto);
    };
    if choice.is_string() {
        return Ok(
            match body.one_of("tool_choice", &["none", "auto", "required"])? {
                Some("none") => ToolUse::Never,
                Some("required") => ToolUse::Required,
                _ => ToolUse::Auto,
            },
        );
    }
    let choice = Member::object(choice, "tool_choice")?;
    choice.required("type")?;
    match choice.one_of("type", &["function", "custom", "allowed_tools"])? {
        Some("allowed_tools") => {
            let allowed = choice.required_child("allowed_tools")?;
            let mode = allowed.one_of("mode", &["auto", "required"])?;
            let mut names = Vec::new();
            for (index, tool) in allowed
                .list("tools")?
                .unwrap_or_default()
                .iter()
                .enumerate()
            {
                let tool = Member::object(tool, allowed.path(&format!("tools[{index}]")))?;
                names.push(chosen_name(&tool, tools)?);
            }
            tools.retain(|tool| names.contains(&tool.name));
            Ok(match mode {
                Some("required") => ToolUse::Required,
                _ => ToolUse::Auto,
            })
        }
        _ => chosen_name(&choice, tools).map(ToolUse::Named),
    }
}

/// The name in `{"type": "function", "function": {"name"}}`.
fn chosen_name(choice: &Member<'_>, tools: &[Tool]) -> Result<String, Refusal> {
    let kind = choice
        .one_of("type", &["function", "custom"])?
        .unwrap_or("function");
    let name = choice.required_child(kind)?.required_text("name")?;
    if tools.iter().any(|tool| tool.name == name) {
        return Ok(name.to_owned());
    }
    Err(Refusal::invalid(format!(
        "Tool choice '{name}' not found in 'tools' parameter."
    ))
    .param("tool_choice"))
}

/// Reads `functions` and `function_call`, the deprecated form of tools.
fn read_legacy(body: &Member<'_>, functions: &[Value]) -> Result<ToolSettings, Refusal> {
    let mut tools = Vec::new();
    for (index, function) in functions.iter().enumerate() {
        let function = Member::object(function, format!("functions[{index}]"))?;
        tools.push(read_function(&function)?);
    }
    let tool_use = match body.get("function_call") {
        Some(Value::String(word)) if word == "none" => ToolUse::Never,
        None | Some(Value::String(_)) => ToolUse::Auto,
        Some(choice) => {
            let choice = Member::object(choice, "function_call")?;
            ToolUse::Named(choice.required_text("name")?.to_owned())
        }
    };
    Ok(ToolSettings {
        tools,
        tool_use,
        legacy: true,
    })
}

pub(super) fn read_format(body: &Member<'_>) -> Result<TextFormat, Refusal> {
    let Some(format) = body.child("response_format")? else {
        return Ok(TextFormat::Text);
    };
    format.required("type")?;
    match format.one_of("type", &["text", "json_object", "json_schema"])? {
        Some("json_object") => Ok(TextFormat::Json),
        Some("json_schema") => {
            let named = format.required_child("json_schema")?;
            let name = read_name(&named)?;
            let schema = named
                .get("schema")
                .cloned()
                .unwrap_or_else(|| json!({"type": "object"}));
            if named.flag("strict")? == Some(true) {
                strict::check(&schema).map_err(|why| {
                    Refusal::invalid(format!(
                        "Invalid schema for response_format '{name}': {why}"
                    ))
                    .param("response_format")
                })?;
            }
            Ok(TextFormat::Schema(schema))
        }
        _ => Ok(TextFormat::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str) -> Value {
        json!({"type": "function", "function": {"name": name}})
    }

    fn read_body(body: &Value) -> Result<ToolSettings, Refusal> {
        read(&Member::object(body, "").unwrap())
    }

    #[test]
    fn wrong_tools_are_refused() {
        for (body, param) in [
            (
                json!({"tools": [{"function": {"name": "f"}}]}),
                "tools[0].type",
            ),
            (json!({"tools": [{"type": "magic"}]}), "tools[0].type"),
            (
                json!({"tools": [{"type": "function"}]}),
                "tools[0].function",
            ),
            (
                json!({"tools": [function("a b")]}),
                "tools[0].function.name",
            ),
            (
                json!({"tools": [function(&"x".repeat(65))]}),
                "tools[0].function.name",
            ),
            (
                json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}]}),
                "tools[0].function.parameters",
            ),
            (
                json!({"tools": [{"type": "function", "function": {"name": "f", "strict": true, "parameters": {"type": "object", "properties": {}}}}]}),
                "tools[0].function.parameters",
            ),
            (json!({"tool_choice": "auto"}), "tool_choice"),
            (json!({"parallel_tool_calls": true}), "parallel_tool_calls"),
            (
                json!({"tools": [function("f")], "tool_choice": "always"}),
                "tool_choice",
            ),
            (
                json!({"tools": [function("f")], "tool_choice": function("g")}),
                "tool_choice",
            ),
            (json!({"tools": vec![function("f"); 129]}), "tools"),
        ] {
            let refusal = read_body(&body).unwrap_err();
            assert_eq!(refusal.param.as_deref(), Some(param), "{body}");
        }
    }

    #[test]
    fn choices_are_read() {
        let tools =
            json!([function("f"), function("g"), {"type": "custom", "custom": {"name": "c"}}]);
        let allowed = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [function("g")]}});
        for (choice, expected, count) in [
            (Value::Null, ToolUse::Auto, 3),
            (json!("none"), ToolUse::Never, 3),
            (json!("required"), ToolUse::Required, 3),
            (function("g"), ToolUse::Named("g".to_owned()), 3),
            (
                json!({"type": "custom", "custom": {"name": "c"}}),
                ToolUse::Named("c".to_owned()),
                3,
            ),
            (allowed, ToolUse::Required, 1),
        ] {
            let read = read_body(&json!({"tools": tools, "tool_choice": choice})).unwrap();
            assert_eq!(
                (read.tool_use, read.tools.len()),
                (expected, count),
                "{choice}"
            );
        }
        let legacy =
            read_body(&json!({"functions": [{"name": "f"}], "function_call": {"name": "f"}}))
                .unwrap();
        assert!(legacy.legacy);
        assert_eq!(legacy.tool_use, ToolUse::Named("f".to_owned()));
    }

    #[test]
    fn formats_are_read() {
        let read = |format: Value| {
            let body = json!({"response_format": format});
            read_format(&Member::object(&body, "").unwrap())
        };
        assert_eq!(read(Value::Null), Ok(TextFormat::Text));
        assert_eq!(read(json!({"type": "json_object"})), Ok(TextFormat::Json));
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false, "required": []});
        assert_eq!(
            read(
                json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": schema}})
            ),
            Ok(TextFormat::Schema(schema))
        );
        for format in [
            json!({}),
            json!({"type": "xml"}),
            json!({"type": "json_schema"}),
            json!({"type": "json_schema", "json_schema": {"schema": {}}}),
            json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"type": "object", "properties": {"a": {}}}}}),
        ] {
            assert!(read(format.clone()).is_err(), "{format}");
        }
    }
}
