//! Reads and writes tools and the tool choice.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;

use super::schema;
use crate::canon::{
    Dropped, Field, MergedTurn, Part, Path, Request, Tool, ToolCalling, ToolChoice, choose,
    note_unknown,
};
use crate::failure::Failure;
use crate::json::typed;
use crate::json::write::Object;
use crate::json::{Cursor, Raw, Shape, SyntaxError};
use crate::messages::fields::Fields;
use serde_json::value::RawValue;

const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

/// Reads the declarations. Tools that the vendor runs are reported by their type.
pub(super) fn read(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    typed::array(cursor, "tools", |cursor, at| {
        let path = Path::item("tools", at);
        let Some(mut fields) = Fields::read(cursor)? else {
            return Err(Failure::invalid("`tools` must hold objects.").param("tools"));
        };
        let kind = fields.string("type");
        if let Some(kind) = kind.filter(|kind| kind != "custom") {
            note_unknown(&mut request.unknown, format!("tools.{kind}"));
            return Ok(());
        }
        let schema = fields.take("input_schema");
        request.tools.push(Tool {
            path,
            name: fields.text("name", "tools.name")?.into_owned(),
            description: fields.string("description").map(Into::into),
            parameters: schema.map(read_schema).transpose()?,
            strict: fields.boolean("strict"),
        });
        fields.report_rest(&path, &mut request.unknown);
        Ok(())
    })
}

fn read_schema(schema: Raw<'_>) -> Result<Box<RawValue>, Failure> {
    let read = typed::json(&mut Cursor::new(schema.text()), "tools.input_schema")?;
    read.ok_or_else(|| Failure::invalid("`tools.input_schema` must be an object.").param("tools"))
}

/// Reads the tool choice, which includes whether parallel calls are allowed.
pub(super) fn read_choice(cursor: &mut Cursor<'_>, request: &mut Request) -> Result<(), Failure> {
    const NAME: &str = "tool_choice";
    if typed::null(cursor)? {
        return Ok(());
    }
    let Some(mut fields) = Fields::read(cursor)? else {
        return Err(Failure::invalid("`tool_choice` must be an object.").param(NAME));
    };
    let kind = fields.text("type", "tool_choice.type")?;
    request.tool_choice = Some(match kind.as_ref() {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Named(fields.text("name", "tool_choice.name")?.into_owned()),
        _ => {
            let message = "`tool_choice.type` must be `auto`, `any`, `tool` or `none`.";
            return Err(Failure::invalid(message).param("tool_choice.type"));
        }
    });
    let disabled = fields.boolean("disable_parallel_tool_use");
    request.parallel_tool_calls = disabled.map(|disabled| !disabled);
    fields.report_rest(&NAME, &mut request.unknown);
    Ok(())
}

/// The tools and the tool choice for an upstream.
#[derive(Debug)]
pub(super) struct UpstreamTools<'a> {
    /// Each with the schema of its arguments.
    tools: Vec<(&'a Tool, Cow<'a, str>)>,
    /// Tools that only the history uses. Upstreams refuse their blocks unless the tools are
    /// declared.
    used_in_history: Vec<&'a str>,
    choice: Choice<'a>,
    serial: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice<'a> {
    Default,
    None,
    Any,
    Named(&'a str),
}

impl<'a> UpstreamTools<'a> {
    /// Decides which tools are declared.
    pub(super) fn new(
        request: &'a Request,
        turns: &[MergedTurn<'a>],
        dropped: &mut Dropped,
    ) -> Result<Self, Failure> {
        let mut tools: Vec<&Tool> = request.tools.iter().collect();
        let mut choice = match choose(request, dropped)? {
            None => Choice::Default,
            Some((ToolCalling::MustNot, _)) => Choice::None,
            Some((ToolCalling::Must, names)) if names.is_empty() => Choice::Any,
            Some((calling, names)) => {
                // This dialect cannot restrict the choice to a subset, so only the subset is
                // declared.
                if !matches!(request.tool_choice, Some(ToolChoice::Named(_))) {
                    let allowed: HashSet<&str> = names.iter().copied().collect();
                    tools.retain(|tool| allowed.contains(tool.name.as_str()));
                }
                match (calling, names.as_slice()) {
                    (ToolCalling::Must, [name]) => Choice::Named(name),
                    (ToolCalling::Must, _) => Choice::Any,
                    _ => Choice::Default,
                }
            }
        };
        let mut used_in_history = Vec::new();
        if tools.is_empty() {
            used_in_history = called_tools(turns);
            choice = if used_in_history.is_empty() {
                Choice::Default
            } else {
                Choice::None
            };
        }
        let serial = request.parallel_tool_calls == Some(false);
        if serial && tools.is_empty() {
            dropped.field(Field::ParallelToolCalls);
        }
        let tools = tools.into_iter().map(|tool| Ok((tool, arguments(tool)?)));
        let tools: Vec<_> = tools.collect::<Result<_, Failure>>()?;
        Ok(Self {
            serial: serial && !tools.is_empty(),
            tools,
            used_in_history,
            choice,
        })
    }

    /// Whether the model must call a tool.
    pub(super) fn is_forced(&self) -> bool {
        matches!(self.choice, Choice::Any | Choice::Named(_))
    }

    pub(super) fn write(&self, it: &mut Object<'_>) {
        if !self.tools.is_empty() || !self.used_in_history.is_empty() {
            it.array("tools", |it| {
                for (tool, schema) in &self.tools {
                    it.object(|it| write_tool(it, tool, schema));
                }
                for name in &self.used_in_history {
                    it.object(|it| {
                        it.text("name", name).raw("input_schema", NO_ARGUMENTS);
                    });
                }
            });
        }
        let (kind, name) = match self.choice {
            Choice::Default if self.serial => ("auto", None),
            Choice::Default => return,
            Choice::None => ("none", None),
            Choice::Any => ("any", None),
            Choice::Named(name) => ("tool", Some(name)),
        };
        it.object("tool_choice", |it| {
            it.text("type", kind);
            if let Some(name) = name {
                it.text("name", name);
            }
            if self.serial && self.choice != Choice::None {
                it.boolean("disable_parallel_tool_use", true);
            }
        });
    }
}

/// The names of all tools called in the conversation, without duplicates.
fn called_tools<'a>(turns: &[MergedTurn<'a>]) -> Vec<&'a str> {
    let parts = turns.iter().flat_map(|turn| &turn.parts);
    distinct(parts.filter_map(|(_, part)| match part {
        Part::ToolCall(call) => Some(call.name.as_str()),
        _ => None,
    }))
}

/// The items without repetitions, in their order. Uses a set, because a client may send very many.
fn distinct<T: Copy + Eq + Hash>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut known = HashSet::new();
    items.filter(|item| known.insert(*item)).collect()
}

fn write_tool(it: &mut Object<'_>, tool: &Tool, schema: &str) {
    it.text("name", &tool.name);
    if let Some(description) = &tool.description {
        it.text("description", description);
    }
    if tool.strict == Some(true) {
        it.value("input_schema", |out| {
            schema::write_subset(schema, out);
        });
        it.boolean("strict", true);
    } else {
        it.raw("input_schema", schema);
    }
}

/// The schema of a tool's arguments, which must describe an object.
fn arguments(tool: &Tool) -> Result<Cow<'_, str>, Failure> {
    let schema = tool.parameters.as_ref();
    with_object_type(schema.map_or(NO_ARGUMENTS, |schema| schema.get())).ok_or_else(|| {
        let name = &tool.name;
        let message = format!("The arguments of the tool `{name}` must be an object.");
        Failure::invalid(message).param("tools")
    })
}

/// The schema with `object` as its type. `None` if it allows only other types.
fn with_object_type(schema: &str) -> Option<Cow<'_, str>> {
    let mut cursor = Cursor::new(schema);
    let mut fields = Fields::read(&mut cursor).ok()??;
    let Some(kind) = fields.take("type") else {
        let inside = schema.trim_start().strip_prefix('{')?;
        let comma = if inside.trim_start().starts_with('}') {
            ""
        } else {
            ","
        };
        return Some(format!(r#"{{"type":"object"{comma}{inside}"#).into());
    };
    if kind.string().is_some_and(|kind| kind.is("object")) {
        return Some(schema.into());
    }
    let mut has_object = false;
    if kind.shape() == Shape::Array {
        let read = Cursor::new(kind.text()).array(|cursor| {
            has_object |= cursor
                .value()?
                .string()
                .is_some_and(|kind| kind.is("object"));
            Ok::<(), SyntaxError>(())
        });
        read.ok()?;
    }
    let span = kind.span();
    let (before, after) = (schema.get(..span.start)?, schema.get(span.end..)?);
    has_object.then(|| format!(r#"{before}"object"{after}"#).into())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static COMPARISONS: Cell<u32> = const { Cell::new(0) };
    }

    /// A name that counts how often it is compared.
    #[expect(
        clippy::derived_hash_with_manual_eq,
        reason = "equal names have equal hashes, as with the derived comparison"
    )]
    #[derive(Clone, Copy, Debug, Eq, Hash)]
    struct Counted(u32);

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0 == other.0
        }
    }

    #[test]
    fn many_names_are_compared_with_few_others() {
        let found = distinct([2, 1, 2, 3, 1].into_iter());
        assert_eq!(found, [2, 1, 3]);
        let found = distinct((0..10_000).map(Counted));
        assert_eq!(found.len(), 10_000);
        assert!(COMPARISONS.get() < 10_000, "{}", COMPARISONS.get());
    }
}
