//! Reads an Interactions request into the common form.

use std::borrow::Cow;

use super::read_turns::Steps;
use crate::canon::{
    Effort, Format, Json, Part, Path, Reasoning, Request, Role, Tool, ToolChoice, Turn,
    note_unknown, note_unless_empty,
};
use crate::failure::Failure;
use crate::interactions::system_instruction;
use crate::json::typed::{self, compact};
use crate::json::{Cursor, Raw, Shape, utf8};
use serde_json::value::RawValue;

const CHOICE: &str = "generation_config.tool_choice";

/// Reads a request that [`crate::native::read_head`] has accepted.
pub fn read_request(body: &[u8]) -> Result<Request, Failure> {
    let mut asked = Reader::default();
    let mut cursor = Cursor::new(utf8(body)?);
    typed::object::<Failure>(&mut cursor, "body", |cursor, name| {
        if typed::null(cursor)? {
            return Ok(());
        }
        asked.member(cursor, name)
    })?;
    cursor.end()?;
    Ok(asked.finish())
}

#[derive(Default)]
struct Reader {
    request: Request,
    steps: Steps,
    system: Vec<(Path, Part)>,
    /// `response_mime_type`, which an older revision had next to the schema.
    mime: Option<String>,
}

impl Reader {
    fn member(&mut self, cursor: &mut Cursor<'_>, name: &str) -> Result<(), Failure> {
        match name {
            "input" => self.steps.read(cursor)?,
            "system_instruction" => self.system(cursor.value()?)?,
            "tools" => typed::array(cursor, name, |cursor, at| {
                self.tool(cursor.value()?, Path::item("tools", at))
            })?,
            "generation_config" => self.config(cursor)?,
            "response_format" => self.format(cursor.value()?, name)?,
            "response_mime_type" => self.mime = typed::string(cursor, name)?.map(Cow::into_owned),
            "response_modalities" => {
                let is_text = |modality: &String| modality.eq_ignore_ascii_case("text");
                if !typed::strings(cursor, name)?.iter().all(is_text) {
                    return Err(text_only(name));
                }
            }
            "stream" => self.request.stream = typed::boolean(cursor, name)? == Some(true),
            // The head has read these members.
            "model" | "store" | "background" | "service_tier" => drop(cursor.value()?),
            _ => {
                note_unless_empty(cursor.value()?, &mut self.request.unknown, || {
                    name.to_owned()
                });
            }
        }
        Ok(())
    }

    /// Reports a member that only this dialect has, unless it is empty.
    fn unknown(&mut self, outer: &str, name: &str, value: Raw<'_>) {
        note_unless_empty(value, &mut self.request.unknown, || {
            format!("{outer}.{name}")
        });
    }

    fn system(&mut self, value: Raw<'_>) -> Result<(), Failure> {
        let mut texts = Vec::new();
        system_instruction::read(value, &mut texts, &mut |name, value| {
            self.unknown(system_instruction::NAME, name, value);
        })?;
        let parts = texts.into_iter().enumerate().map(|(at, text)| {
            let path = Path::item(system_instruction::NAME, at);
            (path, Part::Text(text))
        });
        self.system = parts.collect();
        Ok(())
    }

    fn tool(&mut self, value: Raw<'_>, path: Path) -> Result<(), Failure> {
        let mut kind = String::new();
        let mut tool = Tool {
            path,
            name: String::new(),
            description: None,
            parameters: None,
            strict: None,
        };
        let mut unknown = Vec::new();
        typed::object::<Failure>(&mut Cursor::new(value.text()), "tools", |cursor, name| {
            if typed::null(cursor)? {
                return Ok(());
            }
            match name {
                "type" => {
                    kind = typed::string(cursor, "tools.type")?
                        .unwrap_or_default()
                        .into_owned();
                }
                "name" => {
                    let name = typed::string(cursor, "tools.name")?;
                    tool.name = name.unwrap_or_default().into_owned();
                }
                "description" => {
                    let text = typed::string(cursor, "tools.description")?;
                    tool.description = text.map(Cow::into_owned);
                }
                "parameters" => tool.parameters = typed::json(cursor, "tools.parameters")?,
                _ => note_unless_empty(cursor.value()?, &mut unknown, || format!("{path}.{name}")),
            }
            Ok(())
        })?;
        if kind != "function" {
            note_unknown(&mut self.request.unknown, format!("tools.{kind}"));
            return Ok(());
        }
        if tool.name.is_empty() {
            return Err(Failure::invalid("A function has no name.").param("tools"));
        }
        self.request.unknown.append(&mut unknown);
        self.request.tools.push(tool);
        Ok(())
    }

    fn config(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Failure> {
        let mut reasoning = Reasoning::default();
        typed::object::<Failure>(cursor, "generation_config", |cursor, name| {
            if typed::null(cursor)? {
                return Ok(());
            }
            let path = format!("generation_config.{name}");
            match name {
                "temperature" => self.request.sampling.temperature = typed::number(cursor, &path)?,
                "top_p" => self.request.sampling.top_p = typed::number(cursor, &path)?,
                "seed" => self.request.sampling.seed = typed::signed(cursor, &path)?,
                "max_output_tokens" => {
                    self.request.output_tokens_max = typed::count(cursor, &path)?;
                }
                "stop_sequences" => self.request.stop = typed::strings(cursor, &path)?,
                "thinking_level" => {
                    let level = typed::string(cursor, &path)?.unwrap_or_default();
                    reasoning.effort = Effort::parse(&level.to_ascii_lowercase());
                    if reasoning.effort.is_none() {
                        note_unknown(&mut self.request.unknown, path);
                    }
                }
                "thinking_summaries" => {
                    let shown = typed::string(cursor, &path)?.unwrap_or_default();
                    reasoning.show = shown == "auto";
                    if !["auto", "none", ""].contains(&shown.as_ref()) {
                        note_unknown(&mut self.request.unknown, path);
                    }
                }
                "tool_choice" => {
                    let choice = cursor.value()?;
                    self.request.tool_choice = self.choice(choice)?;
                }
                _ => {
                    let value = cursor.value()?;
                    self.unknown("generation_config", name, value);
                }
            }
            Ok(())
        })?;
        let says = reasoning != Reasoning::default();
        self.request.reasoning = says.then_some(reasoning);
        Ok(())
    }

    fn choice(&mut self, value: Raw<'_>) -> Result<Option<ToolChoice>, Failure> {
        const NAME: &str = CHOICE;
        if let Some(mode) = value.string() {
            return Ok(self.mode(&mode.decode_lossy(), Vec::new()));
        }
        let (mut mode, mut names) = (String::new(), Vec::new());
        typed::object::<Failure>(&mut Cursor::new(value.text()), NAME, |cursor, name| {
            if name != "allowed_tools" {
                let value = cursor.value()?;
                self.unknown("generation_config.tool_choice", name, value);
                return Ok(());
            }
            typed::object::<Failure>(cursor, NAME, |cursor, name| {
                match name {
                    "mode" => {
                        mode = typed::string(cursor, NAME)?
                            .unwrap_or_default()
                            .into_owned();
                    }
                    "tools" => names = typed::strings(cursor, NAME)?,
                    _ => {
                        let value = cursor.value()?;
                        self.unknown("generation_config.tool_choice.allowed_tools", name, value);
                    }
                }
                Ok(())
            })
        })?;
        Ok(self.mode(&mode, names))
    }

    fn mode(&mut self, mode: &str, names: Vec<String>) -> Option<ToolChoice> {
        let required = mode == "any";
        Some(match (mode, names.as_slice()) {
            ("none", _) => ToolChoice::None,
            ("any", []) => ToolChoice::Required,
            ("any", [name]) => ToolChoice::Named(name.clone()),
            (_, [_, ..]) => ToolChoice::Allowed { names, required },
            ("validated", []) => {
                // Other dialects check calls against schemas only for strict tools.
                note_unknown(&mut self.request.unknown, CHOICE);
                ToolChoice::Auto
            }
            ("auto", []) => ToolChoice::Auto,
            ("", []) => return None,
            _ => {
                note_unknown(&mut self.request.unknown, CHOICE);
                return None;
            }
        })
    }

    /// Reads the output format at `path`: one format, or a list of formats, of which the last one
    /// counts. In an older form, the value is the schema itself.
    fn format(&mut self, value: Raw<'_>, path: &str) -> Result<(), Failure> {
        if value.shape() == Shape::Array {
            return self.formats(value, path);
        }
        let mut kind = None;
        let [mut mime, mut schema] = [None::<Raw<'_>>; 2];
        let mut others = Vec::new();
        typed::object::<Failure>(&mut Cursor::new(value.text()), path, |cursor, name| {
            let value = cursor.value()?;
            match name {
                "type" => kind = value.string().map(|text| text.decode_lossy()),
                "mime_type" => mime = Some(value).filter(|mime| !mime.is_null()),
                "schema" => schema = Some(value).filter(|schema| !schema.is_null()),
                _ => note_unless_empty(value, &mut others, || format!("{path}.{name}")),
            }
            Ok(())
        })?;
        let is = |mime: Raw<'_>, known: &str| mime.string().is_some_and(|mime| mime.is(known));
        match kind.as_deref() {
            Some("image" | "audio" | "video") => return Err(text_only("response_format")),
            Some("text") => {
                match (schema, mime) {
                    (Some(schema), _) => self.request.format = Some(schema_format(raw(schema)?)),
                    (None, Some(mime)) if is(mime, "application/json") => {
                        self.request.format = Some(Format::Json);
                    }
                    (None, Some(mime)) if !is(mime, "text/plain") => {
                        note_unknown(&mut others, format!("{path}.mime_type"));
                    }
                    (None, _) => {}
                }
                self.request.unknown.append(&mut others);
            }
            _ if value.is_empty() => {}
            // The whole value is the schema.
            _ => self.request.format = Some(schema_format(raw(value)?)),
        }
        Ok(())
    }

    fn formats(&mut self, value: Raw<'_>, path: &str) -> Result<(), Failure> {
        let mut carried = None::<String>;
        typed::array(&mut Cursor::new(value.text()), path, |cursor, at| {
            let at = format!("{path}[{at}]");
            let before = self.request.format.take();
            self.format(cursor.value()?, &at)?;
            if self.request.format.is_none() {
                self.request.format = before;
            } else if let Some(replaced) = carried.replace(at) {
                note_unknown(&mut self.request.unknown, replaced);
            }
            Ok(())
        })
    }

    fn finish(self) -> Request {
        let Self {
            mut request,
            steps,
            system,
            mime,
        } = self;
        let Steps {
            mut turns,
            mut unknown,
            ..
        } = steps;
        if !system.is_empty() {
            let (role, parts) = (Role::System, system);
            turns.insert(0, Turn { role, parts });
        }
        request.turns = turns;
        request.unknown.append(&mut unknown);
        match mime.as_deref() {
            Some("application/json") if request.format.is_none() => {
                request.format = Some(Format::Json);
            }
            None | Some("application/json" | "text/plain") => {}
            Some(_) => note_unknown(&mut request.unknown, "response_mime_type"),
        }
        request
    }
}

fn schema_format(schema: Json) -> Format {
    Format::Schema {
        name: None,
        description: None,
        schema,
        strict: None,
    }
}

fn raw(schema: Raw<'_>) -> Result<Json, Failure> {
    RawValue::from_string(compact(schema.text()))
        .map_err(|_| Failure::invalid("A schema is not valid JSON.").param("response_format"))
}

fn text_only(name: &str) -> Failure {
    let message = format!("`{name}` is not supported with this model: it answers in text.");
    Failure::unsupported_parameter(name.to_owned(), message)
}
