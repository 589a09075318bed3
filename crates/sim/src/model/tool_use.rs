//! Decides which tools the model calls, and with which arguments.

use super::output::{Call, ChunkedText};
use super::prompt::{Prompt, Tool, ToolKind, ToolUse, Turn};
use super::prompt_values::PromptValues;
use super::schema::{Optional, fill};

/// The maximum number of calls in one answer.
const CALLS_MAX: usize = 16;
/// Words in tool names that say nothing about the subject of the tool.
const NON_SUBJECT_WORDS: [&str; 18] = [
    "get", "set", "find", "search", "lookup", "fetch", "list", "create", "make", "tool",
    "function", "call", "with", "from", "current", "data", "the", "for",
];
/// Phrases by which a prompt asks for a tool without saying which one.
const TOOL_REQUEST_PHRASES: [&str; 4] = [
    "use the tool",
    "use a tool",
    "call the function",
    "call the tool",
];
/// Words with which a prompt asks for one call of a tool for each name or quotation.
const CALL_PER_NAME_WORDS: [&str; 3] = ["parallel", "both", "each"];

/// The calls that answer a prompt; empty if the answer is a text.
pub(super) fn decide(prompt: &Prompt) -> Vec<Call> {
    let (question, _) = prompt.question();
    let from_prompt = prompt
        .tools
        .iter()
        .fold(PromptValues::new(question), |from_prompt, tool| {
            from_prompt.without(&tool.name)
        });
    let made = calls_made(prompt);
    match &prompt.tool_use {
        ToolUse::Never => Vec::new(),
        ToolUse::Named(name) => {
            let named = prompt.tools.iter().find(|tool| tool.name == *name);
            named
                .map(|tool| call(tool, from_prompt))
                .into_iter()
                .collect()
        }
        ToolUse::Required => {
            let calls = wanted_calls(prompt, &from_prompt, 0);
            if calls.is_empty() {
                let first = prompt.tools.first();
                return first
                    .map(|tool| call(tool, from_prompt))
                    .into_iter()
                    .collect();
            }
            calls
        }
        ToolUse::Auto => wanted_calls(prompt, &from_prompt, made),
    }
}

/// The number of calls made since the user's last message.
fn calls_made(prompt: &Prompt) -> usize {
    prompt
        .since_question()
        .iter()
        .map(|turn| match turn {
            Turn::Assistant { calls, .. } => calls.len(),
            Turn::User { .. } | Turn::Result { .. } => 0,
        })
        .sum()
}

/// The calls that a question asks for next, after the first `made` calls. There may be several at once.
fn wanted_calls(prompt: &Prompt, from_prompt: &PromptValues<'_>, made: usize) -> Vec<Call> {
    let mut wanted: Vec<(&Tool, PromptValues<'_>)> = Vec::new();
    let tools = wanted_tools(&prompt.tools, from_prompt);
    let each = CALL_PER_NAME_WORDS
        .iter()
        .any(|word| from_prompt.mentions(word));
    match tools.as_slice() {
        [tool] if each => {
            for index in 0..from_prompt.phrases().len().max(1) {
                wanted.push((tool, from_prompt.starting_at(index)));
            }
        }
        tools => wanted.extend(tools.iter().map(|tool| (*tool, from_prompt.clone()))),
    }
    let one_by_one = !prompt.parallel || from_prompt.mentions("then");
    let count = if one_by_one { 1 } else { CALLS_MAX };
    wanted
        .into_iter()
        .skip(made)
        .take(count)
        .map(|(tool, from_prompt)| call(tool, from_prompt))
        .collect()
}

/// The tools that a question asks for, in the order in which it names them.
fn wanted_tools<'a>(tools: &'a [Tool], from_prompt: &PromptValues<'_>) -> Vec<&'a Tool> {
    let mut named: Vec<_> = tools
        .iter()
        .filter_map(|tool| Some((from_prompt.position(&tool.name)?, tool)))
        .collect();
    if named.is_empty() {
        named = tools
            .iter()
            .filter_map(|tool| Some((subject_position(&tool.name, from_prompt)?, tool)))
            .collect();
    }
    if named.is_empty()
        && TOOL_REQUEST_PHRASES
            .iter()
            .any(|words| from_prompt.mentions(words))
    {
        named.extend(tools.first().map(|tool| (0, tool)));
    }
    named.sort_by_key(|(at, _)| *at);
    named.into_iter().map(|(_, tool)| tool).collect()
}

/// The position at which a question mentions the subject of a tool, such as "weather" for `get_weather`.
fn subject_position(name: &str, from_prompt: &PromptValues<'_>) -> Option<usize> {
    name_words(name)
        .into_iter()
        .filter(|word| word.len() > 2 && !NON_SUBJECT_WORDS.contains(&word.as_str()))
        .filter_map(|word| from_prompt.position(&word))
        .min()
}

/// Splits a tool name into words, which are the same for `get_weather`, `get-weather` and `getWeather`.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for sign in name.chars() {
        if !sign.is_alphanumeric() || (sign.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        after_lower = sign.is_lowercase();
        if let (true, Some(word)) = (sign.is_alphanumeric(), words.last_mut()) {
            word.extend(sign.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn call(tool: &Tool, mut from_prompt: PromptValues<'_>) -> Call {
    let (arguments, custom) = match &tool.kind {
        ToolKind::Function { schema } => {
            let arguments = fill(schema, Optional::Named, &mut from_prompt);
            // Arguments are always an object, even if the schema allows anything.
            let arguments = if arguments.is_object() {
                arguments.to_string()
            } else {
                "{}".to_owned()
            };
            (arguments, false)
        }
        ToolKind::Custom => {
            let input = from_prompt
                .next_phrase()
                .unwrap_or_else(|| from_prompt.text());
            (input.to_owned(), true)
        }
    };
    Call {
        name: tool.name.clone(),
        arguments: ChunkedText::new(arguments),
        custom,
    }
}

#[cfg(test)]
mod tests {
    use super::super::prompt::PastCall;
    use super::*;
    use serde_json::json;

    fn tool(name: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            description: String::new(),
            kind: ToolKind::Function {
                schema: json!({"type": "object", "properties": {"city": {"type": "string"}},
                               "required": ["city"]}),
            },
        }
    }

    fn prompt(question: &str) -> Prompt {
        Prompt {
            turns: vec![Turn::User {
                text: question.to_owned(),
                media: vec![],
            }],
            tools: vec![tool("get_weather"), tool("get_time")],
            parallel: true,
            ..Prompt::default()
        }
    }

    fn shown(prompt: &Prompt) -> Vec<String> {
        decide(prompt)
            .iter()
            .map(|call| format!("{} {}", call.name, call.arguments.as_str()))
            .collect()
    }

    #[test]
    fn tools_are_called_where_the_prompt_asks_for_them() {
        let paris = r#"get_weather {"city":"Paris"}"#;
        let paris_time = r#"get_time {"city":"Paris"}"#;
        let bonn = r#"get_weather {"city":"Bonn"}"#;
        for (question, expected) in [
            ("What is the weather in Paris?", vec![paris]),
            ("Call get_weather for Paris", vec![paris]),
            (
                "What are the weather and the time in Paris?",
                vec![paris, paris_time],
            ),
            (
                "First the time in Paris, then the weather",
                vec![paris_time],
            ),
            ("The weather in both Paris and Bonn", vec![paris, bonn]),
            ("Use the tool for Paris", vec![paris]),
            ("Tell me a story", vec![]),
        ] {
            assert_eq!(shown(&prompt(question)), expected, "{question}");
        }
    }

    #[test]
    fn the_choice_of_the_caller_rules() {
        let mut asked = prompt("The weather and the time in Paris");
        asked.parallel = false;
        assert_eq!(shown(&asked).len(), 1);
        asked.tool_use = ToolUse::Never;
        assert_eq!(shown(&asked).len(), 0);
        asked.tool_use = ToolUse::Named("get_time".to_owned());
        assert_eq!(shown(&asked), [r#"get_time {"city":"Paris"}"#]);
        let mut silent = prompt("Tell me a story");
        silent.tool_use = ToolUse::Required;
        assert_eq!(shown(&silent).len(), 1);
    }

    #[test]
    fn one_round_follows_another_until_all_are_called() {
        let mut asked = prompt("First the weather, then the time in Paris");
        let mut rounds = Vec::new();
        while let Some(call) = decide(&asked).first() {
            rounds.push(call.name.clone());
            asked.turns.push(Turn::Assistant {
                text: String::new(),
                calls: vec![PastCall {
                    id: "c".to_owned(),
                    name: call.name.clone(),
                    arguments: call.arguments.as_str().to_owned(),
                }],
            });
            asked.turns.push(Turn::Result {
                call_id: "c".to_owned(),
                text: "ok".to_owned(),
                media: vec![],
                failed: false,
            });
        }
        assert_eq!(rounds, ["get_weather", "get_time"]);
    }

    #[test]
    fn the_name_of_a_tool_is_no_argument() {
        let mut asked = prompt("Use Weather for Paris");
        asked.tools = vec![tool("Weather")];
        assert_eq!(shown(&asked), [r#"Weather {"city":"Paris"}"#]);
    }

    #[test]
    fn names_have_words() {
        for (name, words) in [
            ("get_weather", vec!["get", "weather"]),
            ("getWeather2", vec!["get", "weather2"]),
            ("__", vec![]),
        ] {
            assert_eq!(name_words(name), words);
        }
    }
}
