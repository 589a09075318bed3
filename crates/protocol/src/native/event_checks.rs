//! Checks of an event that the convert path makes with the table, too.

use super::inspection::{Form, Inspection};
use super::places::Output;
use super::table::places_of;
use crate::dialect::Dialect;
use crate::json::{Cursor, utf8};
use crate::tool::ToolCalls;

/// Whether data is the one that ends a stream.
pub(crate) fn is_end_mark(dialect: Dialect, data: &[u8]) -> bool {
    let done = places_of(dialect).done;
    done.is_some_and(|done| data.trim_ascii() == done.data.as_bytes())
}

/// Whether an answer or an event reports usage that cannot be billed by, which is worth an alarm.
/// Cheap for those that report none.
pub(crate) fn reports_unbillable_usage(dialect: Dialect, data: &[u8]) -> bool {
    let places = places_of(dialect);
    let Some(value) = mentioned(data, places.usage) else {
        return false;
    };
    let report = utf8(value).map(|value| Cursor::new(value).value());
    if let Ok(Ok(report)) = report
        && (places.read_usage)(report, None).is_some()
    {
        return false;
    }
    // Something of that name is no report. Whether it stands where one should be takes longer.
    let Ok(text) = utf8(data) else {
        return false;
    };
    let mut output = Output::default();
    let inspection =
        Inspection::of_object(places, Form::Event, &mut Cursor::new(text), &mut output);
    inspection.is_ok_and(|inspection| inspection.usage_malformed)
}

/// Counts the calls of built-in tools in what an upstream of another dialect says.
#[derive(Debug, Default)]
pub(crate) struct ToolWatch(Output);

impl ToolWatch {
    /// Looks at an answer or an event. Cheap for those that tell of no tool.
    pub(crate) fn look(&mut self, dialect: Dialect, data: &[u8]) {
        let places = places_of(dialect);
        if !places.tool_needles.iter().any(|word| word.is_in(data)) {
            return;
        }
        if let Ok(text) = utf8(data) {
            // What cannot be read is the reader's to judge.
            let _ = Inspection::of_object(places, Form::Event, &mut Cursor::new(text), &mut self.0);
        }
    }

    pub(crate) fn calls(&self) -> ToolCalls {
        self.0.tools
    }
}

/// What stands behind the first member of this name with a value but `null`, wherever it is.
/// Inside a string the quotes would be escaped.
fn mentioned<'a>(data: &'a [u8], name: &str) -> Option<&'a [u8]> {
    memchr::memmem::find_iter(data, name.as_bytes()).find_map(|at| {
        let quoted = at > 0 && data.get(at - 1) == Some(&b'"');
        let rest = data.get(at + name.len()..).filter(|_| quoted)?;
        let value = rest.strip_prefix(b"\"")?.trim_ascii_start();
        let value = value.strip_prefix(b":")?.trim_ascii_start();
        (!value.starts_with(b"null")).then_some(value)
    })
}
