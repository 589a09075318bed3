//! The checks of answers and events that the native path and the convert path share.

use super::dispatch::layout_of;
use super::inspection::{Inspection, ObjectKind};
use crate::answer_layout::Output;
use crate::dialect::Dialect;
use crate::json::{Cursor, utf8};
use crate::tool::ToolCalls;

pub(crate) fn is_end_mark(dialect: Dialect, data: &[u8]) -> bool {
    layout_of(dialect).is_end_mark(data)
}

/// Whether an answer or an event reports usage that cannot be used for billing, which is worth an
/// alarm. The check is cheap for texts without a usage report.
pub(crate) fn reports_unbillable_usage(dialect: Dialect, data: &[u8]) -> bool {
    let layout = layout_of(dialect);
    let Some(value) = mentioned(data, layout.usage) else {
        return false;
    };
    let usage = utf8(value).map(|value| (layout.read_usage)(&mut Cursor::new(value), None));
    if matches!(usage, Ok(Ok(Some(_)))) {
        return false;
    }
    // A member has the right name but not the form of a report. Only a full pass can tell whether
    // it is in the place of the usage report.
    let Ok(text) = utf8(data) else {
        return false;
    };
    let mut output = Output::default();
    let inspection = Inspection::of_object(
        layout,
        ObjectKind::Event,
        &mut Cursor::new(text),
        &mut output,
    );
    inspection.is_ok_and(|inspection| inspection.usage_malformed)
}

/// Counts calls of built-in tools in the answer of an upstream that uses another dialect.
#[derive(Debug, Default)]
pub(crate) struct ToolCallCounter(Output);

impl ToolCallCounter {
    /// Inspects an answer or an event. The check is cheap for texts that mention no tool.
    pub(crate) fn count(&mut self, dialect: Dialect, data: &[u8]) {
        let layout = layout_of(dialect);
        if !layout.tool_needles.iter().any(|word| word.is_in(data)) {
            return;
        }
        if let Ok(text) = utf8(data) {
            // The reader reports texts that cannot be parsed.
            let _ = Inspection::of_object(
                layout,
                ObjectKind::Event,
                &mut Cursor::new(text),
                &mut self.0,
            );
        }
    }

    pub(crate) fn calls(&self) -> ToolCalls {
        self.0.tools
    }
}

/// The text after the first member with this name whose value is not `null`, at any depth. The
/// quotes would be escaped inside a string, so a string cannot match.
fn mentioned<'a>(data: &'a [u8], name: &str) -> Option<&'a [u8]> {
    memchr::memmem::find_iter(data, name.as_bytes()).find_map(|at| {
        let quoted = at > 0 && data.get(at - 1) == Some(&b'"');
        let rest = data.get(at + name.len()..).filter(|_| quoted)?;
        let value = rest.strip_prefix(b"\"")?.trim_ascii_start();
        let value = value.strip_prefix(b":")?.trim_ascii_start();
        (!value.starts_with(b"null")).then_some(value)
    })
}
