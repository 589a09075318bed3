//! Reads a Generate Content request into the common form.

use std::borrow::Cow;

use super::read_parts::{Parts, read_resolution};
use super::read_turns::Contents;
use super::schema;
use super::tool_names::ToolNames;
use crate::canon::{
    Effort, Format, ImageDetail, Logprobs, Path, Reasoning, Request, Sampling, Tool, ToolChoice,
    note_unknown, note_unless_empty,
};
use crate::failure::Failure;
use crate::json::members::camel;
use crate::json::typed;
use crate::json::{Cursor, Integer, Raw, Shape, utf8};

/// Dropped members are reported in camel case, even if the client uses snake case.
const CONFIG: &str = "generationConfig";
const CALLING: &str = "toolConfig.functionCallingConfig";

/// Reads a request that [`crate::native::read_named_head`] has accepted. The caller sets `stream`,
/// because the path holds it.
pub fn read_request(body: &[u8]) -> Result<Request, Failure> {
    let mut asked = Reader::default();
    let mut cursor = Cursor::new(utf8(body)?);
    typed::object::<Failure>(&mut cursor, "body", |cursor, name| {
        asked.member(cursor, name)
    })?;
    cursor.end()?;
    Ok(asked.finish())
}

#[derive(Default)]
struct Reader {
    request: Request,
    contents: Contents,
    format: FormatOptions,
    mode: CallingOptions,
    detail: Option<ImageDetail>,
}

/// The request's settings for the output format and for log probabilities.
#[derive(Default)]
struct FormatOptions {
    mime: Option<String>,
    /// The schema, and the path of its member.
    schema: Option<(&'static str, crate::canon::Json)>,
    /// Whether log probabilities are requested, not only their number.
    logprobs: bool,
    top_logprobs: Option<u32>,
}

#[derive(Default)]
struct CallingOptions {
    mode: String,
    names: Vec<String>,
}

impl Reader {
    fn member(&mut self, cursor: &mut Cursor<'_>, name: &str) -> Result<(), Failure> {
        match camel(name).as_ref() {
            "contents" => self.contents.read(cursor),
            "systemInstruction" => self.contents.read_system(cursor),
            "tools" => self.tools(cursor),
            "toolConfig" => self.tool_config(cursor),
            "generationConfig" => self.config(cursor),
            // The head has read these members.
            "model" | "serviceTier" => cursor.value().map(drop).map_err(Failure::from),
            _ => {
                let value = cursor.value()?;
                note_unless_empty(value, &mut self.request.unknown, || {
                    camel(name).into_owned()
                });
                Ok(())
            }
        }
    }

    /// Reports a member that only this dialect has, unless it is empty, such as `store: false` or an empty list.
    fn unknown(&mut self, outer: &str, name: &str, value: Raw<'_>) {
        note_unless_empty(value, &mut self.request.unknown, || {
            format!("{outer}.{}", camel(name))
        });
    }

    fn tools(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        typed::array(cursor, "tools", |cursor, at| {
            let path = Path::item("tools", at);
            typed::object::<Failure>(cursor, "tools", |cursor, name| {
                if camel(name) == "functionDeclarations" {
                    return typed::array(cursor, name, |cursor, at| {
                        self.tool(cursor, path.inner("functionDeclarations", at))
                    });
                }
                // An empty object enables a built-in tool too.
                if !cursor.value()?.is_null() {
                    let name = format!("tools.{}", camel(name));
                    note_unknown(&mut self.request.unknown, name);
                }
                Ok(())
            })
        })
    }

    fn tool(&mut self, cursor: &mut Cursor<'_>, path: Path) -> Result<(), Failure> {
        let mut tool = Tool {
            path,
            name: String::new(),
            description: None,
            parameters: None,
            strict: None,
        };
        typed::object::<Failure>(cursor, "functionDeclarations", |cursor, name| {
            if typed::null(cursor)? {
                return Ok(());
            }
            match camel(name).as_ref() {
                "name" => {
                    let name = typed::string(cursor, "functionDeclarations.name")?;
                    tool.name = self.contents.parts.names.safe(&name.unwrap_or_default());
                }
                "description" => {
                    let text = typed::string(cursor, "functionDeclarations.description")?;
                    tool.description = text.map(Cow::into_owned);
                }
                "parameters" => tool.parameters = Some(schema::to_json_schema(cursor)?),
                "parametersJsonSchema" => {
                    tool.parameters =
                        typed::json(cursor, "functionDeclarations.parametersJsonSchema")?;
                }
                _ => {
                    let value = cursor.value()?;
                    note_unless_empty(value, &mut self.request.unknown, || {
                        format!("{path}.{}", camel(name))
                    });
                }
            }
            Ok(())
        })?;
        if tool.name.is_empty() {
            let failure = Failure::invalid("A function declaration has no name.");
            return Err(failure.param("tools"));
        }
        self.request.tools.push(tool);
        Ok(())
    }

    fn tool_config(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        typed::object::<Failure>(cursor, "toolConfig", |cursor, name| {
            if camel(name) != "functionCallingConfig" {
                let value = cursor.value()?;
                self.unknown("toolConfig", name, value);
                return Ok(());
            }
            typed::object::<Failure>(cursor, CALLING, |cursor, name| {
                match camel(name).as_ref() {
                    "mode" => {
                        let mode = typed::string(cursor, "mode")?.unwrap_or_default();
                        self.mode.mode = mode.to_ascii_uppercase();
                    }
                    "allowedFunctionNames" => {
                        let names = typed::strings(cursor, "allowedFunctionNames")?;
                        let safe = names
                            .iter()
                            .map(|name| self.contents.parts.names.safe(name));
                        self.mode.names = safe.collect();
                    }
                    _ => {
                        let value = cursor.value()?;
                        self.unknown(CALLING, name, value);
                    }
                }
                Ok(())
            })
        })
    }

    fn config(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        typed::object::<Failure>(cursor, CONFIG, |cursor, name| {
            if typed::null(cursor)? {
                return Ok(());
            }
            let path = format!("{CONFIG}.{}", camel(name));
            let Sampling {
                temperature,
                top_p,
                frequency_penalty,
                presence_penalty,
                ..
            } = &mut self.request.sampling;
            match camel(name).as_ref() {
                "temperature" => *temperature = typed::number(cursor, &path)?,
                "topP" => *top_p = typed::number(cursor, &path)?,
                "frequencyPenalty" => *frequency_penalty = typed::number(cursor, &path)?,
                "presencePenalty" => *presence_penalty = typed::number(cursor, &path)?,
                "topK" => self.request.sampling.top_k = typed::count(cursor, &path)?,
                "seed" => self.request.sampling.seed = typed::signed(cursor, &path)?,
                "maxOutputTokens" => self.request.output_tokens_max = typed::count(cursor, &path)?,
                "candidateCount" => {
                    let count = typed::count(cursor, &path)?.unwrap_or(1);
                    self.request.choices = Some(u32::try_from(count).unwrap_or(u32::MAX));
                }
                "stopSequences" => self.request.stop = typed::strings(cursor, &path)?,
                "responseLogprobs" => {
                    self.format.logprobs = typed::boolean(cursor, &path)? == Some(true);
                }
                "logprobs" => {
                    let top = typed::count(cursor, &path)?.unwrap_or(0);
                    self.format.top_logprobs = Some(u32::try_from(top).unwrap_or(u32::MAX));
                }
                "responseMimeType" => {
                    let mime = typed::string(cursor, &path)?;
                    self.format.mime = mime.map(Cow::into_owned);
                }
                "responseSchema" => {
                    let schema = schema::to_json_schema(cursor)?;
                    self.format.schema = Some(("generationConfig.responseSchema", schema));
                }
                "responseJsonSchema" => {
                    let schema = typed::json(cursor, &path)?;
                    self.format.schema =
                        schema.map(|schema| ("generationConfig.responseJsonSchema", schema));
                }
                "responseModalities" => text_only(cursor, &path)?,
                "imageConfig" => {
                    let image = cursor.value()?;
                    if !image.is_empty() {
                        return Err(no_pictures(path));
                    }
                }
                "mediaResolution" => {
                    self.detail = read_resolution(cursor, &path, &mut self.request.unknown)?;
                }
                "thinkingConfig" => self.thinking(cursor, &path)?,
                _ => note_unless_empty(cursor.value()?, &mut self.request.unknown, || path),
            }
            Ok(())
        })
    }

    fn thinking(&mut self, cursor: &mut Cursor<'_>, outer: &str) -> Result<(), Failure> {
        let mut reasoning = Reasoning::default();
        let mut unknown = Vec::new();
        typed::object::<Failure>(cursor, outer, |cursor, name| {
            if typed::null(cursor)? {
                return Ok(());
            }
            let path = format!("{outer}.{}", camel(name));
            match camel(name).as_ref() {
                "includeThoughts" => reasoning.show = typed::boolean(cursor, &path)? == Some(true),
                "thinkingBudget" => {
                    // A negative budget means that the model decides, which is the default.
                    let budget = typed::integer(cursor, &path)?;
                    let budget = budget.filter(|budget| *budget != Integer::Negative);
                    reasoning.budget_tokens = budget.map(Integer::saturating);
                }
                "thinkingLevel" => {
                    let level = typed::string(cursor, &path)?.unwrap_or_default();
                    let level = level.to_ascii_lowercase();
                    reasoning.effort = Effort::parse(&level);
                    if reasoning.effort.is_none() && !level.ends_with("unspecified") {
                        unknown.push(path);
                    }
                }
                _ => note_unless_empty(cursor.value()?, &mut unknown, || path),
            }
            Ok(())
        })?;
        self.request.unknown.append(&mut unknown);
        let says = reasoning != Reasoning::default();
        self.request.reasoning = says.then_some(reasoning);
        Ok(())
    }

    fn finish(mut self) -> Request {
        self.choose_tools();
        self.choose_format();
        if self.contents.has_pictures() {
            self.request.image_detail = self.detail;
        } else if self.detail.is_some() {
            let name = "generationConfig.mediaResolution";
            note_unknown(&mut self.request.unknown, name);
        }
        let Contents { turns, parts, .. } = self.contents;
        let Parts { names, mut unknown } = parts;
        let mut request = self.request;
        request.unknown.append(&mut unknown);
        request.turns = turns;
        request.renamed = ToolNames::renamed(names);
        request
    }

    fn choose_tools(&mut self) {
        let CallingOptions { mode, names } = std::mem::take(&mut self.mode);
        let required = mode == "ANY";
        self.request.tool_choice = match (mode.as_str(), names.as_slice()) {
            ("NONE", _) => Some(ToolChoice::None),
            ("ANY", []) => Some(ToolChoice::Required),
            ("ANY", [name]) => Some(ToolChoice::Named(name.clone())),
            ("ANY" | "AUTO" | "VALIDATED", [_, ..]) => {
                Some(ToolChoice::Allowed { names, required })
            }
            ("AUTO", []) => Some(ToolChoice::Auto),
            ("VALIDATED", []) => {
                // Other dialects check calls against schemas only for strict tools.
                let name = "toolConfig.functionCallingConfig.mode";
                note_unknown(&mut self.request.unknown, name);
                Some(ToolChoice::Auto)
            }
            ("" | "MODE_UNSPECIFIED", []) => None,
            _ => {
                note_unknown(&mut self.request.unknown, CALLING);
                None
            }
        };
    }

    fn choose_format(&mut self) {
        let FormatOptions {
            mime,
            schema,
            logprobs,
            top_logprobs,
        } = std::mem::take(&mut self.format);
        if logprobs {
            self.request.logprobs = Some(Logprobs {
                top: top_logprobs,
                is_implied: false,
            });
        } else if top_logprobs.is_some() {
            note_unknown(&mut self.request.unknown, "generationConfig.logprobs");
        }
        self.request.format = match (mime.as_deref(), schema) {
            (Some("application/json") | None, Some((_, schema))) => Some(Format::Schema {
                name: None,
                description: None,
                schema,
                strict: None,
            }),
            (Some("application/json"), None) => Some(Format::Json),
            (mime, schema) => {
                let unknown = &mut self.request.unknown;
                if !matches!(mime, None | Some("text/plain" | "")) {
                    note_unknown(unknown, "generationConfig.responseMimeType");
                }
                if let Some((path, _)) = schema {
                    note_unknown(unknown, path);
                }
                None
            }
        };
    }
}

/// Refuses output modalities other than text, because conversion supports only text.
fn text_only(cursor: &mut Cursor<'_>, name: &str) -> Result<(), Failure> {
    let is_text = |modality: &String| {
        modality.eq_ignore_ascii_case("text")
            || modality.eq_ignore_ascii_case("MODALITY_UNSPECIFIED")
    };
    match cursor.shape()? {
        Shape::Array if typed::strings(cursor, name)?.iter().all(is_text) => Ok(()),
        _ => Err(no_pictures(name.to_owned())),
    }
}

fn no_pictures(name: String) -> Failure {
    let message = format!("`{name}` is not supported with this model: it answers in text.");
    Failure::unsupported_parameter(name, message)
}
