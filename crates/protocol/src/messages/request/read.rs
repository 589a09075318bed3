//! Reads a Messages request into the common form.

use super::read_parts::Blocks;
use super::thinking::ThinkingOptions;
use super::tools;
use crate::canon::{Format, Path, Request, Role, Turn, note_unless_empty};
use crate::failure::Failure;
use crate::json::typed::{self, ValueError};
use crate::json::{Cursor, Integer, utf8};
use crate::messages::fields::Fields;

/// Reads a request whose head was accepted. Members that other dialects do not have are listed as
/// unknown. Known members must have the right type.
pub fn read_request(body: &[u8]) -> Result<Request, Failure> {
    let mut request = Request::default();
    let mut system = None;
    let mut asked = ThinkingOptions::default();
    let mut blocks = Blocks::default();
    let mut cursor = Cursor::new(utf8(body)?);
    typed::object(&mut cursor, "body", |cursor, name| {
        match name {
            // Other code reads these members, or the head accepts only their defaults.
            "model" | "service_tier" | "speed" | "thread" => drop(cursor.value()?),
            "stream" => request.stream = typed::boolean(cursor, name)?.unwrap_or(false),
            "max_tokens" => {
                request.output_tokens_max = typed::integer(cursor, name)?.map(Integer::saturating);
            }
            "system" => system = Some(blocks.system(cursor)?),
            "messages" => typed::array(cursor, name, |cursor, index| {
                request.turns.extend(message(cursor, index, &mut blocks)?);
                Ok::<(), Failure>(())
            })?,
            "temperature" => request.sampling.temperature = typed::number(cursor, name)?,
            "top_p" => request.sampling.top_p = typed::number(cursor, name)?,
            "top_k" => {
                request.sampling.top_k = typed::integer(cursor, name)?.map(Integer::saturating);
            }
            "stop_sequences" => request.stop = typed::strings(cursor, name)?,
            "tools" => tools::read(cursor, &mut request)?,
            "tool_choice" => tools::read_choice(cursor, &mut request)?,
            "thinking" => asked.read(cursor, &mut request.unknown)?,
            "output_config" => output_config(cursor, &mut request, &mut asked)?,
            // The name that structured output had as a beta feature.
            "output_format" => request.format = format(cursor, name, &mut request.unknown)?,
            "metadata" => metadata(cursor, &mut request)?,
            _ => note_unless_empty(cursor.value()?, &mut request.unknown, || name.to_owned()),
        }
        Ok::<(), Failure>(())
    })?;
    request.unknown.append(&mut blocks.unknown);
    request.reasoning = asked.reasoning(&mut request.unknown);
    if let Some(parts) = system.filter(|parts| !parts.is_empty()) {
        let role = Role::System;
        request.turns.insert(0, Turn { role, parts });
    }
    Ok(request)
}

fn message(
    cursor: &mut Cursor<'_>,
    index: usize,
    blocks: &mut Blocks,
) -> Result<Option<Turn>, Failure> {
    let path = Path::item("messages", index);
    let Some(mut fields) = Fields::read(cursor)? else {
        let path = path.to_string();
        return Err(Failure::invalid(format!("`{path}` must be an object.")).param(path));
    };
    let role = match fields.text("role", "messages.role")?.as_ref() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        // Allowed since a recent version of the protocol.
        "system" => Role::System,
        _ => {
            let message = "`messages.role` must be `user` or `assistant`.";
            return Err(Failure::invalid(message).param("messages.role"));
        }
    };
    let Some(content) = fields.take("content") else {
        let message = "`messages.content` must be a string or an array.";
        return Err(Failure::invalid(message).param("messages.content"));
    };
    let parts = blocks.content(&mut Cursor::new(content.text()), path)?;
    fields.report_rest(&path, &mut blocks.unknown);
    Ok((!parts.is_empty()).then_some(Turn { role, parts }))
}

fn output_config(
    cursor: &mut Cursor<'_>,
    request: &mut Request,
    asked: &mut ThinkingOptions,
) -> Result<(), Failure> {
    typed::object(cursor, "output_config", |cursor, name| {
        match name {
            "effort" => asked.read_effort(cursor)?,
            "format" => {
                let path = "output_config.format";
                request.format = format(cursor, path, &mut request.unknown)?;
            }
            _ => note_unless_empty(cursor.value()?, &mut request.unknown, || {
                format!("output_config.{name}")
            }),
        }
        Ok(())
    })
}

fn format(
    cursor: &mut Cursor<'_>,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<Option<Format>, Failure> {
    let mut kind = None;
    let mut name = None;
    let mut schema = None;
    typed::object(cursor, path, |cursor, member| {
        match member {
            "type" => kind = typed::string(cursor, path)?,
            "name" => name = typed::string(cursor, path)?,
            "schema" => schema = typed::json(cursor, path)?,
            _ => note_unless_empty(cursor.value()?, unknown, || format!("{path}.{member}")),
        }
        Ok::<(), ValueError>(())
    })?;
    match (kind.as_deref(), schema) {
        (None, None) => Ok(None),
        (Some("json_schema"), Some(schema)) => Ok(Some(Format::Schema {
            name: name.map(Into::into),
            description: None,
            schema,
            strict: None,
        })),
        _ => {
            let message = format!("`{path}` must be of type `json_schema` and have a `schema`.");
            Err(Failure::invalid(message).param(path.to_owned()))
        }
    }
}

fn metadata(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    typed::object(cursor, "metadata", |cursor, name| {
        match name {
            "user_id" => {
                let user = typed::string(cursor, "metadata.user_id")?;
                request.user = user.map(Into::into);
            }
            _ => note_unless_empty(cursor.value()?, &mut request.unknown, || {
                format!("metadata.{name}")
            }),
        }
        Ok(())
    })
}
