//! Reads `tools` and `toolConfig`.

use crate::google::{Field, Refusal, check_name, to_json_schema};
use crate::model::{Tool, ToolKind, ToolUse};
use serde_json::{Value, json};

const TOOL: &[&str] = &[
    "code_execution",
    "computer_use",
    "enterprise_web_search",
    "exa_ai_search",
    "file_search",
    "function_declarations",
    "google_maps",
    "google_search",
    "google_search_retrieval",
    "mcp_servers",
    "parallel_ai_search",
    "retrieval",
    "url_context",
];
const DECLARATION: &[&str] = &[
    "behavior",
    "description",
    "name",
    "parameters",
    "parameters_json_schema",
    "response",
    "response_json_schema",
];
const TOOL_CONFIG: &[&str] = &[
    "function_calling_config",
    "include_server_side_tool_invocations",
    "retrieval_config",
];
const CALLING: &[&str] = &[
    "allowed_function_names",
    "mode",
    "stream_function_call_arguments",
];
const MODES: &[&str] = &["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"];

pub(super) fn read(body: &Field<'_>) -> Result<(Vec<Tool>, ToolUse), Refusal> {
    let mut tools = Vec::new();
    for tool in body.children("tools", TOOL)? {
        for declaration in tool.children("function_declarations", DECLARATION)? {
            let declared = declared(&declaration)?;
            if tools.iter().any(|tool: &Tool| tool.name == declared.name) {
                return Err(Refusal::invalid(format!(
                    "Duplicate function declaration found: {}",
                    declared.name
                ))
                .field(&declaration.path("name")));
            }
            tools.push(declared);
        }
    }
    let tool_use = choice(body, &mut tools)?;
    Ok((tools, tool_use))
}

fn declared(declaration: &Field<'_>) -> Result<Tool, Refusal> {
    let name = declaration.required_text("name")?;
    check_name(name, &declaration.path("name"))?;
    let own = declaration.get("parameters");
    let json_schema = declaration.get("parameters_json_schema");
    if own.is_some() && json_schema.is_some() {
        return Err(Refusal::invalid(
            "parameters and parameters_json_schema are mutually exclusive.",
        )
        .field(&declaration.path("parameters")));
    }
    if let Some(response) = declaration.get("response") {
        to_json_schema(response, &declaration.path("response"))?;
    }
    let schema = match (own, json_schema) {
        (Some(own), _) => to_json_schema(own, &declaration.path("parameters"))?,
        (None, Some(schema @ Value::Object(_))) => schema.clone(),
        (None, Some(_)) => {
            let path = declaration.path("parameters_json_schema");
            return Err(Refusal::invalid(format!("{path} must be an object.")).field(&path));
        }
        (None, None) => json!({"type": "object"}),
    };
    let description = declaration.text("description")?.unwrap_or_default();
    Ok(Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        kind: ToolKind::Function { schema },
    })
}

/// Reads the calling mode, and removes functions that are not allowed.
fn choice(body: &Field<'_>, tools: &mut Vec<Tool>) -> Result<ToolUse, Refusal> {
    let calling = match body.child("tool_config", TOOL_CONFIG)? {
        Some(config) => config.child("function_calling_config", CALLING)?,
        None => None,
    };
    let Some(calling) = calling else {
        return Ok(ToolUse::Auto);
    };
    let mode = calling.word("mode", MODES)?.unwrap_or("AUTO");
    let allowed = calling.texts("allowed_function_names")?;
    if !allowed.is_empty() {
        let path = calling.path("allowed_function_names");
        if !["ANY", "VALIDATED"].contains(&mode) {
            return Err(Refusal::invalid(
                "Allowed function names should be set only when function calling mode is ANY.",
            )
            .field(&path));
        }
        if let Some(name) = allowed
            .iter()
            .find(|name| !tools.iter().any(|tool| tool.name == **name))
        {
            return Err(Refusal::invalid(format!(
                "allowed_function_names contains a function that is not declared: {name}"
            ))
            .field(&path));
        }
        tools.retain(|tool| allowed.contains(&tool.name.as_str()));
    }
    match mode {
        "ANY" if tools.is_empty() => Err(Refusal::invalid(
            "Function calling config is set without function_declarations.",
        )
        .field(&calling.path("mode"))),
        "ANY" => Ok(ToolUse::Required),
        "NONE" => Ok(ToolUse::Never),
        _ => Ok(ToolUse::Auto),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::google::Spelling;

    fn read_body(body: &Value) -> Result<(Vec<Tool>, ToolUse), Refusal> {
        read(&Field::object(body, "", Spelling::Both, &["tools", "tool_config"]).unwrap())
    }

    #[test]
    fn wrong_tools_are_refused() {
        let declare =
            |declaration: Value| json!({"tools": [{"functionDeclarations": [declaration]}]});
        for (body, part) in [
            (declare(json!({})), "tools[0].function_declarations[0].name"),
            (declare(json!({"name": "a b"})), "Invalid function name"),
            (
                declare(json!({"name": "f", "parameters": {"type": "OBJECT", "$schema": 1}})),
                "Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters'",
            ),
            (
                declare(json!({"name": "f", "parameters": {}, "parametersJsonSchema": {}})),
                "mutually exclusive",
            ),
            (
                declare(json!({"name": "f", "strict": true})),
                "Unknown name \"strict\"",
            ),
            (
                json!({"tools": [{"functionDeclarations": [{"name": "f"}, {"name": "f"}]}]}),
                "Duplicate function declaration",
            ),
            (
                json!({"tools": [{"type": "function"}]}),
                "Unknown name \"type\"",
            ),
            (
                json!({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
                "without function_declarations",
            ),
            (
                json!({"toolConfig": {"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}}}),
                "only when function calling mode is ANY",
            ),
            (
                json!({"toolConfig": {"functionCallingConfig": {"mode": "required"}}}),
                "TYPE_ENUM",
            ),
        ] {
            let refusal = read_body(&body).unwrap_err();
            assert!(refusal.message.contains(part), "{}", refusal.message);
        }
    }

    #[test]
    fn modes_are_read_in_any_spelling() {
        let tools = json!([{"function_declarations": [{"name": "f"}]},
            {"functionDeclarations": [{"name": "g", "parameters_json_schema": {"type": "object"}}]},
            {"googleSearch": {}}]);
        for (config, expected, count) in [
            (Value::Null, ToolUse::Auto, 2),
            (json!({"mode": "any"}), ToolUse::Required, 2),
            (
                json!({"mode": "ANY", "allowed_function_names": ["g"]}),
                ToolUse::Required,
                1,
            ),
            (
                json!({"mode": "VALIDATED", "allowedFunctionNames": ["g"]}),
                ToolUse::Auto,
                1,
            ),
            (json!({"mode": "NONE"}), ToolUse::Never, 2),
        ] {
            let body = json!({"tools": tools, "toolConfig": {"function_calling_config": config}});
            let (tools, tool_use) = read_body(&body).unwrap();
            assert_eq!((tool_use, tools.len()), (expected, count), "{config}");
        }
    }
}
