//! What the convert path asks of the table, too.

use super::places::{self, Output};
use super::sighting::Sighting;
use crate::dialect::Dialect;
use crate::json::{Cursor, utf8};

/// Whether data is the one that ends a stream.
pub(crate) fn is_end_mark(dialect: Dialect, data: &[u8]) -> bool {
    let done = places::of(dialect).done;
    done.is_some_and(|done| data.trim_ascii() == done.data.as_bytes())
}

/// Whether an answer or an event reports usage that cannot be billed by, which is worth an alarm.
/// Cheap for those that report none.
pub(crate) fn reports_unbillable_usage(dialect: Dialect, data: &[u8]) -> bool {
    let places = places::of(dialect);
    if !mentions(data, places.usage) {
        return false;
    }
    let Ok(text) = utf8(data) else {
        return false;
    };
    let mut output = Output::default();
    let sighting = Sighting::of_object(places, &mut Cursor::new(text), &mut output);
    sighting.is_ok_and(|sighting| sighting.usage_malformed)
}

/// Whether a member of this name stands anywhere with a value but `null`. Inside a string the
/// quotes would be escaped.
fn mentions(data: &[u8], name: &str) -> bool {
    memchr::memmem::find_iter(data, name.as_bytes()).any(|at| {
        let quoted = at > 0 && data.get(at - 1) == Some(&b'"');
        let rest = data.get(at + name.len()..).unwrap_or_default();
        let value = rest
            .strip_prefix(b"\"")
            .map(<[u8]>::trim_ascii_start)
            .and_then(|rest| rest.strip_prefix(b":"))
            .map(<[u8]>::trim_ascii_start);
        quoted && value.is_some_and(|value| !value.starts_with(b"null"))
    })
}
