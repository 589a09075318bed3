//! Converts the tools and the tool choice to the notation of Converse.

use std::borrow::Cow;

use super::content::{is_object, write_cache_point};
use crate::canon::{Dropped, Path};
use crate::failure::Failure;
use crate::json::write::{self, Object};
use crate::json::{Cursor, Raw, Shape};
use crate::messages::fields::Fields;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice<'a> {
    Default,
    /// `auto` or `any`, and whether the model must make calls one at a time.
    Kind {
        any: bool,
        serial: bool,
    },
    Named {
        name: Cow<'a, str>,
        serial: bool,
    },
    None,
}

impl<'a> Choice<'a> {
    pub(super) fn read(choice: Option<Raw<'a>>) -> Result<Self, Failure> {
        let Some(mut choice) = choice.and_then(Fields::of) else {
            return Ok(Self::Default);
        };
        let serial = choice.boolean("disable_parallel_tool_use") == Some(true);
        let kind = choice.string("type").unwrap_or_default();
        Ok(match &*kind {
            "auto" => Self::Kind { any: false, serial },
            "any" => Self::Kind { any: true, serial },
            "none" => Self::None,
            "tool" => Self::Named {
                name: choice.text("name", "tool_choice.name")?,
                serial,
            },
            _ => {
                let message = "`tool_choice.type` must be auto, any, tool or none.";
                return Err(Failure::invalid(message).param("tool_choice.type"));
            }
        })
    }

    /// Whether the model must make calls one at a time, which Converse cannot express.
    pub(super) fn is_serial(&self) -> bool {
        match self {
            Self::Kind { serial, .. } | Self::Named { serial, .. } => *serial,
            Self::Default | Self::None => false,
        }
    }

    /// Writes `toolChoice`. Converse has no value that forbids calls.
    pub(super) fn write(&self, it: &mut Object<'_>) {
        match self {
            Self::Default | Self::None => {}
            Self::Kind { any, .. } => {
                it.object("toolChoice", |it| {
                    it.object(if *any { "any" } else { "auto" }, |_| {});
                });
            }
            Self::Named { name, .. } => {
                it.object("toolChoice", |it| {
                    it.object("tool", |it| {
                        it.text("name", name);
                    });
                });
            }
        }
    }
}

/// The tools that the client runs. A cache point follows a tool if the input up to that tool is to be cached.
/// Tools that the vendor runs are dropped.
pub(super) fn read(tools: Raw<'_>, dropped: &mut Dropped) -> Result<Vec<Vec<u8>>, Failure> {
    let not_a_list = || Failure::invalid("`tools` must hold objects.").param("tools");
    if tools.shape() != Shape::Array {
        return Err(not_a_list());
    }
    let mut written = Vec::new();
    let mut place = 0;
    Cursor::new(tools.text()).array(|cursor| {
        let path = Path::item("tools", place);
        place += 1;
        let mut tool = Fields::of(cursor.value()?).ok_or_else(not_a_list)?;
        let kind = tool.string("type").unwrap_or(Cow::Borrowed("custom"));
        if kind != "custom" {
            dropped.name(&format!("tools.{kind}"));
            return Ok(());
        }
        let cache = tool.take("cache_control");
        written.push(specification(&mut tool)?);
        if let Some(cache) = cache.filter(is_object) {
            written.push(write_cache_point(cache));
        }
        let mut unknown = Vec::new();
        tool.report_rest(&path, &mut unknown);
        for name in &unknown {
            dropped.name(name);
        }
        Ok::<(), Failure>(())
    })?;
    Ok(written)
}

fn specification(tool: &mut Fields<'_>) -> Result<Vec<u8>, Failure> {
    let name = tool.text("name", "tools.name")?;
    let schema = tool.take("input_schema");
    let schema = schema.filter(|it| it.shape() == Shape::Object);
    let schema = schema.ok_or_else(|| {
        Failure::invalid("`tools.input_schema` must be an object.").param("tools")
    })?;
    let description = tool
        .string("description")
        .filter(|it| !it.trim().is_empty());
    let strict = tool.boolean("strict") == Some(true);
    let mut out = Vec::with_capacity(schema.text().len() + 128);
    write::object(&mut out, |it| {
        it.object("toolSpec", |it| {
            it.text("name", &name);
            if let Some(description) = &description {
                it.text("description", description);
            }
            it.object("inputSchema", |it| {
                it.raw("json", schema.text());
            });
            if strict {
                it.boolean("strict", true);
            }
        });
    });
    Ok(out)
}
