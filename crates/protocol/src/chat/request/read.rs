//! Reads a chat request into the common form.

use super::read_turns::History;
use crate::canon::{
    Effort, Format, Logprobs, Path, Reasoning, Request, Tool, ToolChoice, note_unknown,
    note_unless_empty,
};
use crate::failure::Failure;
use crate::json::typed;
use crate::json::{Cursor, Shape, utf8};
use crate::shared::request_member::{count, has_members, text};

/// Reads a request that [`native::read_head`](crate::native::read_head) has accepted. `null` means
/// absent. Empty members (`false`, `""`, `[]`, `{}`) are not reported as dropped.
pub fn read_request(body: &[u8]) -> Result<Request, Failure> {
    let mut cursor = Cursor::new(utf8(body)?);
    let mut reader = Reader::default();
    typed::object(&mut cursor, "body", |cursor, name| {
        reader.member(cursor, name)
    })?;
    cursor.end()?;
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    request: Request,
    /// The older name of the output limit, used if the newer one is absent.
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
            "stream" => request.stream = typed::boolean(cursor, name)?.unwrap_or(false),
            "stream_options" => stream_options(cursor, request)?,
            "tools" => typed::array(cursor, name, |cursor, at| tool(cursor, at, request))?,
            "functions" => typed::array(cursor, name, |cursor, at| {
                let path = Path::item("functions", at);
                let function = function(cursor, path, "", &mut request.unknown)?;
                request.tools.extend(function);
                Ok::<(), Failure>(())
            })?,
            "tool_choice" | "function_call" => choice(cursor, name, request)?,
            "parallel_tool_calls" => request.parallel_tool_calls = typed::boolean(cursor, name)?,
            "temperature" => sampling.temperature = typed::number(cursor, name)?,
            "top_p" => sampling.top_p = typed::number(cursor, name)?,
            "top_k" => sampling.top_k = count(cursor, name)?,
            "frequency_penalty" => sampling.frequency_penalty = typed::number(cursor, name)?,
            "presence_penalty" => sampling.presence_penalty = typed::number(cursor, name)?,
            "seed" => match typed::number(cursor, name)? {
                Some(seed) if seed.as_i64().is_none() => note_unknown(&mut request.unknown, name),
                seed => sampling.seed = seed.and_then(|seed| seed.as_i64()),
            },
            "stop" => match cursor.shape()? {
                Shape::String => request.stop.extend(text(cursor, name)?),
                _ => request.stop = typed::strings(cursor, name)?,
            },
            "max_completion_tokens" => request.output_tokens_max = count(cursor, name)?,
            "max_tokens" => self.max_tokens = count(cursor, name)?,
            "n" => request.choices = small(cursor, name)?,
            "logprobs" => self.logprobs = typed::boolean(cursor, name)?.unwrap_or(false),
            "top_logprobs" => self.top_logprobs = small(cursor, name)?,
            "response_format" => format(cursor, request)?,
            "reasoning_effort" => effort(cursor, request)?,
            "verbosity" => request.verbosity = text(cursor, name)?,
            "user" => request.user = text(cursor, name)?,
            "safety_identifier" => request.safety_identifier = text(cursor, name)?,
            "metadata" => request.metadata = typed::json(cursor, name)?.filter(has_members),
            "prompt_cache_key" => request.cache_key = text(cursor, name)?,
            "modalities" => {
                let modalities = typed::strings(cursor, name)?;
                if modalities.iter().any(|modality| modality != "text") {
                    note_unknown(&mut request.unknown, name);
                }
            }
            // The head has checked these members. It accepts only values that need no conversion.
            "model" | "store" | "deferred" | "service_tier" => drop(cursor.value()?),
            _ => note_unless_empty(cursor.value()?, &mut request.unknown, || name.to_owned()),
        }
        Ok(())
    }

    fn finish(self) -> Request {
        let mut request = self.request;
        match (request.output_tokens_max, self.max_tokens) {
            (None, limit) => request.output_tokens_max = limit,
            (Some(newer), Some(older)) if newer != older => {
                note_unknown(&mut request.unknown, "max_tokens");
            }
            _ => {}
        }
        let top = self.top_logprobs.filter(|top| *top > 0);
        if self.logprobs {
            let is_implied = false;
            request.logprobs = Some(Logprobs { top, is_implied });
        } else if top.is_some() {
            note_unknown(&mut request.unknown, "top_logprobs");
        }
        request
    }
}

fn small(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<u32>, Failure> {
    let number = count(cursor, name)?;
    Ok(number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
}

fn stream_options(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    typed::object(cursor, "stream_options", |cursor, name| {
        match name {
            "include_usage" => {
                let include = typed::boolean(cursor, "stream_options.include_usage")?;
                request.include_usage = include.unwrap_or(false);
            }
            // Controls the padding of the upstream's events, which does not survive conversion.
            "include_obfuscation" => drop(cursor.value()?),
            _ => note_unless_empty(cursor.value()?, &mut request.unknown, || {
                format!("stream_options.{name}")
            }),
        }
        Ok::<(), Failure>(())
    })
}

fn tool(cursor: &mut Cursor<'_>, at: usize, request: &mut Request) -> Result<(), Failure> {
    let path = Path::item("tools", at);
    let mut kind = None;
    let mut declared = None;
    let mut others = Vec::new();
    typed::object(cursor, "tools[]", |cursor, name| {
        match name {
            "type" => kind = typed::string(cursor, "tools[].type")?,
            "function" => declared = function(cursor, path, ".function", &mut others)?,
            _ => note_unless_empty(cursor.value()?, &mut others, || format!("{path}.{name}")),
        }
        Ok::<(), Failure>(())
    })?;
    match (kind.as_deref().unwrap_or("function"), declared) {
        ("function", Some(function)) => {
            request.tools.push(function);
            for name in others {
                note_unknown(&mut request.unknown, name);
            }
        }
        ("function", None) => {
            let param = format!("tools[{at}].function");
            return Err(Failure::invalid(format!("`{param}` is required.")).param(param));
        }
        (kind, _) => note_unknown(&mut request.unknown, format!("tools.{kind}")),
    }
    Ok(())
}

/// Reads a function declaration from the member `inside` of the tool at `path`.
fn function(
    cursor: &mut Cursor<'_>,
    path: Path,
    inside: &str,
    unknown: &mut Vec<String>,
) -> Result<Option<Tool>, Failure> {
    if typed::null(cursor)? {
        return Ok(None);
    }
    let mut name = None;
    let mut tool = Tool {
        path,
        name: String::new(),
        description: None,
        parameters: None,
        strict: None,
    };
    typed::object(cursor, "tools[].function", |cursor, member| {
        match member {
            "name" => name = text(cursor, "tools[].function.name")?,
            "description" => tool.description = text(cursor, "tools[].function.description")?,
            "parameters" => tool.parameters = typed::json(cursor, "tools[].function.parameters")?,
            "strict" => tool.strict = typed::boolean(cursor, "tools[].function.strict")?,
            _ => note_unless_empty(cursor.value()?, unknown, || {
                format!("{path}{inside}.{member}")
            }),
        }
        Ok::<(), Failure>(())
    })?;
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        let failure = Failure::invalid("A function tool needs a `name`.");
        return Err(failure.param(path.to_string()));
    };
    tool.name = name;
    Ok(Some(tool))
}

/// Reads `tool_choice` or the older `function_call`.
fn choice(cursor: &mut Cursor<'_>, member: &str, request: &mut Request) -> Result<(), Failure> {
    let choice = if cursor.shape()? == Shape::String {
        match cursor.string()?.decode_lossy().as_ref() {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "required" | "any" => Some(ToolChoice::Required),
            _ => None,
        }
    } else if typed::null(cursor)? {
        return Ok(());
    } else {
        chosen(cursor, member, &mut request.unknown)?
    };
    match choice {
        Some(choice) => request.tool_choice = Some(choice),
        None => note_unknown(&mut request.unknown, member),
    }
    Ok(())
}

fn chosen(
    cursor: &mut Cursor<'_>,
    member: &str,
    unknown: &mut Vec<String>,
) -> Result<Option<ToolChoice>, Failure> {
    let mut named = None;
    let mut allowed = None;
    let mut others = Vec::new();
    typed::object(cursor, member, |cursor, name| {
        match name {
            // In the older form the name is a direct member.
            "name" => named = text(cursor, "function_call.name")?,
            "function" => named = function_name(cursor, "tool_choice.function", &mut others)?,
            "allowed_tools" => allowed = Some(allowed_tools(cursor, &mut others)?),
            "type" => drop(cursor.value()?),
            _ => note_unless_empty(cursor.value()?, &mut others, || format!("{member}.{name}")),
        }
        Ok::<(), Failure>(())
    })?;
    let choice = named.map(ToolChoice::Named).or(allowed);
    // If the whole choice is dropped, it is reported once, without its members.
    for name in others.into_iter().filter(|_| choice.is_some()) {
        note_unknown(unknown, name);
    }
    Ok(choice)
}

fn function_name(
    cursor: &mut Cursor<'_>,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    let mut named = None;
    typed::object(cursor, path, |cursor, name| {
        match name {
            "name" => named = text(cursor, path)?,
            _ => note_unless_empty(cursor.value()?, unknown, || format!("{path}.{name}")),
        }
        Ok::<(), Failure>(())
    })?;
    Ok(named)
}

fn allowed_tools(
    cursor: &mut Cursor<'_>,
    unknown: &mut Vec<String>,
) -> Result<ToolChoice, Failure> {
    const NAME: &str = "tool_choice.allowed_tools";
    const TOOLS: &str = "tool_choice.allowed_tools.tools";
    let mut names = Vec::new();
    let mut required = false;
    typed::object(cursor, NAME, |cursor, name| {
        match name {
            "mode" => {
                let mode = typed::string(cursor, "tool_choice.allowed_tools.mode")?;
                required = mode.as_deref() == Some("required");
            }
            "tools" => typed::array(cursor, TOOLS, |cursor, at| {
                let path = Path::item(TOOLS, at);
                match allowed_tool(cursor, path, unknown)? {
                    Some(name) => names.push(name),
                    // Not a function. The declaration of the tool is dropped too.
                    None => note_unknown(unknown, path.to_string()),
                }
                Ok::<(), Failure>(())
            })?,
            _ => note_unless_empty(cursor.value()?, unknown, || format!("{NAME}.{name}")),
        }
        Ok::<(), Failure>(())
    })?;
    Ok(ToolChoice::Allowed { names, required })
}

fn allowed_tool(
    cursor: &mut Cursor<'_>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    let mut named = None;
    let mut others = Vec::new();
    typed::object(
        cursor,
        "tool_choice.allowed_tools.tools[]",
        |cursor, name| {
            match name {
                "function" => {
                    named = function_name(cursor, &format!("{path}.function"), &mut others)?;
                }
                "type" => drop(cursor.value()?),
                _ => note_unless_empty(cursor.value()?, &mut others, || format!("{path}.{name}")),
            }
            Ok::<(), Failure>(())
        },
    )?;
    if named.is_some() {
        unknown.append(&mut others);
    }
    Ok(named)
}

fn format(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    let mut kind = None;
    let mut schema = None;
    let mut others = Vec::new();
    typed::object(cursor, "response_format", |cursor, name| {
        match name {
            "type" => kind = typed::string(cursor, "response_format.type")?,
            "json_schema" => schema = json_schema(cursor, &mut others)?,
            _ => note_unless_empty(cursor.value()?, &mut others, || {
                format!("response_format.{name}")
            }),
        }
        Ok::<(), Failure>(())
    })?;
    match kind.as_deref() {
        None | Some("text") => {}
        Some("json_object") => request.format = Some(Format::Json),
        Some("json_schema") => request.format = schema.or(Some(Format::Json)),
        Some(_) => {
            note_unknown(&mut request.unknown, "response_format");
            return Ok(());
        }
    }
    for name in others {
        note_unknown(&mut request.unknown, name);
    }
    Ok(())
}

fn json_schema(
    cursor: &mut Cursor<'_>,
    unknown: &mut Vec<String>,
) -> Result<Option<Format>, Failure> {
    let [mut title, mut description] = [None, None];
    let mut found = None;
    let mut strict = None;
    typed::object(cursor, "response_format.json_schema", |cursor, name| {
        match name {
            "name" => title = text(cursor, "response_format.json_schema.name")?,
            "description" => {
                description = text(cursor, "response_format.json_schema.description")?;
            }
            "schema" => found = typed::json(cursor, "response_format.json_schema.schema")?,
            "strict" => strict = typed::boolean(cursor, "response_format.json_schema.strict")?,
            _ => note_unless_empty(cursor.value()?, unknown, || {
                format!("response_format.json_schema.{name}")
            }),
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
    let Some(word) = typed::string(cursor, "reasoning_effort")? else {
        return Ok(());
    };
    match Effort::parse(&word) {
        Some(effort) => {
            request.reasoning = Some(Reasoning {
                effort: Some(effort),
                ..Reasoning::default()
            });
        }
        None => note_unknown(&mut request.unknown, "reasoning_effort"),
    }
    Ok(())
}
