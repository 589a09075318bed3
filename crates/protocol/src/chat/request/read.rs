//! Reads a chat request into the common form.

use std::borrow::Cow;

use super::history::History;
use crate::canon::{Effort, Format, Json, Logprobs, Reasoning, Request, Tool, ToolChoice};
use crate::failure::Failure;
use crate::json::walk::{self, Misread};
use crate::json::{Cursor, Integer, Raw, Shape, utf8};

/// Paths of members that nobody reads; more than these are not told.
const UNKNOWN_MAX: usize = 1024;

/// Reads a request that [`native::read_head`](crate::native::read_head) has passed. `null` is absent, and
/// a member without content (`false`, `""`, `[]`, `{}`) says nothing that could be lost.
pub fn read_request(body: &[u8]) -> Result<Request, Failure> {
    let mut cursor = Cursor::new(utf8(body)?);
    let mut reader = Reader::default();
    walk::object(&mut cursor, "body", |cursor, name| {
        reader.member(cursor, name)
    })?;
    cursor.end()?;
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    request: Request,
    /// The older name of the output limit counts where the newer is absent.
    max_tokens: Option<u64>,
    logprobs: bool,
    top_logprobs: Option<u32>,
}

impl Reader {
    fn member(&mut self, cursor: &mut Cursor<'_>, name: &str) -> Result<(), Failure> {
        let request = &mut self.request;
        let sampling = &mut request.sampling;
        match name {
            "messages" => History::new(request).read(cursor)?,
            "stream" => request.stream = walk::boolean(cursor, name)?.unwrap_or(false),
            "stream_options" => request.include_usage = include_usage(cursor)?,
            "tools" => walk::array(cursor, name, |cursor, at| tool(cursor, at, request))?,
            "functions" => walk::array(cursor, name, |cursor, at| {
                let function = function(cursor, "functions", at, &mut request.unknown)?;
                request.tools.extend(function);
                Ok::<(), Failure>(())
            })?,
            "tool_choice" | "function_call" => choice(cursor, name, request)?,
            "parallel_tool_calls" => request.parallel_tool_calls = walk::boolean(cursor, name)?,
            "temperature" => sampling.temperature = walk::number(cursor, name)?,
            "top_p" => sampling.top_p = walk::number(cursor, name)?,
            "top_k" => sampling.top_k = count(cursor, name)?,
            "frequency_penalty" => sampling.frequency_penalty = walk::number(cursor, name)?,
            "presence_penalty" => sampling.presence_penalty = walk::number(cursor, name)?,
            "seed" => match walk::number(cursor, name)? {
                Some(seed) if seed.as_i64().is_none() => note(&mut request.unknown, name),
                seed => sampling.seed = seed.and_then(|seed| seed.as_i64()),
            },
            "stop" => match cursor.shape()? {
                Shape::String => request.stop.extend(text(cursor, name)?),
                _ => request.stop = walk::strings(cursor, name)?,
            },
            "max_completion_tokens" => request.output_tokens_max = count(cursor, name)?,
            "max_tokens" => self.max_tokens = count(cursor, name)?,
            "n" => request.choices = small(cursor, name)?,
            "logprobs" => self.logprobs = walk::boolean(cursor, name)?.unwrap_or(false),
            "top_logprobs" => self.top_logprobs = small(cursor, name)?,
            "response_format" => format(cursor, request)?,
            "reasoning_effort" => effort(cursor, request)?,
            "verbosity" => request.verbosity = text(cursor, name)?,
            "user" => request.user = text(cursor, name)?,
            "safety_identifier" => request.safety_identifier = text(cursor, name)?,
            "metadata" => request.metadata = walk::json(cursor, name)?.filter(has_members),
            "prompt_cache_key" => request.cache_key = text(cursor, name)?,
            "modalities" => {
                let modalities = walk::strings(cursor, name)?;
                if modalities.iter().any(|modality| modality != "text") {
                    note(&mut request.unknown, name);
                }
            }
            // The head has judged them: what passes asks for nothing.
            "model" | "store" | "deferred" | "service_tier" => drop(cursor.value()?),
            _ => unread(cursor.value()?, &mut request.unknown, || name.to_owned()),
        }
        Ok(())
    }

    fn finish(self) -> Request {
        let mut request = self.request;
        request.output_tokens_max = request.output_tokens_max.or(self.max_tokens);
        let top = self.top_logprobs.filter(|top| *top > 0);
        if self.logprobs {
            request.logprobs = Some(Logprobs { top });
        } else if top.is_some() {
            note(&mut request.unknown, "top_logprobs");
        }
        request
    }
}

/// Notes a member that has no meaning in the common form.
pub(super) fn note(unknown: &mut Vec<String>, name: impl Into<String>) {
    if unknown.len() < UNKNOWN_MAX {
        unknown.push(name.into());
    }
}

/// Notes a member that nobody reads, if it says anything.
pub(super) fn unread(value: Raw<'_>, unknown: &mut Vec<String>, name: impl FnOnce() -> String) {
    let says_nothing = value.is_null() || value.is_empty() || value.boolean() == Some(false);
    if !says_nothing && unknown.len() < UNKNOWN_MAX {
        unknown.push(name());
    }
}

pub(super) fn text(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<String>, Misread> {
    Ok(walk::string(cursor, name)?.map(Cow::into_owned))
}

fn count(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<u64>, Failure> {
    match walk::integer(cursor, name)? {
        Some(Integer::Negative) => {
            let failure = Failure::invalid(format!("`{name}` must not be negative."));
            Err(failure.param(name.to_owned()))
        }
        number => Ok(number.map(Integer::saturating)),
    }
}

fn small(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<u32>, Failure> {
    let number = count(cursor, name)?;
    Ok(number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
}

fn has_members(json: &Json) -> bool {
    json.get().contains(':')
}

fn include_usage(cursor: &mut Cursor<'_>) -> Result<bool, Failure> {
    let mut include = false;
    walk::object(cursor, "stream_options", |cursor, name| {
        if name == "include_usage" {
            include = walk::boolean(cursor, "stream_options.include_usage")?.unwrap_or(false);
        } else {
            cursor.value()?;
        }
        Ok::<(), Failure>(())
    })?;
    Ok(include)
}

fn tool(cursor: &mut Cursor<'_>, at: usize, request: &mut Request) -> Result<(), Failure> {
    let mut kind = None;
    let mut declared = None;
    let mut others = Vec::new();
    walk::object(cursor, "tools[]", |cursor, name| {
        match name {
            "type" => kind = walk::string(cursor, "tools[].type")?,
            "function" => declared = function(cursor, "tools", at, &mut others)?,
            _ => unread(cursor.value()?, &mut others, || {
                format!("tools[{at}].{name}")
            }),
        }
        Ok::<(), Failure>(())
    })?;
    match (kind.as_deref().unwrap_or("function"), declared) {
        ("function", Some(function)) => {
            request.tools.push(function);
            for name in others {
                note(&mut request.unknown, name);
            }
        }
        ("function", None) => {
            let param = format!("tools[{at}].function");
            return Err(Failure::invalid(format!("`{param}` is required.")).param(param));
        }
        (kind, _) => note(&mut request.unknown, format!("tools.{kind}")),
    }
    Ok(())
}

fn function(
    cursor: &mut Cursor<'_>,
    list: &str,
    at: usize,
    unknown: &mut Vec<String>,
) -> Result<Option<Tool>, Failure> {
    if walk::null(cursor)? {
        return Ok(None);
    }
    let mut name = None;
    let mut tool = Tool {
        name: String::new(),
        description: None,
        parameters: None,
        strict: None,
    };
    walk::object(cursor, "tools[].function", |cursor, member| {
        match member {
            "name" => name = text(cursor, "tools[].function.name")?,
            "description" => tool.description = text(cursor, "tools[].function.description")?,
            "parameters" => tool.parameters = walk::json(cursor, "tools[].function.parameters")?,
            "strict" => tool.strict = walk::boolean(cursor, "tools[].function.strict")?,
            _ => unread(cursor.value()?, unknown, || {
                format!("{list}[{at}].{member}")
            }),
        }
        Ok::<(), Failure>(())
    })?;
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        let failure = Failure::invalid("A function tool needs a `name`.");
        return Err(failure.param(format!("{list}[{at}]")));
    };
    tool.name = name;
    Ok(Some(tool))
}

/// Reads `tool_choice`, or `function_call` in its place.
fn choice(cursor: &mut Cursor<'_>, member: &str, request: &mut Request) -> Result<(), Failure> {
    let choice = if cursor.shape()? == Shape::String {
        match cursor.string()?.decode_lossy().as_ref() {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "required" | "any" => Some(ToolChoice::Required),
            _ => None,
        }
    } else if walk::null(cursor)? {
        return Ok(());
    } else {
        chosen(cursor, member)?
    };
    match choice {
        Some(choice) => request.tool_choice = Some(choice),
        None => note(&mut request.unknown, member),
    }
    Ok(())
}

fn chosen(cursor: &mut Cursor<'_>, member: &str) -> Result<Option<ToolChoice>, Failure> {
    let mut named = None;
    let mut allowed = None;
    walk::object(cursor, member, |cursor, name| {
        match name {
            // The older form has the name at its top.
            "name" => named = text(cursor, "function_call.name")?,
            "function" => named = function_name(cursor)?,
            "allowed_tools" => allowed = Some(allowed_tools(cursor)?),
            _ => drop(cursor.value()?),
        }
        Ok::<(), Failure>(())
    })?;
    Ok(named.map(ToolChoice::Named).or(allowed))
}

fn function_name(cursor: &mut Cursor<'_>) -> Result<Option<String>, Failure> {
    let mut named = None;
    walk::object(cursor, "tool_choice.function", |cursor, name| {
        match name {
            "name" => named = text(cursor, "tool_choice.function.name")?,
            _ => drop(cursor.value()?),
        }
        Ok::<(), Failure>(())
    })?;
    Ok(named)
}

fn allowed_tools(cursor: &mut Cursor<'_>) -> Result<ToolChoice, Failure> {
    let mut names = Vec::new();
    let mut required = false;
    walk::object(cursor, "tool_choice.allowed_tools", |cursor, name| {
        match name {
            "mode" => {
                let mode = walk::string(cursor, "tool_choice.allowed_tools.mode")?;
                required = mode.as_deref() == Some("required");
            }
            "tools" => walk::array(cursor, "tool_choice.allowed_tools.tools", |cursor, _| {
                walk::object(
                    cursor,
                    "tool_choice.allowed_tools.tools[]",
                    |cursor, name| {
                        match name {
                            "function" => names.extend(function_name(cursor)?),
                            _ => drop(cursor.value()?),
                        }
                        Ok::<(), Failure>(())
                    },
                )
            })?,
            _ => drop(cursor.value()?),
        }
        Ok::<(), Failure>(())
    })?;
    Ok(ToolChoice::Allowed { names, required })
}

fn format(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    let mut kind = None;
    let mut schema = None;
    walk::object(cursor, "response_format", |cursor, name| {
        match name {
            "type" => kind = walk::string(cursor, "response_format.type")?,
            "json_schema" => schema = json_schema(cursor)?,
            _ => drop(cursor.value()?),
        }
        Ok::<(), Failure>(())
    })?;
    match kind.as_deref() {
        None | Some("text") => {}
        Some("json_object") => request.format = Some(Format::Json),
        Some("json_schema") => request.format = schema.or(Some(Format::Json)),
        Some(_) => note(&mut request.unknown, "response_format"),
    }
    Ok(())
}

fn json_schema(cursor: &mut Cursor<'_>) -> Result<Option<Format>, Failure> {
    let [mut title, mut description] = [None, None];
    let mut found = None;
    let mut strict = None;
    walk::object(cursor, "response_format.json_schema", |cursor, name| {
        match name {
            "name" => title = text(cursor, "response_format.json_schema.name")?,
            "description" => {
                description = text(cursor, "response_format.json_schema.description")?;
            }
            "schema" => found = walk::json(cursor, "response_format.json_schema.schema")?,
            "strict" => strict = walk::boolean(cursor, "response_format.json_schema.strict")?,
            _ => drop(cursor.value()?),
        }
        Ok::<(), Failure>(())
    })?;
    Ok(found.map(|schema| Format::Schema {
        name: title,
        description,
        schema,
        strict,
    }))
}

fn effort(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    let Some(word) = walk::string(cursor, "reasoning_effort")? else {
        return Ok(());
    };
    match Effort::parse(&word) {
        Some(effort) => {
            request.reasoning = Some(Reasoning {
                effort: Some(effort),
                ..Reasoning::default()
            });
        }
        None => note(&mut request.unknown, "reasoning_effort"),
    }
    Ok(())
}
