//! Reads a Responses request into the common form.

use super::read_turns::History;
use crate::canon::{
    Effort, Format, Logprobs, Path, Request, Role, Tool, ToolChoice, Turn, note_unknown,
    note_unless_empty, pair_results,
};
use crate::failure::Failure;
use crate::json::typed;
use crate::json::{Cursor, Shape, utf8};
use crate::shared::request_member::{count, has_members, text};

pub(in crate::responses) const INSTRUCTIONS: Path = Path::first("instructions");

/// Reads a request that [`native::read_head`](crate::native::read_head) has accepted. `null` means
/// absent. Empty members (`false`, `""`, `[]`, `{}`) are not reported as dropped.
pub fn read_request(body: &[u8]) -> Result<Request, Failure> {
    let mut cursor = Cursor::new(utf8(body)?);
    let mut reader = Reader::default();
    typed::object(&mut cursor, "body", |cursor, name| {
        reader.member(cursor, name)
    })?;
    cursor.end()?;
    reader.finish()
}

#[derive(Default)]
struct Reader {
    request: Request,
    instructions: Option<String>,
    top_logprobs: Option<u32>,
    logprobs: bool,
}

impl Reader {
    fn member(&mut self, cursor: &mut Cursor<'_>, name: &str) -> Result<(), Failure> {
        let request = &mut self.request;
        match name {
            "input" => History::new(&mut request.turns, &mut request.unknown).read(cursor)?,
            "instructions" => self.instructions = text(cursor, name)?,
            "stream" => request.stream = typed::boolean(cursor, name)?.unwrap_or(false),
            "max_output_tokens" => request.output_tokens_max = count(cursor, name)?,
            "temperature" => request.sampling.temperature = typed::number(cursor, name)?,
            "top_p" => request.sampling.top_p = typed::number(cursor, name)?,
            "top_logprobs" => {
                let top = count(cursor, name)?;
                self.top_logprobs = top.map(|top| u32::try_from(top).unwrap_or(u32::MAX));
            }
            "include" => self.include(cursor)?,
            "tools" => typed::array(cursor, name, |cursor, at| tool(cursor, at, request))?,
            "tool_choice" => choice(cursor, request)?,
            "parallel_tool_calls" => request.parallel_tool_calls = typed::boolean(cursor, name)?,
            "reasoning" => reasoning(cursor, request)?,
            "text" => text_options(cursor, request)?,
            "truncation" => {
                if text(cursor, name)?.is_some_and(|truncation| truncation != "disabled") {
                    note_unknown(&mut request.unknown, name);
                }
            }
            "user" => request.user = text(cursor, name)?,
            "safety_identifier" => request.safety_identifier = text(cursor, name)?,
            "metadata" => request.metadata = typed::json(cursor, name)?.filter(has_members),
            "prompt_cache_key" => request.cache_key = text(cursor, name)?,
            // The head reads these members, or accepts only values that need no conversion.
            "model" | "store" | "background" | "service_tier" => {
                cursor.value()?;
            }
            "stream_options" => typed::object(cursor, name, |cursor, option| {
                let value = cursor.value()?;
                // Obfuscation is padding that the upstream adds by itself.
                if option != "include_obfuscation" {
                    note_unless_empty(value, &mut request.unknown, || format!("{name}.{option}"));
                }
                Ok::<(), Failure>(())
            })?,
            _ => note_unless_empty(cursor.value()?, &mut request.unknown, || name.to_owned()),
        }
        Ok(())
    }

    fn include(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        for included in typed::strings(cursor, "include")? {
            match included.as_str() {
                // The gateway always returns encrypted reasoning.
                "reasoning.encrypted_content" => {}
                "message.output_text.logprobs" => self.logprobs = true,
                _ => note_unknown(&mut self.request.unknown, "include"),
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Request, Failure> {
        let mut request = self.request;
        let top = self.top_logprobs.filter(|top| *top > 0);
        if self.logprobs || top.is_some() {
            let is_implied = !self.logprobs;
            request.logprobs = Some(Logprobs { top, is_implied });
        }
        if let Some(instructions) = self.instructions.filter(|text| !text.is_empty()) {
            let turn = Turn {
                role: Role::System,
                parts: vec![(INSTRUCTIONS, crate::canon::Part::Text(instructions))],
            };
            request.turns.insert(0, turn);
        }
        pair_results(&mut request.turns)?;
        Ok(request)
    }
}

fn tool(cursor: &mut Cursor<'_>, at: usize, request: &mut Request) -> Result<(), Failure> {
    let path = Path::item("tools", at);
    let mut kind = None;
    let mut name = None;
    let mut description = None;
    let mut parameters = None;
    let mut strict = None;
    let mut others = Vec::new();
    typed::object(cursor, "tools[]", |cursor, member| {
        match member {
            "type" => kind = typed::string(cursor, "tools[].type")?,
            "name" => name = text(cursor, "tools[].name")?,
            "description" => description = text(cursor, "tools[].description")?,
            // Other types of tools may have `parameters` of another form.
            "parameters" if cursor.shape()? == Shape::Object => {
                parameters = typed::json(cursor, "tools[].parameters")?;
            }
            "strict" => strict = typed::boolean(cursor, "tools[].strict")?,
            _ => note_unless_empty(cursor.value()?, &mut others, || format!("{path}.{member}")),
        }
        Ok::<(), Failure>(())
    })?;
    match (kind.as_deref(), name) {
        (Some("function") | None, Some(name)) => {
            request.tools.push(Tool {
                path,
                name,
                description,
                parameters,
                strict,
            });
            for other in others {
                note_unknown(&mut request.unknown, other);
            }
        }
        (Some("function") | None, None) => {
            let param = format!("tools[{at}].name");
            return Err(Failure::invalid(format!("`{param}` is required.")).param(param));
        }
        // Other dialects have only function tools (`docs/api/text.md`).
        (Some(kind), _) => note_unknown(&mut request.unknown, format!("tools.{kind}")),
    }
    Ok(())
}

fn choice(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    const NAME: &str = "tool_choice";
    if cursor.shape()? == Shape::String {
        request.tool_choice = match &*cursor.string()?.decode_lossy() {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "required" => Some(ToolChoice::Required),
            other => {
                let message = format!("`tool_choice` must not be `{other}`.");
                return Err(Failure::invalid(message).param(NAME));
            }
        };
        return Ok(());
    }
    if typed::null(cursor)? {
        return Ok(());
    }
    let mut kind = None;
    let mut name = None;
    let mut mode = None;
    let mut names = Vec::new();
    let mut others = Vec::new();
    typed::object(cursor, NAME, |cursor, member| {
        match member {
            "type" => kind = typed::string(cursor, "tool_choice.type")?,
            "name" => name = text(cursor, "tool_choice.name")?,
            "mode" => mode = typed::string(cursor, "tool_choice.mode")?,
            "tools" => typed::array(cursor, "tool_choice.tools", |cursor, at| {
                let path = Path::item("tool_choice.tools", at);
                match named_function(cursor, path, &mut others)? {
                    Some(name) => names.push(name),
                    None => note_unknown(&mut others, path.to_string()),
                }
                Ok::<(), Failure>(())
            })?,
            _ => note_unless_empty(cursor.value()?, &mut others, || format!("{NAME}.{member}")),
        }
        Ok::<(), Failure>(())
    })?;
    request.tool_choice = match (kind.as_deref(), name) {
        (Some("function"), Some(name)) => {
            request.unknown.append(&mut others);
            Some(ToolChoice::Named(name))
        }
        (Some("allowed_tools"), _) if !names.is_empty() => {
            request.unknown.append(&mut others);
            let required = mode.as_deref() == Some("required");
            Some(ToolChoice::Allowed { names, required })
        }
        // A hosted tool, which other dialects do not have.
        _ => {
            note_unknown(&mut request.unknown, NAME);
            None
        }
    };
    Ok(())
}

fn named_function(
    cursor: &mut Cursor<'_>,
    path: Path,
    unknown: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    let mut kind = None;
    let mut name = None;
    let mut others = Vec::new();
    typed::object(cursor, "tool_choice.tools[]", |cursor, member| {
        match member {
            "type" => kind = typed::string(cursor, "tool_choice.tools[].type")?,
            "name" => name = text(cursor, "tool_choice.tools[].name")?,
            _ => note_unless_empty(cursor.value()?, &mut others, || format!("{path}.{member}")),
        }
        Ok::<(), Failure>(())
    })?;
    let named = name.filter(|_| kind.as_deref() == Some("function"));
    if named.is_some() {
        unknown.append(&mut others);
    }
    Ok(named)
}

fn reasoning(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    let mut reasoning = request.reasoning.take().unwrap_or_default();
    let mut any = false;
    typed::object(cursor, "reasoning", |cursor, name| {
        match name {
            "effort" => {
                let effort = typed::string(cursor, "reasoning.effort")?;
                reasoning.effort = effort.as_deref().and_then(Effort::parse);
                any |= reasoning.effort.is_some();
                if effort.is_some() && reasoning.effort.is_none() {
                    note_unknown(&mut request.unknown, "reasoning.effort");
                }
            }
            "summary" | "generate_summary" => {
                let wanted = typed::string(cursor, "reasoning.summary")?.is_some();
                reasoning.show |= wanted;
                any |= wanted;
            }
            "context" | "mode" => {
                let usual = typed::string(cursor, "reasoning")?
                    .is_none_or(|value| value == "auto" || value == "standard");
                if !usual {
                    note_unknown(&mut request.unknown, format!("reasoning.{name}"));
                }
            }
            _ => note_unless_empty(cursor.value()?, &mut request.unknown, || {
                format!("reasoning.{name}")
            }),
        }
        Ok::<(), Failure>(())
    })?;
    request.reasoning = any.then_some(reasoning);
    Ok(())
}

fn text_options(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    typed::object(cursor, "text", |cursor, name| {
        match name {
            "format" => format(cursor, request)?,
            "verbosity" => request.verbosity = text(cursor, "text.verbosity")?,
            _ => note_unless_empty(cursor.value()?, &mut request.unknown, || {
                format!("text.{name}")
            }),
        }
        Ok::<(), Failure>(())
    })
}

fn format(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    let mut kind = None;
    let mut name = None;
    let mut description = None;
    let mut schema = None;
    let mut strict = None;
    let mut others = Vec::new();
    typed::object(cursor, "text.format", |cursor, member| {
        match member {
            "type" => kind = typed::string(cursor, "text.format.type")?,
            "name" => name = text(cursor, "text.format.name")?,
            "description" => description = text(cursor, "text.format.description")?,
            "schema" => schema = typed::json(cursor, "text.format.schema")?,
            "strict" => strict = typed::boolean(cursor, "text.format.strict")?,
            _ => note_unless_empty(cursor.value()?, &mut others, || {
                format!("text.format.{member}")
            }),
        }
        Ok::<(), Failure>(())
    })?;
    request.format = match (kind.as_deref(), schema) {
        (Some("text") | None, _) => None,
        (Some("json_object"), _) => Some(Format::Json),
        (Some("json_schema"), Some(schema)) => Some(Format::Schema {
            name,
            description,
            schema,
            strict,
        }),
        (Some("json_schema"), None) => {
            let failure = Failure::invalid("`text.format.schema` is required.");
            return Err(failure.param("text.format.schema"));
        }
        (Some(_), _) => {
            note_unknown(&mut request.unknown, "text.format");
            return Ok(());
        }
    };
    request.unknown.append(&mut others);
    Ok(())
}
